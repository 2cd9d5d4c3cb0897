/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user asks for while the node runs and what may wait for a disk or take its time: the
 * reports of this moment, or those and counters from zero, here or on every node; and what the
 * cache holds. The main thread does it. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reports, here and below at the same time ---- */

static void part_done(struct doing *d)
{
	if (atomic_fetch_sub(&d->parts, 1) != 1)
		return;
	cop_node_gathered_add(&d->below, &d->own, '\n');
	cop_node_finish(d);
}

/* A request may come twice, and a second reset would write the few counts since the first over all
 * those before it. */
static int reset_once(struct cop_node *n, const char *name, struct cop_err *err)
{
	int rc = strcmp(n->reset_done, name) ? cop_node_profile_reset(n, err) : 0;

	if (!rc)
		snprintf(n->reset_done, sizeof(n->reset_done), "%s", name);
	return rc;
}

static void write_here(struct cop_deferred *work)
{
	struct doing *d = COP_CONTAINER_OF(work, struct doing, work);
	struct cop_node *n = d->node;
	struct cop_err err = {0};
	int rc = d->task.op == OP_RESET ? reset_once(n, d->task.path, &err)
					: cop_node_profile_write(n, COP_NODE_ASKED_TAG, &err);

	if (!rc)
		d->own.nodes = 1;
	else if (rc != -ENOENT)
		cop_buf_printf(&d->own.text, "%s: %s", cop_node_host(n, n->rank), err.text);
	part_done(d);
}

static void written_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;

	cop_node_take(d, g);
	part_done(d);
}

void cop_node_snapshot_here(struct doing *d)
{
	struct cop_node *n = d->node;
	struct gathered nothing = {0};

	atomic_init(&d->parts, 2);
	d->work.run = write_here;
	if (!cop_defer_add(&n->deferred, &d->work)) {
		cop_buf_printf(&d->own.text, "%s: is stopping, or has too much to write already",
			cop_node_host(n, n->rank));
		part_done(d);
	}
	if (d->local || cop_node_gather_below(n, &d->task, written_below, d))
		written_below(d, &nothing);
}

static void reply_written(struct command *c, const struct gathered *g, uint32_t of)
{
	struct cop_buf out = {0};
	bool failed = g->missing || g->text.len || !g->nodes;

	if (g->nodes || g->text.len)
		cop_buf_printf(&out,
			"reports of %" PRIu32 "/%" PRIu32
			" nodes written to %s/profiling/ioctl-snapshot\n",
			g->nodes, of, c->node->job_dir);
	else
		cop_buf_str(&out,
			"no reports were written: the job was started without --profile, or with --rank-files none\n");
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	cop_node_reply(c->conn, failed ? -EIO : 0, &out);
	free(c);
}

static void here_written(void *arg, struct gathered *g)
{
	reply_written(arg, g, 1);
}

static void all_written(void *arg, struct gathered *g)
{
	struct command *c = arg;

	/* With root there is one file to be written, whoever was asked. */
	reply_written(c, g,
		c->node->conf->rank_files == COP_CONF_RANK_FILES_ALL ? c->node->topo.nodes : 1);
}

void cop_node_snapshot_command(struct cop_node *n, struct command *c, bool local)
{
	struct task task = {.op = OP_SNAPSHOT, .path = ""};
	struct gathered nothing = {0};
	struct doing *d;

	if (!local) {
		if (cop_node_gather(n, &task, cop_topo_root(&n->topo, 0), all_written, c))
			all_written(c, &nothing);
		return;
	}
	d = cop_node_doing(n, &task, here_written, c);
	if (!d) {
		here_written(c, &nothing);
		return;
	}
	d->local = true;
	cop_node_snapshot_here(d);
}

/* ---- counting from zero ---- */

/* Where the reports of before are. All nodes were started with the same options. */
static void say_where(const struct cop_node *n, bool all, struct cop_buf *out)
{
	bool root = n->conf->rank_files == COP_CONF_RANK_FILES_ROOT;

	if (!n->prof)
		cop_buf_str(out, "no reports of before: the job was started without --profile\n");
	else if (n->conf->rank_files == COP_CONF_RANK_FILES_NONE || (root && !all && n->rank != 0))
		cop_buf_str(out, "no reports of before: --rank-files says so\n");
	else
		cop_buf_printf(out, "reports of before are in %s/profiling/pre-reset%s\n",
			n->job_dir, root ? ": those of rank 0 (--rank-files root)" : "");
}

static void reply_reset(struct command *c, const struct gathered *g, uint32_t of, bool all)
{
	struct cop_buf out = {0};
	bool failed = g->missing || g->text.len || !g->nodes;

	cop_buf_printf(
		&out, "counters of %" PRIu32 "/%" PRIu32 " nodes set to zero\n", g->nodes, of);
	if (g->nodes)
		say_where(c->node, all, &out);
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	cop_node_reply(c->conn, failed ? -EIO : 0, &out);
	free(c);
}

static void here_reset(void *arg, struct gathered *g)
{
	reply_reset(arg, g, 1, false);
}

static void all_reset(void *arg, struct gathered *g)
{
	struct command *c = arg;

	reply_reset(c, g, c->node->topo.nodes, true);
}

void cop_node_reset_command(struct cop_node *n, struct command *c, bool all)
{
	char name[COP_NODE_RESET_NAME];
	struct task task = {.op = OP_RESET, .path = name};
	struct gathered nothing = {0};
	struct doing *d;

	snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu64, n->rank, cop_now_ns());
	if (all) {
		if (cop_node_gather(n, &task, cop_topo_root(&n->topo, 0), all_reset, c))
			all_reset(c, &nothing);
		return;
	}
	d = cop_node_doing(n, &task, here_reset, c);
	if (!d) {
		here_reset(c, &nothing);
		return;
	}
	d->local = true;
	cop_node_snapshot_here(d);
}

/* ---- what the cache holds ---- */

/* "budget LIMIT USED", then for each table "table NAME LENGTH" and the bytes of its file. */
static void list_sizes(struct cop_deferred *work)
{
	static const struct {
		const char *name;
		enum cop_prof_table table;
	} files[] = {{"data", COP_PROF_DATA}, {"tree", COP_PROF_TREE}, {"md", COP_PROF_METADATA}};
	struct command *c = COP_CONTAINER_OF(work, struct command, work);
	struct cop_node *n = c->node;
	struct cop_prof_sizes sizes = cop_node_sizes(n);
	struct cop_buf out = {0};
	struct cop_cache_usage u;

	cop_cache_usage(n->cache, &u);
	cop_buf_printf(&out, "budget %" PRIu64 " %" PRIu64 "\n", u.limit_bytes, u.used_bytes);
	for (size_t i = 0; i < COP_ARRAY_SIZE(files); i++) {
		struct cop_buf text = {0};

		out.failed |= cop_prof_sizes_text(files[i].table, n->source, &sizes, &text) != 0;
		cop_buf_printf(&out, "table %s %zu\n", files[i].name, text.len);
		cop_buf_add(&out, text.data ? text.data : "", text.len);
		cop_buf_free(&text);
	}
	cop_node_reply(c->conn, 0, &out);
	free(c);
}

void cop_node_sizes_command(struct cop_node *n, struct command *c)
{
	struct cop_buf out = {0};

	c->work.run = list_sizes;
	if (cop_defer_add(&n->deferred, &c->work))
		return;
	cop_buf_str(&out, "the node is stopping\n");
	cop_node_reply(c->conn, -ESHUTDOWN, &out);
	free(c);
}
