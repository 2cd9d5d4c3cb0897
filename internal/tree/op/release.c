/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a tree that exists only for certain programs (copper run --source). Each host releases
 * its node when its programs have ended. The node must continue to run, because other nodes read
 * through it. When a node and all nodes below it are released, it notifies its parent, so the last
 * release reaches the root. The root then queries all nodes, because the notifications may be wrong
 * if a slow node was declared dead. If all are released or dead, it stops the tree. No matter how
 * long the tree waits for its last program, each node sends and answers only two requests for this.
 *
 * A dead node cannot notify its parent, so all nodes keep checking at increasing intervals: the
 * root queries all nodes; the others probe their ancestors. If no ancestor is alive, the root is
 * dead and its children replace it. They may do so concurrently, because a repeated stop has no
 * effect.
 *
 * A program that starts late holds the node again. A node that has just reported its release
 * rejects this while the tree may be stopping because of the report. */
#include "tree/op/op_priv.h"

/* Interval between checks after the release: initial and maximum. */
#define LOOK_MS_FIRST 1000
#define LOOK_MS_MOST 20000
/* How long after its report a node must not be held: longer than COP_OP_RELEASED_MS, because the
 * stop still has to arrive. */
#define PROMISE_MS (COP_OP_RELEASED_MS + 1000)

/* ---- requests from above ---- */

static void add_own(struct request *q)
{
	struct cop_op_sum own = {.nodes = 1};
	struct cop_op *t = q->treeop;

	pthread_mutex_lock(&t->lock);
	own.released = t->released; /* gcc 10 warns about this in an initializer */
	if (t->released)
		t->promised_until_ms = cop_now_ms() + PROMISE_MS;
	pthread_mutex_unlock(&t->lock);
	cop_op_sum_add(&q->sum, &own, '\n');
	cop_op_request_finish(q);
}

static void below_answered(void *arg, struct cop_op_sum *below)
{
	struct request *q = arg;

	cop_op_sum_move(&q->sum, below);
	add_own(q);
}

void cop_op_released(struct request *q)
{
	if (q->local)
		add_own(q);
	else
		cop_op_fan_out_below(q->treeop, &q->what, below_answered, q);
}

bool cop_op_all_released(const struct cop_op_sum *sum)
{
	/* If a node failed, its own state and that of the nodes below are unknown for now. */
	return sum->nodes && sum->released == sum->nodes && !sum->failed;
}

/* ---- notifications and checks ---- */

struct looking {
	struct cop_op *treeop;
	uint32_t above; /* the ancestor to notify or probe */
	uint8_t op;
	bool again;
	cop_op_done *done;
	void *arg;
};

static void look_above(struct looking *l);

static void end_look(struct looking *l)
{
	struct cop_gate *gate = l->treeop->conf.gate;

	free(l);
	cop_gate_leave(gate);
}

static void ask_all(struct looking *l)
{
	cop_op_all(l->treeop, &(struct cop_op_request){COP_OP_RELEASED, ""}, l->done, l->arg);
	end_look(l);
}

static void above_answered(void *arg, const struct cop_rpc_result *r)
{
	struct cop_op_sum nobody = {0};
	struct looking *l = arg;

	/* Only a dead ancestor is bypassed. */
	if (!r->answered && r->status == -EHOSTDOWN) {
		look_above(l);
		return;
	}
	l->done(l->arg, &nobody);
	end_look(l);
}

static void look_above(struct looking *l)
{
	struct cop_op *t = l->treeop;
	struct cop_rpc *rpc = t->conf.ops->rpc(t->conf.ctx);
	struct cop_rpc_call call = {.op = l->op, .done = above_answered, .arg = l};

	l->above = cop_topo_parent(&t->conf.topo, 0, l->above);
	call.rank = l->above;
	if (l->again)
		call.payload = "again", call.payload_len = 5;
	if (!rpc || l->above == COP_TOPO_NONE)
		ask_all(l);
	else
		cop_rpc_call(rpc, &call);
}

static bool take_again(struct cop_op *t)
{
	bool again;

	pthread_mutex_lock(&t->lock);
	again = t->again;
	t->again = false;
	pthread_mutex_unlock(&t->lock);
	return again;
}

static void ask_if_needed(struct cop_op *t, bool complete, cop_op_done *done, void *arg)
{
	struct looking *l = calloc(1, sizeof(*l));
	struct cop_op_sum nobody = {0};

	if (!l) {
		done(arg, &nobody);
		return;
	}
	*l = (struct looking){.treeop = t,
		.above = t->conf.rank,
		.op = complete ? COP_OP_RELEASED_BELOW : t->conf.alive_op,
		.again = complete && take_again(t),
		.done = done,
		.arg = arg};
	cop_gate_more(t->conf.gate);
	look_above(l);
}

/* ---- timing ---- */

/* Called with the lock held. */
static bool is_complete(const struct cop_op *t)
{
	uint32_t child[COP_TOPO_MAX_FANOUT];
	uint32_t n = cop_topo_children(&t->conf.topo, 0, t->conf.rank, child);

	return t->released && (uint32_t)__builtin_popcountll(t->complete_children) == n;
}

/* Whether another check is due. Called with the lock held. */
static bool is_due(struct cop_op *t, uint64_t now_ms)
{
	if (!t->look_wait_ms) {
		t->look_wait_ms = LOOK_MS_FIRST;
		t->look_at_ms = now_ms + LOOK_MS_FIRST;
		return is_complete(t);
	}
	if (now_ms < t->look_at_ms)
		return false;
	t->look_wait_ms = COP_MIN(2 * t->look_wait_ms, LOOK_MS_MOST);
	t->look_at_ms = now_ms + t->look_wait_ms;
	return true;
}

void cop_op_release(struct cop_op *t, uint64_t now_ms, cop_op_done *done, void *arg)
{
	struct cop_op_sum nobody = {0};
	bool due, complete;

	pthread_mutex_lock(&t->lock);
	t->released = true;
	due = is_due(t, now_ms) || t->look_now;
	t->look_now = false;
	complete = is_complete(t);
	pthread_mutex_unlock(&t->lock);
	if (due)
		ask_if_needed(t, complete, done, arg);
	else
		done(arg, &nobody);
}

void cop_op_release_again(struct cop_op *t)
{
	pthread_mutex_lock(&t->lock);
	t->look_now = true;
	pthread_mutex_unlock(&t->lock);
}

int cop_op_hold(struct cop_op *t, uint64_t now_ms)
{
	int rc = 0;

	pthread_mutex_lock(&t->lock);
	if (t->released && now_ms < t->promised_until_ms) {
		rc = -EAGAIN;
	} else {
		t->again |= t->released;
		t->released = false;
		t->look_wait_ms = 0;
	}
	pthread_mutex_unlock(&t->lock);
	return rc;
}

/* ---- notifications from below ---- */

static void note_if_needed(void *treeop, struct cop_op_sum *sum)
{
	struct cop_op *t = treeop;

	/* No ancestor is alive, so this node has queried all nodes; it checks early whether the
	 * tree can end. */
	pthread_mutex_lock(&t->lock);
	t->look_now = t->look_now || sum->nodes;
	pthread_mutex_unlock(&t->lock);
}

/* 0: not a child of this node. Called with the lock held. */
static uint64_t bit_of(const struct cop_op *t, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT];
	uint32_t n = cop_topo_children(&t->conf.topo, 0, t->conf.rank, child);

	for (uint32_t i = 0; i < n; i++)
		if (child[i] == rank)
			return 1ULL << i;
	return 0;
}

/* Whether this was the last child to report; it may have reported before. A deeper rank reports to
 * this node if the nodes in between are dead. Called with the lock held. */
static bool is_last(struct cop_op *t, uint32_t rank, bool again)
{
	uint64_t bit = bit_of(t, rank);
	bool before = (bit & t->complete_children) && !again;

	t->again |= again;
	t->complete_children |= bit;
	return bit ? !before && is_complete(t) : t->released;
}

void cop_op_released_below(struct cop_op *t, uint32_t rank, bool again)
{
	bool root = t->conf.rank == cop_topo_root(&t->conf.topo, 0), last;

	pthread_mutex_lock(&t->lock);
	last = is_last(t, rank, again);
	t->look_now = t->look_now || (root && last);
	last = last && is_complete(t);
	pthread_mutex_unlock(&t->lock);
	if (last && !root)
		ask_if_needed(t, true, note_if_needed, t);
}
