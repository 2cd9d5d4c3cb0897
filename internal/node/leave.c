/* SPDX-License-Identifier: BSD-3-Clause */
/* Leaving the tree. Three kinds of things may be under way when a node ends: what came from others
 * and is worked on by a thread at this moment; what waits for answers of other nodes; what waits
 * for this node itself (its main thread, the go, its end). The first end by themselves, the second
 * when this node takes its questions back, the third are answered here. The gate counts all of
 * them. */
#include "node/node_priv.h"

#define FLUSH_MS 1000

/* rpc's threads may be in the rendezvous at this moment, but come to it by n only: when the
 * questions are taken back, none is there any more. */
static void take_back(struct cop_node *n)
{
	struct cop_rendezvous *rendezvous = atomic_exchange(&n->rendezvous, NULL);

	if (!n->rpc)
		return;
	/* Answers that are on their way may share a connection with a question whose bytes must not
	 * come any more. */
	cop_fabric_flush(cop_rpc_fabric(n->rpc), FLUSH_MS);
	cop_rpc_quiet(n->rpc);
	cop_rendezvous_stop(rendezvous);
}

void cop_node_leave(struct cop_node *n)
{
	take_back(n);
	/* Without these the start did not come to where anybody could have waited. */
	if (!n->treeop)
		return;
	if (n->join)
		cop_join_leave(n->join);
	cop_treeop_ended(n->treeop, NULL, NULL);
	cop_defer_run(&n->deferred, true);
	cop_gate_drain(&n->gate);
}
