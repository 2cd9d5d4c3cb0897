/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; order.c sorts them; args.c copies args. There is no lock: each
 * thread that adds has a table of its own. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/timeline.h"
#include "trace/who/who.h"

#endif
