/* SPDX-License-Identifier: BSD-3-Clause */
/* mark: events of shells and of whole commands, in the form and the directory that
 * include/copper/mark.h gives those of programs. All events of one shell go to one file, from any
 * number of processes at the same time; the file is valid JSON at any time.
 *
 * The parts for programs are include/copper/mark.h (C and C++) and python/copper_mark.py: they are
 * installed, and nothing of Copper is linked to them. */
#ifndef COP_TRACE_MARK_H
#define COP_TRACE_MARK_H

#include "base/base/base.h"

/* The settings in PERFFLOW_OPTIONS. */
struct cop_mark_options {
	bool enabled, compact, usage;
};
/* Read once; errors in it are reported on standard error then. */
struct cop_mark_options cop_mark_options(void);

struct cop_mark_event {
	const char *name, *category;
	char phase;
	pid_t pid; /* of the process that it is about, which is its thread too */
	int64_t ts_ns, dur_ns;
	bool counts; /* the two that follow are args, as of phase 'C' */
	double cpu_percent, memory_kib;
};

/* Appends events to the file of the process shell, in one write. A file of that name that cannot be
 * continued, because it is another user's or no trace, is left as it is, and the next name is taken
 * ("-2", at most "-99"). Waits for others that are writing to the same file. 0, or -errno with a
 * sentence. */
int cop_mark_append(
	pid_t shell, const struct cop_mark_event *events, unsigned n, struct cop_err *err);

#endif
