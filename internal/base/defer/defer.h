/* SPDX-License-Identifier: BSD-3-Clause */
/* defer: hands work that may wait for a disk to the main thread, which has nothing else to do while
 * a node lives. The work comes from threads that must not wait. A queue is bounded: it refuses work
 * when it is full or closed, and the caller reports that to the requester. It has no thread of its
 * own. */
#ifndef COP_DEFER_H
#define COP_DEFER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/base/base.h"

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
/* The queue must be empty, and nobody may add to it any more. */
void cop_defer_fini(struct cop_defer *q);
/* Any thread. True: cop_defer_run will run d once. False: the queue is full or closed, and the
 * caller keeps d. */
bool cop_defer_add(struct cop_defer *q, struct cop_deferred *d);
/* Main thread. Runs the queued work in the order of arrival, including work that is added during
 * the call. With close, the queue takes no more work afterwards, and all accepted work has run when
 * this returns. */
void cop_defer_run(struct cop_defer *q, bool close);

#endif
