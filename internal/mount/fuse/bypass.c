/* SPDX-License-Identifier: BSD-3-Clause */
/* Files larger than --max-cacheable-bytes never enter the tree. Each node reads them directly from
 * the source into the reply, on one of the origin's workers. The origin checks that the file still
 * has the version that its dentry has. Only the kernel caches their pages. The number of reads that
 * the kernel has outstanding bounds the memory in use. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

struct bypass {
	struct op *op;
	char data[];
};

bool cop_fuse_bypasses(const struct cop_fuse *fs, const struct cop_attr *attr)
{
	return fs->conf.max_cacheable && S_ISREG(attr->mode) && attr->size > fs->conf.max_cacheable;
}

static void doubt_op(struct op *op)
{
	char path[PATH_BYTES];

	if (cop_fuse_path(op->inode, "", 0, path) >= 0)
		cop_fetch_doubt(op->fs->conf.fetch, path, op->inode->attr.version);
}

static void have_bytes(void *arg, int rc, void *data, size_t len)
{
	struct bypass *b = arg;
	struct op *op = b->op;
	struct cop_stats *stats = op->fs->conf.stats;

	cop_fuse_wait_end(&op->fs->waits, cop_fuse_now_us());
	free(data);
	/* The file existed when it was opened, so it has been replaced. */
	if (rc == -ENOENT)
		rc = -ESTALE;
	/* The check after the read found this version and size, so the storage is inconsistent. */
	else if (!rc && len < op->size)
		rc = -EIO;
	if (rc == -ESTALE)
		doubt_op(op);
	if (rc) {
		cop_fuse_forget_name(op->fs, op->inode);
		cop_fuse_fail(op, rc);
	} else {
		cop_stats_add(stats, COP_FUSE_READ_BYTES, len);
		cop_stats_add(stats, COP_FUSE_BYPASS_BYTES, len);
		cop_stats_add(stats, COP_FROM_STORAGE_BYTES, len);
		fuse_reply_buf(op->req, b->data, len);
		cop_fuse_op_free(op);
	}
	free(b);
}

void cop_fuse_bypass_read(struct op *op)
{
	struct bypass *b = malloc(sizeof(*b) + op->size);
	char path[PATH_BYTES];
	int rc = cop_fuse_path(op->inode, "", 0, path);

	if (!b || rc < 0) {
		cop_fuse_fail(op, b ? rc : -ENOMEM);
		free(b);
		return;
	}
	b->op = op;
	op->asked = op->missed = true;
	cop_stats_add(op->fs->conf.stats, COP_FUSE_BYPASS_READS, 1);
	cop_stats_example(op->fs->conf.stats, COP_EXAMPLE_BYPASSED, path);
	cop_fuse_wait_begin(&op->fs->waits, cop_fuse_now_us());
	cop_origin_read(op->fs->conf.origin, path, op->inode->attr.version, op->inode->attr.size,
		(uint64_t)op->off, &(struct iovec){b->data, op->size}, 1, have_bytes, b);
}
