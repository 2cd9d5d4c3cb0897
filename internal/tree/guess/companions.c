/* SPDX-License-Identifier: BSD-3-Clause */
/* Listings that are requested along with that of the directory above them (policy_priv.h decides
 * which).
 *
 * A program that comes to a directory often goes on to one of a certain name in it, if there is
 * one, as from a package of Python to its __pycache__. The node does not know yet what is in the
 * directory, so this is a guess: both requests leave in one message. Nobody waits for a guess yet,
 * but somebody will in a moment. So the root reads it after what somebody waits for, and ahead of
 * what may wait (cop_origin_soon); it is not told when a program joins on another node.
 *
 * A wrong guess costs the storage nothing where the root can tell that it is wrong: on most file
 * systems the attributes of a directory say that it has no subdirectories. Nor does a guess touch a
 * file system that may be an automounter's, where looking up a name may mount it. So an answer that
 * there is no such directory may mean no more than that, and is for nobody else: it is not kept. If
 * somebody waits by then, on any node on the way, the guess becomes an ordinary request. */
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

/* Whether a listed name may be a directory with subdirectories in it: it must be on the source's
 * own device, which is no automounter's, and must not have exactly two links (each subdirectory
 * adds a link, or none does). A large directory's listing does not tell the links; a wrong guess
 * there costs the storage a look. Names on which something is mounted have attributes in any
 * listing. */
static bool may_have_below(struct cop_guess *g, const char *path, struct cop_listing_entry *e)
{
	if (!cop_guess_find_attr(g, path, e))
		return e->type == DT_DIR && !(e->ino & OTHER_DEVICE);
	return S_ISDIR(e->attr.mode) && !(e->attr.ino & OTHER_DEVICE) && e->attr.nlink != 2;
}

/* Whether the listing of the directory above allows subdirectories in this one. path: of this one,
 * whose last part is name. */
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
