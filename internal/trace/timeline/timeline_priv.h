/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; who.c knows the processes and threads; args.c copies args. There
 * is no lock: each thread that adds has a table of its own. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/timeline.h"
#include "trace/timeline/who.h"

/* ---- args.c ---- */

/* Appends a value, or the inside of a string, as valid JSON: control characters are escaped,
 * invalid UTF-8 becomes U+FFFD, and what is not a number becomes null. */
void cop_members_copy(struct cop_buf *out, struct cop_trace_str value);
void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text);

#endif
