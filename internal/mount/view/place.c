/* SPDX-License-Identifier: BSD-3-Clause */
/* Shows one directory of the mount at its place. A read-only overlay needs two lower directories
 * (overlayfs.rst). So a small tmpfs is mounted at the place first. It contains an empty directory
 * and the mount, under names that need no quoting, and the overlay covers it. */
#include "mount/view/view_priv.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>

#ifndef OPEN_TREE_CLONE
#define OPEN_TREE_CLONE 1
#define OPEN_TREE_CLOEXEC O_CLOEXEC
#endif
#ifndef MOVE_MOUNT_F_EMPTY_PATH
#define MOVE_MOUNT_F_EMPTY_PATH 4
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif

/* A program's changes may take up memory / WRITABLE_SHARE; beyond that, writes fail with ENOSPC. */
#define WRITABLE_SHARE 4

int cop_view_tree_open(const char *path)
{
	int fd = (int)syscall(
		SYS_open_tree, AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return fd < 0 ? -errno : fd;
}

int cop_view_tree_put(int tree, const char *at)
{
	return syscall(SYS_move_mount, tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) ? -errno
											: 0;
}

static uint64_t writable_bytes(void)
{
	uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);

	return COP_MIN(ram, cop_memory_limit("")) / WRITABLE_SHARE;
}

/* Mounts the tmpfs and makes it the working directory. */
static int enter_tmpfs(const struct cop_view *v, const char *at)
{
	char options[96] = "mode=0755,size=64k,nr_inodes=16";

	if (v->writable && !v->writable_dir)
		snprintf(options, sizeof(options), "mode=0755,size=%llu",
			(unsigned long long)writable_bytes());
	if (mount("copper-view", at, "tmpfs", MS_NOSUID | MS_NODEV, options))
		return -errno;
	return chdir(at) ? -errno : 0;
}

/* Gives the upper directory the owner and mode of the mount's directory, because the overlay shows
 * those of the upper one. */
static int make_like(const char *dir, const struct stat *st)
{
	if (mkdir(dir, 0700) || chmod(dir, st->st_mode & 0777))
		return -errno;
	if (chown(dir, st->st_uid, st->st_gid) && errno != EPERM && errno != EINVAL &&
		errno != EOVERFLOW)
		return -errno;
	return 0;
}

/* Creates the directories for changes: c/upper, and c/work for the kernel. */
static int make_changes(const struct cop_view_place *p)
{
	struct stat st;
	int rc;

	if (mkdir("c", 0700))
		return -errno;
	rc = p->changes < 0 ? 0 : cop_view_tree_put(p->changes, "c");
	if (rc || stat("m", &st))
		return rc ? rc : -errno;
	if (access("c/upper", F_OK) && (rc = make_like("c/upper", &st)))
		return rc;
	return mkdir("c/work", 0700) && errno != EEXIST ? -errno : 0;
}

static int lay_place(const struct cop_view *v, const struct cop_view_place *p)
{
	/* An ordinary user's overlay may use only extended attributes that users may set. */
	const char *options = !v->writable ? "lowerdir=m:e"
			      : geteuid()  ? "lowerdir=m,upperdir=c/upper,workdir=c/work,userxattr"
					   : "lowerdir=m,upperdir=c/upper,workdir=c/work";
	char source[PATH_MAX + 8];
	int rc;

	if (mkdir("m", 0755) || mkdir("e", 0755))
		return -errno;
	rc = cop_view_tree_put(p->tree, "m");
	if (!rc && v->writable)
		rc = make_changes(p);
	snprintf(source, sizeof(source), "copper:%s", p->from);
	if (!rc && mount(source, ".", "overlay",
			   MS_NOSUID | MS_NODEV | (v->writable ? 0 : MS_RDONLY), options))
		rc = -errno;
	/* The mount at m stays, covered by the overlay: unmounting it would take longer than all
	 * other steps. */
	return rc;
}

static int overlay_refused(
	const struct cop_view *v, const struct cop_view_place *p, int rc, struct cop_err *err)
{
	struct utsname name;

	if (rc == -ENODEV)
		return cop_err_set(err, ENODEV,
			"this machine's kernel has no overlayfs: ask its administrator to load the module overlay");
	if (v->writable_dir && rc == -EINVAL)
		return cop_err_set(err, EINVAL,
			"the file system of %s cannot hold the changes of an overlay: give --writable a directory on a local disk, or none to keep them in memory",
			v->writable_dir);
	if (rc == -EPERM && uname(&name) == 0 && geteuid())
		return cop_err_set(err, EPERM,
			"an overlay of %s was refused (%s): Linux is %s, and allows it to ordinary users since 5.11, unless a security module forbids it",
			p->from, strerror(-rc), name.release);
	return cop_err_set(err, -rc, "cannot mount an overlay of %s: %s", p->from, strerror(-rc));
}

int cop_view_place_overlay(
	const struct cop_view *v, const struct cop_view_place *p, struct cop_err *err)
{
	int rc = enter_tmpfs(v, p->at);

	if (!rc) {
		rc = lay_place(v, p);
		if (rc && chdir("/") == 0)
			umount2(p->at, MNT_DETACH);
	}
	return rc ? overlay_refused(v, p, rc, err) : 0;
}

int cop_view_place_bind(const struct cop_view_place *p, struct cop_err *err)
{
	int rc = cop_view_tree_put(p->tree, p->at);

	return rc ? cop_err_set(err, -rc, "cannot put %s in the place of %s: %s", p->from, p->at,
			    strerror(-rc))
		  : 0;
}
