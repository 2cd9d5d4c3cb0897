/* SPDX-License-Identifier: BSD-3-Clause */
/* The kernel's negative dentries in the root of the mount.
 *
 * One notification makes the kernel forget a directory with all its negative dentries, except for
 * the root, where each name needs its own. So the node keeps a list of these names. The list is
 * bounded: to make room for a new name, the kernel is told to forget those looked up least
 * recently.
 *
 * A name enters the list before its lookup is answered. The kernel forgets a name only after it has
 * received the replies to all lookups in progress in the directory, so a reply never arrives after
 * the notification that is meant to undo it. */
#include "mount/fuse/fuse_priv.h"

struct absent_name {
	struct cop_hlink link;
	struct cop_list order; /* by last lookup, most recent at the end */
	size_t len;
	char text[];
};

void cop_fuse_absent_init(struct absent_names *a)
{
	pthread_mutex_init(&a->lock, NULL);
	cop_list_init(&a->order);
}

static struct absent_name *name_at(struct cop_list *l)
{
	return COP_CONTAINER_OF(l, struct absent_name, order);
}

static size_t bytes_of(size_t len)
{
	return sizeof(struct absent_name) + len + 1;
}

/* ---- under the lock ---- */

static struct absent_name *find_name(
	struct absent_names *a, uint64_t hash, const char *text, size_t len)
{
	struct cop_hlink *l = cop_htab_first(&a->names, hash);

	for (; l; l = cop_htab_next(l)) {
		struct absent_name *n = COP_CONTAINER_OF(l, struct absent_name, link);

		if (n->len == len && memcmp(n->text, text, len) == 0)
			return n;
	}
	return NULL;
}

static void remove_name(struct absent_names *a, struct absent_name *n)
{
	cop_htab_remove(&a->names, &n->link);
	cop_list_remove(&n->order);
	a->bytes -= bytes_of(n->len);
	free(n);
}

static void add_name(struct absent_names *a, struct absent_name *n, uint64_t hash)
{
	cop_htab_add(&a->names, &n->link, hash);
	cop_list_push_back(&a->order, &n->order);
	a->bytes += bytes_of(n->len);
}

/* ---- */

/* Whether there is no space for this many bytes; if so, copies the least recently looked up
 * name. */
static bool is_full(struct absent_names *a, size_t bytes, char text[NAME_BYTES], size_t *len)
{
	struct absent_name *oldest;
	bool full;

	pthread_mutex_lock(&a->lock);
	full = a->bytes + bytes > COP_FUSE_ABSENT_BYTES;
	if (full) {
		oldest = name_at(a->order.next);
		*len = oldest->len;
		memcpy(text, oldest->text, oldest->len);
	}
	pthread_mutex_unlock(&a->lock);
	return full;
}

/* Meanwhile another thread may have removed the name, or a program may have looked it up again. */
static void remove_if_oldest(struct absent_names *a, const char *text, size_t len)
{
	struct absent_name *n;

	pthread_mutex_lock(&a->lock);
	n = cop_list_empty(&a->order) ? NULL : name_at(a->order.next);
	if (n && n->len == len && memcmp(n->text, text, len) == 0)
		remove_name(a, n);
	pthread_mutex_unlock(&a->lock);
}

/* A name stays listed until its notification is queued, so an invalidation either finds the name
 * here or is queued behind that notification. */
static bool make_room(struct cop_fuse *fs, size_t bytes)
{
	char text[NAME_BYTES];
	size_t len;

	while (is_full(&fs->absent, bytes, text, &len)) {
		if (cop_fuse_forget_absent(fs, text, len))
			return false;
		remove_if_oldest(&fs->absent, text, len);
	}
	return true;
}

/* Whether the name is listed; if so, makes it the most recently looked up one. */
static bool is_listed(struct absent_names *a, uint64_t hash, const char *text, size_t len)
{
	struct absent_name *n;

	pthread_mutex_lock(&a->lock);
	n = find_name(a, hash, text, len);
	if (n) {
		cop_list_remove(&n->order);
		cop_list_push_back(&a->order, &n->order);
	}
	pthread_mutex_unlock(&a->lock);
	return n != NULL;
}

bool cop_fuse_note_absent(struct cop_fuse *fs, const char *name, size_t len)
{
	struct absent_names *a = &fs->absent;
	uint64_t hash = cop_hash64(name, len, 0);
	struct absent_name *n;

	if (is_listed(a, hash, name, len))
		return true;
	n = make_room(fs, bytes_of(len)) ? malloc(bytes_of(len)) : NULL;
	if (!n)
		return false;
	n->len = len;
	memcpy(n->text, name, len);
	n->text[len] = '\0';
	pthread_mutex_lock(&a->lock);
	/* If two threads add the same name at once, it is listed twice and causes two
	 * notifications. */
	add_name(a, n, hash);
	pthread_mutex_unlock(&a->lock);
	return true;
}

void cop_fuse_tell_absent(struct cop_fuse *fs)
{
	struct absent_names *a = &fs->absent;
	struct cop_list all, *l;

	cop_list_init(&all);
	pthread_mutex_lock(&a->lock);
	cop_list_splice(&all, &a->order);
	cop_htab_fini(&a->names);
	a->bytes = 0;
	pthread_mutex_unlock(&a->lock);
	while ((l = cop_list_pop_front(&all))) {
		struct absent_name *n = name_at(l);

		cop_fuse_tell_name(fs, fs->root, n->text, n->len);
		free(n);
	}
}

void cop_fuse_absent_fini(struct absent_names *a)
{
	struct cop_list *l;

	cop_htab_fini(&a->names);
	while ((l = cop_list_pop_front(&a->order)))
		free(name_at(l));
	pthread_mutex_destroy(&a->lock);
}
