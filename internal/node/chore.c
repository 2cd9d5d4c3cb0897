/* SPDX-License-Identifier: BSD-3-Clause */
/* What may wait for a disk is done by the main thread, which has nothing else to do while the node
 * lives. */
#include "node/node_priv.h"

/* Clients of the control socket and requests of other nodes are bounded already; this is what they
 * may have here together. */
#define CHORES_MAX 256

bool cop_node_chore(struct cop_node *n, struct chore *c)
{
	bool taken;

	pthread_mutex_lock(&n->lock);
	taken = !n->chores_closed && n->chore_count < CHORES_MAX;
	if (taken) {
		cop_list_push_back(&n->chores, &c->link);
		n->chore_count++;
	}
	pthread_mutex_unlock(&n->lock);
	if (taken)
		cop_node_wake(n);
	return taken;
}

void cop_node_chores(struct cop_node *n, bool close)
{
	struct cop_list *l;

	do {
		pthread_mutex_lock(&n->lock);
		l = cop_list_pop_front(&n->chores);
		n->chore_count -= l != NULL;
		n->chores_closed |= close && !l;
		pthread_mutex_unlock(&n->lock);
		if (l) {
			struct chore *c = COP_CONTAINER_OF(l, struct chore, link);

			c->run(n, c);
		}
	} while (l);
}
