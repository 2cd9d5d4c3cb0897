/* SPDX-License-Identifier: BSD-3-Clause */
/* Pseudo file systems (proc, sysfs, tmpfs, ...) below the source. The node passes requests through
 * to its own ones and caches nothing; this runs on the origin's workers, because such files may
 * block. /proc/self refers to the requesting process.
 *
 * The kernel checks the modes before it sends a request, which is sufficient except for proc. In
 * proc, access to a process's maps or cwd depends on who opened the file, and that is this node. So
 * with --allow-other only the node's user has access below /proc. Nothing outlives a request: the
 * kernel caches neither names nor attributes, and reads bypass its page cache, so one user never
 * sees another's data. */
#include "mount/fuse/fuse_priv.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/sysmacros.h>

/* Every pseudo file system numbers its inodes from 1, but the mount shows all of them as one
 * device. So the inode number is a hash that includes the device. */
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

/* The attributes of the mount point as seen through the mount: an empty directory. */
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
	int rc = cop_fuse_path(op->inode, op->name, op->name_len, path);

	if (rc < 0)
		return rc;
	return cop_fuse_is_below_proc(op->fs, path) && !is_owner(op) ? -EACCES : 0;
}

static int stat_local(struct op *op, const char *path, struct cop_attr *a)
{
	struct stat st;

	if (op->inode->place == PLACE_SELF) {
		self_attr(path, a);
		return op->name_len ? -ENOENT : 0;
	}
	if (cop_fuse_place(op->fs, path) == PLACE_SELF) {
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

/* Runs on a worker. A READ already has its file open, and access was checked at open. */
static void do_local(void *arg, int rc)
{
	struct op *op = arg;
	char path[PATH_BYTES] = "";

	if (!rc && op->kind != COP_PROF_OP_READ)
		rc = path_of(op, path);
	if (!rc)
		rc = op->local(op, path);
	if (rc)
		cop_fuse_fail(op, rc);
	else
		cop_fuse_op_free(op);
}

/* local replies to the request and returns 0, or returns the error to reply with. */
static void run_local(struct op *op, int (*local)(struct op *op, const char *path))
{
	op->local = local;
	cop_origin_run(op->fs->conf.origin, do_local, op);
}

static int lookup_local(struct op *op, const char *path)
{
	struct fuse_entry_param e = {0};
	struct cop_attr attr;
	struct inode *i;
	int rc = stat_local(op, path, &attr);

	if (rc)
		return rc;
	i = cop_fuse_inode_get(
		op->fs, op->inode, op->name, op->name_len, &attr, cop_fuse_place(op->fs, path));
	if (!i)
		return -ENOMEM;
	e.ino = cop_fuse_nodeid(op, i, attr.mode);
	cop_fuse_stat(&attr, &e.attr);
	if (fuse_reply_entry(op->req, &e))
		cop_fuse_inode_put(op->fs, i, 1);
	return 0;
}

void cop_fuse_lookup_storage(struct op *op)
{
	struct fuse_entry_param e = {0};
	struct cop_attr attr;
	struct inode *i;

	op->own = true;
	self_attr(op->name, &attr);
	i = cop_fuse_inode_get(op->fs, op->inode, op->name, op->name_len, &attr, PLACE_SELF);
	if (!i) {
		cop_fuse_fail(op, -ENOMEM);
		return;
	}
	e.ino = cop_fuse_nodeid(op, i, attr.mode);
	e.entry_timeout = cop_fuse_cache_seconds(op);
	cop_fuse_stat(&attr, &e.attr);
	if (fuse_reply_entry(op->req, &e))
		cop_fuse_inode_put(op->fs, i, 1);
	cop_fuse_op_free(op);
}

void cop_fuse_local_lookup(struct op *op)
{
	run_local(op, lookup_local);
}

static int getattr_local(struct op *op, const char *path)
{
	struct cop_attr attr;
	struct stat st;
	int rc = stat_local(op, path, &attr);

	if (rc)
		return rc;
	cop_fuse_stat(&attr, &st);
	fuse_reply_attr(op->req, &st, 0);
	return 0;
}

void cop_fuse_local_getattr(struct op *op)
{
	/* Each request reaches the other file system, as a miss reaches the storage. */
	op->asked = op->missed = true;
	run_local(op, getattr_local);
}

/* The process that a thread belongs to, from /proc/TID/status. */
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

/* The target of /proc/self or /proc/thread-self for the requesting process. */
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

	return cop_fuse_depth(op->inode) == 2 &&
	       (strcmp(name, "self") == 0 || strcmp(name, "thread-self") == 0) &&
	       strcmp(op->inode->parent->name, "proc") == 0;
}

static int readlink_local(struct op *op, const char *path)
{
	int dirfd = cop_origin_dirfd(op->fs->conf.origin);
	char target[PATH_BYTES];
	ssize_t n = is_self(op) ? self_target(op, target, sizeof(target))
				: readlinkat(dirfd, path, target, sizeof(target) - 1);

	if (n < 0)
		return -errno;
	target[n] = '\0';
	fuse_reply_readlink(op->req, target);
	return 0;
}

void cop_fuse_local_readlink(struct op *op)
{
	run_local(op, readlink_local);
}

static int open_at(struct op *op, const char *path, int flags)
{
	int fd = openat(cop_origin_dirfd(op->fs->conf.origin), path, O_RDONLY | O_CLOEXEC | flags);

	return fd < 0 ? -errno : fd;
}

static int open_local(struct op *op, const char *path)
{
	struct fuse_file_info fi = {.flags = O_RDONLY, .direct_io = 1};
	int fd = open_at(op, path, O_NONBLOCK | O_NOFOLLOW);

	if (fd < 0)
		return fd;
	fi.fh = (uint64_t)fd;
	if (fuse_reply_open(op->req, &fi))
		close(fd);
	return 0;
}

void cop_fuse_local_open(struct op *op, struct fuse_file_info *fi)
{
	(void)fi;
	run_local(op, open_local);
}

static int read_local(struct op *op, const char *path)
{
	char *buf = malloc(op->size);
	ssize_t n = buf ? pread((int)op->version, buf, op->size, op->off) : -1;
	int rc = !buf ? -ENOMEM : n < 0 ? -errno : 0;

	(void)path;
	if (!rc) {
		op->size = (size_t)n;
		fuse_reply_buf(op->req, buf, op->size);
	}
	free(buf);
	return rc;
}

/* A local file has no version, so that field carries the descriptor. */
void cop_fuse_local_read(struct op *op, struct fuse_file_info *fi)
{
	op->version = fi->fh;
	run_local(op, read_local);
}

void cop_fuse_local_release(fuse_req_t req, struct fuse_file_info *fi)
{
	close((int)fi->fh);
	fuse_reply_err(req, 0);
}

/* Fills buf from the directory stream; returns the bytes used. */
static size_t fill_names(struct op *op, DIR *dir, char *buf)
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

/* Names in /proc reveal processes, so only the node's user may list it. */
static bool may_list(struct op *op, const char *path)
{
	char below[PATH_BYTES + 2];

	snprintf(below, sizeof(below), "%s/", path);
	return is_owner(op) || !cop_fuse_is_below_proc(op->fs, below);
}

static int readdir_local(struct op *op, const char *path)
{
	DIR *dir = NULL;
	char *buf;
	int fd;

	if (!may_list(op, path))
		return -EACCES;
	if (op->inode->place == PLACE_LOCAL) {
		fd = open_at(op, path, O_DIRECTORY);
		if (fd < 0)
			return fd;
		dir = fdopendir(fd);
		if (!dir) {
			close(fd);
			return -ENOMEM;
		}
	}
	buf = malloc(op->size);
	if (dir && op->off)
		seekdir(dir, op->off);
	if (buf)
		fuse_reply_buf(op->req, buf, dir ? fill_names(op, dir, buf) : 0);
	free(buf);
	if (dir)
		closedir(dir);
	return buf ? 0 : -ENOMEM;
}

void cop_fuse_local_readdir(struct op *op)
{
	run_local(op, readdir_local);
}
