/* SPDX-License-Identifier: BSD-3-Clause */
/* Determines which views are possible by letting a child create a view with two empty
 * directories. */
#include "mount/view/view_priv.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

struct told {
	enum cop_view_kind kind;
	bool loses_groups;
	char why[1024];
};

/* How many of this process's groups have no id in its user namespace; the kernel shows them as
 * 65534. */
static int unmapped_groups(void)
{
	int n = getgroups(0, NULL), lost = 0;
	gid_t *group = n > 0 ? calloc((size_t)n, sizeof(*group)) : NULL;

	n = group ? getgroups(n, group) : 0;
	for (int i = 0; i < n; i++)
		lost += group[i] == 65534;
	free(group);
	return lost;
}

/* Mounts over /usr, which exists everywhere; the namespace disappears with the child. */
static void try_overlay(struct told *told)
{
	struct cop_view v = {.source = "/usr/at"};
	struct cop_view_place p = {.from = "/usr/from", .at = "/usr/at", .changes = -1};
	struct cop_err err = {0};

	told->kind = COP_VIEW_BIND;
	if (mount("copper-probe", "/usr", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k") ||
		mkdir(p.from, 0755) || mkdir(p.at, 0755)) {
		told->kind = COP_VIEW_ENV;
		snprintf(told->why, sizeof(told->why),
			"cannot mount anything in a user namespace here: %s (a container or a security module)",
			strerror(errno));
		return;
	}
	p.tree = cop_view_tree_open(p.from);
	if (p.tree < 0)
		snprintf(told->why, sizeof(told->why), "open_tree: %s", strerror(-p.tree));
	else if (cop_view_place_overlay(&v, &p, &err))
		snprintf(told->why, sizeof(told->why), "%s", err.text);
	else
		told->kind = COP_VIEW_OVERLAY;
}

static void try_all(int user_ns, int fd)
{
	struct told told = {.kind = COP_VIEW_ENV};
	struct cop_view_rights rights = {0};
	struct cop_err err = {0};
	int lost = unmapped_groups();

	if (cop_view_ns_enter(user_ns, &rights, &err)) {
		snprintf(told.why, sizeof(told.why), "%s", err.text);
	} else {
		told.loses_groups = unmapped_groups() > lost;
		try_overlay(&told);
	}
	_exit(cop_write_full(fd, &told, sizeof(told)) == sizeof(told) ? 0 : 1);
}

int cop_view_probe(int user_ns, struct cop_view_made *out, struct cop_err *err)
{
	struct told told;
	int fds[2], rc = 0;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return cop_err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		try_all(user_ns, fds[1]);
	close(fds[1]);
	if (pid < 0 || cop_read_full(fds[0], &told, sizeof(told)) != sizeof(told))
		rc = cop_err_set(err, EIO, "the test of a view failed");
	close(fds[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (rc)
		return rc;
	out->kind = told.kind;
	out->loses_groups = told.loses_groups;
	memcpy(out->why, told.why, sizeof(out->why));
	return 0;
}
