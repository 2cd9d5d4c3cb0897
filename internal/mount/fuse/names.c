/* SPDX-License-Identifier: BSD-3-Clause */
/* When an evicted listing is fetched again, its version may have changed. Of the names that the
 * kernel received from the old version, this node then has only the inodes. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

/* Whether the kernel has a different file under this name. A directory counts as the same whatever
 * it contains. */
static bool is_another(struct cop_fuse *fs, struct inode *dir, const struct cop_listing_entry *e)
{
	struct inode *i = e->has_attr ? cop_fuse_inode_find(fs, dir, e->name, e->name_len) : NULL;
	struct cop_attr known;
	bool in_tree;

	if (!i)
		return false;
	known = cop_fuse_inode_attr(fs, i);
	in_tree = i->place == PLACE_TREE;
	cop_fuse_inode_put(fs, i, 1);
	return in_tree && !cop_version_same(known.version, e->attr.version) &&
	       !(S_ISDIR(known.mode) && S_ISDIR(e->attr.mode));
}

static bool contradicts_names(struct cop_fuse *fs, struct inode *dir, const void *blob)
{
	uint32_t count = cop_listing_count(blob);
	struct cop_listing_entry e;

	for (uint32_t n = 0; n < count; n++) {
		cop_listing_at(blob, n, &e);
		if (is_another(fs, dir, &e))
			return true;
	}
	return false;
}

void cop_fuse_meet_names(struct cop_fuse *fs, struct inode *dir, const void *blob)
{
	struct cop_attr now;
	uint64_t was;

	cop_listing_dir(blob, &now);
	was = atomic_exchange(&dir->names_version, now.version);
	if (was && was != now.version && contradicts_names(fs, dir, blob))
		cop_fuse_expire_names(fs, dir);
}
