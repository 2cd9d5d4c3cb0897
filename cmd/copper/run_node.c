/* SPDX-License-Identifier: BSD-3-Clause */
#include "run_node.h"

#include <errno.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "node/ctl/ctl.h"
#include "base/log/log.h"
#include "socket.h"
#include "node/spare/spare.h"
#include "mount/view/view.h"

#define TIMEOUT_MS 30000
/* An offer is worth less than a moment of the command's start. */
#define OFFER_MS 20

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void cop_run_node_close(struct cop_run_node *node)
{
	close_fd(node->user_ns);
	close_fd(node->kept.ns);
	close_fd(node->kept.root);
	node->user_ns = node->kept.ns = node->kept.root = -1;
}

static void take_fds(const struct cop_ctl_fds *fds, struct cop_run_node *out)
{
	out->user_ns = fds->n ? fds->fd[0] : -1;
	out->kept = (struct cop_view_kept){-1, -1, -1, -1};
	if (fds->n < 1 + COP_SPARE_GIVEN)
		return;
	out->kept.ns = fds->fd[1 + COP_SPARE_NS];
	out->kept.root = fds->fd[1 + COP_SPARE_ROOT];
}

/* "NUMBER\nSOURCE" if a key was asked with. */
static int read_view(const struct cop_ctl_reply *reply, uint64_t key, struct cop_run_node *out)
{
	char *end = key ? strchr(reply->text, '\n') : NULL;
	const char *source = end ? end + 1 : reply->text;

	out->offer = 0;
	if (end)
		*end = '\0';
	if ((key && (!end || cop_parse_u64(reply->text, &out->offer))) ||
		strlen(source) >= sizeof(out->source) ||
		(reply->fds.n > 1 && reply->fds.n != 1 + COP_SPARE_GIVEN))
		return -EBADMSG;
	strcpy(out->source, source);
	return 0;
}

/* key: the node's; view_key: of struct cop_run_where. */
static int ask_view(const char *path, const char *key, uint64_t view_key, struct cop_run_node *out,
	struct cop_err *err)
{
	struct cop_ctl_reply reply = {0};
	char line[32] = "view";
	int rc;

	if (view_key)
		snprintf(line, sizeof(line), "view %016" PRIx64, view_key);
	rc = cop_ctl_call(path, line, TIMEOUT_MS, &reply, err);
	if (rc == -ECONNREFUSED)
		return cop_err_set(err, ECONNREFUSED,
			"the node at %s has died: remove its mount with 'copper stop %s', then start another with copper mount",
			key, key);
	if (rc)
		return rc;
	rc = reply.status ? reply.status : read_view(&reply, view_key, out);
	if (rc) {
		reply.text[strcspn(reply.text, "\n")] = '\0';
		cop_err_set(err, -rc, "%s: %s", key, reply.text);
		cop_ctl_fds_close(&reply.fds);
	} else {
		snprintf(out->mountpoint, sizeof(out->mountpoint), "%s", key);
		snprintf(out->socket, sizeof(out->socket), "%s", path);
		take_fds(&reply.fds, out);
	}
	free(reply.text);
	return rc;
}

struct all {
	uint64_t view_key;
	struct cop_run_node *node;
	unsigned n;
	struct cop_err err; /* why the last node did not answer */
	struct cop_buf names;
	struct cop_cmd_nodes nodes;
	bool failed;
};

static void add_node(void *ctx, const char *key, const char *path)
{
	struct all *all = ctx;
	struct cop_run_node one, *more;

	if (key[0] != '/' || ask_view(path, key, all->view_key, &one, &all->err))
		return;
	more = reallocarray(all->node, all->n + 1, sizeof(*more));
	if (!more) {
		all->failed = true;
		return;
	}
	all->node = more;
	all->node[all->n++] = one;
	cop_buf_printf(&all->names, "%s%s (%s)", all->n > 1 ? ", " : "", key, one.source);
}

/* The path of the command with links resolved; "" if there is none. */
static void command_path(const char *command, char out[PATH_MAX])
{
	const char *path = getenv("PATH");
	char one[PATH_MAX], copy[PATH_MAX];

	out[0] = '\0';
	if (!command)
		return;
	if (strchr(command, '/')) {
		snprintf(copy, sizeof(copy), "%s", command);
		if (!realpath(dirname(copy), out))
			out[0] = '\0';
		return;
	}
	while (path && *path) {
		size_t len = strcspn(path, ":");

		snprintf(one, sizeof(one), "%.*s/%s", (int)COP_MIN(len, sizeof(one) / 2), path,
			command);
		if (len && access(one, X_OK) == 0) {
			snprintf(
				one, sizeof(one), "%.*s", (int)COP_MIN(len, sizeof(one) - 1), path);
			if (!realpath(one, out))
				out[0] = '\0';
			return;
		}
		path += len + (path[len] == ':');
	}
}

/* The node whose source is the nearest one above path, or NULL. */
static struct cop_run_node *node_of_path(const struct all *all, const char *path)
{
	struct cop_run_node *best = NULL;

	for (unsigned i = 0; i < all->n && *path; i++) {
		struct cop_run_node *one = &all->node[i];

		if (cop_view_is_below(path, one->source) &&
			(!best || strlen(one->source) > strlen(best->source)))
			best = one;
	}
	return best;
}

static bool is_twice(const struct all *all, const struct cop_run_node *one)
{
	unsigned same = 0;

	for (unsigned i = 0; i < all->n; i++)
		same += strcmp(all->node[i].source, one->source) == 0;
	return same > 1;
}

static int choose_node(
	const struct all *all, const char *command, struct cop_run_node *out, struct cop_err *err)
{
	struct cop_run_node *best = all->n == 1 ? all->node : NULL;
	char cwd[PATH_MAX], path[PATH_MAX];

	if (all->failed || all->names.failed)
		return cop_err_set(err, ENOMEM, "out of memory");
	if (!all->n && all->err.code)
		return cop_err_set(err, all->err.code, "%s", all->err.text);
	if (!all->n)
		return cop_cmd_nodes_none(&all->nodes,
			": 'copper mount --source DIR MOUNTPOINT' starts one", "--mount", err);
	if (!best && getcwd(cwd, sizeof(cwd)))
		best = node_of_path(all, cwd);
	command_path(command, path);
	if (!best)
		best = node_of_path(all, path);
	if (!best || (all->n > 1 && is_twice(all, best)))
		return cop_err_set(err, EINVAL,
			"several copper nodes run here, and neither the working directory nor the command tells which is meant; give --mount with one of: %s",
			all->names.data);
	*out = *best;
	return 0;
}

static int find_among_all(
	const struct cop_run_where *where, struct cop_run_node *out, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE];
	struct all all = {.view_key = where->key};
	int rc = cop_ctl_dir(where->runtime_dir, dir, sizeof(dir), err);

	if (rc)
		return rc;
	rc = cop_cmd_nodes_find(dir, &all.nodes, add_node, &all);
	if (rc)
		rc = cop_err_set(err, -rc, "cannot look for nodes in %s: %s", dir, strerror(-rc));
	else
		rc = choose_node(&all, where->command, out, err);
	for (unsigned i = 0; i < all.n; i++)
		if (rc || strcmp(all.node[i].socket, out->socket) != 0)
			cop_run_node_close(&all.node[i]);
	free(all.node);
	cop_buf_free(&all.names);
	cop_buf_free(&all.nodes.other);
	return rc;
}

int cop_run_find_node(
	const struct cop_run_where *where, struct cop_run_node *out, struct cop_err *err)
{
	char path[COP_CTL_PATH_SIZE], key[PATH_MAX];
	int rc;

	*out = (struct cop_run_node){.user_ns = -1, .kept = {-1, -1, -1, -1}};
	if (!where->mountpoint)
		return find_among_all(where, out, err);
	rc = cop_cmd_socket(where->mountpoint, where->runtime_dir, path, err);
	if (!rc)
		rc = cop_cmd_realpath(where->mountpoint, key);
	return rc ? rc : ask_view(path, key, where->key, out, err);
}

void cop_run_node_offer(const struct cop_run_node *node, struct cop_view_made *made)
{
	struct cop_ctl_fds fds = {.n = COP_SPARE_FDS};
	struct cop_err err = {0};
	char line[32];

	_Static_assert(COP_SPARE_FDS <= COP_CTL_FDS, "a view goes along with one request");
	if (!made->offers)
		return;
	fds.fd[COP_SPARE_NS] = made->offer.ns;
	fds.fd[COP_SPARE_ROOT] = made->offer.root;
	fds.fd[COP_SPARE_MOUNTS] = made->offer.mounts;
	fds.fd[COP_SPARE_BEFORE] = made->offer.before;
	snprintf(line, sizeof(line), "offer %" PRIu64, node->offer);
	if (cop_ctl_tell(node->socket, line, &fds, OFFER_MS, &err))
		cop_log_debug("the view is not offered error=\"%s\"", err.text);
	cop_ctl_fds_close(&fds);
	made->offers = false;
}
