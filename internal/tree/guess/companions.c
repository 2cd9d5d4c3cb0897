/* SPDX-License-Identifier: BSD-3-Clause */
/* Listings that are requested along with that of the directory above them (bundle.h decides which).
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
#include "tree/fetch/fetch_priv.h"

#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

/* Inode numbers of devices other than the source's have this bit (origin's path.c). */
#define OTHER_DEVICE ((uint64_t)1 << 63)

bool cop_fetch_may_have_companions(const struct cop_fetch *c, const struct cop_ask *ask)
{
	return c->conf.bundle && ask->kind == COP_ASK_LISTING && !ask->background;
}

void cop_fetch_guess(struct cop_fetch *c, const char *dir, const char *name, bool mentioned)
{
	size_t dir_len = strlen(dir), name_len = strlen(name);
	char path[4096];
	struct cop_ask ask = {.kind = COP_ASK_LISTING,
		.path = path,
		.background = true,
		.along = true,
		.guess = true};
	struct cop_key key;
	struct cop_obj *obj;
	int rc;

	if (!cop_cache_has_headroom(c->conf.cache, LISTING_RESERVE) ||
		dir_len + name_len + 2 > sizeof(path))
		return;
	memcpy(path, dir, dir_len);
	if (dir_len)
		path[dir_len++] = '/';
	memcpy(path + dir_len, name, name_len + 1);
	key = cop_fetch_key(&ask);
	if (cop_cache_has(c->conf.cache, &key))
		return;
	pthread_mutex_lock(&c->bundling.lock);
	cop_bundle_expect(&c->bundling.policy, path, mentioned);
	pthread_mutex_unlock(&c->bundling.lock);
	rc = cop_fetch_get_for(c, &ask, NULL, true, &obj);
	if (rc == 1)
		cop_obj_put(c->conf.cache, obj);
	cop_stats_add(c->conf.stats, COP_BUNDLE_LISTINGS, rc == 0);
}

/* The flight may be over before the others begin, so this keeps what they need of it. */
void cop_fetch_reserve_with_companions(struct flight *f)
{
	struct cop_fetch *c = f->coop;
	struct cop_obj *obj = cop_obj_get(f->obj);
	const char *path = obj->key.path;
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME];
	unsigned n;

	pthread_mutex_lock(&c->bundling.lock);
	n = cop_bundle_listed(&c->bundling.policy, path, name);
	pthread_mutex_unlock(&c->bundling.lock);
	cop_fetch_cork(c);
	cop_fetch_reserve(f);
	for (unsigned i = 0; i < n; i++)
		cop_fetch_guess(c, path, name[i], false);
	cop_fetch_uncork(c);
	cop_obj_put(c->conf.cache, obj);
}

bool cop_fetch_met_companion(struct cop_fetch *c, const struct cop_ask *ask)
{
	bool met;

	pthread_mutex_lock(&c->bundling.lock);
	met = cop_bundle_met(&c->bundling.policy, ask->path);
	pthread_mutex_unlock(&c->bundling.lock);
	cop_stats_add(c->conf.stats, COP_BUNDLE_USED_LISTINGS, met);
	return met;
}

/* ---- at the root ---- */

/* Whether a listed name may be a directory with subdirectories in it: it must be on the source's
 * own device, which is no automounter's, and must not have exactly two links (each subdirectory
 * adds a link, or none does). A large directory's listing does not tell the links; a wrong guess
 * there costs the storage a look. Names on which something is mounted have attributes in any
 * listing. */
static bool may_have_below(struct cop_fetch *c, const char *path, struct cop_listing_entry *e)
{
	if (!cop_fetch_find_attr(c, path, e))
		return e->type == DT_DIR && !(e->ino & OTHER_DEVICE);
	return S_ISDIR(e->attr.mode) && !(e->attr.ino & OTHER_DEVICE) && e->attr.nlink != 2;
}

/* Whether the listing of the directory above allows subdirectories in this one. path: of this one,
 * whose last part is name. */
static bool may_have_directories(
	struct cop_fetch *c, const void *above, const char *path, const char *name)
{
	struct cop_listing_entry e;
	struct cop_attr dir;

	cop_listing_dir(above, &dir);
	return (cop_listing_flags(above) & COP_LISTING_COMPLETE) && !(dir.ino & OTHER_DEVICE) &&
	       cop_listing_find(above, name, strlen(name), &e) && may_have_below(c, path, &e);
}

bool cop_fetch_is_likely(struct cop_fetch *c, const char *path)
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
	list = cop_fetch_peek(c, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = above});
	if (!list)
		return false;
	if (slash)
		*slash = '/';
	likely = !list->error && may_have_directories(c, list->data, dir, name);
	cop_obj_put(c->conf.cache, list);
	return likely;
}
