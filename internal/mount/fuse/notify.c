/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications that make the kernel forget. A separate thread sends them, because a notification
 * may block in the kernel until a worker answers some request, and that may depend on storage that
 * hangs. So nothing here waits for that thread, and its queue is bounded.
 *
 * Sending needs no memory, but queueing does. If memory is short or the queue is full, callers with
 * a completion callback get an error immediately; for all others, the thread makes the kernel
 * forget everything. */
#include "mount/fuse/fuse_priv.h"

#define QUEUE_MAX 4096

/* What the kernel should forget. */
enum about {
	ABOUT_NAME, /* one name below a directory */
	ABOUT_DIR,  /* a directory's own attributes and listing, or a file's attributes and pages */
	ABOUT_NAMES,  /* a directory's attributes and listing, and all names in it */
	ABOUT_UNDER,  /* everything cached at and below a directory */
	ABOUT_ABSENT, /* like ABOUT_NAME, but the name has not changed */
	ABOUT_NOTHING,
};

struct note {
	struct cop_list link;
	struct inode *dir; /* a reference */
	enum about about;
	void (*told)(void *arg);
	void *arg;
	bool turning; /* counted in fs->turning */
	size_t len;
	char name[];
};

/* Takes the next notification. False: none is left, and the thread ends. *note is NULL if the
 * kernel must forget everything. */
static bool next_note(struct cop_fuse *fs, struct note **note)
{
	struct cop_list *l = NULL;
	bool all;

	pthread_mutex_lock(&fs->notify_lock);
	while (!fs->notify_all && !(l = cop_list_pop_front(&fs->notify)) && !fs->notify_stop)
		pthread_cond_wait(&fs->notify_wake, &fs->notify_lock);
	all = fs->notify_all;
	fs->notify_all = false;
	if (l)
		fs->notify_count--;
	pthread_mutex_unlock(&fs->notify_lock);
	*note = l ? COP_CONTAINER_OF(l, struct note, link) : NULL;
	return all || l;
}

/* ---- sending ---- */

/* Call it when the notification has been sent. A request that began before this node forgot the
 * names may still be answered with them, but the kernel will not cache that reply. */
static void end_note(struct cop_fuse *fs, struct note *n)
{
	cop_fuse_inode_put(fs, n->dir, 1);
	if (n->told)
		n->told(n->arg);
	if (n->turning) {
		atomic_fetch_add(&fs->epoch, 1);
		atomic_fetch_sub(&fs->turning, 1);
	}
	free(n);
}

static void tell_note(struct cop_fuse *fs, struct note *n)
{
	if (n->about == ABOUT_UNDER)
		cop_fuse_tell_under(fs, n->dir);
	if (n->about == ABOUT_NAME || n->about == ABOUT_ABSENT)
		cop_fuse_tell_name(fs, n->dir, n->name, n->len);
	if (n->about == ABOUT_NAMES)
		cop_fuse_tell_names(fs, n->dir);
	if (n->about == ABOUT_NAMES || n->about == ABOUT_DIR)
		cop_fuse_tell_inode(fs, n->dir);
	end_note(fs, n);
}

static void *notify_main(void *arg)
{
	struct cop_fuse *fs = arg;
	struct note *n;

	while (next_note(fs, &n)) {
		if (n)
			tell_note(fs, n);
		else
			cop_fuse_tell_under(fs, fs->root);
	}
	return NULL;
}

int cop_fuse_notify_start(struct cop_fuse *fs)
{
	int rc;

	pthread_mutex_init(&fs->notify_lock, NULL);
	pthread_cond_init(&fs->notify_wake, NULL);
	cop_list_init(&fs->notify);
	rc = cop_thread_start(&fs->notify_thread, "fuse-notify", notify_main, fs);
	fs->notifying = rc == 0;
	return rc;
}

/* The thread sends the queued notifications before it ends. */
void cop_fuse_notify_stop(struct cop_fuse *fs)
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

/* ---- queueing ---- */

void cop_fuse_starve(struct cop_fuse *fs, bool starve)
{
	atomic_store(&fs->starving, starve);
}

static struct note *new_note(
	struct cop_fuse *fs, struct inode *dir, enum about about, const char *name, size_t len)
{
	struct note *n = atomic_load(&fs->starving) ? NULL : calloc(1, sizeof(*n) + len + 1);

	if (!n)
		return NULL;
	cop_list_init(&n->link);
	cop_fuse_inode_ref(dir);
	n->dir = dir;
	n->about = about;
	n->len = len;
	memcpy(n->name, name, len);
	return n;
}

/* Takes ownership of the note if it returns 0. */
static int queue_note(struct cop_fuse *fs, struct note *n)
{
	bool ends, full;

	pthread_mutex_lock(&fs->notify_lock);
	ends = fs->notify_stop;
	full = fs->notify_count >= QUEUE_MAX;
	if (!ends && !full) {
		cop_list_push_back(&fs->notify, &n->link);
		fs->notify_count++;
		pthread_cond_signal(&fs->notify_wake);
	}
	pthread_mutex_unlock(&fs->notify_lock);
	/* The mount is gone, so there is nothing to send. */
	if (ends)
		end_note(fs, n);
	return full && !ends ? -ENOBUFS : 0;
}

static void tell_all(struct cop_fuse *fs)
{
	pthread_mutex_lock(&fs->notify_lock);
	fs->notify_all = true;
	pthread_cond_signal(&fs->notify_wake);
	pthread_mutex_unlock(&fs->notify_lock);
}

static void drop_note(struct cop_fuse *fs, struct note *n)
{
	cop_fuse_inode_put(fs, n->dir, 1);
	free(n);
}

static void tell_inode(
	struct cop_fuse *fs, struct inode *dir, enum about about, const char *name, size_t len)
{
	struct note *n = new_note(fs, dir, about, name, len);

	if (n && queue_note(fs, n) == 0)
		return;
	if (n)
		drop_note(fs, n);
	tell_all(fs);
}

void cop_fuse_forget_name(struct cop_fuse *fs, struct inode *i)
{
	if (i->parent)
		tell_inode(fs, i->parent, ABOUT_NAME, i->name, i->name_len);
}

void cop_fuse_forget_names(struct cop_fuse *fs, struct inode *dir)
{
	tell_inode(fs, dir, ABOUT_DIR, "", 0);
}

int cop_fuse_forget_absent(struct cop_fuse *fs, const char *name, size_t len)
{
	struct note *n = new_note(fs, fs->root, ABOUT_ABSENT, name, len);
	int rc = n ? queue_note(fs, n) : -ENOMEM;

	if (n && rc)
		drop_note(fs, n);
	return rc;
}

void cop_fuse_expire_names(struct cop_fuse *fs, struct inode *dir)
{
	tell_inode(fs, dir, ABOUT_NAMES, "", 0);
}

void cop_fuse_forget_pages(struct cop_fuse *fs, struct inode *i)
{
	tell_inode(fs, i, ABOUT_DIR, "", 0);
}

/* The deepest cached inode on the path, with a reference; *rest is the remainder of the path, or
 * "". */
static struct inode *walk_names(struct cop_fuse *fs, const char *path, const char **rest)
{
	struct inode *at = fs->root, *next;

	cop_fuse_inode_ref(at);
	while (*path) {
		size_t len = strcspn(path, "/");

		next = cop_fuse_inode_find(fs, at, path, len);
		if (!next)
			break;
		cop_fuse_inode_put(fs, at, 1);
		at = next;
		path += len;
		path += strspn(path, "/");
	}
	*rest = path;
	return at;
}

/* Takes ownership of the reference to dir. On -ENOMEM and -ENOBUFS, then is not called. */
static int tell_and_then(struct cop_fuse *fs, struct inode *dir, enum about about, const char *name,
	bool turning, void (*then)(void *arg), void *arg)
{
	struct note *n = new_note(fs, dir, about, name, strcspn(name, "/"));
	int rc = -ENOMEM;

	if (n) {
		n->told = then;
		n->arg = arg;
		n->turning = turning;
		rc = queue_note(fs, n);
		if (rc)
			drop_note(fs, n);
	}
	cop_fuse_inode_put(fs, dir, 1);
	return rc;
}

int cop_fuse_invalidate(struct cop_fuse *fs, const char *path, void (*told)(void *arg), void *arg)
{
	const char *rest;
	struct inode *at;
	int rc;

	atomic_fetch_add(&fs->epoch, 1);
	at = walk_names(fs, path, &rest);
	/* The nodes have dropped the listing that contains the name, and with it the name's
	 * siblings. */
	if (!*rest && at->parent)
		tell_inode(fs, at->parent, ABOUT_NAMES, "", 0);
	else if (*rest && !strchr(rest, '/'))
		tell_inode(fs, at, ABOUT_NAMES, "", 0);
	/* Even for a name without an inode, the kernel may have a negative dentry. */
	rc = tell_and_then(fs, at, *rest ? ABOUT_NAME : ABOUT_UNDER, rest, false, told, arg);
	if (rc)
		tell_all(fs);
	return rc;
}

int cop_fuse_forget_in(struct cop_fuse *fs, const char *dir, void (*then)(void *arg), void *arg)
{
	const char *rest = "";
	struct inode *at;
	int rc;

	if (!dir) {
		cop_fuse_inode_ref(fs->root);
		return tell_and_then(fs, fs->root, ABOUT_NOTHING, "", false, then, arg);
	}
	atomic_fetch_add(&fs->turning, 1);
	atomic_fetch_add(&fs->epoch, 1);
	at = walk_names(fs, dir, &rest);
	/* If the kernel has no inode for the directory, it has no names in it either. */
	rc = tell_and_then(fs, at, *rest ? ABOUT_NOTHING : ABOUT_NAMES, "", true, then, arg);
	if (rc)
		atomic_fetch_sub(&fs->turning, 1);
	return rc;
}
