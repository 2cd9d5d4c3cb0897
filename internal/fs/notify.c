/* SPDX-License-Identifier: BSD-3-Clause */
/* Telling the kernel to forget. A thread of its own does it, since an invalidation may wait in the kernel for a request that
 * a worker has to answer. */
#include "fs/fs_priv.h"

#include <stdlib.h>
#include <string.h>

#define QUEUE_MAX 4096

/* A name below a directory, or with an empty name the directory's own attributes and cached names. */
struct note {
	struct cop_list link;
	struct inode *dir; /* a reference */
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

static void *notify_main(void *arg)
{
	struct cop_fs *fs = arg;
	struct note *n;

	while ((n = next_note(fs))) {
		fuse_ino_t dir = cop_fs_nodeid(fs, n->dir);

		if (n->len)
			fuse_lowlevel_notify_inval_entry(fs->session, dir, n->name, n->len);
		else
			fuse_lowlevel_notify_inval_inode(fs->session, dir, 0, 0);
		cop_fs_inode_put(fs, n->dir, 1);
		free(n);
	}
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

static void tell(struct cop_fs *fs, struct inode *dir, const char *name, size_t len)
{
	struct note *n = malloc(sizeof(*n) + len + 1);

	if (!n)
		return;
	cop_list_init(&n->link);
	n->dir = dir;
	n->len = len;
	memcpy(n->name, name, len);
	n->name[len] = '\0';
	pthread_mutex_lock(&fs->notify_lock);
	if (fs->notify_count < QUEUE_MAX && !fs->notify_stop) {
		cop_fs_inode_ref(dir);
		cop_list_push_back(&fs->notify, &n->link);
		fs->notify_count++;
		pthread_cond_signal(&fs->notify_wake);
		n = NULL;
	}
	pthread_mutex_unlock(&fs->notify_lock);
	free(n);
}

void cop_fs_forget_name(struct cop_fs *fs, struct inode *i)
{
	if (i->parent)
		tell(fs, i->parent, i->name, i->name_len);
}

void cop_fs_forget_names(struct cop_fs *fs, struct inode *dir)
{
	tell(fs, dir, "", 0);
}

/* ---- a path and everything below it ---- */

struct children {
	struct cop_fs *fs;
	struct cop_buf names; /* of the children of the root, each with its NUL */
};

static void note_child(void *arg, struct inode *i)
{
	struct children *c = arg;

	if (i->parent == c->fs->root)
		cop_buf_add(&c->names, i->name, i->name_len + 1u);
}

/* Forgetting a directory's name makes the kernel forget all names below it, so the root's children do for all. */
static void tell_all(struct cop_fs *fs)
{
	struct children c = {.fs = fs};

	cop_fs_inodes_each(fs, note_child, &c);
	for (size_t at = 0; at < c.names.len; at += strlen(c.names.data + at) + 1)
		tell(fs, fs->root, c.names.data + at, strlen(c.names.data + at));
	tell(fs, fs->root, "", 0);
	cop_buf_free(&c.names);
}

void cop_fs_invalidate(struct cop_fs *fs, const char *path)
{
	struct inode *dir = fs->root, *next;
	const char *slash;

	if (!*path) {
		tell_all(fs);
		return;
	}
	cop_fs_inode_ref(dir);
	while (dir && (slash = strchr(path, '/')) && slash[1]) {
		next = cop_fs_inode_find(fs, dir, path, (size_t)(slash - path));
		cop_fs_inode_put(fs, dir, 1);
		dir = next;
		path = slash + 1;
	}
	if (!dir)
		return;
	tell(fs, dir, path, strcspn(path, "/"));
	cop_fs_inode_put(fs, dir, 1);
}
