/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/statvfs.h>

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

/* No extended attributes, and the kernel handles locks: neither has a handler. */
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
	.open = cop_slowfs_op_open,
	.read = cop_slowfs_op_read,
	.release = cop_slowfs_op_release,
	.lseek = cop_slowfs_op_lseek,
	.opendir = cop_slowfs_op_opendir,
	.readdir = cop_slowfs_op_readdir,
	.releasedir = cop_slowfs_op_releasedir,
};
