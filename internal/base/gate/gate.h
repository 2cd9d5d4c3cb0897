/* SPDX-License-Identifier: BSD-3-Clause */
/* gate: every request from outside enters the process through a gate. The gate knows the state of
 * the process, admits the requests that are allowed in that state, and counts those inside, so that
 * the process frees what they use only when the gate is closed and empty. It does not know requests
 * and writes no refusals: the caller does. */
#ifndef COP_GATE_H
#define COP_GATE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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

/* Starting, with nobody inside. */
void cop_gate_init(struct cop_gate *g);
/* The gate must be empty, and nobody may enter any more. */
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
/* Not from inside. Returns when nobody is inside. Waits without a limit, so the caller must make
 * sure that all of them will leave. */
void cop_gate_drain(struct cop_gate *g);

#endif
