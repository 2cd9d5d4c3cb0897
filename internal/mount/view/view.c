/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps, in order: check the places, enter the namespaces, open what the mounts will cover,
 * cover the places, and put the storage's own directories back. */
#include "mount/view/view_priv.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include "base/log/log.h"
#include "mount/fuse/fuse.h"

#define FUSE_MAGIC 0x65735546 /* statfs(2) */
/* Time limit for a new directory to appear in the mount, which normally takes seconds. */
#define NEW_MS 5000
#define NEW_STEP_MS 50
/* The lowest number for extra descriptors that a command inherits. */
#define LOCK_FD 100

const char *cop_view_name(enum cop_view_kind kind)
{
	static const char *const names[] = {"overlay", "bind", "env", "best"};

	return names[kind];
}

struct making {
	const struct cop_view *v;
	struct cop_view_made *out;
	struct cop_err *err;
	struct cop_view_rights rights;
	struct cop_view_place *place;
	unsigned places;
	int direct[COP_VIEW_PLACES];
	int storage;         /* a copy of the source if the view replaces all of it, or -errno */
	char root[PATH_MAX]; /* root of the tree as views show it */
	char cwd[PATH_MAX];  /* "" if it need not be restored */
};

/* ---- before entering ---- */

/* Fills in the place of one directory of the mount. */
static void set_place(struct making *m, const char *at)
{
	struct cop_view_place *p = &m->place[m->places++];
	const char *rest = at + (strcmp(m->v->source, "/") ? strlen(m->v->source) : 0);

	p->tree = p->changes = -1;
	snprintf(p->at, sizeof(p->at), "%s", at);
	snprintf(p->from, sizeof(p->from), "%.*s%s", PATH_MAX / 2, m->v->mountpoint, rest);
	snprintf(p->via, sizeof(p->via), "%.*s%s", PATH_MAX / 2, m->root, rest);
}

/* Nodes of older releases have only the bare mount. */
static void find_root(struct making *m)
{
	struct stat st;

	snprintf(m->root, sizeof(m->root), "%.*s/" COP_FUSE_VIEW_ROOT, PATH_MAX / 2,
		m->v->mountpoint);
	if (stat(m->root, &st))
		snprintf(m->root, sizeof(m->root), "%s", m->v->mountpoint);
}

static int check_place(struct making *m, const struct cop_view_place *p)
{
	struct statfs fs;
	struct stat st;

	if (stat(p->at, &st))
		return cop_err_set(m->err, errno,
			"%s, which the tree is to replace, cannot be reached on this machine: %s",
			p->at, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return cop_err_set(m->err, ENOTDIR,
			"%s, which the tree is to replace, is not a directory on this machine",
			p->at);
	if (statfs(p->from, &fs) == 0 && fs.f_type != FUSE_MAGIC)
		return cop_err_set(m->err, ENODEV,
			"no tree is mounted at %s as this process sees it: its node has ended, or runs in another container",
			m->v->mountpoint);
	if (stat(p->from, &st) == 0)
		return 0;
	if (errno == ENOTCONN)
		return cop_err_set(m->err, ENOTCONN,
			"the node that served %s has died: remove its mount with 'copper stop %s', then start another with copper mount",
			m->v->mountpoint, m->v->mountpoint);
	if (errno == EACCES)
		return cop_err_set(m->err, EACCES,
			"%s cannot be reached: %s: the kernel shows it only to processes with the user and the group of its node, not after newgrp(1) or sg(1)",
			p->from, strerror(errno));
	return cop_err_set(m->err, errno, "%s cannot be reached: %s", p->from, strerror(errno));
}

static int open_place(struct making *m, struct cop_view_place *p)
{
	p->tree = cop_view_tree_open(p->via);
	if (p->tree < 0)
		return cop_err_set(m->err, -p->tree, "%s cannot be used as a mount: %s", p->from,
			strerror(-p->tree));
	if (!m->v->writable_dir)
		return 0;
	p->changes = cop_view_tree_open(m->v->writable_dir);
	return p->changes < 0 ? cop_err_set(m->err, -p->changes, "--writable=%s: %s",
					m->v->writable_dir, strerror(-p->changes))
			      : 0;
}

static int check_places(struct making *m)
{
	int rc = 0;

	m->place = calloc(COP_MAX(m->v->belows, 1U), sizeof(*m->place));
	if (!m->place)
		return cop_err_set(m->err, ENOMEM, "out of memory");
	find_root(m);
	if (!m->v->belows)
		set_place(m, m->v->source);
	for (unsigned i = 0; i < m->v->belows; i++)
		set_place(m, m->v->below[i]);
	for (unsigned i = 0; i < m->places && !rc; i++)
		rc = check_place(m, &m->place[i]);
	return rc;
}

static bool is_covered(const struct making *m, const char *path)
{
	for (unsigned i = 0; i < m->places; i++)
		if (cop_view_is_below(path, m->place[i].at))
			return true;
	return false;
}

/* Waits until the mount shows the directory, because an overlay would not notice it later. */
static int await_dir(struct making *m, const char *what, const char *dir)
{
	uint64_t end = cop_now_ms() + NEW_MS;
	char seen[2 * PATH_MAX];
	struct stat st;

	snprintf(seen, sizeof(seen), "%s%s", m->root,
		dir + (strcmp(m->v->source, "/") ? strlen(m->v->source) : 0));
	while (stat(seen, &st) && errno == ENOENT && cop_now_ms() < end)
		poll(NULL, 0, NEW_STEP_MS);
	return stat(seen, &st) ? cop_err_set(m->err, errno, "%s %s is not in the tree: %s", what,
					 dir, strerror(errno))
			       : 0;
}

static int await_all(struct making *m)
{
	int rc = is_covered(m, m->cwd) ? await_dir(m, "the working directory", m->cwd) : 0;

	for (unsigned i = 0; i < m->v->directs && !rc; i++)
		if (is_covered(m, m->v->direct[i]))
			rc = await_dir(m, "--direct", m->v->direct[i]);
	return rc;
}

/* Inside a view, --direct would show the outer view's directory, that is, the tree's. */
static int check_direct(struct making *m, const char *dir)
{
	char type[COP_MOUNT_TYPE_SIZE];

	if (access(dir, W_OK) == 0 || errno != EROFS || cop_mount_type(dir, type) ||
		(strcmp(type, "overlay") != 0 && strcmp(type, "fuse.copper") != 0))
		return 0;
	return cop_err_set(m->err, EROFS,
		"--direct %s: this process is inside of a view, from which the storage's own directory cannot be reached: give --direct to the outer copper run",
		dir);
}

/* Opens the directories in the namespace in which they will be mounted, before anything covers
 * them. */
static int open_direct(struct making *m)
{
	for (unsigned i = 0; i < m->v->directs; i++) {
		const char *dir = m->v->direct[i];

		m->direct[i] = -1;
		if (!is_covered(m, dir))
			continue;
		if (check_direct(m, dir))
			return -EROFS;
		m->direct[i] = cop_view_tree_open(dir);
		if (m->direct[i] < 0)
			return cop_err_set(m->err, -m->direct[i], "--direct %s: %s", dir,
				strerror(-m->direct[i]));
	}
	return 0;
}

/* ---- inside ---- */

static int put_all(struct making *m, enum cop_view_kind kind, struct cop_err *err)
{
	unsigned i;
	int rc = 0;

	for (i = 0; i < m->places && !rc; i++)
		rc = kind == COP_VIEW_OVERLAY ? cop_view_place_overlay(m->v, &m->place[i], err)
					      : cop_view_place_bind(&m->place[i], err);
	if (!rc)
		return 0;
	/* The place that failed has cleaned up after itself. */
	for (i--; i-- > 0;)
		umount2(m->place[i].at, MNT_DETACH);
	return rc;
}

/* Opens copies for the next attempt; each attempt uses them up. */
static int open_places(struct making *m)
{
	int rc = 0;

	for (unsigned i = 0; i < m->places && !rc; i++) {
		struct cop_view_place *p = &m->place[i];

		if (p->tree >= 0)
			close(p->tree);
		if (p->changes >= 0)
			close(p->changes);
		p->changes = -1;
		rc = open_place(m, p);
	}
	return rc;
}

static int put_best(struct making *m)
{
	struct cop_err why = {0};
	int rc = -EINVAL;

	if (m->v->kind != COP_VIEW_BIND) {
		rc = open_places(m);
		if (rc)
			return rc;
		rc = put_all(m, COP_VIEW_OVERLAY, &why);
		m->out->kind = COP_VIEW_OVERLAY;
		if (rc && (m->v->kind == COP_VIEW_OVERLAY || m->v->writable))
			return cop_err_set(m->err, -rc, "%s", why.text);
	}
	if (rc) {
		snprintf(m->out->why, sizeof(m->out->why), "%s", why.text);
		m->out->kind = COP_VIEW_BIND;
		rc = open_places(m);
		if (!rc)
			rc = put_all(m, COP_VIEW_BIND, m->err);
	}
	return rc;
}

/* Programs reach FIFOs and sockets through this mount. Without it, opening them fails
 * immediately. */
static void put_storage(struct making *m)
{
	char at[PATH_MAX + sizeof(COP_FUSE_STORAGE) + 1];
	int rc;

	if (m->storage < 0)
		return;
	snprintf(at, sizeof(at), "%s/" COP_FUSE_STORAGE, m->v->source);
	rc = cop_view_tree_put(m->storage, at);
	if (rc)
		cop_log_debug("the storage's FIFOs and sockets are not in the view error=\"%s\"",
			strerror(-rc));
	close(m->storage);
}

static int put_direct(struct making *m)
{
	int rc = 0;

	for (unsigned i = 0; i < m->v->directs && !rc; i++) {
		if (m->direct[i] < 0)
			continue;
		rc = cop_view_tree_put(m->direct[i], m->v->direct[i]);
		if (rc)
			rc = cop_err_set(
				m->err, -rc, "--direct %s: %s", m->v->direct[i], strerror(-rc));
		close(m->direct[i]);
	}
	return rc;
}

/* Returns to the working directory through the view, because a working directory on the storage
 * would bypass the tree. */
static int go_back(struct making *m, int cwd_fd)
{
	if (!is_covered(m, m->cwd)) {
		if (fchdir(cwd_fd))
			return cop_err_set(
				m->err, errno, "the working directory: %s", strerror(errno));
		return 0;
	}
	if (chdir(m->cwd))
		return cop_err_set(m->err, errno,
			"the working directory %s cannot be reached in the tree: %s", m->cwd,
			strerror(errno));
	return 0;
}

/* The kernel lets several overlays use one directory for changes, with undefined results. The
 * command inherits the descriptor, so the lock lasts exactly as long as the view. */
static int lock_changes(struct making *m)
{
	const char *dir = m->v->writable_dir;
	int fd, held;

	if (!dir)
		return 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || access(dir, W_OK | X_OK)) {
		cop_err_set(m->err, errno, "--writable=%s: %s", dir, strerror(errno));
		if (fd >= 0)
			close(fd);
		return -m->err->code;
	}
	held = fcntl(fd, F_DUPFD, LOCK_FD);
	close(fd);
	if (held < 0 || flock(held, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
		return 0;
	return cop_err_set(m->err, EBUSY,
		"--writable=%s: another command uses it; each needs a directory of its own", dir);
}

/* Enters the namespaces. Returns 1 if they are refused and the view has to make do with
 * variables. */
static int enter_own(struct making *m)
{
	struct cop_err refused = {0};
	int rc = cop_view_ns_enter(m->v->user_ns, &m->rights, &refused);

	if (rc && (rc == -ENOTRECOVERABLE || m->v->kind != COP_VIEW_BEST || m->v->writable ||
			  m->v->directs))
		return cop_err_set(m->err, -rc, "%s", refused.text);
	if (rc) {
		snprintf(m->out->why, sizeof(m->out->why), "%s", refused.text);
		m->out->kind = COP_VIEW_ENV;
		return 1;
	}
	m->out->alone = m->rights.alone;
	return 0;
}

static int mount_inside(struct making *m)
{
	int cwd_fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC), rc = open_direct(m);

	m->storage = m->v->belows ? -ENOENT : cop_view_tree_open(m->v->source);
	if (!rc)
		rc = put_best(m);
	if (!rc)
		put_storage(m);
	if (!rc)
		rc = put_direct(m);
	if (!rc)
		rc = go_back(m, cwd_fd);
	if (cwd_fd >= 0)
		close(cwd_fd);
	return rc ? rc : cop_view_ns_restore(&m->rights, m->err);
}

static int mount_all(struct making *m)
{
	int rc = enter_own(m);

	if (!rc)
		return mount_inside(m);
	return rc > 0 ? 0 : rc;
}

static int make_own(struct making *m)
{
	bool mounts = m->v->kind != COP_VIEW_ENV;
	int rc = check_places(m);

	if (!rc && mounts)
		rc = await_all(m);
	if (!rc)
		rc = lock_changes(m);
	if (!rc && mounts)
		rc = mount_all(m);
	if (!rc && m->out->kind == COP_VIEW_ENV)
		rc = cop_view_env(m->v, m->err);
	return rc;
}

static void free_making(struct making *m)
{
	for (unsigned i = 0; i < m->places; i++) {
		if (m->place[i].tree >= 0)
			close(m->place[i].tree);
		if (m->place[i].changes >= 0)
			close(m->place[i].changes);
	}
	free(m->place);
}

/* Whether this process is already in this view and its user namespace, and so needs no other. */
static bool is_here(const struct cop_view *v)
{
	char want[2 * PATH_MAX], *text, *save, *line;
	bool here = false;
	size_t len;

	if (v->kind == COP_VIEW_BIND || v->writable || v->directs || v->belows ||
		!cop_view_ns_may_have_view(v->user_ns) ||
		cop_read_file("/proc/self/mountinfo", 16 * COP_MIB, &text, &len))
		return false;
	snprintf(want, sizeof(want), "copper:%s", v->mountpoint);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char at[PATH_MAX], from[PATH_MAX + 8], *rest = strstr(line, " - overlay ");

		if (sscanf(line, "%*s %*s %*s %*s %4095s", at) != 1)
			continue;
		cop_mount_unescape(at);
		if (strcmp(at, v->source) != 0)
			continue;
		here = rest && sscanf(rest, " - overlay %4103s", from) == 1;
		if (here)
			cop_mount_unescape(from);
		here = here && strcmp(from, want) == 0;
	}
	free(text);
	return here;
}

int cop_view_make(const struct cop_view *v, struct cop_view_made *out, struct cop_err *err)
{
	struct making m = {.v = v, .out = out, .err = err};
	int rc;

	*out = (struct cop_view_made){.kind = COP_VIEW_ENV};
	if (v->directs > COP_VIEW_PLACES || v->belows > COP_VIEW_PLACES)
		return cop_err_set(err, E2BIG, "more than %d directories", COP_VIEW_PLACES);
	if (v->kind != COP_VIEW_ENV && is_here(v)) {
		out->kind = COP_VIEW_OVERLAY;
		cop_log_info("view=overlay source=%s mountpoint=%s: this process is in it",
			v->source, v->mountpoint);
		return 0;
	}
	if (!getcwd(m.cwd, sizeof(m.cwd)))
		m.cwd[0] = '\0';
	rc = make_own(&m);
	if (!rc)
		cop_log_info("view=%s source=%s mountpoint=%s%s%s", cop_view_name(out->kind),
			v->source, v->mountpoint, out->why[0] ? " why=" : "", out->why);
	free_making(&m);
	return rc;
}

/* ---- executing the command ---- */

int cop_view_exec(const struct cop_view *v, const struct cop_view_made *made, char **command,
	struct cop_err *err)
{
	char moved[PATH_MAX] = "";

	if (made->kind == COP_VIEW_ENV) {
		cop_view_env_path(v, command[0], moved);
		if (moved[0])
			command[0] = moved;
		cop_view_env_python(v, command[0]);
	}
	return cop_exec(command, err);
}
