/* SPDX-License-Identifier: BSD-3-Clause */
/* Pseudo file systems (proc, sysfs, tmpfs, ...) below the source: passed through on the node
 * itself, nothing cached, by the origin's workers since such files may block. /proc/self is the
 * process that asks.
 *
 * The kernel checks the modes before it asks, which is enough for all of them but proc: who may
 * read the maps of a process, or follow its cwd, is decided by who opens the file, and that is this
 * node. So with --allow-other what is below /proc is only for the user of the node. Nothing of it
 * outlives a request: names and attributes have no lifetime in the kernel and files are read past
 * its pages, so what the one user was told is never shown to another. */
#include "fs/fs_priv.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Every pseudo file system numbers from 1, and the mount shows them under one device: the device is
 * mixed in. */
static uint64_t ino_of(dev_t dev, ino_t ino)
{
	uint64_t pair[2] = {dev, ino}, mixed = cop_hash64(pair, sizeof(pair), 2);

	return mixed > 1 ? mixed : 2;
}

static void attr_of(const struct stat *st, struct cop_attr *a)
{
	*a = (struct cop_attr){
		.ino = ino_of(st->st_dev, st->st_ino),
		.size = (uint64_t)st->st_size,
		.blocks = (uint64_t)st->st_blocks,
		.atime_s = st->st_atim.tv_sec,
		.mtime_s = st->st_mtim.tv_sec,
		.ctime_s = st->st_ctim.tv_sec,
		.atime_nsec = (uint32_t)st->st_atim.tv_nsec,
		.mtime_nsec = (uint32_t)st->st_mtim.tv_nsec,
		.ctime_nsec = (uint32_t)st->st_ctim.tv_nsec,
		.version = 1,
		.mode = st->st_mode,
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.gid = st->st_gid,
		.rdev_major = major(st->st_rdev),
		.rdev_minor = minor(st->st_rdev),
		.blksize = (uint32_t)st->st_blksize,
	};
}

/* The mount point seen from inside: an empty directory of its own. */
static void self_attr(const char *path, struct cop_attr *a)
{
	*a = (struct cop_attr){.ino = cop_hash64(path, strlen(path), 1),
		.version = 1,
		.mode = S_IFDIR | 0555,
		.nlink = 2,
		.uid = getuid(),
		.gid = getgid(),
		.blksize = 4096};
}

static bool is_owner(const struct op *op)
{
	return fuse_req_ctx(op->req)->uid == geteuid();
}

static int path_of(struct op *op, char path[PATH_BYTES])
{
	int rc = cop_fs_path(op->inode, op->name, op->name_len, path);

	if (rc < 0)
		return rc;
	return cop_fs_is_below_proc(op->fs, path) && !is_owner(op) ? -EACCES : 0;
}

static int stat_local(struct op *op, const char *path, struct cop_attr *a)
{
	struct stat st;

	if (cop_fs_place(op->fs, path) == PLACE_SELF) {
		size_t n = strlen(path);

		for (size_t i = 0; i < op->fs->n_places; i++)
			if (strlen(op->fs->places[i].path) == n &&
				!strcmp(op->fs->places[i].path, path)) {
				self_attr(path, a);
				return 0;
			}
		return -ENOENT;
	}
	if (fstatat(cop_origin_dirfd(op->fs->conf.origin), path, &st,
		    AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT))
		return -errno;
	attr_of(&st, a);
	return 0;
}

static void run(struct op *op, void (*job)(void *arg, int rc))
{
	cop_origin_run(op->fs->conf.origin, job, op);
}

static void lookup_job(void *arg, int rc)
{
	struct op *op = arg;
	struct fuse_entry_param e = {0};
	struct cop_attr attr;
	char path[PATH_BYTES];
	struct inode *i;

	if (!rc)
		rc = path_of(op, path);
	if (!rc)
		rc = stat_local(op, path, &attr);
	if (rc) {
		cop_fs_fail(op, rc);
		return;
	}
	i = cop_fs_inode_get(
		op->fs, op->inode, op->name, op->name_len, &attr, cop_fs_place(op->fs, path));
	if (!i) {
		cop_fs_fail(op, -ENOMEM);
		return;
	}
	e.ino = cop_fs_nodeid(op->fs, i);
	cop_fs_stat(&attr, &e.attr);
	if (fuse_reply_entry(op->req, &e))
		cop_fs_inode_put(op->fs, i, 1);
	cop_fs_op_free(op);
}

void cop_fs_local_lookup(struct op *op)
{
	run(op, lookup_job);
}

static void getattr_job(void *arg, int rc)
{
	struct op *op = arg;
	struct cop_attr attr;
	struct stat st;
	char path[PATH_BYTES];

	if (!rc)
		rc = path_of(op, path);
	if (!rc)
		rc = stat_local(op, path, &attr);
	if (rc) {
		cop_fs_fail(op, rc);
		return;
	}
	cop_fs_stat(&attr, &st);
	fuse_reply_attr(op->req, &st, 0);
	cop_fs_op_free(op);
}

void cop_fs_local_getattr(struct op *op)
{
	/* The other file system is asked each time, as the storage is at a miss. */
	op->asked = op->missed = true;
	run(op, getattr_job);
}

/* The process of a thread, from /proc/TID/status. */
static int process_of(int tid)
{
	char path[64], *text, *line;
	int tgid = tid;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", tid);
	if (cop_read_file(path, 65536, &text, &len))
		return tid;
	line = strstr(text, "\nTgid:");
	if (line)
		tgid = atoi(line + 6);
	free(text);
	return tgid;
}

/* /proc/self and /proc/thread-self mean whoever asks. */
static int self_target(struct op *op, char *target, size_t size)
{
	int tid = (int)fuse_req_ctx(op->req)->pid;

	if (strcmp(op->inode->name, "self") == 0)
		return snprintf(target, size, "%d", process_of(tid));
	return snprintf(target, size, "%d/task/%d", process_of(tid), tid);
}

static bool is_self(const struct op *op)
{
	const char *name = op->inode->name;

	return cop_fs_depth(op->inode) == 2 &&
	       (strcmp(name, "self") == 0 || strcmp(name, "thread-self") == 0) &&
	       strcmp(op->inode->parent->name, "proc") == 0;
}

static void readlink_job(void *arg, int rc)
{
	struct op *op = arg;
	char path[PATH_BYTES], target[PATH_BYTES];
	ssize_t n = 0;

	if (!rc)
		rc = path_of(op, path);
	if (!rc && is_self(op))
		n = self_target(op, target, sizeof(target));
	else if (!rc)
		n = readlinkat(
			cop_origin_dirfd(op->fs->conf.origin), path, target, sizeof(target) - 1);
	if (n < 0)
		rc = -errno;
	if (rc) {
		cop_fs_fail(op, rc);
		return;
	}
	target[n] = '\0';
	fuse_reply_readlink(op->req, target);
	cop_fs_op_free(op);
}

void cop_fs_local_readlink(struct op *op)
{
	run(op, readlink_job);
}

static void open_job(void *arg, int rc)
{
	struct op *op = arg;
	struct fuse_file_info fi = {.flags = O_RDONLY};
	char path[PATH_BYTES];
	int fd = -1;

	if (!rc)
		rc = path_of(op, path);
	if (!rc) {
		fd = openat(cop_origin_dirfd(op->fs->conf.origin), path,
			O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
		rc = fd < 0 ? -errno : 0;
	}
	if (rc) {
		cop_fs_fail(op, rc);
		return;
	}
	fi.fh = (uint64_t)fd;
	fi.direct_io = 1;
	if (fuse_reply_open(op->req, &fi))
		close(fd);
	cop_fs_op_free(op);
}

void cop_fs_local_open(struct op *op, struct fuse_file_info *fi)
{
	(void)fi;
	run(op, open_job);
}

static void read_job(void *arg, int rc)
{
	struct op *op = arg;
	char *buf = rc ? NULL : malloc(op->size);
	ssize_t n = -1;

	if (!rc && !buf)
		rc = -ENOMEM;
	if (!rc && (n = pread((int)op->version, buf, op->size, op->off)) < 0)
		rc = -errno;
	if (rc) {
		cop_fs_fail(op, rc);
	} else {
		fuse_reply_buf(op->req, buf, (size_t)n);
		cop_fs_op_free(op);
	}
	free(buf);
}

/* The descriptor travels in version, which a local file has no other use for. */
void cop_fs_local_read(struct op *op, struct fuse_file_info *fi)
{
	op->version = fi->fh;
	run(op, read_job);
}

void cop_fs_local_release(fuse_req_t req, struct fuse_file_info *fi)
{
	close((int)fi->fh);
	fuse_reply_err(req, 0);
}

/* Fills buf from the directory stream; returns the bytes used. */
static size_t fill(struct op *op, DIR *dir, char *buf)
{
	struct fuse_entry_param e = {0};
	size_t used = 0, need;
	struct dirent *d;
	struct stat st;

	if (fstat(dirfd(dir), &st))
		return 0;
	while ((d = readdir(dir))) {
		e.attr.st_ino = ino_of(st.st_dev, d->d_ino);
		e.attr.st_mode = (mode_t)d->d_type << 12;
		need = op->plus ? fuse_add_direntry_plus(op->req, buf + used, op->size - used,
					  d->d_name, &e, d->d_off)
				: fuse_add_direntry(op->req, buf + used, op->size - used, d->d_name,
					  &e.attr, d->d_off);
		if (need > op->size - used)
			break;
		used += need;
	}
	return used;
}

/* The names in /proc are the processes. */
static int list_path_of(struct op *op, char path[PATH_BYTES])
{
	char below[PATH_BYTES + 2];
	int rc = path_of(op, path);

	snprintf(below, sizeof(below), "%s/", rc ? "" : path);
	return !rc && cop_fs_is_below_proc(op->fs, below) && !is_owner(op) ? -EACCES : rc;
}

static void readdir_job(void *arg, int rc)
{
	struct op *op = arg;
	char path[PATH_BYTES], *buf = NULL;
	DIR *dir = NULL;
	int fd = -1;

	if (!rc)
		rc = list_path_of(op, path);
	if (!rc && op->inode->place == PLACE_LOCAL) {
		fd = openat(cop_origin_dirfd(op->fs->conf.origin), path,
			O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		dir = fd < 0 ? NULL : fdopendir(fd);
		rc = dir ? 0 : -errno;
	}
	if (!rc && !(buf = malloc(op->size)))
		rc = -ENOMEM;
	if (rc) {
		cop_fs_fail(op, rc);
	} else {
		if (dir && op->off)
			seekdir(dir, op->off);
		fuse_reply_buf(op->req, buf, dir ? fill(op, dir, buf) : 0);
		cop_fs_op_free(op);
	}
	free(buf);
	if (dir)
		closedir(dir);
	else if (fd >= 0)
		close(fd);
}

void cop_fs_local_readdir(struct op *op)
{
	run(op, readdir_job);
}
