/* SPDX-License-Identifier: BSD-3-Clause */
/* who: the processes and threads that events mention, and what metadata say about them. Two
 * mentions are one process if they share host and pid or, without a host, file and pid: so merge,
 * summary and tables agree on who is who. It keeps no event. */
#ifndef COP_TRACE_WHO_H
#define COP_TRACE_WHO_H

#include "base/base/htab.h"
#include "trace/read/read.h"

struct process {
	uint32_t number; /* the pid in the timeline */
	struct cop_trace_str host, pid, name, labels;
	bool has_rank;
	uint64_t rank;
	size_t source;          /* the first file that mentions it */
	struct thread **thread; /* into struct crew */
	size_t threads;
};
struct thread {
	struct process *process;
	uint32_t number; /* the tid in the timeline */
	bool is_own;     /* whether that is the number in the files */
	struct cop_trace_str tid, name;
	int64_t last_ns;
};

/* A process and a thread as a file names them. */
struct seen {
	struct cop_htab table;
	struct mention *before; /* the mention of the last event */
};
/* Takes the process and the thread of an event, and what metadata say about them. -ENOMEM. */
int cop_seen_take(struct seen *s, const struct cop_trace_event *e);
void cop_seen_free(struct seen *s);

struct crew {
	struct process *process; /* in the order in which they are shown */
	size_t processes;
	struct thread *thread;
	struct thread **of; /* by process */
	size_t threads;
};
/* Combines what n tables have seen; afterwards the first table has all of it. -ENOMEM. */
int cop_crew_new(struct seen *all, unsigned n, struct crew *out);
void cop_crew_free(struct crew *c);
/* Appends "HOST rank N: NAME LABELS (pid P)"; if events name no host, the name of the file is in
 * its place. */
void cop_process_label(
	const struct cop_trace_files *files, const struct process *p, struct cop_buf *to);
/* The thread of an event that was taken and is not metadata; never NULL. */
const struct thread *cop_crew_find(struct seen *first, const struct cop_trace_event *e);

#endif
