/* SPDX-License-Identifier: BSD-3-Clause */
/* Read-ahead of directory checks. The absence of a name from a listing is trusted for a while
 * (fetch's absence.c); then the root must confirm that the directory is unchanged.
 *
 * A program that looks up names in many directories (a module path, a search for test files) makes
 * all of them due for a check at about the same time, and visits them one after another, mostly in
 * the same order as before. The directories are kept in a list in this order. A check of one also
 * checks its successors in the same message, and moves them to the end.
 *
 * The number of checks follows the kernel's read-ahead. It doubles whenever the program continues
 * after the directories checked ahead, and is reset when the program continues elsewhere. It never
 * exceeds the number of directories that the program reaches, at its current pace, within their
 * TTL.
 *
 * A check ahead is a flight of its own, like that of a sibling (siblings.c), but not in the
 * background: the program will need it soon, and would have to send another request to raise its
 * priority. */
#include "tree/guess/guess_priv.h"

#define AHEAD_MIN 2
#define AHEAD_MAX 63 /* fills a message together with the check that has a waiter */
/* Maximum number of directories examined under the lock to find AHEAD_MAX due ones. */
#define AHEAD_STEPS 256
#define DIRS_MAX 4096

struct absent_dir {
	struct cop_hlink link;
	struct cop_list order;
	char path[];
};

/* ---- the directories; with the lock held ---- */

static void lock_dirs(struct absence *a)
{
	pthread_mutex_lock(&a->lock);
	cop_cache_locked();
}

static void unlock_dirs(struct absence *a)
{
	cop_cache_unlocked();
	pthread_mutex_unlock(&a->lock);
}

static struct absent_dir *dir_at(struct absence *a, struct cop_list *l)
{
	return l == &a->order ? NULL : COP_CONTAINER_OF(l, struct absent_dir, order);
}

static struct absent_dir *dir_after(struct absence *a, struct absent_dir *d)
{
	return dir_at(a, d->order.next);
}

static struct absent_dir *find_dir(struct absence *a, const char *path, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(&a->dirs, hash);

	while (l && strcmp(COP_CONTAINER_OF(l, struct absent_dir, link)->path, path))
		l = cop_htab_next(l);
	return l ? COP_CONTAINER_OF(l, struct absent_dir, link) : NULL;
}

/* Removes the directory from the order. If it was expected, its successor is expected now. */
static void leave_place(struct absence *a, struct absent_dir *d)
{
	if (a->expected == d)
		a->expected = dir_after(a, d);
	cop_list_remove(&d->order);
}

static void drop_dir(struct absence *a, struct absent_dir *d)
{
	leave_place(a, d);
	cop_htab_remove(&a->dirs, &d->link);
	free(d);
}

static void move_to_end(struct absence *a, struct absent_dir *d)
{
	leave_place(a, d);
	cop_list_push_back(&a->order, &d->order);
}

static void add_dir(struct absence *a, const char *path, uint64_t hash)
{
	size_t size = strlen(path) + 1;
	struct absent_dir *d = malloc(sizeof(*d) + size);

	/* Without memory, this directory is checked alone next time. */
	if (!d)
		return;
	if (a->dirs.count == DIRS_MAX)
		drop_dir(a, dir_at(a, a->order.next));
	memcpy(d->path, path, size);
	cop_htab_add(&a->dirs, &d->link, hash);
	cop_list_push_back(&a->order, &d->order);
}

/* Whether the program reached a directory that was checked ahead too long ago: these are at the end
 * of the list. */
static bool is_late(const struct absence *a, const struct absent_dir *d)
{
	const struct cop_list *l = a->order.prev;
	unsigned i = 0;

	for (; i < a->ahead && l != &d->order; i++)
		l = l->prev;
	return i < a->ahead;
}

/* Whether the program continues where the last checks ahead ended, or a little further. */
static bool goes_on(struct absence *a, const struct absent_dir *d)
{
	struct absent_dir *e = a->expected;

	for (unsigned i = 0; e && e != d && i < AHEAD_MAX; i++) {
		e = dir_after(a, e);
		/* Wrap around to the directories that the program visits first. */
		e = e ? e : dir_at(a, a->order.next);
	}
	return e == d;
}

/* ---- checks ahead ---- */

/* Listings due for a check, and all objects examined. */
struct due {
	unsigned count, looked_at;
	struct cop_obj *listing[AHEAD_MAX];
	struct cop_obj *object[AHEAD_STEPS]; /* references, released after unlocking */
};

/* Adds the directory's listing if it is cached and due for a check. *gone: it is not cached. */
static bool add_if_due(struct cop_guess *g, const char *path, struct due *due, bool *gone)
{
	struct cop_obj *obj =
		cop_fetch_peek(g->fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = path});

	if (obj)
		due->object[due->looked_at++] = obj;
	*gone = !obj || obj->error || atomic_load(&obj->disproved);
	if (*gone || cop_fetch_absent_ms(g->fetch, obj))
		return false;
	due->listing[due->count++] = obj;
	return true;
}

/* Number of directories to check with d: those that the program reaches within half a TTL. */
static unsigned next_window(
	const struct cop_guess *g, struct absence *a, const struct absent_dir *d)
{
	uint64_t now_ms = cop_now_ms(), took_ms = now_ms - a->checked_ms, passed = a->ahead + 1;
	uint64_t reached = took_ms ? g->conf->enoent_ttl_ms * passed / (2 * took_ms) : UINT64_MAX;

	a->checked_ms = now_ms;
	if (!goes_on(a, d) && !is_late(a, d))
		return AHEAD_MIN;
	return (unsigned)COP_MIN(
		COP_MIN(COP_MAX(2 * a->window, AHEAD_MIN), AHEAD_MAX), reached ? reached - 1 : 0);
}

/* Collects the due directories after d, up to the window; moves them to the end, in order. */
static void collect(struct cop_guess *g, struct absent_dir *d, struct due *due)
{
	struct absence *a = &g->absence;
	struct absent_dir *e = dir_after(a, d), *next;

	a->window = next_window(g, a, d);
	move_to_end(a, d);
	for (unsigned i = 0; e && e != d && due->count < a->window && i < AHEAD_STEPS;
		i++, e = next) {
		bool gone;

		next = dir_after(a, e);
		if (add_if_due(g, e->path, due, &gone))
			move_to_end(a, e);
		else if (gone)
			drop_dir(a, e);
	}
	a->expected = e == d ? NULL : e;
	a->ahead = due->count;
}

static void check_ahead(struct cop_guess *g, const struct cop_obj *listing)
{
	struct cop_ask ask = {.kind = COP_ASK_CHECK, .path = listing->key.path, .along = true};
	struct cop_attr dir;

	cop_listing_dir(listing->data, &dir);
	ask.version = dir.version;
	cop_stats_add(g->conf->stats, COP_ENOENT_AHEAD, cop_guess_ask(g, &ask));
}

void cop_guess_checks(struct cop_guess *g, const char *path)
{
	struct absence *a = &g->absence;
	uint64_t hash = cop_hash64(path, strlen(path), 0);
	struct due due = {.count = 0};
	struct absent_dir *d;

	lock_dirs(a);
	d = find_dir(a, path, hash);
	if (d)
		collect(g, d, &due);
	else
		add_dir(a, path, hash);
	unlock_dirs(a);
	for (unsigned i = 0; i < due.count; i++)
		check_ahead(g, due.listing[i]);
	for (unsigned i = 0; i < due.looked_at; i++)
		cop_obj_put(g->conf->cache, due.object[i]);
}

/* Once per listing is enough: it includes the directory in combined checks, and takes the lock only
 * once. */
void cop_guess_missed(struct cop_guess *g, struct cop_obj *listing)
{
	struct absence *a = &g->absence;
	const char *path = listing->key.path;
	uint64_t hash;

	if (!g->conf->bundle || !g->conf->enoent_ttl_ms ||
		atomic_load_explicit(&listing->missed, memory_order_relaxed) ||
		atomic_exchange(&listing->missed, true))
		return;
	hash = cop_hash64(path, listing->key.path_len, 0);
	lock_dirs(a);
	if (!find_dir(a, path, hash))
		add_dir(a, path, hash);
	unlock_dirs(a);
}

void cop_guess_absence_init(struct absence *a)
{
	pthread_mutex_init(&a->lock, NULL);
	cop_list_init(&a->order);
}

void cop_guess_absence_fini(struct absence *a)
{
	while (!cop_list_empty(&a->order))
		drop_dir(a, dir_at(a, a->order.next));
	cop_htab_fini(&a->dirs);
	pthread_mutex_destroy(&a->lock);
}
