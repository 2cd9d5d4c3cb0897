/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations that would change the tree. The kernel refuses them on a read-only mount, so they
 * arrive only after root has remounted it read-write. This file refuses them too. */
#include "mount/fuse/fuse_priv.h"

#include <linux/fuse.h>

/* Since protocol 7.37; libfuse before 3.17 does not know it. */
#define OPCODE_TMPFILE 51

/* ino: the affected inode, or the directory of the name. */
static void refuse_change(fuse_req_t req, fuse_ino_t ino, enum cop_prof_op op)
{
	cop_fuse_count(req, COP_FUSE_REFUSED);
	cop_fuse_count(req, COP_FUSE_ERRORS);
	cop_fuse_profile(req, ino, op, -EROFS);
	fuse_reply_err(req, EROFS);
}

void cop_fuse_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev)
{
	(void)name, (void)mode, (void)rdev;
	refuse_change(req, parent, COP_PROF_OP_MKNOD);
}

void cop_fuse_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
	(void)name, (void)mode;
	refuse_change(req, parent, COP_PROF_OP_MKDIR);
}

void cop_fuse_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)name;
	refuse_change(req, parent, COP_PROF_OP_UNLINK);
}

void cop_fuse_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
	(void)name;
	refuse_change(req, parent, COP_PROF_OP_RMDIR);
}

void cop_fuse_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
	(void)target, (void)name;
	refuse_change(req, parent, COP_PROF_OP_SYMLINK);
}

void cop_fuse_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t new_parent,
	const char *new_name, unsigned flags)
{
	(void)name, (void)new_parent, (void)new_name, (void)flags;
	refuse_change(req, parent, COP_PROF_OP_RENAME);
}

void cop_fuse_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t new_parent, const char *new_name)
{
	(void)new_parent, (void)new_name;
	refuse_change(req, ino, COP_PROF_OP_LINK);
}

void cop_fuse_setattr(
	fuse_req_t req, fuse_ino_t ino, struct stat *attr, int to_set, struct fuse_file_info *fi)
{
	(void)attr, (void)to_set, (void)fi;
	refuse_change(req, ino, COP_PROF_OP_SETATTR);
}

void cop_fuse_create(
	fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
	(void)name, (void)mode, (void)fi;
	refuse_change(req, parent, COP_PROF_OP_CREATE);
}

/* The kernel drops the pages of a failed write(2), but not those written through a shared
 * mapping. */
void cop_fuse_write(fuse_req_t req, fuse_ino_t ino, const char *buf, size_t size, off_t off,
	struct fuse_file_info *fi)
{
	struct cop_fuse *fs = cop_fuse_of(req);

	(void)buf, (void)size, (void)off;
	if (fi->writepage)
		cop_fuse_forget_pages(fs, cop_fuse_inode(fs, ino));
	refuse_change(req, ino, COP_PROF_OP_WRITE);
}

void cop_fuse_setxattr(
	fuse_req_t req, fuse_ino_t ino, const char *name, const char *value, size_t size, int flags)
{
	(void)name, (void)value, (void)size, (void)flags;
	refuse_change(req, ino, COP_PROF_OP_SETXATTR);
}

void cop_fuse_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
	(void)name;
	refuse_change(req, ino, COP_PROF_OP_REMOVEXATTR);
}

void cop_fuse_fallocate(
	fuse_req_t req, fuse_ino_t ino, int mode, off_t off, off_t len, struct fuse_file_info *fi)
{
	(void)mode, (void)off, (void)len, (void)fi;
	refuse_change(req, ino, COP_PROF_OP_FALLOCATE);
}

void cop_fuse_copy_file_range(fuse_req_t req, fuse_ino_t ino, off_t off, struct fuse_file_info *fi,
	fuse_ino_t to, off_t to_off, struct fuse_file_info *to_fi, size_t len, int flags)
{
	(void)off, (void)fi, (void)to, (void)to_off, (void)to_fi, (void)len, (void)flags;
	refuse_change(req, ino, COP_PROF_OP_COPY_FILE_RANGE);
}

bool cop_fuse_refuse_tmpfile(struct cop_fuse *fs, const struct fuse_buf *buf)
{
	struct fuse_out_header out = {.len = sizeof(out), .error = -EROFS};
	struct fuse_in_header in;

	if ((buf->flags & FUSE_BUF_IS_FD) || buf->size < sizeof(in))
		return false;
	memcpy(&in, buf->mem, sizeof(in));
	if (in.opcode != OPCODE_TMPFILE)
		return false;
	cop_stats_add(fs->conf.stats, COP_FUSE_REFUSED, 1);
	cop_stats_add(fs->conf.stats, COP_FUSE_ERRORS, 1);
	out.unique = in.unique;
	/* The write fails if the caller has exited and thus needs no reply. */
	if (write(fuse_session_fd(fs->session), &out, sizeof(out)) < 0)
		cop_log_debug("no answer to the request for a temporary file error=\"%s\"",
			strerror(errno));
	return true;
}
