/* SPDX-License-Identifier: BSD-3-Clause */
/* defer: work that may wait for a disk, handed from threads that must not wait to the main thread,
 * which has nothing else to do while a node lives. A queue is bounded: it refuses work when it is
 * full or closed, and the caller says so to whoever asked. It has no thread of its own. */
#ifndef COP_DEFER_H
#define COP_DEFER_H

#include <pthread.h>
#include <stdbool.h>

#include "base/base.h"

/* Pieces of work in one queue. Clients of the control socket and requests of other nodes are
 * bounded already; this is what they may have here together. */
#define COP_DEFER_MAX 256

/* A piece of work, inside a struct of the caller. */
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

/* wake: called on the thread that adds, for each piece of work; the main thread is then to call
 * cop_defer_run. */
void cop_defer_init(struct cop_defer *q, void (*wake)(void *ctx), void *ctx);
/* The queue is empty, and nobody adds to it any more. */
void cop_defer_fini(struct cop_defer *q);
/* Any thread. True: d is run once, by cop_defer_run. False: the queue is full or closed, and d is
 * still the caller's. */
bool cop_defer_add(struct cop_defer *q, struct cop_deferred *d);
/* Main thread. Runs what is there, in the order in which it came, and what is added meanwhile.
 * close: and then takes no more, for ever; all that was taken has run when this returns. */
void cop_defer_run(struct cop_defer *q, bool close);

#endif
