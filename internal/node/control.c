/* SPDX-License-Identifier: BSD-3-Clause */
/* What a user can ask of a running node: commands on its control socket, and the same operations when they come
 * from another node.
 *
 *     stats | stats all | table | stop [local] | invalidate PATH
 */
#include "node/node_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- doing an operation on this node and everything below ---- */

struct doing {
	struct cop_node *node;
	cop_node_gathered *done;
	void *arg;
	struct cop_list link; /* in stop_requests */
	struct gathered below;
	struct task task;
	char path[];
};

static void finish(struct doing *d)
{
	d->done(d->arg, &d->below);
	cop_buf_free(&d->below.text);
	free(d);
}

static void take(struct doing *d, struct gathered *g)
{
	d->below = *g;
	g->text = (struct cop_buf){0};
}

static void invalidated_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;

	take(d, g);
	d->below.nodes++;
	finish(d);
}

static void stats_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;

	take(d, g);
	cop_node_own(d->node, &d->below);
	finish(d);
}

/* The nodes below have stopped; now this one: the main thread does it and then calls cop_node_stopped. */
static void stop_below(void *arg, struct gathered *g)
{
	struct doing *d = arg;
	struct cop_node *n = d->node;

	take(d, g);
	pthread_mutex_lock(&n->lock);
	cop_list_push_back(&n->stop_requests, &d->link);
	pthread_mutex_unlock(&n->lock);
	atomic_store(&n->stopping, true);
	cop_node_wake(n);
}

static void below(struct doing *d)
{
	cop_node_gathered *then = d->task.op == OP_STOP ? stop_below : d->task.op == OP_STATS ? stats_below :
		invalidated_below;
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

void cop_node_do(struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
{
	size_t len = strlen(task->path) + 1;
	struct doing *d = calloc(1, sizeof(*d) + len);
	struct gathered nothing = {0};

	if (!d) {
		done(arg, &nothing);
		return;
	}
	d->node = n;
	d->done = done;
	d->arg = arg;
	d->task.op = task->op;
	d->task.path = memcpy(d->path, task->path, len);
	cop_list_init(&d->link);
	if (task->op == OP_INVALIDATE)
		invalidate_here(d);
	else
		below(d);
}

void cop_node_stopped(struct cop_node *n, const char *holders)
{
	struct cop_list list, *l;
	bool first = true;

	cop_list_init(&list);
	pthread_mutex_lock(&n->lock);
	cop_list_splice(&list, &n->stop_requests);
	pthread_mutex_unlock(&n->lock);
	while ((l = cop_list_pop_front(&list))) {
		struct doing *d = COP_CONTAINER_OF(l, struct doing, link);

		/* Asked twice, it still is one node. */
		d->below.nodes += first;
		if (first && holders && *holders)
			cop_buf_printf(&d->below.text, "%s%s: %s was unmounted lazily, still held by %s",
				d->below.text.len ? "," : "", cop_node_host(n, n->rank), n->mountpoint, holders);
		first = false;
		finish(d);
	}
}

/* ---- from another node ---- */

static void answer_req(void *arg, struct gathered *g)
{
	cop_node_answer_gathered(arg, g);
}

void cop_node_serve_gather(struct cop_node *n, struct cop_rpc_req *req)
{
	struct task task = {.op = cop_rpc_req_op(req)};
	char path[4096];
	size_t len;
	const void *payload = cop_rpc_req_payload(req, &len);

	if (len >= sizeof(path) || (len && memchr(payload, 0, len))) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EINVAL});
		return;
	}
	if (len)
		memcpy(path, payload, len);
	path[len] = '\0';
	task.path = path;
	cop_node_do(n, &task, answer_req, req);
}

/* ---- from the socket ---- */

struct command {
	struct cop_node *node;
	struct cop_ctl_conn *conn;
};

static void reply_buf(struct cop_ctl_conn *conn, int status, struct cop_buf *b)
{
	if (b->failed)
		cop_ctl_reply(conn, -ENOMEM, "", 0);
	else
		cop_ctl_reply(conn, status, b->data ? b->data : "", b->len);
	cop_buf_free(b);
}

static void all_stats(void *arg, struct gathered *g)
{
	struct command *c = arg;
	struct cop_buf out = {0};

	cop_buf_str(&out, "{\"nodes\":[");
	cop_buf_add(&out, g->text.data ? g->text.data : "", g->text.len);
	cop_buf_str(&out, "],\"total\":");
	cop_node_total_json(g, &out);
	cop_buf_str(&out, "}\n");
	reply_buf(c->conn, 0, &out);
	free(c);
}

/* "stopped 4/4 nodes", then a line for each trouble. */
static void all_stopped(void *arg, struct gathered *g)
{
	struct command *c = arg;
	struct cop_node *n = c->node;
	struct cop_buf out = {0};
	bool local = n->stop_local;

	cop_buf_printf(&out, "stopped %u/%u nodes\n", g->nodes, local ? 1 : n->topo.nodes);
	for (size_t i = 0; i < g->text.len; i++)
		if (g->text.data[i] == ',' && i + 1 < g->text.len && g->text.data[i + 1] != ' ')
			g->text.data[i] = '\n';
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	reply_buf(c->conn, g->dead ? -EHOSTDOWN : 0, &out);
	free(c);
	atomic_fetch_sub(&n->initiators, 1);
	cop_node_wake(n);
}

static void stop_command(struct cop_node *n, struct command *c, bool local)
{
	struct gathered nothing = {0};
	int rc = 0;

	atomic_fetch_add(&n->initiators, 1);
	if (local) {
		struct doing *d = calloc(1, sizeof(*d));

		n->stop_local = true;
		if (d) {
			d->node = n;
			d->done = all_stopped;
			d->arg = c;
			cop_list_init(&d->link);
			stop_below(d, &nothing);
		}
		rc = d ? 0 : -ENOMEM;
	} else {
		rc = cop_node_gather(n, &(struct task){OP_STOP, ""}, cop_topo_root(&n->topo, 0), all_stopped, c);
	}
	if (rc)
		all_stopped(c, &nothing);
}

static void stats_command(struct cop_node *n, struct command *c, bool all)
{
	struct gathered nothing = {0};
	struct cop_buf out = {0};

	if (all) {
		if (cop_node_gather(n, &(struct task){OP_STATS, ""}, cop_topo_root(&n->topo, 0), all_stats, c))
			all_stats(c, &nothing);
		return;
	}
	cop_node_status(n, &out);
	cop_buf_str(&out, "\n");
	reply_buf(c->conn, 0, &out);
	free(c);
}

static void all_invalidated(void *arg, struct gathered *g)
{
	struct command *c = arg;
	struct cop_buf out = {0};

	cop_buf_printf(&out, "invalidated on %u/%u nodes\n", g->nodes, c->node->topo.nodes);
	if (g->text.len)
		cop_buf_printf(&out, "%s\n", g->text.data);
	reply_buf(c->conn, g->dead ? -EHOSTDOWN : 0, &out);
	free(c);
}

static void invalidate_command(struct cop_node *n, struct command *c, const char *path)
{
	struct gathered nothing = {0};

	while (*path == '/')
		path++;
	if (cop_node_gather(n, &(struct task){OP_INVALIDATE, path}, cop_topo_root(&n->topo, 0), all_invalidated, c))
		all_invalidated(c, &nothing);
}

static void handle(void *ctx, struct cop_ctl_conn *conn, char *line)
{
	struct cop_node *n = ctx;
	struct command *c = malloc(sizeof(*c));
	struct cop_buf out = {0};

	if (!c) {
		cop_ctl_reply(conn, -ENOMEM, "out of memory\n", 14);
		return;
	}
	*c = (struct command){n, conn};
	if (strcmp(line, "stats") == 0 || strcmp(line, "stats all") == 0) {
		stats_command(n, c, line[5] != '\0');
		return;
	}
	if (strcmp(line, "stop") == 0 || strcmp(line, "stop local") == 0) {
		stop_command(n, c, line[4] != '\0');
		return;
	}
	if (strncmp(line, "invalidate ", 11) == 0) {
		invalidate_command(n, c, line + 11);
		return;
	}
	free(c);
	if (strcmp(line, "table") == 0) {
		cop_node_table(n, &out);
		reply_buf(conn, 0, &out);
	} else {
		cop_buf_printf(&out, "this node does not know the command '%s'; is it of another version?\n", line);
		reply_buf(conn, -EINVAL, &out);
	}
}

/* ---- the socket ---- */

/* What the socket's name is made from. */
static void socket_key(const struct cop_node *n, char *key, size_t size)
{
	if (n->conf->serve_only)
		snprintf(key, size, "serve:%s:%u", n->hosts.count ? n->hosts.host[n->rank].name : "localhost",
			n->hosts.count ? n->hosts.host[n->rank].port : n->conf->port);
	else
		snprintf(key, size, "%s", n->mountpoint);
}

int cop_node_control_start(struct cop_node *n, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE], path[COP_CTL_PATH_SIZE], key[COP_CTL_KEY_MAX + 1];
	int rc = cop_ctl_dir(n->conf->runtime_dir, dir, sizeof(dir), err);

	if (rc)
		return rc;
	socket_key(n, key, sizeof(key));
	rc = cop_ctl_path(dir, key, path, sizeof(path));
	if (rc)
		return cop_err_set(err, -rc, "%s: the path of the control socket is too long; choose a shorter --runtime-dir", dir);
	return cop_ctl_start(path, key, handle, n, &n->ctl, err);
}
