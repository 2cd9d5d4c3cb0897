/* SPDX-License-Identifier: BSD-3-Clause */
/* who: identifies the processes and threads of events, and collects their metadata. Two mentions
 * are the same process if they share host and pid or, without a host, file and pid; merge, summary
 * and tables use the same rule. It does not store events. */
#ifndef COP_TRACE_WHO_H
#define COP_TRACE_WHO_H

#include "base/base/htab.h"
#include "trace/read/read.h"

struct process {
	uint32_t number; /* pid in the timeline */
	struct cop_trace_str host, pid, name, labels;
	bool has_rank;
	uint64_t rank;
	size_t source;          /* the first file that mentions it */
	struct thread **thread; /* into struct crew */
	size_t threads;
};
struct thread {
	struct process *process;
	uint32_t number; /* tid in the timeline */
	bool is_own;     /* number equals the tid in the files */
	struct cop_trace_str tid, name;
	int64_t last_ns;
};

/* The processes and threads that one thread of ours has seen in events. */
struct seen {
	struct cop_htab table;
	struct mention *before; /* mention that matched the previous event */
};
/* Records the process and thread of an event, and any metadata it has about them. -ENOMEM. */
int cop_seen_take(struct seen *s, const struct cop_trace_event *e);
void cop_seen_free(struct seen *s);

struct crew {
	struct process *process; /* in output order */
	size_t processes;
	struct thread *thread;
	struct thread **of; /* by process */
	size_t threads;
};
/* Merges n tables into the first one. -ENOMEM. */
int cop_crew_new(struct seen *all, unsigned n, struct crew *out);
void cop_crew_free(struct crew *c);
/* Appends "HOST rank N: NAME LABELS (pid P)"; the file's name replaces HOST if events name no
 * host. */
void cop_process_label(
	const struct cop_trace_files *files, const struct process *p, struct cop_buf *to);
/* Returns the thread of an event that cop_seen_take has recorded and that is not metadata; never
 * NULL. */
const struct thread *cop_crew_find(struct seen *first, const struct cop_trace_event *e);

#endif
