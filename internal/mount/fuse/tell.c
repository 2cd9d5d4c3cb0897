/* SPDX-License-Identifier: BSD-3-Clause */
/* Makes the kernel forget a part of the tree, inode by inode. It takes no memory: the inodes are
 * linked through themselves, by the only thread that notifies (notify.c). */
#include "mount/fuse/fuse_priv.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/base/compat.h"

#define ROOT_ABSENT_MAX (64 * COP_KIB)
/* A path of PATH_BYTES has no more components. */
#define DEPTHS (PATH_BYTES / 2)

struct inode_list {
	struct inode *top;
	bool names;                  /* only the direct children */
	struct inode *first[DEPTHS]; /* references, linked by told_next, by depth */
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

	if (h->names ? i->parent != h->top : !is_below(i, h->top))
		return;
	first = &h->first[COP_MIN(cop_fuse_depth(i), DEPTHS - 1)];
	cop_fuse_inode_ref(i);
	i->told_next = *first;
	*first = i;
}

/* Notifies for each known inode at or below the top, the deepest first. */
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

static void tell_inode(struct cop_fuse *fs, struct inode *i)
{
	if (!i->parent || S_ISDIR(cop_fuse_inode_attr(fs, i).mode))
		fuse_lowlevel_notify_inval_inode(fs->session, cop_fuse_nodeid(fs, i), 0, 0);
	if (i->parent)
		fuse_lowlevel_notify_inval_entry(
			fs->session, cop_fuse_nodeid(fs, i->parent), i->name, i->name_len);
}

bool cop_fuse_note_absent(struct cop_fuse *fs, const char *name, size_t len)
{
	struct cop_buf *b = &fs->root_absent;
	bool noted = false;

	pthread_mutex_lock(&fs->notify_lock);
	for (size_t at = 0; at < b->len && !noted; at += strlen(b->data + at) + 1)
		noted = strcmp(b->data + at, name) == 0;
	if (!noted && b->len + len < ROOT_ABSENT_MAX) {
		cop_buf_add(b, name, len + 1);
		noted = !b->failed;
	}
	pthread_mutex_unlock(&fs->notify_lock);
	return noted;
}

static void tell_root_absent(struct cop_fuse *fs)
{
	struct cop_buf names;

	pthread_mutex_lock(&fs->notify_lock);
	names = fs->root_absent;
	fs->root_absent = (struct cop_buf){0};
	pthread_mutex_unlock(&fs->notify_lock);
	for (size_t at = 0; at < names.len; at += strlen(names.data + at) + 1)
		fuse_lowlevel_notify_inval_entry(
			fs->session, FUSE_ROOT_ID, names.data + at, strlen(names.data + at));
	cop_buf_free(&names);
}

/* The deepest first, because forgetting a directory alone would leave what open files and working
 * directories pin below it. */
void cop_fuse_tell_under(struct cop_fuse *fs, struct inode *top)
{
	struct inode_list h = {.top = top};

	tell_held(fs, &h, tell_inode);
	tell_inode(fs, top);
	if (!top->parent)
		tell_root_absent(fs);
}

/* Expires the name instead of dropping it where the kernel can (Linux 6.2): what is in use, above
 * all a working directory, keeps its place in the tree if it is unchanged. */
static void expire_inode(struct cop_fuse *fs, struct inode *i)
{
	fuse_ino_t dir = cop_fuse_nodeid(fs, i->parent);
	int rc = -ENOSYS;

#if COP_HAVE_FUSE_EXPIRE
	rc = fuse_lowlevel_notify_expire_entry(fs->session, dir, i->name, i->name_len);
#elif COP_HAVE_FUSE_EXPIRE_FLAGS
	rc = fuse_lowlevel_notify_expire_entry(
		fs->session, dir, i->name, i->name_len, FUSE_LL_EXPIRE_ONLY);
#endif
	if (rc == -ENOSYS)
		fuse_lowlevel_notify_inval_entry(fs->session, dir, i->name, i->name_len);
}

void cop_fuse_tell_names(struct cop_fuse *fs, struct inode *dir)
{
	struct inode_list h = {.top = dir, .names = true};

	tell_held(fs, &h, expire_inode);
}
