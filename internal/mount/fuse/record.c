/* SPDX-License-Identifier: BSD-3-Clause */
/* Records the order of first use from the kernel's requests. Because the kernel caches, recording
 * costs next to nothing and needs no other settings. While recording, the node answers READDIRPLUS
 * without the attributes that the listing has, so that lookups show which names a program needs. */
#include "mount/fuse/fuse_priv.h"

void cop_fuse_record(struct op *op, const struct cop_ask *ask)
{
	struct cop_manifest_item item = {.path = ask->path};

	switch (ask->kind) {
	case COP_ASK_LISTING:
		/* op->inode is the directory. */
		if (atomic_exchange(&op->inode->recorded, true))
			return;
		item.kind = COP_MANIFEST_DIR;
		break;
	case COP_ASK_ENTRY:
		if (!*ask->path)
			return;
		item.kind = COP_MANIFEST_NAME;
		break;
	case COP_ASK_CHUNK:
		item.kind = COP_MANIFEST_FILE;
		item.size = ask->size;
		item.mtime_s = op->inode->attr.mtime_s;
		item.mtime_nsec = op->inode->attr.mtime_nsec;
		cop_manifest_range_add(&item, (uint64_t)op->off, (uint64_t)op->off + op->size);
		break;
	default:
		return;
	}
	item.len = strlen(ask->path);
	cop_manifest_set_add(op->fs->conf.record, &item, 0);
}

void cop_fuse_record_name(struct op *op)
{
	char path[PATH_BYTES];

	if (op->fs->conf.record && !op->own &&
		cop_fuse_path(op->inode, op->name, op->name_len, path) >= 0)
		cop_fuse_record(op, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = path});
}
