/* SPDX-License-Identifier: BSD-3-Clause */
/* The command that stops the tree or only this node, and the commands that decide whether the tree
 * may be stopped because all programs on all machines have exited. If the root is dead, the node
 * that receives the stop writes the sums of all nodes. */
#include "node/ctl/command_priv.h"

/* Answers "stopped 4/4 nodes", then a line per problem: a node that may still be running, has lost
 * its counts, or has left a mount. */
static void answer_command(struct asked *q, const struct cop_op_sum *sum, uint32_t of)
{
	struct cop_command *c = q->command;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "stopped %u/%u nodes\n", sum->nodes, of);
	if (sum->text.len)
		cop_buf_printf(&out, "%s\n", sum->text.data);
	cop_op_say_silent(c->conf.treeop, sum, &out);
	cop_op_sum_say_unwritten(sum, &out);
	cop_command_answer(q,
		sum->missing || sum->nodes < of ? -EHOSTDOWN
		: sum->unwritten                ? -EIO
		: sum->mounted                  ? -EBUSY
						: 0,
		&out);
	atomic_fetch_sub(&c->stops, 1);
	c->conf.ops->wake(c->conf.ctx);
}

static void local_stopped(void *arg, struct cop_op_sum *sum)
{
	answer_command(arg, sum, 1);
}

/* The root is dead, so no node has written the sums or the list of remaining nodes yet. */
static void write_late(struct cop_deferred *work)
{
	struct asked *q = COP_CONTAINER_OF(work, struct asked, work);
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_err err = {0};

	if (conf->ops->write_late(conf->ctx, &q->late, &err))
		cop_op_sum_unwritten(&q->late, conf->host, err.text);
	answer_command(q, &q->late, conf->topo.nodes);
}

static bool is_without_root(const struct cop_topo *t, const struct cop_op_sum *sum)
{
	for (uint32_t i = 0; i < COP_MIN(sum->missing, (uint32_t)COP_OP_NAMED); i++)
		if (sum->lost[i] == cop_topo_root(t, 0))
			return true;
	return false;
}

static void all_stopped(void *arg, struct cop_op_sum *sum)
{
	struct asked *q = arg;
	const struct cop_command_conf *conf = &q->command->conf;

	if (!sum->prof && !is_without_root(&conf->topo, sum)) {
		answer_command(q, sum, conf->topo.nodes);
		return;
	}
	cop_op_sum_move(&q->late, sum);
	q->work.run = write_late;
	if (!cop_defer_add(conf->deferred, &q->work))
		answer_command(q, &q->late, conf->topo.nodes);
}

void cop_command_stop(struct asked *q, bool local)
{
	struct cop_op_request stop = {COP_OP_STOP, ""};
	struct cop_command *c = q->command;

	atomic_fetch_add(&c->stops, 1);
	if (local)
		cop_op_here(c->conf.treeop, &stop, false, local_stopped, q);
	else
		cop_op_all(c->conf.treeop, &stop, all_stopped, q);
}

/* ---- whether the tree may be stopped ---- */

static void stop_released(void *arg, struct cop_op_sum *sum)
{
	bool all = cop_op_all_released(sum);
	struct cop_buf out = {0};

	if (sum->nodes)
		cop_buf_printf(&out, "%u of %u nodes are not needed any more\n", sum->released,
			sum->nodes);
	else
		cop_buf_str(&out, "there is nothing to do here yet\n");
	cop_command_answer(arg, all ? 0 : -EAGAIN, &out);
}

void cop_command_hold(struct asked *q)
{
	struct cop_buf out = {0};
	int rc = cop_op_hold(q->command->conf.treeop, cop_now_ms());

	cop_buf_str(&out, rc ? "the tree may be stopped now\n" : "this node is needed again\n");
	cop_command_answer(q, rc, &out);
}

void cop_command_release(struct asked *q, bool again)
{
	if (again)
		cop_op_release_again(q->command->conf.treeop);
	cop_op_release(q->command->conf.treeop, cop_now_ms(), stop_released, q);
}
