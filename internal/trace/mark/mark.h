/* SPDX-License-Identifier: BSD-3-Clause */
/* mark: events of shells and of whole commands, in the format and directory of
 * include/copper/mark.h. All events of one shell are appended to one file, by any number of
 * processes concurrently; the file is valid JSON at any time.
 *
 * Programs use include/copper/mark.h (C and C++) or python/copper_mark.py. Both are installed and
 * need no Copper library. */
#ifndef COP_TRACE_MARK_H
#define COP_TRACE_MARK_H

#include "base/base/base.h"

/* The settings in PERFFLOW_OPTIONS. */
struct cop_mark_options {
	bool enabled, compact, usage;
};
/* Parsed once; errors are then reported on standard error. */
struct cop_mark_options cop_mark_options(void);

struct cop_mark_event {
	const char *name, *category;
	char phase;
	pid_t pid; /* of the process that the event describes; also its tid */
	int64_t ts_ns, dur_ns;
	bool counts; /* cpu_percent and memory_kib are args, as in phase 'C' */
	double cpu_percent, memory_kib;
};

/* Appends events to the file of the process shell, in one write. If the file belongs to another
 * user or is no trace, it is not touched and the next name is tried ("-2", at most "-99"). Waits
 * for other writers of the file. 0, or -errno with a message. */
int cop_mark_append(
	pid_t shell, const struct cop_mark_event *events, unsigned n, struct cop_err *err);

#endif
