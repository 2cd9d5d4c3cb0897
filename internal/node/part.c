/* SPDX-License-Identifier: BSD-3-Clause */
/* This node's own part of an operation on the tree: what it counts, forgets, writes and ends. */
#include "node/node_priv.h"

#include <errno.h>
#include <stdlib.h>

static struct cop_rpc *rpc_of(void *ctx)
{
	struct cop_node *n = ctx;

	return n->rpc;
}

static const char *host_of(void *ctx, uint32_t rank)
{
	return cop_node_host(ctx, rank);
}

static void own(void *ctx, struct cop_treeop_sum *out, bool table)
{
	struct cop_node *n = ctx;
	struct cop_status s = cop_node_status(n);

	cop_cache_usage(n->cache, &out->usage);
	out->nodes = 1;
	cop_stats_sum(&out->stats, &n->stats);
	if (table)
		cop_status_table_row(&s, &out->text);
	else
		cop_status_json(&s, &out->text);
}

/* ---- forgetting ---- */

/* The mount, as far as the kernel can hold something of it. Who looks in vain leaves word for who
 * makes it (start.c), and looks again: one of both sees the other. */
static struct cop_fs *mounted(struct cop_node *n)
{
	if (!n->fs)
		atomic_store(&n->forgot_early, true);
	return n->fs;
}

/* Tables first, then the kernel. A node that starts may have none of them yet, and then holds
 * nothing that is old. */
int cop_node_forget(void *ctx, const char *path, void (*then)(void *arg), void *arg)
{
	struct cop_node *n = ctx;
	struct cop_coop *coop = n->coop;
	struct cop_fs *fs = mounted(n);
	size_t dropped = cop_cache_drop_under(n->cache, path);

	if (coop)
		cop_coop_forget_name(coop, path);
	cop_log_info("invalidated path=\"%s\" objects=%zu", path, dropped);
	if (fs)
		return cop_fs_invalidate(fs, path, then, arg);
	then(arg);
	return 0;
}

/* ---- the main thread's ---- */

static int report(void *ctx, struct cop_err *err)
{
	struct cop_node *n = ctx;

	return cop_tally_write(n->tally, COP_TALLY_ASKED_TAG, err);
}

static int reset(void *ctx, struct cop_err *err)
{
	struct cop_node *n = ctx;

	return cop_tally_reset(n->tally, err);
}

static void end(void *ctx)
{
	struct cop_node *n = ctx;

	atomic_store(&n->stopping, true);
	cop_node_wake(n);
}

/* The root takes the sums out of the answer. */
static int complete_sum(void *ctx, struct cop_treeop_sum *sum, struct cop_err *err)
{
	struct cop_node *n = ctx;
	struct cop_tally_job job = cop_node_tally_job(n);
	int rc = 0;

	cop_tally_add(n->tally, sum);
	if (sum->prof && n->rank == cop_topo_root(&n->topo, 0)) {
		rc = cop_tally_write_sums(&job, sum, err);
		cop_prof_sum_free(sum->prof);
		sum->prof = NULL;
	}
	if (n->rank == 0)
		cop_node_keep_word(n, sum);
	return rc;
}

int cop_node_treeop_start(struct cop_node *n, struct cop_err *err)
{
	static const struct cop_treeop_ops ops = {.rpc = rpc_of,
		.host = host_of,
		.own = own,
		.forget = cop_node_forget,
		.report = report,
		.reset = reset,
		.end = end,
		.complete_sum = complete_sum};
	struct cop_treeop_conf conf = {.topo = n->topo,
		.rank = n->rank,
		.peer_timeout_ms = n->conf->peer_timeout_ms,
		.alive_op = COP_JOIN_OP_STATE,
		.ops = &ops,
		.ctx = n,
		.gate = &n->gate,
		.deferred = &n->deferred};

	n->treeop = cop_treeop_new(&conf);
	return n->treeop ? 0 : cop_err_set(err, ENOMEM, "out of memory");
}
