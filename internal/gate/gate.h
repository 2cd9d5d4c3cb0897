/* SPDX-License-Identifier: BSD-3-Clause */
/* gate: what comes to a process from outside goes through it. It knows how far the process has
 * come, lets in what is meant for that state, and counts who is inside, so that what they use is
 * freed when the gate is closed and nobody is inside. It does not know who comes, and refuses
 * nobody with a sentence: that is for whoever stands at the gate. */
#ifndef COP_GATE_H
#define COP_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* States, as bits, since a visitor may be let in during several of them. */
enum {
	COP_GATE_STARTING = 1, /* not everything is there yet */
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

/* Starting, with nobody inside. */
void cop_gate_init(struct cop_gate *g);
/* Nobody is inside and nobody comes any more. */
void cop_gate_fini(struct cop_gate *g);
/* Any thread. Whether the caller is inside now: it is let in only during the states in when. Each
 * one that was let in leaves once. */
bool cop_gate_enter(struct cop_gate *g, unsigned when);
/* Any thread. One more is inside, whatever the state: for a caller that is inside and leaves
 * something under way that ends later, and then leaves for itself. */
void cop_gate_more(struct cop_gate *g);
/* Any thread. */
void cop_gate_leave(struct cop_gate *g);
/* Any thread. From starting to open; a closed gate stays closed. */
void cop_gate_open(struct cop_gate *g);
/* Any thread. It does not open again. */
void cop_gate_close(struct cop_gate *g);
/* Not from inside. Returns when nobody is inside; waits without a limit, so whoever calls it has
 * seen to it that all of them will leave. */
void cop_gate_drain(struct cop_gate *g);

#endif
