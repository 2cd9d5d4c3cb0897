/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; order.c sorts them; args.c copies args. There is no lock: each
 * thread that adds has a table of its own. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/timeline.h"
#include "trace/who/who.h"

/* ---- merge.c ---- */

/* A number for an id: depending on its kind, ids differ if their file, process or scope does. */
uint64_t cop_merge_id(const struct cop_trace_event *e, const struct process *p, bool flow,
	struct cop_trace_str text);

/* ---- page.c ---- */

struct cop_page_out {
	cop_merge_write_fn *write;
	void *arg;
};
/* page_files.c: the parts of the page that are always the same. */
extern const char cop_timeline_css[], cop_timeline_js[], cop_timeline_html[];

/* ---- args.c ---- */

/* Appends a value that is JSON but for what strings contain, without its line breaks. False, and
 * nothing is appended, if strings need a look. */
bool cop_members_copy_plain(struct cop_buf *out, struct cop_trace_str value);

#endif
