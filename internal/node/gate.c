/* SPDX-License-Identifier: BSD-3-Clause */
/* The gate in front of everything that comes to a node from outside: requests of other nodes,
 * commands, questions of rpc. It knows how far the node has come, and counts who is inside. What is
 * freed at the end is freed when the gate is closed and nobody is inside. */
#include "node/node_priv.h"

void cop_node_gate_init(struct gate *g)
{
	*g = (struct gate){.state = GATE_STARTING};
	pthread_mutex_init(&g->lock, NULL);
	pthread_cond_init(&g->empty, NULL);
}

void cop_node_gate_fini(struct gate *g)
{
	pthread_cond_destroy(&g->empty);
	pthread_mutex_destroy(&g->lock);
}

bool cop_node_gate_enter(struct gate *g, unsigned when)
{
	bool in;

	pthread_mutex_lock(&g->lock);
	in = (g->state & when) != 0;
	g->inside += in;
	pthread_mutex_unlock(&g->lock);
	return in;
}

void cop_node_gate_more(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->inside++;
	pthread_mutex_unlock(&g->lock);
}

void cop_node_gate_leave(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	if (!--g->inside)
		pthread_cond_broadcast(&g->empty);
	pthread_mutex_unlock(&g->lock);
}

void cop_node_gate_open(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	if (g->state == GATE_STARTING)
		g->state = GATE_OPEN;
	pthread_mutex_unlock(&g->lock);
}

void cop_node_gate_close(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	g->state = GATE_CLOSED;
	pthread_mutex_unlock(&g->lock);
}

void cop_node_gate_drain(struct gate *g)
{
	pthread_mutex_lock(&g->lock);
	while (g->inside)
		pthread_cond_wait(&g->empty, &g->lock);
	pthread_mutex_unlock(&g->lock);
}
