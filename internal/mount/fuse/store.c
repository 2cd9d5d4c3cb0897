/* SPDX-License-Identifier: BSD-3-Clause */
/* For a file that is read in parts and does not fit in this node's cache. Between two reads of a
 * chunk, so many others are fetched that the chunk is evicted, and each 128 KiB read transfers a
 * whole chunk again. The kernel has more memory for its cache, and reclaims it under pressure. So
 * the whole chunk is stored there, which saves the requests for the rest of it.
 *
 * Storing runs on the origin's workers, because it may block in the kernel on pages that are being
 * read. The reply is sent first. */
#include "mount/fuse/fuse_priv.h"

/* Most chunks being stored into the kernel at a time. Further ones are only cached here. */
#define STORING_MAX 16u

struct store {
	struct cop_fuse *fs;
	struct inode *inode; /* references */
	struct cop_obj *obj;
	off_t off;
	size_t len;
};

static void give(const struct store *s)
{
	struct fuse_bufvec all = FUSE_BUFVEC_INIT(s->len);
	char *unpacked = s->obj->packed ? malloc(s->len) : NULL;
	const void *data;

	if ((!s->obj->packed || unpacked) &&
		!cop_fetch_chunk_part(s->obj, 0, s->len, unpacked, &data)) {
		all.buf[0].mem = (void *)(uintptr_t)data;
		fuse_lowlevel_notify_store(s->fs->session,
			cop_fuse_dir_nodeid(s->fs, s->inode, false), s->off, &all, 0);
	}
	free(unpacked);
}

static void store_now(void *arg, int rc)
{
	struct store *s = arg;

	if (!rc)
		give(s);
	atomic_fetch_sub(&s->fs->storing, 1);
	cop_obj_put(s->fs->conf.cache, s->obj);
	cop_fuse_inode_put(s->fs, s->inode, 1);
	free(s);
}

/* A sequential reader soon reads the whole chunk anyway. */
static bool is_worth_it(const struct op *op)
{
	const struct inode *i = op->inode;

	return op->missed && !op->fs->conf.observe && !atomic_load(&i->window) &&
	       i->attr.size > op->fs->cache_bytes / 2 &&
	       atomic_load(&op->fs->storing) < STORING_MAX;
}

void cop_fuse_store(struct op *op)
{
	size_t chunk = cop_fetch_chunk_bytes(op->fs->conf.fetch);
	uint64_t first = (uint64_t)op->off / chunk;

	for (unsigned n = 0; n < op->n_chunks && is_worth_it(op); n++) {
		struct store *s = calloc(1, sizeof(*s));

		if (!s)
			return;
		*s = (struct store){.fs = op->fs,
			.inode = op->inode,
			.obj = cop_obj_get(op->chunk[n]),
			.off = (off_t)((first + n) * chunk),
			.len = cop_fetch_chunk_len(
				op->fs->conf.fetch, op->inode->attr.size, first + n)};
		cop_fuse_inode_ref(op->inode);
		atomic_fetch_add(&op->fs->storing, 1);
		cop_origin_run(op->fs->conf.origin, store_now, s);
	}
}
