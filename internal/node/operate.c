/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation on this node and on everything below it, whoever asked for it. */
#include "node/node_priv.h"

#include <stdlib.h>
#include <string.h>

void cop_node_finish(struct doing *d)
{
	d->done(d->arg, &d->below);
	cop_node_gathered_free(&d->below);
	cop_node_gathered_free(&d->own);
	cop_node_doing_free(d);
}

void cop_node_doing_free(struct doing *d)
{
	struct cop_node *n = d->node;

	free(d);
	cop_gate_leave(&n->gate);
}

void cop_node_take(struct doing *d, struct gathered *g)
{
	d->below = *g;
	g->text = (struct cop_buf){0};
	g->prof = NULL;
}

/* This node is one that failed; those below it have answered. */
static void lose_own(struct doing *d)
{
	const struct cop_node *n = d->node;
	struct lost l = {.kind = LOST_FAILED,
		.rank = n->rank,
		.host = cop_node_host(n, n->rank),
		.reason = "it has no memory left to make its kernel forget this; ask again"};

	if (d->below.text.len)
		cop_buf_str(&d->below.text, "\n");
	cop_node_lost_text(OP_INVALIDATE, &l, &d->below.text);
	cop_node_gathered_lose(&d->below, n->rank);
	d->below.failed++;
}

static void invalidated_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;

	cop_node_take(d, g);
	if (d->untold)
		lose_own(d);
	else
		d->below.nodes++;
	cop_node_finish(d);
}

static void stats_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;

	cop_node_take(d, g);
	cop_node_own(d->node, &d->below, d->task.op == OP_TABLE);
	cop_node_finish(d);
}

static void below(struct doing *d)
{
	cop_node_gathered *then = d->task.op == OP_INVALIDATE ? invalidated_below : stats_below;
	struct gathered nothing = {0};

	if (cop_node_gather_below(d->node, &d->task, then, d))
		then(d, &nothing);
}

static void kernel_told(void *arg)
{
	below(arg);
}

/* The mount, as far as the kernel can hold something of it. Who looks in vain leaves word for who
 * makes it (start.c), and looks again: one of both sees the other. */
static struct cop_fs *mounted(struct cop_node *n)
{
	if (!n->fs)
		atomic_store(&n->forgot_early, true);
	return n->fs;
}

/* Tables first, then the kernel, then the children: whoever asks again finds nothing old above. A
 * node that starts may have none of them yet, and then holds nothing that is old. */
static void invalidate_here(struct doing *d)
{
	struct cop_node *n = d->node;
	struct cop_coop *coop = n->coop;
	struct cop_fs *fs = mounted(n);
	size_t dropped = cop_cache_drop_under(n->cache, d->task.path);
	int rc;

	if (coop)
		cop_coop_forget_name(coop, d->task.path);
	cop_log_info("invalidated path=\"%s\" objects=%zu", d->task.path, dropped);
	/* Once it is told, d may be gone. */
	rc = fs ? cop_fs_invalidate(fs, d->task.path, kernel_told, d) : 0;
	if (rc)
		d->untold = true;
	if (!fs || rc)
		below(d);
}

struct doing *cop_node_doing(
	struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
{
	size_t len = strlen(task->path) + 1;
	struct doing *d = calloc(1, sizeof(*d) + len);

	if (!d)
		return NULL;
	d->node = n;
	d->done = done;
	d->arg = arg;
	d->task.op = task->op;
	d->task.path = memcpy(d->path, task->path, len);
	cop_list_init(&d->link);
	cop_gate_more(&n->gate);
	return d;
}

void cop_node_do(struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
{
	struct doing *d = cop_node_doing(n, task, done, arg);
	struct gathered nothing = {0};

	if (!d)
		done(arg, &nothing);
	else if (task->op == OP_INVALIDATE)
		invalidate_here(d);
	else if (task->op == OP_STOP)
		cop_node_stop_here(d);
	else if (task->op == OP_SNAPSHOT || task->op == OP_RESET)
		cop_node_snapshot_here(d);
	else
		below(d);
}
