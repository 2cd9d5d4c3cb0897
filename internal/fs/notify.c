/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling the kernel to forget. A thread of its own does it, since an invalidation may wait in the
 * kernel for a request that a worker has to answer. */
#include "fs/fs_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 4096
#define ROOT_ABSENT_MAX (64 * COP_KIB)

/* What the kernel is told. */
enum about {
	ABOUT_NAME,  /* one name below a directory */
	ABOUT_DIR,   /* a directory's own attributes and its list; a file's, and its pages */
	ABOUT_NAMES, /* all names in it beside */
	ABOUT_UNDER, /* all that is held at and below it */
	ABOUT_NOTHING,
};

struct note {
	struct cop_list link;
	struct inode *dir; /* a reference */
	enum about about;
	void (*told)(void *arg);
	void *arg;
	size_t len;
	char name[];
};

static struct note *next_note(struct cop_fs *fs)
{
	struct cop_list *l;

	pthread_mutex_lock(&fs->notify_lock);
	while (!(l = cop_list_pop_front(&fs->notify)) && !fs->notify_stop)
		pthread_cond_wait(&fs->notify_wake, &fs->notify_lock);
	if (l)
		fs->notify_count--;
	pthread_mutex_unlock(&fs->notify_lock);
	return l ? COP_CONTAINER_OF(l, struct note, link) : NULL;
}

/* ---- telling ---- */

struct held {
	struct inode *top;
	bool names;           /* only those right below */
	struct inode **inode; /* references */
	size_t count, size;
};

static bool is_below(const struct inode *i, const struct inode *top)
{
	while (i && i != top)
		i = i->parent;
	return i == top;
}

static void collect(void *arg, struct inode *i)
{
	struct held *h = arg;
	size_t size = h->size ? 2 * h->size : 256;
	struct inode **grown;

	if (h->names ? i->parent != h->top : !is_below(i, h->top))
		return;
	if (h->count == h->size) {
		grown = realloc(h->inode, size * sizeof(*grown));
		if (!grown)
			return;
		h->inode = grown;
		h->size = size;
	}
	cop_fs_inode_ref(i);
	h->inode[h->count++] = i;
}

static int deepest_first(const void *a, const void *b)
{
	unsigned da = cop_fs_depth(*(struct inode *const *)a),
		 db = cop_fs_depth(*(struct inode *const *)b);

	return da < db ? 1 : da > db ? -1 : 0;
}

static void tell_inode(struct cop_fs *fs, struct inode *i)
{
	if (!i->parent || S_ISDIR(cop_fs_inode_attr(fs, i).mode))
		fuse_lowlevel_notify_inval_inode(fs->session, cop_fs_nodeid(fs, i), 0, 0);
	if (i->parent)
		fuse_lowlevel_notify_inval_entry(
			fs->session, cop_fs_nodeid(fs, i->parent), i->name, i->name_len);
}

bool cop_fs_note_absent(struct cop_fs *fs, const char *name, size_t len)
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

static void tell_root_absent(struct cop_fs *fs)
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

/* Every name that is held, the deepest first: forgetting a directory alone would leave what open
 * files and working directories pin below it. */
static void tell_under(struct cop_fs *fs, struct inode *top)
{
	struct held h = {.top = top};

	cop_fs_inodes_each(fs, collect, &h);
	if (h.count)
		qsort(h.inode, h.count, sizeof(*h.inode), deepest_first);
	for (size_t k = 0; k < h.count; k++) {
		if (h.inode[k] != top)
			tell_inode(fs, h.inode[k]);
		cop_fs_inode_put(fs, h.inode[k], 1);
	}
	free(h.inode);
	tell_inode(fs, top);
	if (!top->parent)
		tell_root_absent(fs);
}

/* Not dropped but expired, where the kernel can (Linux 6.2): what is in use, a working directory
 * above all, keeps its place in the tree if it is still the same. */
static void expire(struct cop_fs *fs, struct inode *i)
{
	fuse_ino_t dir = cop_fs_nodeid(fs, i->parent);
	int rc;

#if FUSE_VERSION >= FUSE_MAKE_VERSION(3, 16)
	rc = fuse_lowlevel_notify_expire_entry(fs->session, dir, i->name, i->name_len);
#else
	rc = fuse_lowlevel_notify_expire_entry(
		fs->session, dir, i->name, i->name_len, FUSE_LL_EXPIRE_ONLY);
#endif
	if (rc == -ENOSYS)
		fuse_lowlevel_notify_inval_entry(fs->session, dir, i->name, i->name_len);
}

static void tell_names(struct cop_fs *fs, struct inode *dir)
{
	struct held h = {.top = dir, .names = true};

	cop_fs_inodes_each(fs, collect, &h);
	for (size_t k = 0; k < h.count; k++) {
		expire(fs, h.inode[k]);
		cop_fs_inode_put(fs, h.inode[k], 1);
	}
	free(h.inode);
}

static void tell_note(struct cop_fs *fs, struct note *n)
{
	fuse_ino_t dir = cop_fs_nodeid(fs, n->dir);

	if (n->about == ABOUT_UNDER)
		tell_under(fs, n->dir);
	if (n->about == ABOUT_NAME)
		fuse_lowlevel_notify_inval_entry(fs->session, dir, n->name, n->len);
	if (n->about == ABOUT_NAMES)
		tell_names(fs, n->dir);
	if (n->about == ABOUT_NAMES || n->about == ABOUT_DIR)
		fuse_lowlevel_notify_inval_inode(fs->session, dir, 0, 0);
	cop_fs_inode_put(fs, n->dir, 1);
	if (n->told)
		n->told(n->arg);
	free(n);
}

static void *notify_main(void *arg)
{
	struct cop_fs *fs = arg;
	struct note *n;

	while ((n = next_note(fs)))
		tell_note(fs, n);
	return NULL;
}

int cop_fs_notify_start(struct cop_fs *fs)
{
	int rc;

	pthread_mutex_init(&fs->notify_lock, NULL);
	pthread_cond_init(&fs->notify_wake, NULL);
	cop_list_init(&fs->notify);
	rc = cop_thread_start(&fs->notify_thread, "fuse-notify", notify_main, fs);
	fs->notifying = rc == 0;
	return rc;
}

/* What is still queued is told before the thread ends. */
void cop_fs_notify_stop(struct cop_fs *fs)
{
	if (!fs->notifying)
		return;
	pthread_mutex_lock(&fs->notify_lock);
	fs->notify_stop = true;
	pthread_cond_signal(&fs->notify_wake);
	pthread_mutex_unlock(&fs->notify_lock);
	pthread_join(fs->notify_thread, NULL);
	fs->notifying = false;
}

/* ---- asking to tell ---- */

static struct note *new_note(struct inode *dir, enum about about, const char *name, size_t len)
{
	struct note *n = calloc(1, sizeof(*n) + len + 1);

	if (!n)
		return NULL;
	cop_list_init(&n->link);
	cop_fs_inode_ref(dir);
	n->dir = dir;
	n->about = about;
	n->len = len;
	memcpy(n->name, name, len);
	return n;
}

/* Takes the note. One that somebody waits for is always told; of the others at most QUEUE_MAX wait,
 * for the timeouts catch what is dropped. */
static void queue(struct cop_fs *fs, struct note *n)
{
	bool queued;

	pthread_mutex_lock(&fs->notify_lock);
	queued = !fs->notify_stop && (n->told || fs->notify_count < QUEUE_MAX);
	if (queued) {
		cop_list_push_back(&fs->notify, &n->link);
		fs->notify_count++;
		pthread_cond_signal(&fs->notify_wake);
	}
	pthread_mutex_unlock(&fs->notify_lock);
	if (queued)
		return;
	cop_fs_inode_put(fs, n->dir, 1);
	if (n->told)
		n->told(n->arg);
	free(n);
}

static void tell(
	struct cop_fs *fs, struct inode *dir, enum about about, const char *name, size_t len)
{
	struct note *n = new_note(dir, about, name, len);

	if (n)
		queue(fs, n);
}

void cop_fs_forget_name(struct cop_fs *fs, struct inode *i)
{
	if (i->parent)
		tell(fs, i->parent, ABOUT_NAME, i->name, i->name_len);
}

void cop_fs_forget_names(struct cop_fs *fs, struct inode *dir)
{
	tell(fs, dir, ABOUT_DIR, "", 0);
}

void cop_fs_expire_names(struct cop_fs *fs, struct inode *dir)
{
	tell(fs, dir, ABOUT_NAMES, "", 0);
}

void cop_fs_forget_pages(struct cop_fs *fs, struct inode *i)
{
	tell(fs, i, ABOUT_DIR, "", 0);
}

/* The inode of the last part of the path that is held, with a reference; *rest is what follows it,
 * "" if nothing does. */
static struct inode *walk(struct cop_fs *fs, const char *path, const char **rest)
{
	struct inode *at = fs->root, *next;

	cop_fs_inode_ref(at);
	while (*path) {
		size_t len = strcspn(path, "/");

		next = cop_fs_inode_find(fs, at, path, len);
		if (!next)
			break;
		cop_fs_inode_put(fs, at, 1);
		at = next;
		path += len;
		path += strspn(path, "/");
	}
	*rest = path;
	return at;
}

/* Takes the reference to dir. */
static void tell_and_then(struct cop_fs *fs, struct inode *dir, enum about about, const char *name,
	void (*then)(void *arg), void *arg)
{
	struct note *n = new_note(dir, about, name, strcspn(name, "/"));

	if (n) {
		n->told = then;
		n->arg = arg;
		queue(fs, n);
	} else {
		then(arg);
	}
	cop_fs_inode_put(fs, dir, 1);
}

void cop_fs_invalidate(struct cop_fs *fs, const char *path, void (*told)(void *arg), void *arg)
{
	const char *rest;
	struct inode *at;

	atomic_fetch_add(&fs->epoch, 1);
	at = walk(fs, path, &rest);
	/* The nodes have forgotten the list that held the name, and so all names that stand in it.
	 */
	if (!*rest && at->parent)
		tell(fs, at->parent, ABOUT_NAMES, "", 0);
	else if (*rest && !strchr(rest, '/'))
		tell(fs, at, ABOUT_NAMES, "", 0);
	/* A name that no inode stands for may be known as absent. */
	tell_and_then(fs, at, *rest ? ABOUT_NAME : ABOUT_UNDER, rest, told, arg);
}

struct turn {
	struct cop_fs *fs;
	void (*then)(void *arg);
	void *arg;
};

/* What began before this node forgot the names may still be answered by them, and is not kept. */
static void turned(void *arg)
{
	struct turn *t = arg;

	t->then(t->arg);
	atomic_fetch_add(&t->fs->epoch, 1);
	atomic_fetch_sub(&t->fs->turning, 1);
	free(t);
}

void cop_fs_forget_in(struct cop_fs *fs, const char *dir, void (*then)(void *arg), void *arg)
{
	struct turn *t = dir ? malloc(sizeof(*t)) : NULL;
	const char *rest = "";
	struct inode *at;

	if (!t) {
		cop_fs_inode_ref(fs->root);
		tell_and_then(fs, fs->root, ABOUT_NOTHING, "", then, arg);
		return;
	}
	*t = (struct turn){fs, then, arg};
	atomic_fetch_add(&fs->turning, 1);
	atomic_fetch_add(&fs->epoch, 1);
	at = walk(fs, dir, &rest);
	/* Of a directory that the kernel does not hold it knows no name. */
	tell_and_then(fs, at, *rest ? ABOUT_NOTHING : ABOUT_NAMES, "", turned, t);
}
