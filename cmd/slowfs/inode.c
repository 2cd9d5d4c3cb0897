/* SPDX-License-Identifier: BSD-3-Clause */
#include "slowfs_priv.h"

#include <fcntl.h>

static struct cop_slowfs_inode *inode_of(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct cop_slowfs_inode, link) : NULL;
}

int cop_slowfs_inode_init(struct cop_slowfs *fs, int root_fd)
{
	struct stat st;

	if (fstat(root_fd, &st) < 0)
		return -errno;
	fs->root.fd = root_fd;
	fs->root.dev = st.st_dev;
	fs->root.ino = st.st_ino;
	fs->root.lookups = 1;
	pthread_mutex_init(&fs->lock, NULL);
	return 0;
}

void cop_slowfs_inode_fini(struct cop_slowfs *fs)
{
	for (struct cop_hlink *l = cop_htab_after(&fs->inodes, NULL), *next; l; l = next) {
		next = cop_htab_after(&fs->inodes, l);
		close(inode_of(l)->fd);
		free(inode_of(l));
	}
	cop_htab_fini(&fs->inodes);
	close(fs->root.fd);
	pthread_mutex_destroy(&fs->lock);
}

struct cop_slowfs_inode *cop_slowfs_inode_at(struct cop_slowfs *fs, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? &fs->root : (struct cop_slowfs_inode *)(uintptr_t)ino;
}

void cop_slowfs_inode_proc_path(struct cop_slowfs *fs, fuse_ino_t ino, char out[64])
{
	snprintf(out, 64, "/proc/self/fd/%d", cop_slowfs_inode_at(fs, ino)->fd);
}

static uint64_t inode_hash(dev_t dev, ino_t ino)
{
	uint64_t key[2] = {(uint64_t)dev, (uint64_t)ino};

	return cop_hash64(key, sizeof(key), 0);
}

static struct cop_slowfs_inode *find_locked(struct cop_slowfs *fs, const struct stat *st)
{
	struct cop_hlink *l = cop_htab_first(&fs->inodes, inode_hash(st->st_dev, st->st_ino));

	while (l && (inode_of(l)->dev != st->st_dev || inode_of(l)->ino != st->st_ino))
		l = cop_htab_next(l);
	return inode_of(l);
}

/* Takes ownership of fd: stored in the inode, or closed if the inode already has one. */
static struct cop_slowfs_inode *get_or_add(struct cop_slowfs *fs, int fd, const struct stat *st)
{
	struct cop_slowfs_inode *fresh = calloc(1, sizeof(*fresh)), *found;

	pthread_mutex_lock(&fs->lock);
	found = find_locked(fs, st);
	if (!found && fresh) {
		fresh->dev = st->st_dev;
		fresh->ino = st->st_ino;
		fresh->fd = fd;
		cop_htab_add(&fs->inodes, &fresh->link, inode_hash(st->st_dev, st->st_ino));
		found = fresh;
		fresh = NULL;
		fd = -1;
	}
	if (found)
		found->lookups++;
	pthread_mutex_unlock(&fs->lock);
	free(fresh);
	if (fd >= 0)
		close(fd);
	return found;
}

int cop_slowfs_inode_lookup(
	struct cop_slowfs *fs, fuse_ino_t parent, const char *name, struct fuse_entry_param *e)
{
	struct cop_slowfs_inode *found;
	int fd = openat(cop_slowfs_inode_at(fs, parent)->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return errno;
	if (fstat(fd, &e->attr) < 0) {
		int code = errno;

		close(fd);
		return code;
	}
	found = get_or_add(fs, fd, &e->attr);
	if (!found)
		return ENOMEM;
	e->ino = (fuse_ino_t)(uintptr_t)found;
	e->attr_timeout = e->entry_timeout = fs->cache_s;
	return 0;
}

void cop_slowfs_inode_forget(struct cop_slowfs *fs, fuse_ino_t ino, uint64_t lookups)
{
	struct cop_slowfs_inode *i = cop_slowfs_inode_at(fs, ino);
	bool last;

	if (i == &fs->root)
		return;
	pthread_mutex_lock(&fs->lock);
	i->lookups -= COP_MIN(lookups, i->lookups);
	last = i->lookups == 0;
	if (last)
		cop_htab_remove(&fs->inodes, &i->link);
	pthread_mutex_unlock(&fs->lock);
	if (last) {
		close(i->fd);
		free(i);
	}
}
