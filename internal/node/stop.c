/* SPDX-License-Identifier: BSD-3-Clause */
/* The command that stops the tree, or this node alone. Where the root is dead, the node at which
 * the command came in writes what all nodes have counted. */
#include "node/node_priv.h"

#include <errno.h>
#include <stdlib.h>

/* "stopped 4/4 nodes", then a line for each trouble. A failure is a node that may run on, or whose
 * counts are nowhere. */
static void answer(struct command *c, const struct cop_treeop_sum *g, uint32_t of)
{
	struct cop_node *n = c->node;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "stopped %u/%u nodes\n", g->nodes, of);
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	cop_treeop_sum_say_unwritten(g, &out);
	cop_node_reply(c->conn,
		g->missing || g->nodes < of ? -EHOSTDOWN
		: g->unwritten              ? -EIO
					    : 0,
		&out);
	cop_treeop_sum_free(&c->late);
	free(c);
	atomic_fetch_sub(&n->initiators, 1);
	cop_node_wake(n);
}

static void local_stopped(void *arg, struct cop_treeop_sum *g)
{
	answer(arg, g, 1);
}

/* The root is dead: nobody above has written the sums, nor which nodes are left. */
static void write_late(struct cop_deferred *work)
{
	struct command *c = COP_CONTAINER_OF(work, struct command, work);
	struct cop_node *n = c->node;
	struct cop_err err = {0};

	cop_node_keep_word(n, &c->late);
	if (c->late.prof && cop_node_cluster_write(n, &c->late, &err))
		cop_treeop_sum_unwritten(&c->late, cop_node_host(n, n->rank), err.text);
	answer(c, &c->late, n->topo.nodes);
}

static bool is_without_root(const struct cop_node *n, const struct cop_treeop_sum *g)
{
	for (uint32_t i = 0; i < COP_MIN(g->missing, (uint32_t)COP_TREEOP_NAMED); i++)
		if (g->lost[i] == cop_topo_root(&n->topo, 0))
			return true;
	return false;
}

static void all_stopped(void *arg, struct cop_treeop_sum *g)
{
	struct command *c = arg;

	if (!g->prof && !is_without_root(c->node, g)) {
		answer(c, g, c->node->topo.nodes);
		return;
	}
	cop_treeop_sum_move(&c->late, g);
	c->work.run = write_late;
	if (!cop_defer_add(&c->node->deferred, &c->work))
		answer(c, &c->late, c->node->topo.nodes);
}

void cop_node_stop_command(struct cop_node *n, struct command *c, bool local)
{
	struct cop_treeop_request stop = {COP_TREEOP_STOP, ""};

	atomic_fetch_add(&n->initiators, 1);
	if (local)
		cop_treeop_here(n->treeop, &stop, false, local_stopped, c);
	else
		cop_treeop_all(n->treeop, &stop, all_stopped, c);
}
