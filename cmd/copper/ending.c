/* SPDX-License-Identifier: BSD-3-Clause */
#include "ending.h"

#include <libgen.h>
#include <poll.h>
#include <sys/syscall.h>

#include "node/ctl/ctl.h"
#include "sweep.h"

#define ASK_MS 1000
#define WAIT_MS 5000

/* Reads "TREE PID". -ECONNREFUSED: the process was killed; other errors: no reply. */
static int ask_process(const char *path, char tree[40], int *pid)
{
	struct cop_ctl_reply reply = {0};
	int rc = cop_ctl_call(path, "process", ASK_MS, &reply, NULL);

	if (!rc && (reply.status || sscanf(reply.text, "%39s %d", tree, pid) != 2 || *pid <= 1))
		rc = -EBADMSG;
	free(reply.text);
	return rc;
}

static void watch_process(struct cop_cmd_ending *e, int pid)
{
	int fd = e->count < COP_CMD_ENDING_MAX ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;

	if (fd >= 0)
		e->fd[e->count++] = fd;
}

/* Removes the mount of a dead node if it belongs to the tree being stopped, where no program needs
 * it any more. A single node ("-") does not belong to a tree. */
static void remove_dead_mount(const struct cop_cmd_ending *e, const char *key, const char *path)
{
	char tree[COP_CTL_NOTE_SIZE];

	cop_ctl_noted(path, tree);
	tree[strcspn(tree, " ")] = '\0';
	if (!tree[0] || strcmp(tree, "-") == 0 || strcmp(tree, e->tree))
		return;
	if (cop_cmd_clear_away(key, path))
		fprintf(stderr, "copper stop: %s: the node there was dead; its mount was removed\n",
			key);
}

static void check_node(void *ctx, const char *key, const char *path)
{
	struct cop_cmd_ending *e = ctx;
	char tree[40];
	int pid, rc;

	if (e->path && strcmp(path, e->path) == 0)
		return;
	rc = ask_process(path, tree, &pid);
	if (rc == -ECONNREFUSED)
		remove_dead_mount(e, key, path);
	else if (rc == 0 && strcmp(tree, e->tree) == 0)
		watch_process(e, pid);
}

void cop_cmd_ending_begin(struct cop_cmd_ending *e, const char *path, bool local)
{
	char dir[COP_CTL_PATH_SIZE];
	int pid;

	*e = (struct cop_cmd_ending){.path = path};
	if (ask_process(path, e->tree, &pid))
		return;
	watch_process(e, pid);
	snprintf(dir, sizeof(dir), "%s", path);
	/* A single node has no tree. */
	if (!local && strcmp(e->tree, "-"))
		cop_ctl_list(dirname(dir), check_node, e);
}

void cop_cmd_ending_tree(struct cop_cmd_ending *e, const char *runtime_dir, const char *tree)
{
	char dir[COP_CTL_PATH_SIZE];

	*e = (struct cop_cmd_ending){0};
	snprintf(e->tree, sizeof(e->tree), "%s", tree);
	if (cop_ctl_dir(runtime_dir, dir, sizeof(dir), NULL) == 0)
		cop_ctl_list(dir, check_node, e);
}

static bool is_gone(int fd, uint64_t end)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};
	uint64_t now = cop_now_ms();

	return poll(&p, 1, now < end ? (int)(end - now) : 0) == 1;
}

unsigned cop_cmd_ending_wait(struct cop_cmd_ending *e)
{
	uint64_t end = cop_now_ms() + WAIT_MS;
	unsigned left = 0;

	for (unsigned i = 0; i < e->count; i++) {
		left += !is_gone(e->fd[i], end);
		close(e->fd[i]);
	}
	e->count = 0;
	return left;
}

void cop_cmd_ending_close(struct cop_cmd_ending *e)
{
	while (e->count)
		close(e->fd[--e->count]);
}
