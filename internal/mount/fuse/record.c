/* SPDX-License-Identifier: BSD-3-Clause */
/* Records the order of first use, in which the kernel asks. It asks once, so recording costs next
 * to nothing and needs no other settings. After a READDIRPLUS the single names of a directory are
 * not seen; its listing holds them. */
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
