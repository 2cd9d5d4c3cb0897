/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user can ask of a running node: commands on its control socket.
 *
 *     stats [all] | table [all] | stop [local] | snapshot [local] | reset [all] | sizes | process |
 * invalidate PATH
 */
#include "node/node_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void cop_node_reply(struct cop_ctl_conn *conn, int status, struct cop_buf *b)
{
	if (b->failed)
		cop_ctl_reply(conn, -ENOMEM, "", 0);
	else
		cop_ctl_reply(conn, status, b->data ? b->data : "", b->len);
	cop_buf_free(b);
}

_Static_assert(COP_TREEOP_TEXT_MAX + 16 * COP_MIB <= COP_CTL_REPLY_MAX,
	"a reply has room for the text of a whole tree");

static void all_stats(void *arg, struct cop_treeop_sum *g)
{
	struct command *c = arg;
	struct cop_buf out = {0};

	cop_buf_str(&out, "{\"nodes\":[");
	cop_buf_add(&out, g->text.data ? g->text.data : "", g->text.len);
	cop_buf_str(&out, "],\"total\":");
	cop_node_total_json(g, &out);
	cop_buf_str(&out, "}\n");
	cop_node_reply(c->conn, 0, &out);
	free(c);
}

static void all_table(void *arg, struct cop_treeop_sum *g)
{
	struct command *c = arg;
	struct cop_buf out = {0};

	cop_node_table_head(&out);
	if (g->text.len)
		cop_node_table_rows(g->text.data, &out);
	cop_node_table_total(g, &out);
	cop_node_reply(c->conn, 0, &out);
	free(c);
}

static void table_command(struct cop_node *n, struct command *c, bool all)
{
	struct cop_buf out = {0};

	if (all) {
		cop_treeop_all(n->treeop, &(struct cop_treeop_request){COP_TREEOP_TABLE, ""},
			all_table, c);
		return;
	}
	cop_node_table(n, &out);
	cop_node_reply(c->conn, 0, &out);
	free(c);
}

static void stats_command(struct cop_node *n, struct command *c, bool all)
{
	struct cop_buf out = {0};

	if (all) {
		cop_treeop_all(n->treeop, &(struct cop_treeop_request){COP_TREEOP_STATS, ""},
			all_stats, c);
		return;
	}
	cop_node_status(n, &out);
	cop_buf_str(&out, "\n");
	cop_node_reply(c->conn, 0, &out);
	free(c);
}

/* What only the nodes of one tree have in common; "-" of a node alone. */
static void add_tree(const struct cop_node *n, struct cop_buf *out)
{
	uint8_t tree[32];

	if (n->topo.nodes == 1) {
		cop_buf_str(out, "-");
		return;
	}
	cop_wire_mac(&n->wire_secret, "tree", &n->terms, sizeof(n->terms), tree);
	for (int i = 0; i < 16; i++)
		cop_buf_printf(out, "%02x", tree[i]);
}

/* "TREE PID": the process is the one with whose end all of this node is gone. */
static void process_command(struct cop_node *n, struct command *c)
{
	struct cop_buf out = {0};

	add_tree(n, &out);
	cop_buf_printf(&out, " %d\n", (int)n->last_pid);
	cop_node_reply(c->conn, 0, &out);
	free(c);
}

static void all_invalidated(void *arg, struct cop_treeop_sum *g)
{
	struct command *c = arg;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "invalidated on %u/%u nodes\n", g->nodes, c->node->topo.nodes);
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	cop_node_reply(c->conn, g->missing ? -EHOSTDOWN : 0, &out);
	free(c);
}

static void invalidate_command(struct cop_node *n, struct command *c, const char *path)
{
	while (*path == '/')
		path++;
	cop_treeop_all(n->treeop, &(struct cop_treeop_request){COP_TREEOP_INVALIDATE, path},
		all_invalidated, c);
}

/* "stop local" is "stop" with something after it. */
static bool is_command(const char *line, const char *name, bool *more, const char *with)
{
	size_t len = strlen(name);

	*more = strncmp(line, name, len) == 0 && line[len] == ' ' &&
		strcmp(line + len + 1, with) == 0;
	return *more || strcmp(line, name) == 0;
}

static void obey(struct cop_node *n, struct cop_ctl_conn *conn, char *line)
{
	struct command *c = calloc(1, sizeof(*c));
	struct cop_buf out = {0};
	bool more;

	if (!c) {
		cop_ctl_reply(conn, -ENOMEM, "out of memory\n", 14);
		return;
	}
	c->node = n;
	c->conn = conn;
	if (is_command(line, "stats", &more, "all")) {
		stats_command(n, c, more);
	} else if (is_command(line, "table", &more, "all")) {
		table_command(n, c, more);
	} else if (is_command(line, "stop", &more, "local")) {
		cop_node_stop_command(n, c, more);
	} else if (is_command(line, "snapshot", &more, "local")) {
		cop_node_snapshot_command(n, c, more);
	} else if (is_command(line, "reset", &more, "all")) {
		cop_node_reset_command(n, c, more);
	} else if (strcmp(line, "process") == 0) {
		process_command(n, c);
	} else if (strcmp(line, "sizes") == 0) {
		cop_node_sizes_command(n, c);
	} else if (strncmp(line, "invalidate ", 11) == 0) {
		invalidate_command(n, c, line + 11);
	} else {
		free(c);
		cop_buf_printf(&out,
			"this node does not know the command '%s'; is it of another version?\n",
			line);
		cop_node_reply(conn, -EINVAL, &out);
	}
}

static void handle(void *ctx, struct cop_ctl_conn *conn, char *line)
{
	static const char ending[] = "the node here is ending\n";
	struct cop_node *n = ctx;

	if (cop_gate_enter(&n->gate, COP_GATE_OPEN)) {
		obey(n, conn, line);
		cop_gate_leave(&n->gate);
	} else {
		cop_ctl_reply(conn, -ESHUTDOWN, ending, sizeof(ending) - 1);
	}
}

/* ---- the socket ---- */

static int start_when_free(
	struct cop_node *n, const char *path, const char *key, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + COP_NODE_FREE_MS;
	int rc;

	while ((rc = cop_ctl_start(path, key, handle, n, &n->ctl, err)) == -EADDRINUSE &&
		cop_now_ms() < end)
		poll(NULL, 0, 50);
	if (rc == -EADDRINUSE)
		cop_err_set(err, EADDRINUSE,
			"a copper node runs here as %s already (it listens at %s); end it with 'copper stop %s' before it is started again",
			key, path, key);
	return rc;
}

int cop_node_socket(const struct cop_node *n, char path[COP_CTL_PATH_SIZE],
	char key[COP_CTL_KEY_MAX + 1], struct cop_err *err)
{
	struct cop_ctl_place p = {n->conf->runtime_dir, n->mountpoint, cop_node_host(n, n->rank),
		cop_job_host_port(&n->hosts, n->rank, n->conf->port)};

	return cop_ctl_place(&p, path, key, err);
}

int cop_node_control_start(struct cop_node *n, struct cop_err *err)
{
	char path[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1];
	struct cop_buf tree = {0};
	int rc = cop_node_socket(n, path, key, err);

	if (!rc)
		rc = start_when_free(n, path, key, err);
	if (rc)
		return rc;
	/* If this node is killed, a stop of its tree knows its mount by that. */
	add_tree(n, &tree);
	if (tree.failed || cop_ctl_note(path, tree.data))
		cop_log_debug("no note beside the control socket");
	cop_buf_free(&tree);
	return 0;
}
