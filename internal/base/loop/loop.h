/* SPDX-License-Identifier: BSD-3-Clause */
/* loop: hands work that may block on a disk from threads that must not block to the main thread,
 * which is otherwise idle while a node runs. A queue is bounded: when it is full or closed it
 * refuses work, and the caller tells the requester. The module has no thread of its own. */
#ifndef COP_BASE_LOOP_H
#define COP_BASE_LOOP_H

#include "base/base/base.h"

#include <pthread.h>
#include <stdatomic.h>

/* Maximum number of items in a queue. Control-socket clients and requests from other nodes each
 * have their own limits; this one bounds their sum. */
#define COP_DEFER_MAX 256

/* A work item, embedded in a struct of the caller's. */
struct cop_deferred {
	struct cop_list link;
	void (*run)(struct cop_deferred *d); /* takes ownership of d */
};

/* Allocated by the caller; the fields are private to this module. */
struct cop_defer {
	pthread_mutex_t
		lock; /* protects list, count and closed; not held while run or wake is called */
	struct cop_list list;
	unsigned count;
	bool closed;
	void (*wake)(void *ctx);
	void *ctx;
};

/* wake is called once per item, on the thread that adds it; it must make the main thread call
 * cop_defer_run. */
void cop_defer_init(struct cop_defer *q, void (*wake)(void *ctx), void *ctx);
/* The queue must be empty, and no thread may add to it any more. */
void cop_defer_fini(struct cop_defer *q);
/* Any thread. On true, cop_defer_run will run d once. On false, the queue is full or closed, and
 * the caller still owns d. */
bool cop_defer_add(struct cop_defer *q, struct cop_deferred *d);
/* Main thread. Runs the queued items in order of arrival, including any added during the call. With
 * close, the queue then refuses further work, and everything accepted has run on return. */
void cop_defer_run(struct cop_defer *q, bool close);

/* gate: every request from outside passes through a gate. The gate knows the state of the process,
 * admits the requests allowed in that state, and counts those inside, so that shared objects are
 * freed only once it is closed and empty. The caller sends the refusals. */

/* States are bits, because a request may be allowed in several. */
enum {
	COP_GATE_STARTING = 1, /* startup is incomplete */
	COP_GATE_OPEN = 2,
	COP_GATE_CLOSED = 4, /* the process is shutting down and about to free its objects */
};

/* Allocated by the caller; the fields are private to this module. */
struct cop_gate {
	pthread_mutex_t lock; /* protects the other fields */
	pthread_cond_t empty;
	unsigned state;
	uint32_t inside;
};

/* Starts in COP_GATE_STARTING, with nothing inside. */
void cop_gate_init(struct cop_gate *g);
/* The gate must be empty, and no thread may enter any more. */
void cop_gate_fini(struct cop_gate *g);
/* Any thread. Admits the caller if the gate is in one of the states in when; returns whether it
 * did. Each admitted caller must call cop_gate_leave exactly once. */
bool cop_gate_enter(struct cop_gate *g, unsigned when);
/* Any thread. Counts one more inside, whatever the state. For a caller that is inside and starts
 * asynchronous work, which leaves on its own when it completes. */
void cop_gate_more(struct cop_gate *g);
/* Any thread. */
void cop_gate_leave(struct cop_gate *g);
/* Any thread. Moves from starting to open; no effect on a closed gate. */
void cop_gate_open(struct cop_gate *g);
/* Any thread. A closed gate stays closed. */
void cop_gate_close(struct cop_gate *g);
/* Must not be called from inside. Waits until the gate is empty, without a timeout: the caller must
 * make sure that everything inside leaves. */
void cop_gate_drain(struct cop_gate *g);

/* waker: a node's main thread sleeps here until another thread wakes it, a signal arrives, the
 * command that started the node exits, or its mount is removed. The caller decides how to react. */

/* Reasons are bits. */
enum cop_waker_reason {
	COP_WAKER_WOKEN = 1,
	COP_WAKER_SIGNAL = 2,    /* persists: the signal stays pending */
	COP_WAKER_DESERTED = 4,  /* persists: the process that waits for the start has gone */
	COP_WAKER_UNMOUNTED = 8, /* persists */
};

/* Allocated by the caller; the fields are private to this module. */
struct cop_waker {
	int wake_fd, signal_fd, report_fd, gone_fd;
	_Atomic bool ending;
};

/* Main thread, before it starts any other. Blocks the signals that end a node, for all later
 * threads too, and ignores the signals that must not end it. report_fd is the write end of a pipe
 * to the process that waits for the start (-1: none); the caller still owns it. Returns 0, or
 * -errno with err set; call cop_waker_fini in either case. */
int cop_waker_init(struct cop_waker *w, int report_fd, struct cop_err *err);
/* No thread may call cop_waker_wake any more. */
void cop_waker_fini(struct cop_waker *w);

/* Main thread. Startup is over, and report_fd is about to be closed. */
void cop_waker_started(struct cop_waker *w);
/* Main thread. gone_fd becomes readable when the mount is removed; the caller keeps it open. */
void cop_waker_watch_mount(struct cop_waker *w, int gone_fd);
/* Main thread. Sleeps until one of these reasons applies or timeout_ms has passed (-1: no limit).
 * Returns all reasons that apply; 0 if none, or if the sleep was interrupted. Clears
 * COP_WAKER_WOKEN. */
unsigned cop_waker_wait(struct cop_waker *w, unsigned reasons, int timeout_ms);
/* Main thread. Why this start was interrupted, worded to follow the node's name; NULL if it was
 * not. */
const char *cop_waker_interrupted(struct cop_waker *w);

/* Any thread. The argument is a struct cop_waker, as void * for use as a callback. */
void cop_waker_wake(void *waker);
/* Same, and also tells the node to end. */
void cop_waker_end(void *waker);
bool cop_waker_is_ending(const struct cop_waker *w);

#endif
