/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; who.c knows the processes and threads; args.c copies args. There
 * is no lock: each thread that adds has a table of its own. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "trace/timeline/args.h"
#include "trace/timeline/timeline.h"
#include "trace/timeline/who.h"

#endif
