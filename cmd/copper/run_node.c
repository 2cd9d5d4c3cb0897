/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/grow.h"
#include "run_node.h"

#include <libgen.h>

#include "job/dir/dir.h"
#include "node/ctl/ctl.h"
#include "socket.h"
#include "mount/view/view.h"

#define TIMEOUT_MS 30000
/* Timeouts for reports to the node. If the exit of a command is not reported, its run counts as
 * failed. */
#define TELL_MS 2000
#define TELL_END_MS 10000

void cop_run_node_close(struct cop_run_node *node)
{
	if (node->user_ns >= 0)
		close(node->user_ns);
	node->user_ns = -1;
}

/* key: the node's mount point, or its name if it has none. */
static int ask_view(
	const char *path, const char *key, struct cop_run_node *out, struct cop_err *err)
{
	struct cop_ctl_reply reply;
	int rc = cop_ctl_call(path, "view", TIMEOUT_MS, &reply, err);

	if (rc == -ECONNREFUSED)
		return cop_err_set(err, ECONNREFUSED,
			"the node at %s has died: remove its mount with 'copper stop %s', then start another with copper mount",
			key, key);
	if (rc)
		return rc;
	rc = strlen(reply.text) < sizeof(out->source) ? reply.status : -EBADMSG;
	if (rc) {
		reply.text[strcspn(reply.text, "\n")] = '\0';
		cop_err_set(err, -rc, "%s: %s", key, reply.text);
		if (reply.fd >= 0)
			close(reply.fd);
	} else {
		snprintf(out->source, sizeof(out->source), "%s", reply.text);
		snprintf(out->mountpoint, sizeof(out->mountpoint), "%s", key);
		snprintf(out->socket, sizeof(out->socket), "%s", path);
		out->user_ns = reply.fd;
	}
	free(reply.text);
	return rc;
}

struct all {
	struct cop_run_node *node;
	unsigned n;
	struct cop_err err; /* why the last node did not reply */
	struct cop_buf names;
	struct cop_cmd_nodes nodes;
	bool failed;
};

static void add_node(void *ctx, const char *key, const char *path)
{
	struct all *all = ctx;
	struct cop_run_node one;

	if (key[0] != '/' || ask_view(path, key, &one, &all->err))
		return;
	if (!COP_GROW_PLAIN(all->node, all->n)) {
		all->failed = true;
		return;
	}
	all->node[all->n++] = one;
	cop_buf_printf(&all->names, "%s%s (%s)", all->n > 1 ? ", " : "", key, one.source);
}

/* The path of the command with links resolved; "" if not found. */
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

/* The node whose source is the nearest ancestor of path, or NULL. */
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
	struct all all = {0};
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

	*out = (struct cop_run_node){.user_ns = -1};
	if (!where->mountpoint)
		return find_among_all(where, out, err);
	rc = cop_cmd_socket(where->mountpoint, where->runtime_dir, path, err);
	if (!rc)
		rc = cop_cmd_realpath(where->mountpoint, key);
	return rc ? rc : ask_view(path, key, out, err);
}

/* ---- the command ---- */

/* The file may have been written by anyone with write access to the job directory, so only these
 * variables are taken from it. */
static bool is_of_job(const char *line)
{
	static const char *const names[] = {
		"COPPER_JOB_DIR=", "COPPER_RUN_ID=", "COPPER_STORE=", "TRACEPARENT="};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		if (strncmp(line, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Sets the variables in the lines of text. Returns whether they include a run or a span. */
static bool set_variables(char *text)
{
	bool run = false;

	while (*text) {
		size_t len = strcspn(text, "\n");
		char *next = text + len + (text[len] == '\n'), *value = strchr(text, '=');

		text[len] = '\0';
		if (is_of_job(text)) {
			*value = '\0';
			setenv(text, value + 1, 1);
			run |= strcmp(text, "COPPER_RUN_ID") == 0 ||
			       strcmp(text, "TRACEPARENT") == 0;
		}
		text = next;
	}
	return run;
}

/* Reads the identifiers that rank 0 wrote to the job directory. Returns whether they include a run
 * or a span. */
static bool set_variables_of_job(const char *answer)
{
	static const char key[] = "COPPER_JOB_DIR=";
	char path[PATH_MAX + 64], *text = NULL;
	bool run = false;
	size_t len;

	if (strncmp(answer, key, strlen(key)) != 0 || strstr(answer, "\nCOPPER_RUN_ID=") ||
		strstr(answer, "\nTRACEPARENT="))
		return false;
	answer += strlen(key);
	snprintf(path, sizeof(path), "%.*s/" COP_JOB_ENVIRONMENT, (int)strcspn(answer, "\n"),
		answer);
	if (cop_read_file(path, COP_CTL_LINE_MAX * 4, &text, &len) == 0)
		run = set_variables(text);
	free(text);
	return run;
}

bool cop_run_node_begin(const struct cop_run_node *node)
{
	struct cop_ctl_reply reply = {.fd = -1};
	struct cop_err ignored;
	bool wanted = false, untold = false, known;
	char line[64];

	snprintf(line, sizeof(line), "program %d", (int)getpid());
	if (cop_ctl_call(node->socket, line, TELL_MS, &reply, &ignored))
		return false;
	if (reply.status == 0 && reply.text) {
		wanted = strstr(reply.text, COP_CTL_EXIT "=wanted\n");
		known = set_variables_of_job(reply.text);
		known |= set_variables(reply.text);
		untold = known && strstr(reply.text, COP_CTL_EXIT "=untold\n");
	}
	free(reply.text);
	return wanted || untold;
}

void cop_run_node_fell_back(const struct cop_run_node *node, const char *why)
{
	struct cop_ctl_reply reply = {.fd = -1};
	char line[COP_CTL_LINE_MAX];
	struct cop_err ignored;

	snprintf(line, sizeof(line), "fallback %s", why);
	if (!cop_ctl_call(node->socket, line, TELL_MS, &reply, &ignored))
		free(reply.text);
}

void cop_run_node_ended(const char *socket, pid_t pid, int status)
{
	struct cop_ctl_reply reply = {.fd = -1};
	struct cop_err ignored;
	char line[64];

	snprintf(line, sizeof(line), "ended %d %d", (int)pid, status);
	if (!cop_ctl_call(socket, line, TELL_END_MS, &reply, &ignored))
		free(reply.text);
}
