/* SPDX-License-Identifier: BSD-3-Clause */
/* Listings requested together with that of the parent directory (policy_priv.h selects them).
 *
 * A program that lists a directory often continues with a certain subdirectory, if it exists: from
 * a Python package to its __pycache__. The node does not know the contents of the directory yet, so
 * it guesses and sends both requests in one message. A guess has no waiter yet, but will probably
 * have one soon. The root reads it after requests with waiters and before background requests
 * (cop_origin_soon); it is not notified when a program on another node joins.
 *
 * A wrong guess costs the storage nothing if the root can detect it: on most file systems the
 * attributes of a directory show that it has no subdirectories. Guesses also avoid file systems
 * that may belong to an automounter, where a lookup may trigger a mount. So an answer that the
 * directory does not exist may be wrong, and is neither shared nor cached. If a waiter joins at any
 * node on the way, the guess becomes an ordinary request. */
#include "tree/guess/guess_priv.h"

#include <dirent.h>
#include <sys/stat.h>

/* Inode numbers of devices other than the source's have this bit (origin's path.c). */
#define OTHER_DEVICE ((uint64_t)1 << 63)

void cop_guess_listing(struct cop_guess *g, const char *dir, const char *name, bool mentioned)
{
	char path[4096];
	struct cop_ask ask = {.kind = COP_ASK_LISTING,
		.path = path,
		.background = true,
		.along = true,
		.guess = true};

	if (!cop_cache_has_headroom(g->conf->cache, COP_FETCH_LISTING_BYTES) ||
		!cop_guess_path(path, dir, strlen(dir), name, strlen(name)) ||
		cop_fetch_has(g->fetch, &ask))
		return;
	pthread_mutex_lock(&g->lock);
	cop_bundle_expect(&g->policy, path, mentioned);
	pthread_mutex_unlock(&g->lock);
	cop_stats_add(g->conf->stats, COP_BUNDLE_LISTINGS, cop_guess_ask(g, &ask));
}

void cop_guess_companions(struct cop_guess *g, const char *path)
{
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME];
	unsigned n;

	pthread_mutex_lock(&g->lock);
	n = cop_bundle_listed(&g->policy, path, name);
	pthread_mutex_unlock(&g->lock);
	for (unsigned i = 0; i < n; i++)
		cop_guess_listing(g, path, name[i], false);
}

/* ---- at the root ---- */

/* Whether a listed name may be a directory with subdirectories. It must be on the source's own
 * device, which excludes automounters, and its link count must not be exactly two (a file system
 * counts either every subdirectory or none). The listing of a large directory has no link counts; a
 * wrong guess there costs the storage one operation. Mount points have attributes in every listing.
 * */
static bool may_have_below(struct cop_guess *g, const char *path, struct cop_listing_entry *e)
{
	if (!cop_guess_find_attr(g, path, e))
		return e->type == DT_DIR && !(e->ino & OTHER_DEVICE);
	return S_ISDIR(e->attr.mode) && !(e->attr.ino & OTHER_DEVICE) && e->attr.nlink != 2;
}

/* Whether the listing of the parent allows subdirectories in this directory. name is the last
 * component of path. */
static bool may_have_directories(
	struct cop_guess *g, const void *above, const char *path, const char *name)
{
	struct cop_listing_entry e;
	struct cop_attr dir;

	cop_listing_dir(above, &dir);
	return (cop_listing_flags(above) & COP_LISTING_COMPLETE) && !(dir.ino & OTHER_DEVICE) &&
	       cop_listing_find(above, name, strlen(name), &e) && may_have_below(g, path, &e);
}

bool cop_guess_is_likely(struct cop_guess *g, const char *path)
{
	char dir[4096], *slash;
	const char *name = dir, *above = "";
	struct cop_obj *list;
	bool likely;

	memcpy(dir, path, strlen(path) + 1);
	slash = strrchr(dir, '/');
	if (!slash)
		return false;
	*slash = '\0';
	slash = strrchr(dir, '/');
	if (slash) {
		*slash = '\0';
		name = slash + 1;
		above = dir;
	}
	list = cop_fetch_peek(g->fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = above});
	if (!list)
		return false;
	if (slash)
		*slash = '/';
	likely = !list->error && may_have_directories(g, list->data, dir, name);
	cop_obj_put(g->conf->cache, list);
	return likely;
}
