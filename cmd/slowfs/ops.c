/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>
#include <dirent.h>

/* The kernel serializes readers of an open directory. The lock states this, also for the thread
 * sanitizer, which cannot see what the kernel does. */
struct open_dir {
	pthread_mutex_t lock;
	DIR *dir;
	off_t at;              /* position of the next readdir of dir */
	struct dirent *unsent; /* read, but did not fit into the last batch */
};

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	char proc[64];
	int fd = -1, rc = cop_slowfs_begin(fs, req, SLOWFS_OPEN, ino, NULL);

	if (!rc) {
		cop_slowfs_inode_proc_path(fs, ino, proc);
		fd = open(proc, O_RDONLY | O_CLOEXEC);
		rc = fd < 0 ? errno : 0;
	}
	cop_slowfs_done(fs);
	if (rc) {
		cop_slowfs_reply_err(fs, req, rc);
		return;
	}
	fi->fh = (uint64_t)fd;
	fi->direct_io = fs->direct_io;
	fi->keep_cache = fs->keep_pages;
	if (fuse_reply_open(req, fi) < 0)
		close(fd);
}

static ssize_t read_at(int fd, char *data, size_t size, off_t off)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = pread(fd, data + got, size - got, off + (off_t)got);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return got ? (ssize_t)got : -errno;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

/* Replies to the request and frees its data. */
static void answer_data(struct cop_slowfs *fs, fuse_req_t req, int rc, char *data, size_t n)
{
	cop_slowfs_done(fs);
	if (rc)
		cop_slowfs_reply_err(fs, req, rc);
	else
		fuse_reply_buf(req, data, n);
	free(data);
}

static void op_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	char *data = malloc(size ? size : 1);
	ssize_t n = 0;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_READ, ino, NULL);

	if (!data)
		rc = ENOMEM;
	if (!rc) {
		n = read_at((int)fi->fh, data, size, off);
		rc = n < 0 ? (int)-n : 0;
		cop_slowfs_charge_read(fs, n > 0 ? (uint64_t)n : 0);
	}
	answer_data(fs, req, rc, data, (size_t)n);
}

static void op_release(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	cop_slowfs_count(fuse_req_userdata(req), SLOWFS_RELEASE, 1);
	close((int)fi->fh);
	fuse_reply_err(req, 0);
}

static void op_lseek(
	fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	off_t at = -1;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_LSEEK, ino, NULL);

	if (!rc) {
		at = lseek((int)fi->fh, off, whence);
		rc = at < 0 ? errno : 0;
	}
	cop_slowfs_done(fs);
	if (rc)
		cop_slowfs_reply_err(fs, req, rc);
	else
		fuse_reply_lseek(req, at);
}

static int open_dir(struct cop_slowfs *fs, fuse_ino_t ino, struct open_dir **out)
{
	struct open_dir *d = calloc(1, sizeof(*d));
	int fd, code;

	if (!d)
		return ENOMEM;
	fd = openat(cop_slowfs_inode_at(fs, ino)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0)
		d->dir = fdopendir(fd);
	if (d->dir) {
		pthread_mutex_init(&d->lock, NULL);
		*out = d;
		return 0;
	}
	code = errno;
	if (fd >= 0)
		close(fd);
	free(d);
	return code;
}

static void close_dir(struct open_dir *d)
{
	pthread_mutex_lock(&d->lock);
	closedir(d->dir);
	pthread_mutex_unlock(&d->lock);
	pthread_mutex_destroy(&d->lock);
	free(d);
}

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	struct open_dir *d = NULL;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_OPENDIR, ino, NULL);

	if (!rc)
		rc = open_dir(fs, ino, &d);
	cop_slowfs_done(fs);
	if (rc) {
		cop_slowfs_reply_err(fs, req, rc);
		return;
	}
	fi->fh = (uint64_t)(uintptr_t)d;
	if (fuse_reply_open(req, fi) < 0)
		close_dir(d);
}

static bool is_hidden(const struct cop_slowfs *fs, const char *name)
{
	for (unsigned i = 0; i < fs->hidden.n; i++)
		if (strcmp(fs->hidden.at[i], name) == 0)
			return true;
	return false;
}

/* Packs entries from the offset off until data is full; an entry that does not fit is kept for
 * the next batch. */
static ssize_t fill_names(fuse_req_t req, struct open_dir *d, off_t off, char *data, size_t size)
{
	size_t used = 0;

	if (off != d->at) {
		seekdir(d->dir, off);
		d->unsent = NULL;
		d->at = off;
	}
	for (;;) {
		struct stat st = {0};
		size_t need;

		errno = 0;
		if (!d->unsent && !(d->unsent = readdir(d->dir)))
			return used || !errno ? (ssize_t)used : -errno;
		if (is_hidden(fuse_req_userdata(req), d->unsent->d_name)) {
			d->at = d->unsent->d_off;
			d->unsent = NULL;
			continue;
		}
		st.st_ino = d->unsent->d_ino;
		st.st_mode = (mode_t)d->unsent->d_type << 12;
		need = fuse_add_direntry(
			req, data + used, size - used, d->unsent->d_name, &st, d->unsent->d_off);
		if (need > size - used)
			return (ssize_t)used;
		used += need;
		d->at = d->unsent->d_off;
		d->unsent = NULL;
	}
}

static void op_readdir(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	struct open_dir *d = (struct open_dir *)(uintptr_t)fi->fh;
	char *data = malloc(size ? size : 1);
	ssize_t n = 0;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_READDIR, ino, NULL);

	if (!data)
		rc = ENOMEM;
	if (!rc) {
		pthread_mutex_lock(&d->lock);
		n = fill_names(req, d, off, data, size);
		pthread_mutex_unlock(&d->lock);
		rc = n < 0 ? (int)-n : 0;
	}
	answer_data(fs, req, rc, data, (size_t)n);
}

static void op_releasedir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	(void)ino;
	cop_slowfs_count(fuse_req_userdata(req), SLOWFS_RELEASEDIR, 1);
	close_dir((struct open_dir *)(uintptr_t)fi->fh);
	fuse_reply_err(req, 0);
}

#define MAX_BACKGROUND 256

/* Every request has a cost. The kernel must not request attributes with every read, as with
 * AUTO_INVAL_DATA, or a read would be charged twice. */
static void op_init(void *data, struct fuse_conn_info *conn)
{
	(void)data;
	conn->want &= ~(unsigned)FUSE_CAP_AUTO_INVAL_DATA;
	conn->max_background = MAX_BACKGROUND;
	conn->congestion_threshold = MAX_BACKGROUND;
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	struct fuse_entry_param e = {0};
	int rc = cop_slowfs_begin(fs, req, SLOWFS_LOOKUP, parent, name);

	if (!rc)
		rc = cop_slowfs_inode_lookup(fs, parent, name, &e);
	if (!rc)
		cop_slowfs_lie(fs, parent, name, &e.attr);
	if (!rc)
		cop_slowfs_round(fs, &e.attr);
	cop_slowfs_done(fs);
	if (rc == ENOENT && fs->cache_s > 0) {
		cop_slowfs_count(fs, SLOWFS_NEGATIVE, 1);
		e.entry_timeout = fs->cache_s;
		fuse_reply_entry(req, &e);
	} else if (rc) {
		cop_slowfs_reply_err(fs, req, rc);
	} else if (fuse_reply_entry(req, &e) < 0) {
		/* The kernel did not receive the reply, so it will not forget the inode. */
		cop_slowfs_inode_forget(fs, e.ino, 1);
	}
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);

	cop_slowfs_count(fs, SLOWFS_FORGET, 1);
	cop_slowfs_inode_forget(fs, ino, lookups);
	fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);

	cop_slowfs_count(fs, SLOWFS_FORGET, count);
	for (size_t i = 0; i < count; i++)
		cop_slowfs_inode_forget(fs, forgets[i].ino, forgets[i].nlookup);
	fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	struct stat st;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_GETATTR, ino, NULL);

	(void)fi;
	if (!rc && fstat(cop_slowfs_inode_at(fs, ino)->fd, &st) < 0)
		rc = errno;
	if (!rc)
		cop_slowfs_lie(fs, ino, NULL, &st);
	cop_slowfs_done(fs);
	if (rc) {
		cop_slowfs_reply_err(fs, req, rc);
		return;
	}
	cop_slowfs_round(fs, &st);
	fuse_reply_attr(req, &st, fs->cache_s);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	char target[PATH_MAX + 1];
	ssize_t len = 0;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_READLINK, ino, NULL);

	if (!rc) {
		len = readlinkat(cop_slowfs_inode_at(fs, ino)->fd, "", target, sizeof(target) - 1);
		rc = len < 0 ? errno : 0;
	}
	cop_slowfs_done(fs);
	if (rc) {
		cop_slowfs_reply_err(fs, req, rc);
		return;
	}
	target[len] = '\0';
	fuse_reply_readlink(req, target);
}

static void op_access(fuse_req_t req, fuse_ino_t ino, int mask)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	char proc[64];
	int rc = cop_slowfs_begin(fs, req, SLOWFS_ACCESS, ino, NULL);

	cop_slowfs_inode_proc_path(fs, ino, proc);
	if (!rc && faccessat(AT_FDCWD, proc, mask, AT_EACCESS) < 0)
		rc = errno;
	cop_slowfs_done(fs);
	cop_slowfs_reply_err(fs, req, rc);
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);
	struct statvfs st;
	int rc = cop_slowfs_begin(fs, req, SLOWFS_STATFS, ino, NULL);

	if (!rc && fstatvfs(cop_slowfs_inode_at(fs, ino)->fd, &st) < 0)
		rc = errno;
	cop_slowfs_done(fs);
	if (rc)
		cop_slowfs_reply_err(fs, req, rc);
	else
		fuse_reply_statfs(req, &st);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned cmd, void *arg,
	struct fuse_file_info *fi, unsigned flags, const void *in, size_t in_size, size_t out_size)
{
	struct cop_slowfs *fs = fuse_req_userdata(req);

	(void)ino, (void)cmd, (void)arg, (void)fi, (void)flags;
	(void)in, (void)in_size, (void)out_size;
	cop_slowfs_count(fs, SLOWFS_IOCTL, 1);
	fuse_reply_err(req, ENOTTY);
}

/* There are no handlers for extended attributes, which do not exist here, or for locks, which the
 * kernel handles. */
const struct fuse_lowlevel_ops cop_slowfs_ops = {
	.init = op_init,
	.lookup = op_lookup,
	.forget = op_forget,
	.forget_multi = op_forget_multi,
	.getattr = op_getattr,
	.readlink = op_readlink,
	.access = op_access,
	.statfs = op_statfs,
	.ioctl = op_ioctl,
	.open = op_open,
	.read = op_read,
	.release = op_release,
	.lseek = op_lseek,
	.opendir = op_opendir,
	.readdir = op_readdir,
	.releasedir = op_releasedir,
};
