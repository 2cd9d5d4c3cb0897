/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop/loop.h"

void cop_gate_init(struct cop_gate *g)
{
	*g = (struct cop_gate){.state = COP_GATE_STARTING};
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->empty, NULL);
}

void cop_gate_fini(struct cop_gate *g)
{
	pthread_cond_destroy(&g->empty);
	pthread_mutex_destroy(&g->lock);
}

bool cop_gate_enter(struct cop_gate *g, unsigned when)
{
	bool in;

	pthread_mutex_lock(&g->lock);
	in = (g->state & when) != 0;
	g->inside += in;
	pthread_mutex_unlock(&g->lock);
	return in;
}

void cop_gate_more(struct cop_gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->inside++;
	pthread_mutex_unlock(&g->lock);
}

void cop_gate_leave(struct cop_gate *g)
{
	pthread_mutex_lock(&g->lock);
	if (!--g->inside)
		pthread_cond_broadcast(&g->empty);
	pthread_mutex_unlock(&g->lock);
}

void cop_gate_open(struct cop_gate *g)
{
	pthread_mutex_lock(&g->lock);
	if (g->state == COP_GATE_STARTING)
		g->state = COP_GATE_OPEN;
	pthread_mutex_unlock(&g->lock);
}

void cop_gate_close(struct cop_gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->state = COP_GATE_CLOSED;
	pthread_mutex_unlock(&g->lock);
}

void cop_gate_drain(struct cop_gate *g)
{
	pthread_mutex_lock(&g->lock);
	while (g->inside)
		pthread_cond_wait(&g->empty, &g->lock);
	pthread_mutex_unlock(&g->lock);
}
