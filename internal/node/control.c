/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's control socket, and what commands (command) need of the node. */
#include "node/node_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- what it says of itself ---- */

static void status(void *ctx, struct cop_buf *out)
{
	struct cop_status s = cop_node_status(ctx);

	cop_status_json(&s, out);
}

static void table(void *ctx, struct cop_buf *out)
{
	struct cop_status s = cop_node_status(ctx);

	cop_status_table(&s, out);
}

static bool view(void *ctx, const char **source, int *user_ns)
{
	struct cop_node *n = ctx;
	bool ready = cop_join_is_ready(n->join) && atomic_load(&n->fs);

	*source = n->source;
	*user_ns = ready ? n->view_ns : -1;
	return ready;
}

static void sizes(void *ctx, struct cop_buf *out)
{
	struct cop_node *n = ctx;

	cop_tally_sizes(n->tally, out);
}

/* The root is dead: nobody above has written the sums, nor which nodes are left. */
static int write_late(void *ctx, const struct cop_treeop_sum *sum, struct cop_err *err)
{
	struct cop_node *n = ctx;
	struct cop_tally_job job = cop_node_tally_job(n);

	cop_node_keep_word(n, sum);
	return sum->prof ? cop_tally_write_sums(&job, sum, err) : 0;
}

static int open_commands(struct cop_node *n, struct cop_err *err)
{
	static const struct cop_command_ops ops = {.status = status,
		.table = table,
		.view = view,
		.sizes = sizes,
		.write_late = write_late,
		.wake = cop_node_wake};
	struct cop_command_conf conf = {.topo = n->topo,
		.rank = n->rank,
		.host = cop_node_host(n, n->rank),
		.last_pid = n->last_pid,
		.job_dir = n->job_dir,
		.counts = cop_tally_prof(n->tally) != NULL,
		.rank_files = n->conf->rank_files,
		.ops = &ops,
		.ctx = n,
		.treeop = n->treeop,
		.gate = &n->gate,
		.deferred = &n->deferred};

	strcpy(n->tree, "-");
	if (n->topo.nodes > 1)
		cop_reach_tree_name(&n->wire_secret, n->config_hash, n->tree);
	conf.tree = n->tree;
	n->commands = cop_command_new(&conf);
	return n->commands ? 0 : cop_err_set(err, ENOMEM, "out of memory");
}

/* ---- the socket ---- */

static int start_when_free(
	struct cop_node *n, const char *path, const char *key, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + COP_NODE_FREE_MS;
	int rc;

	while ((rc = cop_ctl_start(path, key, cop_command_handle, n->commands, &n->ctl, err)) ==
			-EADDRINUSE &&
		cop_now_ms() < end)
		poll(NULL, 0, 50);
	if (rc == -EADDRINUSE)
		cop_err_set(err, EADDRINUSE,
			"a copper node runs here as %s already (it listens at %s); end it with 'copper stop %s' before it is started again",
			key, path, key);
	return rc;
}

int cop_node_control_start(struct cop_node *n, struct cop_err *err)
{
	char path[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1];
	struct cop_buf note = {0};
	int rc = cop_node_socket(n, path, key, err);

	if (!rc)
		rc = open_commands(n, err);
	if (!rc)
		rc = start_when_free(n, path, key, err);
	if (rc)
		return rc;
	/* If this node is killed, a stop of its tree knows its mount by that, and who takes that
	 * away what else is to go. */
	cop_buf_printf(&note, "%s", n->tree);
	cop_place_note(n->place, &note);
	if (note.failed || cop_ctl_note(path, note.data))
		cop_log_debug("no note beside the control socket");
	cop_buf_free(&note);
	return 0;
}
