/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops a subtree: first the nodes below, then this one. Its main thread unmounts, adds this node's
 * own counts to the sums from below, and answers. The sums of the whole job thus reach the root,
 * which writes them; if the root is dead, the node that received the command does. No matter how
 * many requests arrive, a node forwards the stop once and gives all of them the same answer, so
 * nothing is counted twice. It answers even after it has unmounted, because its parent may have
 * died after receiving the first answer. */
#include "tree/op/op_priv.h"

static void end_this_node(struct cop_op *t)
{
	t->conf.ops->end(t->conf.ctx);
}

static void stopped_below(void *arg, struct cop_op_sum *below)
{
	struct cop_op *t = arg;

	pthread_mutex_lock(&t->lock);
	/* A signal may have ended this node before the nodes below answered. */
	if (!t->ending) {
		cop_op_sum_move(&t->stop_sum, below);
		t->stop_answered = true;
	}
	pthread_mutex_unlock(&t->lock);
	end_this_node(t);
}

bool cop_op_is_stopping(struct cop_op *t)
{
	bool asked;

	pthread_mutex_lock(&t->lock);
	asked = t->stop_asked;
	pthread_mutex_unlock(&t->lock);
	return asked;
}

bool cop_op_is_ending(struct cop_op *t)
{
	bool ending;

	pthread_mutex_lock(&t->lock);
	ending = t->stop_asked || t->ending;
	pthread_mutex_unlock(&t->lock);
	return ending;
}

bool cop_op_has_ended_alone(struct cop_op *t)
{
	bool alone;

	pthread_mutex_lock(&t->lock);
	alone = t->ended && !t->stop_asked;
	pthread_mutex_unlock(&t->lock);
	return alone;
}

void cop_op_stop(struct request *q)
{
	struct cop_op *t = q->treeop;
	struct cop_op_request what = {.op = COP_OP_STOP, .argument = ""};
	struct cop_op_sum alone = {.nodes = 1};
	bool first, now, over;

	pthread_mutex_lock(&t->lock);
	first = !t->stop_asked && !q->local;
	t->stop_asked |= first;
	now = !t->stop_asked;
	over = t->ended;
	if (!over)
		cop_list_push_back(&t->stop_requests, &q->link);
	pthread_mutex_unlock(&t->lock);
	/* Unless this node has ended, q may already be freed. */
	if (over)
		cop_op_request_answer(q, q->local ? &alone : &t->stop_sum);
	else if (first)
		cop_op_fan_out_below(t, &what, stopped_below, t);
	else if (now)
		end_this_node(t);
}

/* ---- this node has unmounted ---- */

/* counted: this node has already been counted as missing its files. */
static void complete_sum(struct cop_op *t, struct cop_op_sum *all, bool counted)
{
	struct cop_err err = {0};

	if (!t->conf.ops->complete_sum(t->conf.ctx, all, &err))
		return;
	all->unwritten -= counted;
	cop_op_sum_unwritten(all, host_of(t, t->conf.rank), err.text);
}

/* Moves the sum from below out of t and adds this node's own part. */
static void complete_stop(
	struct cop_op *t, const char *unwritten, bool mounted, struct cop_op_sum *all)
{
	bool answered;

	pthread_mutex_lock(&t->lock);
	t->ending = true;
	cop_op_sum_move(all, &t->stop_sum);
	answered = t->stop_answered;
	pthread_mutex_unlock(&t->lock);
	all->nodes++;
	all->mounted += mounted;
	if (unwritten)
		cop_op_sum_unwritten(all, host_of(t, t->conf.rank), unwritten);
	/* If a signal has ended this node in the meantime, the answer lacks the counts of the nodes
	 * below. */
	if (answered)
		complete_sum(t, all, unwritten);
}

static void add_remark(struct cop_op_sum *s, const char *remark)
{
	if (remark)
		cop_buf_printf(&s->text, "%s%s", s->text.len ? "\n" : "", remark);
}

void cop_op_ended(struct cop_op *t, const char *remark, const char *unwritten, bool mounted)
{
	struct cop_op_sum all, own = {.nodes = 1, .mounted = mounted};
	struct cop_list list, *l;

	if (t->ending)
		return;
	complete_stop(t, unwritten, mounted, &all);
	if (unwritten)
		cop_op_sum_unwritten(&own, host_of(t, t->conf.rank), unwritten);
	add_remark(&all, remark);
	add_remark(&own, remark);
	cop_list_init(&list);
	pthread_mutex_lock(&t->lock);
	cop_list_splice(&list, &t->stop_requests);
	t->stop_sum = all;
	t->ended = true;
	pthread_mutex_unlock(&t->lock);
	while ((l = cop_list_pop_front(&list))) {
		struct request *q = COP_CONTAINER_OF(l, struct request, link);

		cop_op_request_answer(q, q->local ? &own : &t->stop_sum);
	}
	cop_op_sum_free(&own);
}
