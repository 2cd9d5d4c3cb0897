/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes reports, optionally with a reset of the counters, on this node and the nodes below
 * concurrently. Runs on the main thread, because writing may block on a disk. */
#include "tree/op/op_priv.h"

static void part_done(struct request *q)
{
	if (atomic_fetch_sub(&q->parts, 1) != 1)
		return;
	cop_op_sum_add(&q->sum, &q->own, '\n');
	cop_op_request_finish(q);
}

/* A request may be repeated, and a second reset would overwrite the reports with only the counts
 * since the first. */
static int reset_once(struct cop_op *t, const char *name, struct cop_err *err)
{
	int rc = strcmp(t->last_reset, name) ? t->conf.ops->reset(t->conf.ctx, err) : 0;

	if (!rc)
		snprintf(t->last_reset, sizeof(t->last_reset), "%s", name);
	return rc;
}

static void report_here(struct cop_deferred *work)
{
	struct request *q = COP_CONTAINER_OF(work, struct request, work);
	struct cop_op *t = q->treeop;
	struct cop_err err = {0};
	int rc = q->what.op == COP_OP_RESET ? reset_once(t, q->what.argument, &err)
					    : t->conf.ops->report(t->conf.ctx, &err);

	if (!rc)
		q->own.nodes = 1;
	else if (rc != -ENOENT)
		cop_buf_printf(&q->own.text, "%s: %s", host_of(t, t->conf.rank), err.text);
	part_done(q);
}

static void reported_below(void *arg, struct cop_op_sum *below)
{
	struct request *q = arg;

	cop_op_sum_move(&q->sum, below);
	part_done(q);
}

void cop_op_report(struct request *q)
{
	struct cop_op *t = q->treeop;

	/* From here on, this node's part may finish before the other starts. */
	atomic_init(&q->parts, 2);
	q->work.run = report_here;
	if (!cop_defer_add(t->conf.deferred, &q->work)) {
		cop_buf_printf(&q->own.text, "%s: is stopping, or has too much to write already",
			host_of(t, t->conf.rank));
		part_done(q);
	}
	if (q->local)
		part_done(q);
	else
		cop_op_fan_out_below(t, &q->what, reported_below, q);
}
