/* SPDX-License-Identifier: BSD-3-Clause */
/* Views that one command hands to the next. A process that has entered another mount namespace
 * cannot go back, because it has no rights over the first one. So everything that could fail is
 * tried before, through a descriptor of the root directory inside: whether the overlay is there and
 * its mount answers, and whether the working directory is the same one there. Afterwards a
 * descriptor of that becomes the working directory.
 *
 * setns(2) also moves the process to the root of the namespace. So a view is offered only if that
 * is the root directory of the command that made it, and only commands with the same root directory
 * get it.
 *
 * Overlayfs reads with the rights of the command that mounted it. So only a command with the same
 * user, groups and security label gets it. */
#include "mount/view/view_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OVERLAY_MAGIC 0x794c7630 /* statfs(2) */
#define LABEL_MAX 4096

/* ---- which file it is ---- */

struct file_id {
	uint64_t dev, ino, mount;
};

/* struct statx before glibc 2.33 has no mount, so it is read by its place in the kernel's
 * structure. */
#define STATX_BYTES 256
#define STATX_INO_AT 32
#define STATX_DEV_AT 136
#define STATX_MOUNT_AT 144
#define STATX_WANT_INO 0x100u
#define STATX_WANT_MOUNT 0x1000u /* since Linux 5.8 */

static bool id_of(int dir, const char *path, struct file_id *out)
{
	const unsigned want = STATX_WANT_INO | STATX_WANT_MOUNT;
	char st[STATX_BYTES] = {0};
	uint32_t mask;

	if (syscall(SYS_statx, dir, path, AT_EMPTY_PATH | AT_NO_AUTOMOUNT, want, st))
		return false;
	memcpy(&mask, st, sizeof(mask));
	memcpy(&out->ino, st + STATX_INO_AT, sizeof(out->ino));
	memcpy(&out->dev, st + STATX_DEV_AT, sizeof(out->dev));
	memcpy(&out->mount, st + STATX_MOUNT_AT, sizeof(out->mount));
	return (mask & want) == want;
}

static bool is_same_file(const struct file_id *a, const struct file_id *b)
{
	return a->dev == b->dev && a->ino == b->ino;
}

/* ---- who can share ---- */

static bool hash_groups(uint64_t *hash)
{
	int n = getgroups(0, NULL);
	gid_t *group = n > 0 ? calloc((size_t)n, sizeof(*group)) : NULL;

	if (n < 0 || (n && !group))
		return false;
	n = n ? getgroups(n, group) : 0;
	if (n >= 0)
		*hash = cop_hash64(group ? (void *)group : "", (size_t)n * sizeof(*group), 0);
	free(group);
	return n >= 0;
}

/* Without a security module there is none. */
static uint64_t hash_label(void)
{
	uint64_t hash;
	char *label;
	size_t len;

	if (cop_read_file("/proc/self/attr/current", LABEL_MAX, &label, &len))
		return 0;
	hash = cop_hash64(label, len, 0);
	free(label);
	return hash;
}

/* In a user namespace like those that views have, which maps one number to itself. */
static bool is_in_view(void)
{
	unsigned inside = 0, outside = 1, count = 0;
	char *text;
	size_t len;

	if (cop_read_file("/proc/self/uid_map", 4096, &text, &len))
		return true;
	if (sscanf(text, "%u %u %u", &inside, &outside, &count) != 3)
		count = 1;
	free(text);
	return count == 1 && inside == outside;
}

uint64_t cop_view_key(void)
{
	struct {
		uint64_t ns_dev, ns_ino;
		struct file_id root;
		uint64_t user, group, groups, label;
	} who = {.user = geteuid(), .group = getegid(), .label = hash_label()};
	uint64_t key;
	struct stat ns;

	if (cop_view_ns_may_mount() || is_in_view() || stat("/proc/self/ns/mnt", &ns) ||
		!id_of(AT_FDCWD, "/", &who.root) || !hash_groups(&who.groups))
		return 0;
	who.ns_dev = ns.st_dev;
	who.ns_ino = ns.st_ino;
	key = cop_hash64(&who, sizeof(who), 0);
	return key ? key : 1;
}

bool cop_view_can_share(const struct cop_view *v)
{
	return (v->kind == COP_VIEW_BEST || v->kind == COP_VIEW_OVERLAY) && v->user_ns >= 0 &&
	       !v->belows && !v->directs && !v->writable;
}

bool cop_view_is_of(int ns, int user_ns)
{
	struct stat owner, wanted;
	bool same;
	int fd;

	if (user_ns < 0 || ioctl(ns, NS_GET_NSTYPE) != CLONE_NEWNS)
		return false;
	fd = ioctl(ns, NS_GET_USERNS);
	if (fd < 0)
		return false;
	same = !fstat(fd, &owner) && !fstat(user_ns, &wanted) && owner.st_dev == wanted.st_dev &&
	       owner.st_ino == wanted.st_ino;
	close(fd);
	return same;
}

/* ---- entering ---- */

/* A directory of the other namespace by its absolute path; -errno. */
static int open_inside(int root, const char *path)
{
	const int flags = O_PATH | O_DIRECTORY;
	unsigned calls;
	int fd = cop_open_beneath(root, path + 1, flags, true, &calls);

	return fd == -ENOSYS || fd == -EPERM
		       ? cop_open_beneath(root, path + 1, flags, false, &calls)
		       : fd;
}

/* This asks the node, so a mount that is dead is noticed. */
static bool is_overlay_alive(const struct cop_view *v)
{
	int fd = open_inside(v->kept->root, v->source);
	struct statfs fs;
	bool alive;

	if (fd < 0)
		return false;
	alive = fstatfs(fd, &fs) == 0 && (uint64_t)fs.f_type == OVERLAY_MAGIC;
	close(fd);
	return alive;
}

/* The working directory as the other namespace has it; -errno if it is not the same there. One that
 * is below the source is the tree's. */
static int open_cwd(const struct cop_view *v, const char *cwd)
{
	struct file_id here, by_path, there;
	int fd;

	/* The path of one that was removed, or is out of reach, does not begin with a slash. */
	if (cwd[0] != '/')
		return -ENOENT;
	fd = open_inside(v->kept->root, cwd);
	if (fd < 0 || cop_view_is_below(cwd, v->source))
		return fd;
	/* It may be covered by another mount of the same directory, with other flags. */
	if (id_of(AT_FDCWD, ".", &here) && id_of(AT_FDCWD, cwd, &by_path) &&
		id_of(fd, "", &there) && is_same_file(&here, &there) &&
		is_same_file(&here, &by_path) && here.mount == by_path.mount)
		return fd;
	close(fd);
	return -ENOENT;
}

int cop_view_kept_enter(const struct cop_view *v, const char *cwd, struct cop_view_rights *rights,
	struct cop_err *err)
{
	int fd = is_overlay_alive(v) ? open_cwd(v, cwd) : -1, rc;

	if (fd < 0)
		return 0;
	rc = cop_view_ns_join(v->user_ns, v->kept->ns, rights);
	if (rc)
		rc = 0;
	else if (fchdir(fd))
		rc = cop_err_set(err, errno,
			"the working directory %s cannot be reached in the view: %s", cwd,
			strerror(errno));
	else
		rc = 1;
	close(fd);
	return rc;
}

/* ---- offering ---- */

int cop_view_mounts_open(void)
{
	return open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
}

static void close_kept(struct cop_view_kept *k)
{
	const int fd[] = {k->ns, k->root, k->mounts, k->before};

	for (size_t i = 0; i < COP_ARRAY_SIZE(fd); i++)
		if (fd[i] >= 0)
			close(fd[i]);
}

/* Whether the root of this namespace is the root directory of this process: goes there, and goes
 * back if it is another. */
static int check_root(const struct cop_view_kept *k, bool *same, struct cop_err *err)
{
	struct file_id before, after;

	*same = false;
	if (!id_of(k->root, "", &before) || setns(k->ns, CLONE_NEWNS))
		return 0;
	*same = id_of(AT_FDCWD, "/", &after) && is_same_file(&before, &after) &&
		before.mount == after.mount;
	if (!*same && (fchdir(k->root) || chroot(".")))
		return cop_err_set(
			err, errno, "cannot return to the root directory: %s", strerror(errno));
	return 0;
}

int cop_view_kept_offer(int before, struct cop_view_made *out, struct cop_err *err)
{
	struct cop_view_kept k = {.ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC),
		.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
		.mounts = cop_view_mounts_open(),
		.before = before};
	bool same = false;
	int rc = 0;

	if (k.ns >= 0 && k.root >= 0 && k.mounts >= 0 && k.before >= 0)
		rc = check_root(&k, &same, err);
	out->offers = same;
	out->offer = k;
	if (!same)
		close_kept(&k);
	return rc;
}
