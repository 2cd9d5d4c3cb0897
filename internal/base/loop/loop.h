/* SPDX-License-Identifier: BSD-3-Clause */
/* loop: hands work that may block on a disk to the main thread, which is idle while a node runs.
 * The work comes from threads that must not block. A queue is bounded: it refuses work when it
 * is full or closed, which the caller reports to the requester. It has no thread. */
#ifndef COP_BASE_LOOP_H
#define COP_BASE_LOOP_H

#include "base/base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* Maximum number of work items in a queue. Clients of the control socket and requests of other
 * nodes are bounded separately; this bounds their sum. */
#define COP_DEFER_MAX 256

/* A work item, embedded in a struct of the caller. */
struct cop_deferred {
	struct cop_list link;
	void (*run)(struct cop_deferred *d); /* takes ownership of d */
};

/* In the caller's memory; its fields are private to this module. */
struct cop_defer {
	pthread_mutex_t
		lock; /* for the list, the count and closed; run and wake are called without it */
	struct cop_list list;
	unsigned count;
	bool closed;
	void (*wake)(void *ctx);
	void *ctx;
};

/* wake is called on the adding thread, per item; it must cause the main thread to call
 * cop_defer_run. */
void cop_defer_init(struct cop_defer *q, void (*wake)(void *ctx), void *ctx);
/* The queue must be empty, and no thread may add to it afterwards. */
void cop_defer_fini(struct cop_defer *q);
/* Any thread. True: cop_defer_run will run d once. False: the queue is full or closed, and d
 * remains the caller's. */
bool cop_defer_add(struct cop_defer *q, struct cop_deferred *d);
/* Main thread. Runs the queued items in order of arrival, including items added during the call.
 * With close, the queue refuses further work, and all accepted items have run on return. */
void cop_defer_run(struct cop_defer *q, bool close);

/* gate: all requests from outside pass a gate. It has the state of the process, admits the
 * requests allowed in that state, and counts those inside: shared objects are freed only when
 * the gate is closed and empty. Refusals are sent by the caller. */

/* States, as bits, because a request may be allowed in several. */
enum {
	COP_GATE_STARTING = 1, /* startup is incomplete */
	COP_GATE_OPEN = 2,
	COP_GATE_CLOSED = 4, /* the process is ending, and objects are about to be freed */
};

/* In the caller's memory; its fields are private to this module. */
struct cop_gate {
	pthread_mutex_t lock; /* for the other fields */
	pthread_cond_t empty;
	unsigned state;
	uint32_t inside;
};

/* State: starting, with no thread inside. */
void cop_gate_init(struct cop_gate *g);
/* The gate must be empty, and no thread may enter afterwards. */
void cop_gate_fini(struct cop_gate *g);
/* Any thread. Whether the caller was admitted: only in the states in when. Every admitted caller
 * leaves exactly once. */
bool cop_gate_enter(struct cop_gate *g, unsigned when);
/* Any thread. Counts one more inside, in any state. For a caller that is inside and starts work
 * that completes later and then leaves separately. */
void cop_gate_more(struct cop_gate *g);
/* Any thread. */
void cop_gate_leave(struct cop_gate *g);
/* Any thread. From starting to open; no effect on a closed gate. */
void cop_gate_open(struct cop_gate *g);
/* Any thread. Final. */
void cop_gate_close(struct cop_gate *g);
/* Not from inside. Returns when no thread is inside. Waits without a limit, so the caller must
 * ensure that all of them leave. */
void cop_gate_drain(struct cop_gate *g);

/* waker: a node's main thread sleeps here until another thread wakes it, a signal arrives, the
 * command that started the node exits, or its mount is removed. The caller decides how to react. */

/* The reasons, as bits. */
enum cop_waker_reason {
	COP_WAKER_WOKEN = 1,
	COP_WAKER_SIGNAL = 2,    /* persists: the signal stays pending */
	COP_WAKER_DESERTED = 4,  /* persists: the start's pipe has no reader */
	COP_WAKER_UNMOUNTED = 8, /* persists */
};

/* In the caller's memory; its fields are private to this module. */
struct cop_waker {
	int wake_fd, signal_fd, report_fd, gone_fd;
	_Atomic bool ending;
};

/* Main thread, before it starts others: blocks, for all later threads too, the signals that end
 * a node, and ignores those that must not. report_fd: the write end of a pipe to the process
 * that waits for the start, still owned by the caller; -1: none. 0, or -errno with a sentence;
 * call cop_waker_fini in any case. */
int cop_waker_init(struct cop_waker *w, int report_fd, struct cop_err *err);
/* No thread may call cop_waker_wake afterwards. */
void cop_waker_fini(struct cop_waker *w);

/* Main thread. The start has ended, and report_fd is about to be closed. */
void cop_waker_started(struct cop_waker *w);
/* Main thread. gone_fd becomes readable when the mount is removed; the caller keeps it open. */
void cop_waker_watch_mount(struct cop_waker *w, int gone_fd);
/* Main thread. Sleeps until one of these reasons applies, at most timeout_ms (-1: no limit).
 * Returns all that apply; 0: none, or the sleep was interrupted. A wake is consumed. */
unsigned cop_waker_wait(struct cop_waker *w, unsigned reasons, int timeout_ms);
/* Main thread. The reason for the interruption of this start, worded to follow the node's name;
 * NULL: not interrupted. */
const char *cop_waker_interrupted(struct cop_waker *w);

/* Any thread; the argument is a struct cop_waker. */
void cop_waker_wake(void *waker);
/* The same, and the node must end. */
void cop_waker_end(void *waker);
bool cop_waker_is_ending(const struct cop_waker *w);

#endif
