/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the kernel drop part of the tree, inode by inode. It allocates no memory: the inodes are
 * linked through told_next, which is safe because only the thread of notify.c runs this code. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

#include "base/base/compat.h"

/* The maximum number of components in a path of PATH_BYTES. */
#define DEPTHS (PATH_BYTES / 2)

struct inode_list {
	struct inode *top;
	bool names;                  /* only the direct children */
	struct inode *first[DEPTHS]; /* by depth; references, linked through told_next */
};

static bool is_below(const struct inode *i, const struct inode *top)
{
	while (i && i != top)
		i = i->parent;
	return i == top;
}

static void collect_inode(void *arg, struct inode *i)
{
	struct inode_list *h = arg;
	struct inode **first;

	/* Views may have mounts on it, which would be lost. */
	if (i->place == PLACE_SELF)
		return;
	if (h->names ? i->parent != h->top : !is_below(i, h->top))
		return;
	first = &h->first[COP_MIN(cop_fuse_depth(i), DEPTHS - 1)];
	cop_fuse_inode_ref(i);
	i->told_next = *first;
	*first = i;
}

/* Calls fn for each inode that is collected, except the top, deepest first. */
static void tell_held(
	struct cop_fuse *fs, struct inode_list *h, void (*fn)(struct cop_fuse *, struct inode *))
{
	cop_fuse_inodes_each(fs, collect_inode, h);
	for (size_t depth = DEPTHS; depth-- > 0;)
		for (struct inode *i = h->first[depth], *next; i; i = next) {
			next = i->told_next;
			if (i != h->top)
				fn(fs, i);
			cop_fuse_inode_put(fs, i, 1);
		}
}

/* Calls fn with the node id of each side that the kernel may have. */
static void each_side(struct cop_fuse *fs, struct inode *i, const char *name, size_t len,
	void (*fn)(struct cop_fuse *fs, fuse_ino_t id, const char *name, size_t len))
{
	fn(fs, cop_fuse_dir_nodeid(fs, i, false), name, len);
	if (atomic_load(&fs->viewed))
		fn(fs, cop_fuse_dir_nodeid(fs, i, true), name, len);
}

static void forget_name(struct cop_fuse *fs, fuse_ino_t dir, const char *name, size_t len)
{
	fuse_lowlevel_notify_inval_entry(fs->session, dir, name, len);
}

void cop_fuse_tell_name(struct cop_fuse *fs, struct inode *dir, const char *name, size_t len)
{
	each_side(fs, dir, name, len, forget_name);
}

static void forget_inode(struct cop_fuse *fs, fuse_ino_t id, const char *name, size_t len)
{
	(void)name, (void)len;
	fuse_lowlevel_notify_inval_inode(fs->session, id, 0, 0);
}

void cop_fuse_tell_inode(struct cop_fuse *fs, struct inode *i)
{
	each_side(fs, i, "", 0, forget_inode);
}

static void tell_inode(struct cop_fuse *fs, struct inode *i)
{
	if (!i->parent || S_ISDIR(cop_fuse_inode_attr(fs, i).mode))
		cop_fuse_tell_inode(fs, i);
	if (i->parent)
		cop_fuse_tell_name(fs, i->parent, i->name, i->name_len);
}

/* Deepest first: if only the directory were forgotten, open files and working directories would
 * keep the inodes below it. */
void cop_fuse_tell_under(struct cop_fuse *fs, struct inode *top)
{
	struct inode_list h = {.top = top};

	tell_held(fs, &h, tell_inode);
	tell_inode(fs, top);
	if (!top->parent)
		cop_fuse_tell_absent(fs);
}

/* Expires the name instead of dropping it, if the kernel can (Linux 6.2): objects in use, above all
 * working directories, then keep their place in the tree if they are unchanged. */
static void expire_name(struct cop_fuse *fs, fuse_ino_t dir, const char *name, size_t len)
{
	int rc = -ENOSYS;

#if COP_HAVE_FUSE_EXPIRE
	rc = fuse_lowlevel_notify_expire_entry(fs->session, dir, name, len);
#elif COP_HAVE_FUSE_EXPIRE_FLAGS
	rc = fuse_lowlevel_notify_expire_entry(fs->session, dir, name, len, FUSE_LL_EXPIRE_ONLY);
#endif
	if (rc == -ENOSYS)
		forget_name(fs, dir, name, len);
}

static void expire_inode(struct cop_fuse *fs, struct inode *i)
{
	each_side(fs, i->parent, i->name, i->name_len, expire_name);
}

void cop_fuse_tell_names(struct cop_fuse *fs, struct inode *dir)
{
	struct inode_list h = {.top = dir, .names = true};

	tell_held(fs, &h, expire_inode);
}
