/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; order.c sorts them; args.c copies args. There is no lock: each
 * thread adds to its own table. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/timeline.h"
#include "trace/who/who.h"

/* ---- merge.c ---- */

/* A number for an id. Depending on their kind, ids are local to their file, process or scope. */
uint64_t cop_merge_id(const struct cop_trace_event *e, const struct process *p, bool flow,
	struct cop_trace_str text);

/* ---- page.c ---- */

struct cop_page_out {
	cop_merge_write_fn *write;
	void *arg;
};
/* page_files.c: the constant parts of the page. */
extern const char cop_timeline_css[], cop_timeline_js[], cop_timeline_html[];

/* ---- args.c ---- */

/* Appends a value that is valid JSON apart from its strings, without line breaks. Returns false and
 * appends nothing if a string needs escaping. */
bool cop_members_copy_plain(struct cop_buf *out, struct cop_trace_str value);

#endif
