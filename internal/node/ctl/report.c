/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands that may wait for a disk or take long: writing the reports of this node or all nodes,
 * with or without a reset of the counters, and listing the contents of the cache. */
#include "node/ctl/command_priv.h"

/* ---- reports ---- */

static bool has_failed(const struct cop_op_sum *sum)
{
	return sum->missing || sum->text.len || !sum->nodes;
}

static void say_problems(struct asked *q, const struct cop_op_sum *sum, struct cop_buf *out)
{
	if (sum->text.len)
		cop_buf_printf(out, "%s\n", sum->text.data);
	cop_op_say_silent(q->command->conf.treeop, sum, out);
}

static void answer_written(struct asked *q, const struct cop_op_sum *sum, uint32_t of)
{
	struct cop_buf out = {0};

	if (sum->nodes || sum->missing || sum->text.len)
		cop_buf_printf(&out,
			"reports of %" PRIu32 "/%" PRIu32
			" nodes written to %s/profiling/ioctl-snapshot\n",
			sum->nodes, of, q->command->conf.job_dir);
	else
		cop_buf_str(&out,
			"no reports were written: the job was started without --profile, or with --rank-files none\n");
	say_problems(q, sum, &out);
	cop_command_answer(q, has_failed(sum) ? -EIO : 0, &out);
}

static void here_written(void *arg, struct cop_op_sum *sum)
{
	answer_written(arg, sum, 1);
}

static void all_written(void *arg, struct cop_op_sum *sum)
{
	struct asked *q = arg;
	const struct cop_command_conf *conf = &q->command->conf;

	/* With --rank-files root only one report is written, whichever node receives the
	 * command. */
	answer_written(q, sum, conf->rank_files == COP_CONF_RANK_FILES_ALL ? conf->topo.nodes : 1);
}

void cop_command_snapshot(struct asked *q, bool local)
{
	struct cop_op_request snapshot = {COP_OP_SNAPSHOT, ""};
	struct cop_op *t = q->command->conf.treeop;

	if (local)
		cop_op_here(t, &snapshot, false, here_written, q);
	else
		cop_op_all(t, &snapshot, all_written, q);
}

/* ---- reset ---- */

/* Appends where the earlier reports are; all nodes were started with the same options. */
static void say_where(const struct cop_command_conf *conf, bool all, struct cop_buf *out)
{
	bool root = conf->rank_files == COP_CONF_RANK_FILES_ROOT;

	if (!conf->counts)
		cop_buf_str(out,
			"no reports from before the reset: the job was started without --profile\n");
	else if (conf->rank_files == COP_CONF_RANK_FILES_NONE || (root && !all && conf->rank != 0))
		cop_buf_str(out, "no reports from before the reset, because of --rank-files\n");
	else
		cop_buf_printf(out,
			"reports from before the reset are in %s/profiling/pre-reset%s\n",
			conf->job_dir, root ? ": those of rank 0 (--rank-files root)" : "");
}

static void answer_reset(struct asked *q, const struct cop_op_sum *sum, uint32_t of, bool all)
{
	struct cop_buf out = {0};

	cop_buf_printf(
		&out, "counters of %" PRIu32 "/%" PRIu32 " nodes set to zero\n", sum->nodes, of);
	if (sum->nodes)
		say_where(&q->command->conf, all, &out);
	say_problems(q, sum, &out);
	cop_command_answer(q, has_failed(sum) ? -EIO : 0, &out);
}

static void here_reset(void *arg, struct cop_op_sum *sum)
{
	answer_reset(arg, sum, 1, false);
}

static void all_reset(void *arg, struct cop_op_sum *sum)
{
	struct asked *q = arg;

	answer_reset(q, sum, q->command->conf.topo.nodes, true);
}

void cop_command_reset(struct asked *q, bool all)
{
	const struct cop_command_conf *conf = &q->command->conf;
	char name[64];
	struct cop_op_request reset = {COP_OP_RESET, name};

	snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu64, conf->rank, cop_now_ns());
	if (all)
		cop_op_all(conf->treeop, &reset, all_reset, q);
	else
		cop_op_here(conf->treeop, &reset, false, here_reset, q);
}

/* ---- contents of the cache ---- */

static void list_sizes(struct cop_deferred *work)
{
	struct asked *q = COP_CONTAINER_OF(work, struct asked, work);
	const struct cop_command_conf *conf = &q->command->conf;
	struct cop_buf out = {0};

	conf->ops->sizes(conf->ctx, &out);
	cop_command_answer(q, 0, &out);
}

void cop_command_sizes(struct asked *q)
{
	struct cop_buf out = {0};

	q->work.run = list_sizes;
	if (cop_defer_add(q->command->conf.deferred, &q->work))
		return;
	cop_buf_str(&out, "the node is stopping\n");
	cop_command_answer(q, -ESHUTDOWN, &out);
}
