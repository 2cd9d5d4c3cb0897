/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; order.c sorts them; args.c copies args. There is no lock: each
 * thread that adds has a table of its own. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/timeline.h"
#include "trace/who/who.h"

/* ---- args.c ---- */

/* Appends a value that is JSON but for what strings contain, without its line breaks. False, and
 * nothing is appended, if strings need a look. */
bool cop_members_copy_plain(struct cop_buf *out, struct cop_trace_str value);

#endif
