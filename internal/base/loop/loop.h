/* SPDX-License-Identifier: BSD-3-Clause */
/* loop: hands work that may wait for a disk to the main thread, which has nothing else to do while
 * a node lives. The work comes from threads that must not wait. A queue is bounded: it refuses work
 * when it is full or closed, and the caller reports that to the requester. It has no thread of its
 * own. */
#ifndef COP_BASE_LOOP_H
#define COP_BASE_LOOP_H

#include "base/base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* The most pieces of work in one queue. Clients of the control socket and requests of other nodes
 * are bounded already; this bounds their sum. */
#define COP_DEFER_MAX 256

/* A piece of work, embedded in a struct of the caller. */
struct cop_deferred {
	struct cop_list link;
	void (*run)(struct cop_deferred *d); /* owns d from then on */
};

/* The caller's memory; its fields belong to this module. */
struct cop_defer {
	pthread_mutex_t lock; /* over the list, the count and closed; run and wake are called
				 outside */
	struct cop_list list;
	unsigned count;
	bool closed;
	void (*wake)(void *ctx);
	void *ctx;
};

/* wake is called on the thread that adds, for each piece of work; it must make the main thread call
 * cop_defer_run. */
void cop_defer_init(struct cop_defer *q, void (*wake)(void *ctx), void *ctx);
/* The queue must be empty, and no thread may add to it any more. */
void cop_defer_fini(struct cop_defer *q);
/* Any thread. True: cop_defer_run will run d once. False: the queue is full or closed, and the
 * caller keeps d. */
bool cop_defer_add(struct cop_defer *q, struct cop_deferred *d);
/* Main thread. Runs the queued work in the order of arrival, including work that is added during
 * the call. With close, the queue takes no more work afterwards, and all accepted work has run when
 * this returns. */
void cop_defer_run(struct cop_defer *q, bool close);

/* gate: every request from outside enters the process through a gate. The gate knows the state of
 * the process, admits the requests that are allowed in that state, and counts those inside, so that
 * the process frees what they use only when the gate is closed and empty. It does not know requests
 * and writes no refusals: the caller does. */

/* States, as bits, because a request may be allowed in several of them. */
enum {
	COP_GATE_STARTING = 1, /* not everything exists yet */
	COP_GATE_OPEN = 2,
	COP_GATE_CLOSED = 4, /* the process ends, and things are about to be freed */
};

/* The caller's memory; its fields belong to this module. */
struct cop_gate {
	pthread_mutex_t lock; /* over the others */
	pthread_cond_t empty;
	unsigned state;
	uint32_t inside;
};

/* Starting, with no thread inside. */
void cop_gate_init(struct cop_gate *g);
/* The gate must be empty, and no thread may enter any more. */
void cop_gate_fini(struct cop_gate *g);
/* Any thread. Whether the caller was admitted: only in the states in when. Every admitted caller
 * leaves once. */
bool cop_gate_enter(struct cop_gate *g, unsigned when);
/* Any thread. Counts one more inside, in any state. For a caller that is inside and starts work
 * that ends later and then leaves by itself. */
void cop_gate_more(struct cop_gate *g);
/* Any thread. */
void cop_gate_leave(struct cop_gate *g);
/* Any thread. From starting to open; a closed gate stays closed. */
void cop_gate_open(struct cop_gate *g);
/* Any thread. It does not open again. */
void cop_gate_close(struct cop_gate *g);
/* Not from inside. Returns when no thread is inside. Waits without a limit, so the caller must make
 * sure that all of them will leave. */
void cop_gate_drain(struct cop_gate *g);

/* waker: a node's main thread sleeps here until another thread wakes it, a signal comes, the
 * command that started the node ends, or its mount ends. It decides nothing: the caller knows what
 * follows from each of these. */

/* The reasons, as bits. */
enum cop_waker_reason {
	COP_WAKER_WOKEN = 1,
	COP_WAKER_SIGNAL = 2,    /* persists: the signal stays pending */
	COP_WAKER_DESERTED = 4,  /* persists: the start's pipe has no reader any more */
	COP_WAKER_UNMOUNTED = 8, /* persists */
};

/* Lives in the caller's memory; its fields belong to this module. */
struct cop_waker {
	int wake_fd, signal_fd, report_fd, gone_fd;
	_Atomic bool ending;
};

/* Main thread, before it starts others: blocks the signals that end a node, in all threads from
 * here on, and ignores those that must not end it. report_fd: the write end of a pipe to the
 * process that waits for the start, which stays the caller's; -1: there is none. 0, or -errno with
 * a sentence; call cop_waker_fini in any case. */
int cop_waker_init(struct cop_waker *w, int report_fd, struct cop_err *err);
/* Nothing may wake it any more. */
void cop_waker_fini(struct cop_waker *w);

/* Main thread. The start has ended, and report_fd is about to be closed. */
void cop_waker_started(struct cop_waker *w);
/* Main thread. gone_fd becomes readable when the mount is gone; the caller keeps it open. */
void cop_waker_watch_mount(struct cop_waker *w, int gone_fd);
/* Main thread. Sleeps until one of these reasons exists, at most timeout_ms (-1: no limit). Returns
 * the reasons that exist; 0: none, or the sleep was interrupted. A wake is consumed. */
unsigned cop_waker_wait(struct cop_waker *w, unsigned reasons, int timeout_ms);
/* Main thread. What has interrupted this start, in words that follow the node's name; NULL: nothing
 * has. */
const char *cop_waker_interrupted(struct cop_waker *w);

/* Any thread; the argument is a struct cop_waker. */
void cop_waker_wake(void *waker);
/* The same, and the node must end. */
void cop_waker_end(void *waker);
bool cop_waker_is_ending(const struct cop_waker *w);

#endif
