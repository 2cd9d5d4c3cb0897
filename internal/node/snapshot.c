/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user asks for while the node runs and what may wait for a disk or take its time: the
 * reports of this moment, or those and counters from zero, here or on every node; and what the
 * cache holds. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reports ---- */

static void reply_written(struct command *c, const struct cop_treeop_sum *g, uint32_t of)
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

static void here_written(void *arg, struct cop_treeop_sum *g)
{
	reply_written(arg, g, 1);
}

static void all_written(void *arg, struct cop_treeop_sum *g)
{
	struct command *c = arg;

	/* With root there is one file to be written, whoever was asked. */
	reply_written(c, g,
		c->node->conf->rank_files == COP_CONF_RANK_FILES_ALL ? c->node->topo.nodes : 1);
}

void cop_node_snapshot_command(struct cop_node *n, struct command *c, bool local)
{
	struct cop_treeop_request snapshot = {COP_TREEOP_SNAPSHOT, ""};

	if (local)
		cop_treeop_here(n->treeop, &snapshot, false, here_written, c);
	else
		cop_treeop_all(n->treeop, &snapshot, all_written, c);
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

static void reply_reset(struct command *c, const struct cop_treeop_sum *g, uint32_t of, bool all)
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

static void here_reset(void *arg, struct cop_treeop_sum *g)
{
	reply_reset(arg, g, 1, false);
}

static void all_reset(void *arg, struct cop_treeop_sum *g)
{
	struct command *c = arg;

	reply_reset(c, g, c->node->topo.nodes, true);
}

void cop_node_reset_command(struct cop_node *n, struct command *c, bool all)
{
	char name[64];
	struct cop_treeop_request reset = {COP_TREEOP_RESET, name};

	snprintf(name, sizeof(name), "%" PRIu32 ".%" PRIu64, n->rank, cop_now_ns());
	if (all)
		cop_treeop_all(n->treeop, &reset, all_reset, c);
	else
		cop_treeop_here(n->treeop, &reset, false, here_reset, c);
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
