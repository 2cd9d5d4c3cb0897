/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files fetched together with one that a program requests (policy_priv.h selects them).
 *
 * Each sibling is a separate in-flight request, with the key from this node's own listing: path,
 * version, size. Later requests join it, its answer is validated and dead nodes are skipped as for
 * any other request, and no peer can insert unrequested data. They form a bundle because this node
 * and each ancestor send their requests in one message with the request that a program waits for.
 *
 * Siblings are background requests: the storage serves them last, and an answer that contradicts a
 * name changes nothing here (names.c). They are only fetched while memory is free: nothing is
 * evicted for them, and no request queues behind them. */
#include "tree/guess/guess_priv.h"

#include <dirent.h>
#include <sys/stat.h>

bool cop_guess_is_small(const struct cop_guess *g, const struct cop_ask *ask)
{
	return g->conf->bundle && ask->kind == COP_ASK_CHUNK && !ask->background &&
	       ask->index == 0 && ask->size <= cop_fetch_largest_small(g->fetch);
}

/* A file of the same kind, owner and mode: a user who may read the one may read the other.
 * st_blocks == 0 means archived (HSM) or sparse; a recently modified file may still change. */
static bool is_sibling(const struct bundle *b, const struct cop_listing_entry *e)
{
	const struct cop_attr *a = &e->attr;

	if (!e->has_attr)
		return e->type == DT_REG && cop_bundle_kind(e->name, e->name_len) == b->id.kind;
	return S_ISREG(a->mode) && a->size > 0 &&
	       a->size <= cop_fetch_largest_small(b->guess->fetch) && a->blocks > 0 &&
	       a->mode == b->attr.mode && a->uid == b->attr.uid && a->gid == b->attr.gid &&
	       !cop_version_is_young(a->version) &&
	       cop_bundle_kind(e->name, e->name_len) == b->id.kind;
}

static unsigned count_siblings(const struct bundle *b)
{
	uint32_t count = cop_listing_count(b->list);
	struct cop_listing_entry e;
	unsigned n = 0;

	for (uint32_t i = 0; i < count && n <= COP_BUNDLE_MOST_FILES; i++) {
		cop_listing_at(b->list, i, &e);
		n += is_sibling(b, &e);
	}
	return n;
}

bool cop_guess_ask_sibling(const struct bundle *b, const struct cop_listing_entry *e)
{
	struct cop_guess *g = b->guess;
	char path[4096];
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = path,
		.version = e->attr.version,
		.size = e->attr.size,
		.background = true,
		.along = true,
		.mentioned = b->mentioned};

	if (!cop_guess_path(path, b->at.path, b->at.dir_len, e->name, e->name_len))
		return false;
	if (!e->has_attr)
		return cop_fetch_ask_first(g->fetch, path, b->mentioned);
	return !cop_fetch_has(g->fetch, &ask) && cop_guess_ask(g, &ask);
}

static void ask_siblings(const struct bundle *b, size_t allowed, unsigned most)
{
	uint32_t count = cop_listing_count(b->list);
	struct cop_listing_entry e;
	unsigned files = 0;
	size_t bytes = 0, later = 0, size;

	for (uint32_t i = 0; i < count && files < most; i++) {
		cop_listing_at(b->list, i, &e);
		/* The size of the file that was read if this one's is unknown; corrected on
		 * arrival. */
		size = e.has_attr ? e.attr.size : b->attr.size;
		if (!is_sibling(b, &e) || size > allowed - bytes - later ||
			!cop_cache_has_headroom(b->guess->conf->cache, size) ||
			!cop_guess_ask_sibling(b, &e))
			continue;
		files++;
		*(e.has_attr ? &bytes : &later) += size;
	}
	pthread_mutex_lock(&b->guess->lock);
	cop_bundle_brought(&b->guess->policy, b->id, files, bytes);
	pthread_mutex_unlock(&b->guess->lock);
}

/* missed: by a program; otherwise the siblings are only counted. */
static void count_and_ask(struct bundle *b, bool missed)
{
	struct cop_guess *g = b->guess;
	unsigned siblings = count_siblings(b), most;
	size_t allowed;

	pthread_mutex_lock(&g->lock);
	allowed = cop_bundle_allow(&g->policy, b->id, siblings, &most);
	if (siblings > COP_BUNDLE_MOST_FILES)
		cop_guess_add_collection(g, b);
	pthread_mutex_unlock(&g->lock);
	if (allowed && missed)
		ask_siblings(b, allowed, most);
}

bool cop_guess_find_attr(struct cop_guess *g, const char *path, struct cop_listing_entry *e)
{
	struct cop_obj *entry;

	if (e->has_attr)
		return true;
	entry = cop_fetch_peek(g->fetch, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = path});
	if (!entry)
		return false;
	e->has_attr = !entry->error;
	if (e->has_attr)
		cop_entry_get(entry->data, &e->attr, NULL, NULL);
	cop_obj_put(g->conf->cache, entry);
	return e->has_attr;
}

static void with_listing(struct bundle *b, const struct cop_ask *ask, bool missed)
{
	struct cop_listing_entry e;

	if (cop_listing_count(b->list) > COP_BUNDLE_NAMES ||
		!cop_listing_find(b->list, b->at.name, b->at.name_len, &e) ||
		!cop_guess_find_attr(b->guess, ask->path, &e) || e.attr.version != ask->version)
		return;
	b->attr = e.attr;
	count_and_ask(b, missed);
}

static void look_at_siblings(struct cop_guess *g, const struct cop_ask *ask, bool missed)
{
	struct bundle b = {
		.guess = g, .id = cop_bundle_id(ask->path), .at = cop_fetch_split(ask->path)};
	struct cop_obj *list;
	bool may;

	pthread_mutex_lock(&g->lock);
	may = (missed && cop_bundle_missed(&g->policy, b.id)) ||
	      !cop_bundle_is_counted(&g->policy, b.id);
	pthread_mutex_unlock(&g->lock);
	if (!may)
		return;
	list = cop_fetch_listed(g->fetch, b.at.path, b.at.dir_len);
	if (!list)
		return;
	b.list = list->data;
	if (!list->error && !atomic_load(&list->disproved))
		with_listing(&b, ask, missed);
	cop_obj_put(g->conf->cache, list);
}

void cop_guess_siblings(struct cop_guess *g, const struct cop_ask *ask)
{
	look_at_siblings(g, ask, true);
}

/* Called when a program first reads a file. A file that arrived with a requested entry counts as
 * missed: without the first bytes, the program would have missed it. */
static void used_small(struct cop_guess *g, const struct cop_obj *obj, bool missed)
{
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = obj->key.path,
		.version = obj->key.version,
		.size = obj->key.size};

	if (!cop_guess_is_small(g, &ask))
		return;
	cop_fetch_cork(g->fetch);
	look_at_siblings(g, &ask, missed);
	cop_fetch_uncork(g->fetch);
}

static void used_brought(struct cop_guess *g, struct cop_obj *obj)
{
	struct cop_bundle_id id = cop_bundle_id(obj->key.path);
	bool first = atomic_load(&obj->first);

	cop_stats_add(g->conf->stats, COP_BUNDLE_USED_FILES, 1);
	cop_stats_add(g->conf->stats, COP_BUNDLE_USED_BYTES, obj->key.size);
	pthread_mutex_lock(&g->lock);
	if (first)
		cop_bundle_used_first(&g->policy, id.kind, obj->key.size);
	else
		cop_bundle_used(&g->policy, id, obj->key.size);
	pthread_mutex_unlock(&g->lock);
	used_small(g, obj, first);
}

void cop_guess_used(struct cop_guess *g, struct cop_obj *obj, bool first)
{
	if (obj->key.table != COP_TABLE_DATA)
		return;
	if (atomic_load_explicit(&obj->bundled, memory_order_relaxed) &&
		atomic_exchange(&obj->bundled, false))
		used_brought(g, obj);
	if (first && cop_guess_may_mention(g, &obj->key))
		cop_guess_note_mentions(g, &obj->key, obj->data, obj->len, obj->packed, true);
	else if (first)
		cop_guess_note_libraries(g, obj);
}
