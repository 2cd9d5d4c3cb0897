/* SPDX-License-Identifier: BSD-3-Clause */
/* merge.c takes and writes events; who.c knows the processes and threads; args.c copies args. There
 * is no lock: each thread that adds has a table of its own. */
#ifndef COP_TRACE_TIMELINE_PRIV_H
#define COP_TRACE_TIMELINE_PRIV_H

#include "base/base/htab.h"
#include "trace/timeline/timeline.h"

/* ---- who.c ---- */

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
/* The thread of an event that was taken and is not metadata; never NULL. */
const struct thread *cop_crew_find(struct seen *first, const struct cop_trace_event *e);

/* ---- args.c ---- */

/* Appends a value, or the inside of a string, as valid JSON: control characters are escaped,
 * invalid UTF-8 becomes U+FFFD, and what is not a number becomes null. */
void cop_members_copy(struct cop_buf *out, struct cop_trace_str value);
void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text);
/* Appends a value that is JSON but for what strings contain, without its line breaks. False, and
 * nothing is appended, if strings need a look. */
bool cop_members_copy_plain(struct cop_buf *out, struct cop_trace_str value);

#endif
