/* SPDX-License-Identifier: BSD-3-Clause */
/* File data: the chunks of a read, referenced until the reply has been sent. */
#include "mount/fuse/fuse_priv.h"

/* Collects the pieces of the reply, which point into the chunks or into *unpacked, which the caller
 * frees. */
static int collect_chunks(struct op *op, struct iovec *iov, char **unpacked)
{
	size_t chunk = cop_fetch_chunk_bytes(op->fs->conf.fetch);
	size_t skip = (size_t)((uint64_t)op->off % chunk), left = op->size;
	int rc = 0;

	for (unsigned i = 0; i < op->n_chunks && !rc; i++) {
		struct cop_obj *obj = op->chunk[i];
		size_t n = COP_MIN(chunk - skip, left);
		const void *data = NULL;

		if (obj->packed && !*unpacked && !(*unpacked = malloc(op->size)))
			return -ENOMEM;
		rc = cop_fetch_chunk_part(
			obj, skip, n, *unpacked ? *unpacked + (op->size - left) : NULL, &data);
		if (rc == -EBADMSG)
			cop_cache_drop(op->fs->conf.cache, obj);
		iov[i] = (struct iovec){(void *)(uintptr_t)data, n};
		left -= n;
		skip = 0;
	}
	return rc;
}

/* Counts the bytes of a reply and where each chunk came from. */
static void count_bytes(struct op *op, const struct iovec *iov)
{
	cop_stats_add(
		op->fs->conf.stats, op->own ? COP_FUSE_AHEAD_BYTES : COP_FUSE_READ_BYTES, op->size);
	for (unsigned i = 0; i < op->n_chunks; i++)
		cop_fetch_given(op->fs->conf.fetch, op->chunk[i], iov[i].iov_len);
}

static void reply_data(struct op *op)
{
	struct iovec iov[READ_CHUNKS_MAX];
	char *unpacked = NULL;
	int rc = collect_chunks(op, iov, &unpacked);

	if (rc) {
		cop_fuse_fail(op, rc);
	} else {
		count_bytes(op, iov);
		fuse_reply_iov(op->req, iov, (int)op->n_chunks);
		cop_fuse_store(op);
		cop_fuse_op_free(op);
	}
	free(unpacked);
}

static void ask_next(struct op *op);

static void with_chunk(struct op *op, struct cop_obj *obj, int rc)
{
	if (rc) {
		cop_fuse_forget_name(op->fs, op->inode);
		/* The file existed when it was opened, so for its reader it has changed. */
		cop_fuse_fail(op, rc == -ENOENT ? -ESTALE : rc);
		return;
	}
	if (!op->own)
		cop_fetch_used(op->fs->conf.fetch, obj);
	op->chunk[op->n_chunks++] = cop_obj_get(obj);
	ask_next(op);
}

static void ask_next(struct op *op)
{
	size_t chunk = cop_fetch_chunk_bytes(op->fs->conf.fetch);
	uint64_t first = (uint64_t)op->off / chunk;
	uint64_t last = ((uint64_t)op->off + op->size - 1) / chunk;
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.version = op->inode->attr.version,
		.size = op->inode->attr.size,
		.index = first + op->n_chunks};
	char path[PATH_BYTES];
	int rc;

	if (ask.index > last) {
		reply_data(op);
		return;
	}
	rc = cop_fuse_path(op->inode, "", 0, path);
	ask.path = path;
	if (rc < 0)
		cop_fuse_fail(op, rc);
	else
		cop_fuse_ask(op, &ask, with_chunk);
}

void cop_fuse_read(
	fuse_req_t req, fuse_ino_t ino, size_t size, off_t off, struct fuse_file_info *fi)
{
	struct op *op = cop_fuse_op(req, ino, COP_PROF_OP_READ);
	struct inode *i;
	struct cop_fuse *fs;
	uint64_t first;
	bool own;

	cop_fuse_count(req, COP_FUSE_READ);
	if (!op)
		return;
	i = op->inode;
	fs = op->fs;
	op->size = size;
	op->off = off;
	if (i->place == PLACE_LOCAL) {
		cop_fuse_local_read(op, fi);
		return;
	}
	if (off < 0 || (uint64_t)off >= i->attr.size || size == 0) {
		op->size = 0;
		fuse_reply_buf(req, NULL, 0);
		cop_fuse_op_free(op);
		return;
	}
	op->size = COP_MIN(size, i->attr.size - (uint64_t)off);
	if (cop_fuse_bypasses(fs, &i->attr)) {
		cop_fuse_bypass_read(op);
		return;
	}
	op->size = COP_MIN(op->size, (READ_CHUNKS_MAX - 1) * cop_fetch_chunk_bytes(fs->conf.fetch));
	first = (uint64_t)off / cop_fetch_chunk_bytes(fs->conf.fetch);
	own = op->own;
	cop_fuse_inode_ref(i);
	cop_fetch_cork(fs->conf.fetch);
	ask_next(op);
	if (!own)
		cop_fuse_read_ahead(fs, i, first);
	cop_fetch_uncork(fs->conf.fetch);
	cop_fuse_inode_put(fs, i, 1);
}

/* ---- SEEK_DATA and SEEK_HOLE ---- */

static void seek_in(struct op *op, const struct cop_extent *e, size_t n)
{
	uint64_t off = (uint64_t)op->off, size = op->inode->attr.size, found = size;

	for (size_t i = 0; i < n; i++) {
		if (e[i].end <= off)
			continue;
		if (op->whence == SEEK_DATA)
			found = COP_MAX(off, e[i].start);
		else
			found = off < e[i].start ? off : e[i].end;
		break;
	}
	if (op->whence == SEEK_HOLE && (n == 0 || e[n - 1].end <= off))
		found = off;
	if (op->whence == SEEK_DATA && found >= size) {
		cop_fuse_fail(op, -ENXIO);
		return;
	}
	fuse_reply_lseek(op->req, (off_t)COP_MIN(found, size));
	cop_fuse_op_free(op);
}

static void with_holes(struct op *op, struct cop_obj *obj, int rc)
{
	if (rc)
		cop_fuse_fail(op, rc);
	else
		seek_in(op, obj->data, obj->len / sizeof(struct cop_extent));
}

/* ENOSYS would be simpler, but then the kernel would assume that no file of the mount has holes.
 * Only sparse files cause requests to the tree. */
void cop_fuse_lseek(
	fuse_req_t req, fuse_ino_t ino, off_t off, int whence, struct fuse_file_info *fi)
{
	struct op *op = cop_fuse_op(req, ino, COP_PROF_OP_LSEEK);
	char path[PATH_BYTES];
	struct cop_attr *a;
	int rc;

	(void)fi;
	cop_fuse_count(req, COP_FUSE_LSEEK);
	if (!op)
		return;
	a = &op->inode->attr;
	op->off = off;
	op->whence = whence;
	if ((whence != SEEK_DATA && whence != SEEK_HOLE) || op->inode->place != PLACE_TREE) {
		cop_fuse_fail(op, -EINVAL);
	} else if (off < 0 || (uint64_t)off >= a->size) {
		cop_fuse_fail(op, -ENXIO);
	} else if (a->blocks * 512 >= a->size) {
		seek_in(op, &(struct cop_extent){0, a->size}, 1);
	} else if ((rc = cop_fuse_path(op->inode, "", 0, path)) < 0) {
		cop_fuse_fail(op, rc);
	} else {
		cop_fuse_ask(op,
			&(struct cop_ask){
				.kind = COP_ASK_HOLES, .path = path, .version = a->version},
			with_holes);
	}
}
