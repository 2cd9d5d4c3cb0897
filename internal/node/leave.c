/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving the tree. Three kinds of things may be under way when a node ends: what came from others
 * and is worked on by a thread at this moment; what waits for answers of other nodes; what waits
 * for this node itself (its main thread, the end of the start barrier, its own end). The first end
 * by themselves, the second when this node takes its questions back, the third are answered here.
 * The gate counts all of them. */
#include "node/node_priv.h"

void cop_node_leave(struct cop_node *n)
{
	if (n->reach)
		cop_reach_take_back(n->reach);
	/* Without it the start did not come to where anybody could have waited. */
	if (!n->treeop)
		return;
	cop_join_leave(n->join);
	cop_treeop_ended(n->treeop, NULL, NULL);
	cop_defer_run(&n->deferred, true);
	cop_gate_drain(&n->gate);
}
