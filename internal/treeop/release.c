/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a tree that is there for certain programs (copper run --source). Each node hears from
 * its own machine when it is not needed there any more. It must stay all the same: others read
 * through it. When the root has heard that, it asks all others now and then, and when all were
 * released, or are dead, it stops the tree. Who is released below asks no further than to the next
 * living node above it, so that this costs one small request for each node; where none lives above,
 * the root is dead, and its children do what it would do. They may do so at the same time, since
 * who is asked to stop twice stops once. */
#include "treeop/treeop_priv.h"

#include <errno.h>
#include <stdlib.h>

/* ---- asked on the way down ---- */

static void add_own(struct request *q)
{
	struct cop_treeop_sum own = {.nodes = 1, .released = atomic_load(&q->treeop->released)};

	cop_treeop_sum_add(&q->sum, &own, '\n');
	cop_treeop_request_finish(q);
}

static void below_answered(void *arg, struct cop_treeop_sum *below)
{
	struct request *q = arg;

	cop_treeop_sum_move(&q->sum, below);
	add_own(q);
}

void cop_treeop_released(struct request *q)
{
	if (q->local)
		add_own(q);
	else
		cop_treeop_fan_out_below(q->treeop, &q->what, below_answered, q);
}

bool cop_treeop_all_released(const struct cop_treeop_sum *sum)
{
	/* Of one that failed, and of those below it, nothing is known at this moment. */
	return sum->nodes && sum->released == sum->nodes && !sum->failed;
}

/* ---- who asks ---- */

struct looking {
	struct cop_treeop *treeop;
	uint32_t above; /* that is asked whether it lives */
	cop_treeop_done *done;
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
	cop_treeop_all(
		l->treeop, &(struct cop_treeop_request){COP_TREEOP_RELEASED, ""}, l->done, l->arg);
	end_look(l);
}

static void above_answered(void *arg, const struct cop_rpc_result *r)
{
	struct cop_treeop_sum nobody = {0};
	struct looking *l = arg;

	/* Only a dead one is passed over. */
	if (!r->answered && r->status == -EHOSTDOWN) {
		look_above(l);
		return;
	}
	l->done(l->arg, &nobody);
	end_look(l);
}

static void look_above(struct looking *l)
{
	struct cop_treeop *t = l->treeop;
	struct cop_rpc *rpc = t->conf.ops->rpc(t->conf.ctx);
	struct cop_rpc_call call = {.op = t->conf.alive_op, .done = above_answered, .arg = l};

	l->above = cop_topo_parent(&t->conf.topo, 0, l->above);
	call.rank = l->above;
	if (!rpc || l->above == COP_TOPO_NONE)
		ask_all(l);
	else
		cop_rpc_call(rpc, &call);
}

void cop_treeop_release(struct cop_treeop *t, cop_treeop_done *done, void *arg)
{
	struct looking *l = calloc(1, sizeof(*l));
	struct cop_treeop_sum nobody = {0};

	atomic_store(&t->released, true);
	if (!l) {
		done(arg, &nobody);
		return;
	}
	*l = (struct looking){t, t->conf.rank, done, arg};
	cop_gate_more(t->conf.gate);
	look_above(l);
}
