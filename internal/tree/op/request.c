/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree/op/op_priv.h"

struct request *cop_op_request_new(struct cop_op *t, const struct cop_op_request *what, bool local,
	cop_op_done *done, void *arg)
{
	size_t len = strlen(what->argument) + 1;
	struct request *q = calloc(1, sizeof(*q) + len);

	if (!q)
		return NULL;
	q->treeop = t;
	q->local = local;
	q->done = done;
	q->arg = arg;
	q->what.op = what->op;
	q->what.argument = memcpy(q->argument, what->argument, len);
	cop_list_init(&q->link);
	cop_gate_more(t->conf.gate);
	return q;
}

void cop_op_request_answer(struct request *q, struct cop_op_sum *sum)
{
	struct cop_gate *gate = q->treeop->conf.gate;

	q->done(q->arg, sum);
	cop_op_sum_free(&q->sum);
	cop_op_sum_free(&q->own);
	free(q);
	cop_gate_leave(gate);
}

void cop_op_request_finish(struct request *q)
{
	cop_op_request_answer(q, &q->sum);
}
