/* SPDX-License-Identifier: BSD-3-Clause */
/* Stopping a subtree: the nodes below first, then this one, whose main thread unmounts, adds what
 * this node has counted to what came from below, and answers. The sums of the whole job thus arrive
 * at the root, which writes them; where the root is dead, the node at which the command came in
 * does. However often a node is asked, it asks those below once and gives everyone the same answer,
 * so that nothing is counted twice; also when it has unmounted, for the one above it may have died
 * with the first answer. */
#include "node/node_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void end_this_node(struct cop_node *n)
{
	atomic_store(&n->stopping, true);
	cop_node_wake(n);
}

static void stopped_below(void *arg, struct gathered *g)
{
	struct cop_node *n = arg;

	pthread_mutex_lock(&n->lock);
	/* A signal may have ended this node before they answered. */
	if (!n->stopped) {
		n->stop_result = *g;
		n->stop_answered = true;
		g->text = (struct cop_buf){0};
		g->prof = NULL;
	}
	pthread_mutex_unlock(&n->lock);
	end_this_node(n);
}

bool cop_node_stopped_alone(struct cop_node *n)
{
	bool alone;

	pthread_mutex_lock(&n->lock);
	alone = n->stopped && !n->stop_asked;
	pthread_mutex_unlock(&n->lock);
	return alone;
}

void cop_node_stop_here(struct doing *d)
{
	struct cop_node *n = d->node;
	struct gathered nothing = {0}, alone = {.nodes = 1};
	struct task task = {.op = OP_STOP, .path = ""};
	bool first, now, over;

	pthread_mutex_lock(&n->lock);
	first = !n->stop_asked && !d->local;
	n->stop_asked |= first;
	now = !n->stop_asked;
	over = n->stopped;
	if (!over)
		cop_list_push_back(&n->stop_requests, &d->link);
	pthread_mutex_unlock(&n->lock);
	if (over) {
		d->done(d->arg, d->local ? &alone : &n->stop_result);
		cop_node_doing_free(d);
		return;
	}
	/* From here on d may be gone. */
	if (first && cop_node_gather_below(n, &task, stopped_below, n))
		stopped_below(n, &nothing);
	else if (now)
		end_this_node(n);
}

/* ---- this node has unmounted ---- */

/* The root takes the sums out of the answer. counted: that files of this node are missing is known
 * already. */
static void settle_sums(struct cop_node *n, struct gathered *g, bool counted)
{
	struct cop_err err = {0};

	cop_node_cluster_add(n, g);
	if (!g->prof || n->rank != cop_topo_root(&n->topo, 0))
		return;
	if (cop_node_cluster_write(n, g, &err)) {
		g->unwritten -= counted;
		cop_node_gathered_unwritten(g, cop_node_host(n, n->rank), err.text);
	}
	cop_prof_sum_free(g->prof);
	g->prof = NULL;
}

/* For a stop that comes later: nothing is left to do for it, or these ranks. Without the secret it
 * could not stop them. */
static void keep_word(struct cop_node *n, const struct gathered *all)
{
	if (all->nodes + all->missing != n->topo.nodes)
		return;
	cop_node_write_tree(n, all);
	if (!all->missing && n->conf->job_dir)
		cop_job_secret_retire(n->job_dir, &n->secret);
}

static void add_holders(struct cop_node *n, const char *holders, struct gathered *g)
{
	if (holders && *holders)
		cop_buf_printf(&g->text, "%s%s: %s was unmounted lazily, still held by %s",
			g->text.len ? "\n" : "", cop_node_host(n, n->rank), n->mountpoint, holders);
}

void cop_node_stopped(struct cop_node *n, const char *holders, const char *unwritten)
{
	struct gathered all, own = {.nodes = 1};
	struct cop_list list, *l;
	bool answered;

	pthread_mutex_lock(&n->lock);
	all = n->stop_result;
	n->stop_result = (struct gathered){0};
	answered = n->stop_answered;
	pthread_mutex_unlock(&n->lock);
	all.nodes++;
	if (unwritten) {
		cop_node_gathered_unwritten(&all, cop_node_host(n, n->rank), unwritten);
		cop_node_gathered_unwritten(&own, cop_node_host(n, n->rank), unwritten);
	}
	/* Ended by a signal meanwhile, it has not what the nodes below counted. */
	if (answered)
		settle_sums(n, &all, unwritten);
	if (answered && n->rank == 0)
		keep_word(n, &all);
	add_holders(n, holders, &all);
	add_holders(n, holders, &own);
	cop_list_init(&list);
	pthread_mutex_lock(&n->lock);
	cop_list_splice(&list, &n->stop_requests);
	n->stop_result = all;
	n->stopped = true;
	pthread_mutex_unlock(&n->lock);
	while ((l = cop_list_pop_front(&list))) {
		struct doing *d = COP_CONTAINER_OF(l, struct doing, link);

		d->done(d->arg, d->local ? &own : &n->stop_result);
		cop_node_doing_free(d);
	}
	cop_node_gathered_free(&own);
}

/* ---- the command ---- */

/* "stopped 4/4 nodes", then a line for each trouble. A failure is a node that may run on, or whose
 * counts are nowhere. */
static void answer(struct command *c, const struct gathered *g, uint32_t of)
{
	struct cop_node *n = c->node;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "stopped %u/%u nodes\n", g->nodes, of);
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	cop_node_gathered_say_unwritten(g, &out);
	cop_node_reply(c->conn,
		g->missing || g->nodes < of ? -EHOSTDOWN
		: g->unwritten              ? -EIO
					    : 0,
		&out);
	cop_node_gathered_free(&c->late);
	free(c);
	atomic_fetch_sub(&n->initiators, 1);
	cop_node_wake(n);
}

static void local_stopped(void *arg, struct gathered *g)
{
	answer(arg, g, 1);
}

/* The root is dead: nobody above has written the sums, nor which nodes are left. */
static void write_late(struct cop_deferred *work)
{
	struct command *c = COP_CONTAINER_OF(work, struct command, work);
	struct cop_node *n = c->node;
	struct cop_err err = {0};

	keep_word(n, &c->late);
	if (c->late.prof && cop_node_cluster_write(n, &c->late, &err))
		cop_node_gathered_unwritten(&c->late, cop_node_host(n, n->rank), err.text);
	answer(c, &c->late, n->topo.nodes);
}

static bool is_without_root(const struct cop_node *n, const struct gathered *g)
{
	for (uint32_t i = 0; i < COP_MIN(g->missing, (uint32_t)MISSING_NAMED); i++)
		if (g->lost[i] == cop_topo_root(&n->topo, 0))
			return true;
	return false;
}

static void all_stopped(void *arg, struct gathered *g)
{
	struct command *c = arg;

	if (!g->prof && !is_without_root(c->node, g)) {
		answer(c, g, c->node->topo.nodes);
		return;
	}
	c->late = *g;
	g->text = (struct cop_buf){0};
	g->prof = NULL;
	c->work.run = write_late;
	if (!cop_defer_add(&c->node->deferred, &c->work))
		answer(c, &c->late, c->node->topo.nodes);
}

void cop_node_stop_command(struct cop_node *n, struct command *c, bool local)
{
	struct task task = {.op = OP_STOP, .path = ""};
	struct gathered nothing = {0};
	struct doing *d;

	atomic_fetch_add(&n->initiators, 1);
	if (!local) {
		if (cop_node_gather(n, &task, cop_topo_root(&n->topo, 0), all_stopped, c))
			all_stopped(c, &nothing);
		return;
	}
	d = cop_node_doing(n, &task, local_stopped, c);
	if (!d) {
		local_stopped(c, &nothing);
		return;
	}
	d->local = true;
	cop_node_stop_here(d);
}
