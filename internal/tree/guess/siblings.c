/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files that are fetched beside one that a program asks for (bundle.h decides which).
 *
 * Each sibling is a flight of its own, led here under the key that this node's own listing gives:
 * path, version, size. So later requests for it join the flight, its answer is checked like any
 * other, a dead node is passed over as for any other, and nobody can plant bytes here that were not
 * requested. They are a bundle because their requests leave this node, and each node above it, in
 * one message with the request that a program waits for.
 *
 * Nobody waits for siblings yet, so they are background flights: at the storage they come last, and
 * an answer that contradicts a name changes nothing here (names.c). They are only fetched while
 * memory is free: nothing is evicted for them, and no flight waits behind them. */
#include "tree/fetch/fetch_priv.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

void cop_fetch_cork(struct cop_fetch *c)
{
	if (c->conf.rpc)
		cop_rpc_cork(c->conf.rpc);
}

void cop_fetch_uncork(struct cop_fetch *c)
{
	if (c->conf.rpc)
		cop_rpc_uncork(c->conf.rpc);
}

/* A file of several chunks is read ahead anyway, and one that bypasses the tree must not be
 * cached. */
size_t cop_fetch_largest_small(const struct cop_fetch *c)
{
	uint64_t most = c->conf.max_cacheable ? c->conf.max_cacheable : UINT64_MAX;

	return (size_t)COP_MIN(most, COP_MIN((uint64_t)COP_BUNDLE_FILE_BYTES, c->conf.chunk_bytes));
}

bool cop_fetch_is_small(const struct cop_fetch *c, const struct cop_ask *ask)
{
	return c->conf.bundle && ask->kind == COP_ASK_CHUNK && !ask->background &&
	       ask->index == 0 && ask->size <= cop_fetch_largest_small(c);
}

/* One of the same kind, as its owner made it: who may read the one may read the other. A file
 * without blocks is on a tape or has no bytes of its own; a young version may not last. */
bool cop_fetch_is_sibling(const struct bundle *b, const struct cop_listing_entry *e)
{
	const struct cop_attr *a = &e->attr;

	if (!e->has_attr)
		return e->type == DT_REG && cop_bundle_kind(e->name, e->name_len) == b->id.kind;
	return S_ISREG(a->mode) && a->size > 0 && a->size <= cop_fetch_largest_small(b->coop) &&
	       a->blocks > 0 && a->mode == b->attr.mode && a->uid == b->attr.uid &&
	       a->gid == b->attr.gid && !cop_version_is_young(a->version) &&
	       cop_bundle_kind(e->name, e->name_len) == b->id.kind;
}

static unsigned count_siblings(const struct bundle *b)
{
	uint32_t count = cop_listing_count(b->list);
	struct cop_listing_entry e;
	unsigned n = 0;

	for (uint32_t i = 0; i < count && n <= COP_BUNDLE_MOST_FILES; i++) {
		cop_listing_at(b->list, i, &e);
		n += cop_fetch_is_sibling(b, &e);
	}
	return n;
}

bool cop_fetch_ask_sibling(const struct bundle *b, const struct cop_listing_entry *e)
{
	struct cop_fetch *c = b->coop;
	char path[4096];
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = path,
		.version = e->attr.version,
		.size = e->attr.size,
		.background = true,
		.along = true,
		.mentioned = b->mentioned};
	struct cop_key key;
	struct cop_obj *obj;
	int rc;

	if (b->dir_len + e->name_len >= sizeof(path))
		return false;
	memcpy(path, b->path, b->dir_len);
	memcpy(path + b->dir_len, e->name, e->name_len);
	path[b->dir_len + e->name_len] = '\0';
	if (!e->has_attr)
		return cop_fetch_ask_first(c, path, b->mentioned);
	key = cop_fetch_key(&ask);
	if (cop_cache_has(c->conf.cache, &key))
		return false;
	rc = cop_fetch_get_for(c, &ask, NULL, true, &obj);
	if (rc == 1)
		cop_obj_put(c->conf.cache, obj);
	return rc == 0;
}

static void ask_siblings(const struct bundle *b, size_t allowed, unsigned most)
{
	uint32_t count = cop_listing_count(b->list);
	struct cop_listing_entry e;
	unsigned files = 0;
	size_t bytes = 0, later = 0, size;

	for (uint32_t i = 0; i < count && files < most; i++) {
		cop_listing_at(b->list, i, &e);
		/* As long as the one that was read, unless it is known; counted when it comes. */
		size = e.has_attr ? e.attr.size : b->attr.size;
		if (!cop_fetch_is_sibling(b, &e) || size > allowed - bytes - later ||
			!cop_cache_has_headroom(b->coop->conf.cache, size) ||
			!cop_fetch_ask_sibling(b, &e))
			continue;
		files++;
		*(e.has_attr ? &bytes : &later) += size;
	}
	pthread_mutex_lock(&b->coop->bundling.lock);
	cop_bundle_brought(&b->coop->bundling.policy, b->id, files, bytes);
	pthread_mutex_unlock(&b->coop->bundling.lock);
}

/* missed: by a program. Otherwise they are only counted. */
static void count_and_ask(struct bundle *b, bool missed)
{
	struct bundling *g = &b->coop->bundling;
	unsigned siblings = count_siblings(b), most;
	size_t allowed;

	pthread_mutex_lock(&g->lock);
	allowed = cop_bundle_allow(&g->policy, b->id, siblings, &most);
	if (siblings > COP_BUNDLE_MOST_FILES)
		cop_fetch_add_collection(g, b);
	pthread_mutex_unlock(&g->lock);
	if (allowed && missed)
		ask_siblings(b, allowed, most);
}

bool cop_fetch_find_attr(struct cop_fetch *c, const char *path, struct cop_listing_entry *e)
{
	struct cop_obj *entry;

	if (e->has_attr)
		return true;
	entry = cop_fetch_peek(c, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = path});
	if (!entry)
		return false;
	e->has_attr = !entry->error;
	if (e->has_attr)
		cop_entry_get(entry->data, &e->attr, NULL, NULL);
	cop_obj_put(c->conf.cache, entry);
	return e->has_attr;
}

static void with_listing(struct bundle *b, const struct cop_ask *ask, bool missed)
{
	struct cop_listing_entry e;
	const char *name = b->path + b->dir_len;

	if (cop_listing_count(b->list) > COP_BUNDLE_NAMES ||
		!cop_listing_find(b->list, name, strlen(name), &e) ||
		!cop_fetch_find_attr(b->coop, ask->path, &e) || e.attr.version != ask->version)
		return;
	b->attr = e.attr;
	count_and_ask(b, missed);
}

static void look_at_siblings(struct cop_fetch *c, const struct cop_ask *ask, bool missed)
{
	const char *slash = strrchr(ask->path, '/');
	struct bundle b = {.coop = c,
		.id = cop_bundle_id(ask->path),
		.path = ask->path,
		.dir_len = slash ? (size_t)(slash + 1 - ask->path) : 0};
	struct cop_obj *list;
	char dir[4096];
	bool may;

	pthread_mutex_lock(&c->bundling.lock);
	may = (missed && cop_bundle_missed(&c->bundling.policy, b.id)) ||
	      !cop_bundle_is_counted(&c->bundling.policy, b.id);
	pthread_mutex_unlock(&c->bundling.lock);
	if (!may)
		return;
	memcpy(dir, ask->path, b.dir_len);
	dir[b.dir_len ? b.dir_len - 1 : 0] = '\0';
	list = cop_fetch_listed(c, dir);
	if (!list)
		return;
	b.list = list->data;
	if (!list->error && !atomic_load(&list->disproved))
		with_listing(&b, ask, missed);
	cop_obj_put(c->conf.cache, list);
}

/* The flight may be over before its siblings begin, so this keeps what they need of it. */
void cop_fetch_reserve_with_siblings(struct flight *f)
{
	struct cop_fetch *c = f->coop;
	struct cop_obj *obj = cop_obj_get(f->obj);
	struct cop_ask ask = f->ask;

	cop_fetch_cork(c);
	cop_fetch_reserve(f);
	look_at_siblings(c, &ask, true);
	cop_fetch_uncork(c);
	cop_obj_put(c->conf.cache, obj);
}

void cop_fetch_bundled(const struct flight *f, int rc)
{
	struct cop_stats *stats = f->coop->conf.stats;

	if (rc || f->ask.kind != COP_ASK_CHUNK || !f->ask.along)
		return;
	cop_stats_add(stats, COP_BUNDLE_FILES, 1);
	cop_stats_add(stats, COP_BUNDLE_BYTES, f->ask.size);
}

/* A program reads a file for the first time. If that came with the entry that it asked for, it
 * would have missed it otherwise, so it counts as missed. */
static void used_small(struct cop_fetch *c, const struct cop_obj *obj, bool missed)
{
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = obj->key.path,
		.version = obj->key.version,
		.size = obj->key.size};

	cop_fetch_cork(c);
	if (cop_fetch_is_small(c, &ask))
		look_at_siblings(c, &ask, missed);
	cop_fetch_uncork(c);
}

void cop_fetch_used(struct cop_fetch *c, struct cop_obj *obj)
{
	struct cop_bundle_id id;
	bool first = cop_cache_used(c->conf.cache, obj, COP_USE_HERE);
	bool brought = atomic_load_explicit(&obj->bundled, memory_order_relaxed) &&
		       atomic_exchange(&obj->bundled, false);

	if (obj->key.table != COP_TABLE_DATA || (!first && !brought))
		return;
	if (brought) {
		id = cop_bundle_id(obj->key.path);
		cop_stats_add(c->conf.stats, COP_BUNDLE_USED_FILES, 1);
		cop_stats_add(c->conf.stats, COP_BUNDLE_USED_BYTES, obj->key.size);
		pthread_mutex_lock(&c->bundling.lock);
		if (atomic_load(&obj->first))
			cop_bundle_used_first(&c->bundling.policy, id.kind, obj->key.size);
		else
			cop_bundle_used(&c->bundling.policy, id, obj->key.size);
		pthread_mutex_unlock(&c->bundling.lock);
	}
	if (brought)
		used_small(c, obj, atomic_load(&obj->first));
	if (first && cop_fetch_may_mention(c, &obj->key))
		cop_fetch_note_mentions(c, &obj->key, obj->data, obj->len, obj->packed, true);
	else if (first)
		cop_fetch_note_libraries(c, obj);
}
