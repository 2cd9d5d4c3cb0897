/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c accepts and writes events; order.c sorts them; args.c copies args. No lock is needed
 * because each thread adds to its own table. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/timeline.h"
#include "trace/who/who.h"

/* ---- merge.c ---- */

/* Returns a number that represents an id. Depending on their kind, ids are local to their file,
 * process or scope. */
uint64_t cop_merge_id(const struct cop_trace_event *e, const struct process *p, bool flow,
	struct cop_trace_str text);

/* ---- page.c ---- */

struct cop_page_out {
	cop_merge_write_fn *write;
	void *arg;
};
/* The constant parts of the page, from page_files.c. */
extern const char cop_timeline_css[], cop_timeline_js[], cop_timeline_html[];

/* ---- args.c ---- */

/* Appends a value without its line breaks. The value must be valid JSON except for its strings. If
 * a string needs escaping, returns false and appends nothing. */
bool cop_members_copy_plain(struct cop_buf *out, struct cop_trace_str value);

#endif
