/* SPDX-License-Identifier: BSD-3-Clause */
/* The inodes that the kernel or an operation uses, by parent and name. An inode's address is its
 * node id, valid while the kernel has a reference. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

static struct inode *inode_at(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct inode, link) : NULL;
}

int cop_fuse_inodes_init(struct cop_fuse *fs)
{
	fs->root = calloc(1, sizeof(*fs->root) + 1);
	if (!fs->root)
		return -ENOMEM;
	atomic_init(&fs->root->refs, 1);
	for (unsigned i = 0; i < INODE_SHARDS; i++)
		pthread_mutex_init(&fs->inodes.shard[i].lock, NULL);
	return 0;
}

void cop_fuse_inodes_fini(struct cop_fuse *fs)
{
	for (unsigned i = 0; i < INODE_SHARDS; i++) {
		struct cop_htab *t = &fs->inodes.shard[i].table;

		for (struct cop_hlink *l = cop_htab_after(t, NULL), *next; l; l = next) {
			next = cop_htab_after(t, l);
			free(inode_at(l));
		}
		cop_htab_fini(t);
	}
	free(fs->root);
}

struct inode *cop_fuse_inode(struct cop_fuse *fs, fuse_ino_t ino)
{
	return ino == FUSE_ROOT_ID ? fs->root : (struct inode *)(uintptr_t)(ino & ~(fuse_ino_t)1);
}

bool cop_fuse_is_view(fuse_ino_t ino)
{
	return ino != FUSE_ROOT_ID && (ino & 1);
}

fuse_ino_t cop_fuse_dir_nodeid(struct cop_fuse *fs, struct inode *i, bool view)
{
	return i == fs->root && !view ? FUSE_ROOT_ID : (fuse_ino_t)(uintptr_t)i | view;
}

fuse_ino_t cop_fuse_nodeid(const struct op *op, struct inode *i, mode_t mode)
{
	return cop_fuse_dir_nodeid(op->fs, i, op->view && (S_ISDIR(mode) || S_ISLNK(mode)));
}

static struct inode_shard *shard_of(struct cop_fuse *fs, uint64_t hash)
{
	return &fs->inodes.shard[hash >> 60];
}

static uint64_t name_hash(const struct inode *parent, const char *name, size_t len)
{
	return cop_hash64(name, len, (uint64_t)(uintptr_t)parent);
}

static bool is_current(
	const struct inode *i, const struct inode *parent, const char *name, size_t len)
{
	return !i->stale && i->parent == parent && i->name_len == len &&
	       memcmp(i->name, name, len) == 0;
}

static struct inode *find_child(struct inode_shard *s, uint64_t hash, const struct inode *parent,
	const char *name, size_t len)
{
	struct cop_hlink *l = cop_htab_first(&s->table, hash);

	while (l && !is_current(inode_at(l), parent, name, len))
		l = cop_htab_next(l);
	return inode_at(l);
}

static struct inode *add_child(
	struct inode_shard *s, uint64_t hash, struct inode *parent, const char *name, size_t len)
{
	struct inode *i = calloc(1, sizeof(*i) + len + 1);

	if (!i)
		return NULL;
	memcpy(i->name, name, len);
	i->name_len = (uint16_t)len;
	i->parent = parent;
	cop_fuse_inode_ref(parent);
	cop_htab_add(&s->table, &i->link, hash);
	return i;
}

struct inode *cop_fuse_inode_find(
	struct cop_fuse *fs, struct inode *parent, const char *name, size_t len)
{
	uint64_t hash = name_hash(parent, name, len);
	struct inode_shard *s = shard_of(fs, hash);
	struct inode *i;

	pthread_mutex_lock(&s->lock);
	i = find_child(s, hash, parent, name, len);
	if (i)
		cop_fuse_inode_ref(i);
	pthread_mutex_unlock(&s->lock);
	return i;
}

struct inode *cop_fuse_inode_get(struct cop_fuse *fs, struct inode *parent, const char *name,
	size_t name_len, const struct cop_attr *attr, enum place place)
{
	uint64_t hash = name_hash(parent, name, name_len);
	struct inode_shard *s = shard_of(fs, hash);
	struct inode *i;
	bool made;

	pthread_mutex_lock(&s->lock);
	i = find_child(s, hash, parent, name, name_len);
	if (i && i->place != place) {
		i->stale = true;
		i = NULL;
	}
	if (i && place == PLACE_TREE && i->attr.version != attr->version &&
		(!S_ISDIR(attr->mode) || !S_ISDIR(i->attr.mode))) {
		i->stale = true;
		i = NULL;
	}
	made = !i;
	if (!i)
		i = add_child(s, hash, parent, name, name_len);
	if (i) {
		/* A file's attributes do not change within a version, so readers need no lock. */
		if (made || S_ISDIR(attr->mode) || place != PLACE_TREE)
			i->attr = *attr;
		if (made)
			i->place = (uint8_t)place;
		cop_fuse_inode_ref(i);
	}
	pthread_mutex_unlock(&s->lock);
	return i;
}

void cop_fuse_inode_ref(struct inode *i)
{
	atomic_fetch_add(&i->refs, 1);
}

/* Drops n references. Returns true if they were the last ones and the inode was removed from the
 * table. The last ones are dropped under the lock, so that no lookup finds an inode that is about
 * to be freed. */
static bool drop_lookups(struct cop_fuse *fs, struct inode *i, uint64_t n)
{
	struct inode_shard *s = shard_of(fs, i->link.hash);
	uint64_t refs = atomic_load(&i->refs);
	bool last;

	while (refs > n)
		if (atomic_compare_exchange_weak(&i->refs, &refs, refs - n))
			return false;
	pthread_mutex_lock(&s->lock);
	last = atomic_fetch_sub(&i->refs, n) == n;
	if (last)
		cop_htab_remove(&s->table, &i->link);
	pthread_mutex_unlock(&s->lock);
	return last;
}

void cop_fuse_inode_put(struct cop_fuse *fs, struct inode *i, uint64_t n)
{
	while (i && i != fs->root) {
		struct inode *parent = i->parent;

		if (!drop_lookups(fs, i, n))
			return;
		free(i);
		i = parent;
		n = 1;
	}
}

struct cop_attr cop_fuse_inode_attr(struct cop_fuse *fs, struct inode *i)
{
	struct inode_shard *s = shard_of(fs, i->link.hash);
	struct cop_attr attr;

	pthread_mutex_lock(&s->lock);
	attr = i->attr;
	pthread_mutex_unlock(&s->lock);
	return attr;
}

void cop_fuse_inode_set_attr(struct cop_fuse *fs, struct inode *i, const struct cop_attr *attr)
{
	struct inode_shard *s = shard_of(fs, i->link.hash);

	pthread_mutex_lock(&s->lock);
	i->attr = *attr;
	pthread_mutex_unlock(&s->lock);
}

int cop_fuse_path(const struct inode *i, const char *name, size_t name_len, char path[PATH_BYTES])
{
	size_t len = name_len, at;

	for (const struct inode *p = i; p->parent; p = p->parent)
		len += p->name_len + (len ? 1u : 0u);
	if (len >= PATH_BYTES)
		return -ENAMETOOLONG;
	path[len] = '\0';
	at = len - name_len;
	memcpy(path + at, name, name_len);
	for (; i->parent; i = i->parent) {
		if (at < len)
			path[--at] = '/';
		at -= i->name_len;
		memcpy(path + at, i->name, i->name_len);
	}
	return (int)len;
}

uint64_t cop_fuse_inode_count(struct cop_fuse *fs)
{
	uint64_t count = 0;

	for (unsigned i = 0; i < INODE_SHARDS; i++) {
		pthread_mutex_lock(&fs->inodes.shard[i].lock);
		count += fs->inodes.shard[i].table.count;
		pthread_mutex_unlock(&fs->inodes.shard[i].lock);
	}
	return count;
}

void cop_fuse_inodes_each(struct cop_fuse *fs, void (*fn)(void *arg, struct inode *i), void *arg)
{
	for (unsigned i = 0; i < INODE_SHARDS; i++) {
		struct inode_shard *s = &fs->inodes.shard[i];

		pthread_mutex_lock(&s->lock);
		for (struct cop_hlink *l = cop_htab_after(&s->table, NULL); l;
			l = cop_htab_after(&s->table, l))
			fn(arg, inode_at(l));
		pthread_mutex_unlock(&s->lock);
	}
}

unsigned cop_fuse_depth(const struct inode *dir)
{
	unsigned depth = 0;

	for (; dir->parent; dir = dir->parent)
		depth++;
	return depth;
}
