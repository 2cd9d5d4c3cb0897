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
	free(d);
}

void cop_node_take(struct doing *d, struct gathered *g)
{
	d->below = *g;
	g->text = (struct cop_buf){0};
	g->prof = NULL;
}

static void invalidated_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;

	cop_node_take(d, g);
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

/* Tables first, then the kernel, then the children: whoever asks again finds nothing old above. */
static void invalidate_here(struct doing *d)
{
	struct cop_node *n = d->node;
	struct cop_fs *fs = n->fs;
	size_t dropped = cop_cache_drop_under(n->cache, d->task.path);

	cop_coop_forget_name(n->coop, d->task.path);
	cop_log_info("invalidated path=\"%s\" objects=%zu", d->task.path, dropped);
	if (fs)
		cop_fs_invalidate(fs, d->task.path, kernel_told, d);
	else
		below(d);
}

struct doing *cop_node_doing(struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
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
	else if (task->op == OP_SNAPSHOT)
		cop_node_snapshot_here(d);
	else
		below(d);
}
