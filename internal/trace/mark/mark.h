/* SPDX-License-Identifier: BSD-3-Clause */
/* mark: writes events for shells and whole commands, in the same format and directory as
 * include/copper/mark.h. All events of one shell go to one file, to which any number of processes
 * may append concurrently; the file is always valid JSON.
 *
 * Programs use include/copper/mark.h (C and C++) or python/copper_mark.py. Both are installed, and
 * neither needs a Copper library. */
#ifndef COP_TRACE_MARK_H
#define COP_TRACE_MARK_H

#include "base/base/base.h"

/* Settings from PERFFLOW_OPTIONS. */
struct cop_mark_options {
	bool enabled, compact, usage;
};
/* Parses PERFFLOW_OPTIONS on the first call and reports errors on standard error. */
struct cop_mark_options cop_mark_options(void);

struct cop_mark_event {
	const char *name, *category;
	char phase;
	pid_t pid; /* the process that the event describes; also used as the tid */
	int64_t ts_ns, dur_ns;
	bool counts; /* write cpu_percent and memory_kib as args, as in phase 'C' */
	double cpu_percent, memory_kib;
};

/* Appends events to the file of the process `shell` in a single write. If the file belongs to
 * another user or is not a trace, leaves it alone and tries the next name ("-2" up to "-99"). Waits
 * for other writers of the file. Returns 0, or -errno with a message. */
int cop_mark_append(
	pid_t shell, const struct cop_mark_event *events, unsigned n, struct cop_err *err);

#endif
