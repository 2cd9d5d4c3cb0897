/* SPDX-License-Identifier: BSD-3-Clause */
/* Symbolic links. The bare mount shows an absolute target below the source as a relative one, which
 * stays inside the mount wherever it is, even in a chroot. A view is mounted over the source and
 * shows every target unchanged. So does the bare mount if the target leaves the source through
 * "..", because the storage is not above the mount.
 *
 * The kernel itself opens FIFOs and connects sockets, by inode, so a FIFO in the mount is a
 * different one from that on the storage, and nobody would ever open its other end. The bare mount
 * shows FIFOs as sockets, which open(2) refuses with ENXIO and connect(2) with ECONNREFUSED, both
 * immediately. A view shows FIFOs and sockets as links to the originals on the storage, which is
 * mounted beside the tree. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

/* The part of an absolute target after the source ("" or "/..."), or NULL if it points
 * elsewhere. */
static const char *below_source(const struct cop_fuse *fs, const char *target, size_t len)
{
	size_t n = strlen(fs->conf.source);

	if (len == 0 || target[0] != '/')
		return NULL;
	if (n == 1)
		return target;
	if (len < n || memcmp(target, fs->conf.source, n) != 0)
		return NULL;
	return len == n || target[n] == '/' ? target + n : NULL;
}

/* Whether ".." leads above the directory in which rest begins. Links on the way are not followed: a
 * link that leads up is itself rewritten or stays absolute. */
static bool leads_above(const char *rest, const char *end)
{
	int depth = 0;

	while (rest < end && depth >= 0) {
		const char *slash = memchr(rest, '/', (size_t)(end - rest));
		size_t n = (size_t)((slash ? slash : end) - rest);

		if (n == 2 && memcmp(rest, "..", 2) == 0)
			depth--;
		else if (n > 1 || (n == 1 && *rest != '.'))
			depth++;
		rest += n + 1;
	}
	return depth < 0;
}

size_t cop_fuse_rewrite(const struct cop_fuse *fs, unsigned depth, const char *target, size_t len,
	char out[PATH_BYTES])
{
	const char *rest = fs->conf.keep_symlinks ? NULL : below_source(fs, target, len);
	size_t rest_len, at = 0;

	if (rest && !leads_above(rest, target + len)) {
		while (rest < target + len && *rest == '/')
			rest++;
		rest_len = (size_t)(target + len - rest);
		if (3 * (size_t)depth + rest_len + 2 < PATH_BYTES) {
			for (unsigned i = 0; i < depth; i++, at += 3)
				memcpy(out + at, "../", 3);
			if (!depth || !rest_len)
				out[at++] = '.';
			if (!depth && rest_len)
				out[at++] = '/';
			memcpy(out + at, rest, rest_len);
			return at + rest_len;
		}
	}
	len = COP_MIN(len, (size_t)PATH_BYTES - 1);
	memcpy(out, target, len);
	return len;
}

mode_t cop_fuse_shown_mode(const struct op *op, mode_t mode)
{
	if (!S_ISFIFO(mode) && !S_ISSOCK(mode))
		return mode;
	return op->view ? S_IFLNK | 0777 : S_IFSOCK | (mode & ~(mode_t)S_IFMT);
}

int cop_fuse_special_target(const struct inode *i, char out[PATH_BYTES])
{
	unsigned depth = cop_fuse_depth(i->parent);
	char path[PATH_BYTES];
	int len = cop_fuse_path(i, "", 0, path), at = 0;

	if (len < 0 || 3 * depth + sizeof(COP_FUSE_STORAGE) + (size_t)len >= PATH_BYTES)
		return -ENAMETOOLONG;
	for (; depth; depth--, at += 3)
		memcpy(out + at, "../", 3);
	return at + snprintf(out + at, (size_t)(PATH_BYTES - at), COP_FUSE_STORAGE "/%s", path);
}

void cop_fuse_show(const struct op *op, const struct inode *i, struct cop_attr *attr)
{
	mode_t mode = cop_fuse_shown_mode(op, attr->mode);
	char target[PATH_BYTES];

	if (S_ISLNK(mode) && !op->view)
		attr->size = atomic_load(&i->moved_size);
	else if (S_ISLNK(mode) && !S_ISLNK(attr->mode))
		attr->size = (uint64_t)COP_MAX(cop_fuse_special_target(i, target), 0);
	attr->mode = mode;
}

struct inode *cop_fuse_inode_shown(struct op *op, const char *name, size_t name_len,
	const char *target, size_t target_len, struct cop_attr *attr)
{
	struct inode *i = cop_fuse_inode_get(op->fs, op->inode, name, name_len, attr, PLACE_TREE);
	char out[PATH_BYTES];

	if (!i)
		return NULL;
	if (S_ISLNK(attr->mode))
		atomic_store(&i->moved_size, cop_fuse_rewrite(op->fs, cop_fuse_depth(op->inode),
						     target, target_len, out));
	cop_fuse_show(op, i, attr);
	return i;
}

static void reply_target(struct op *op, const char *target, size_t len)
{
	char out[PATH_BYTES];

	if (op->view)
		memcpy(out, target, len = COP_MIN(len, (size_t)PATH_BYTES - 1));
	else
		len = cop_fuse_rewrite(op->fs, cop_fuse_depth(op->inode->parent), target, len, out);
	out[len] = '\0';
	fuse_reply_readlink(op->req, out);
	cop_fuse_op_free(op);
}

static void reply_special(struct op *op)
{
	char target[PATH_BYTES];
	int len = cop_fuse_special_target(op->inode, target);

	if (len < 0) {
		cop_fuse_fail(op, len);
		return;
	}
	fuse_reply_readlink(op->req, target);
	cop_fuse_op_free(op);
}

static void with_entry(struct op *op, struct cop_obj *obj, int rc)
{
	struct cop_attr attr;
	const char *target;
	size_t len;

	if (rc) {
		cop_fuse_fail(op, rc);
		return;
	}
	cop_entry_get(obj->data, &attr, &target, &len);
	if (S_ISLNK(attr.mode))
		reply_target(op, target, len);
	else
		cop_fuse_fail(op, -ESTALE);
}

static void ask_entry(struct op *op)
{
	char path[PATH_BYTES];
	int rc = cop_fuse_path(op->inode, "", 0, path);

	if (rc < 0)
		cop_fuse_fail(op, rc);
	else
		cop_fuse_ask(
			op, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}, with_entry);
}

static void with_listing(struct op *op, struct cop_obj *obj, int rc)
{
	struct cop_listing_entry e;

	if (!rc && cop_listing_find(obj->data, op->inode->name, op->inode->name_len, &e) &&
		e.target)
		reply_target(op, e.target, e.target_len);
	else
		ask_entry(op);
}

void cop_fuse_readlink(fuse_req_t req, fuse_ino_t ino)
{
	struct op *op = cop_fuse_op(req, ino, COP_PROF_OP_READLINK);
	char path[PATH_BYTES];
	struct cop_ask listing = {.kind = COP_ASK_LISTING, .path = path};
	int rc;

	cop_fuse_count(req, COP_FUSE_READLINK);
	if (!op)
		return;
	if (op->inode->place == PLACE_LOCAL) {
		cop_fuse_local_readlink(op);
		return;
	}
	if (!op->inode->parent) {
		cop_fuse_fail(op, -EINVAL);
		return;
	}
	if (op->view && !S_ISLNK(op->inode->attr.mode)) {
		reply_special(op);
		return;
	}
	rc = cop_fuse_path(op->inode->parent, "", 0, path);
	if (rc < 0)
		cop_fuse_fail(op, rc);
	else if (cop_fetch_held(op->fs->conf.fetch, &listing) == COP_HELD_COMPLETE)
		cop_fuse_ask(op, &listing, with_listing);
	else
		ask_entry(op);
}
