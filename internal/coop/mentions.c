/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a collection that are fetched because a file that a program has read mentions them.
 *
 * From a collection, as Python's own modules, programs read few files, and no order of their names
 * says which. But a compiled module names the modules that it imports (mention.h). So when a
 * program reads one for the first time, the node notes which files of the collections that programs
 * have read from it names, and which directories; a file that was fetched before a program asked
 * for it is looked at for files as soon as it arrives. What was noted leaves with the next request
 * that a program waits for, in one message: if none follows, all that the program needs is here.
 * From there on these are background flights like siblings (siblings.c).
 *
 * A wrong guess costs the storage one small file. bundle.h decides how many may go unused. */
#include "coop/coop_priv.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mention/mention.h"

#define COMPILED ".pyc"
#define COMPILED_DIR "__pycache__"

static bool is_compiled(const char *path, size_t len)
{
	size_t n = sizeof(COMPILED) - 1;

	return len > n && !memcmp(path + len - n, COMPILED, n);
}

void cop_coop_add_collection(struct bundling *g, const struct bundle *b)
{
	unsigned n = atomic_load(&g->collections);
	struct collection *to = &g->collection[n % COLLECTIONS];
	const char *name = b->path + b->dir_len, *ending = strchr(name, '.');

	for (unsigned i = 0; i < COLLECTIONS; i++)
		if (g->collection[i].id.place == b->id.place)
			return;
	if (!is_compiled(name, strlen(name)) || !ending || strlen(ending) >= MENTION_NAME ||
		b->dir_len >= COLLECTION_DIR)
		return;
	*to = (struct collection){.id = b->id, .attr = b->attr};
	memcpy(to->dir, b->path, b->dir_len);
	memcpy(to->ending, ending, strlen(ending) + 1);
	atomic_store(&g->collections, n + 1);
}

bool cop_coop_may_mention(const struct cop_coop *c, const struct cop_key *key)
{
	return c->conf.bundle &&
	       atomic_load_explicit(&c->bundling.collections, memory_order_relaxed) &&
	       key->table == COP_TABLE_DATA && key->facet == COP_FACET_MAIN && key->index == 0 &&
	       key->size <= COP_MIN((uint64_t)COP_BUNDLE_FILE_BYTES, c->conf.chunk_bytes) &&
	       is_compiled(key->path, key->path_len);
}

/* The collection's listing with a reference, and the directory as is_sibling wants it; NULL if it
 * is not known. */
static struct cop_obj *open_collection(
	struct cop_coop *c, const struct collection *from, struct bundle *b)
{
	size_t len = strlen(from->dir);
	struct cop_obj *list;
	char dir[COLLECTION_DIR];

	memcpy(dir, from->dir, len + 1);
	dir[len ? len - 1 : 0] = '\0';
	list = cop_coop_listed(c, dir);
	if (list && (list->error || atomic_load(&list->disproved))) {
		cop_obj_put(c->conf.cache, list);
		list = NULL;
	}
	*b = (struct bundle){.coop = c,
		.id = from->id,
		.list = list ? list->data : NULL,
		.path = from->dir,
		.dir_len = len,
		.attr = from->attr};
	return list;
}

/* ---- what is mentioned ---- */

#define NAMES_MAX 512

/* The names in a file; they point into its bytes. */
struct names {
	unsigned n;
	struct {
		const char *at;
		size_t len;
	} name[NAMES_MAX];
};

static void add_name(void *arg, const char *name, size_t len)
{
	struct names *all = arg;

	if (!len || len >= MENTION_NAME || all->n == NAMES_MAX)
		return;
	all->name[all->n].at = name;
	all->name[all->n++].len = len;
}

static void note(struct bundling *g, enum mention_kind kind, const char *dir, const char *name)
{
	struct mention *m;
	unsigned n;

	pthread_mutex_lock(&g->lock);
	n = atomic_load(&g->mentions);
	for (unsigned i = 0; i < n; i++) {
		m = &g->mention[(g->mention_at + i) % MENTIONS];
		if (!strcmp(m->name, name) && !strcmp(m->dir, dir))
			n = MENTIONS;
	}
	if (n < MENTIONS) {
		m = &g->mention[(g->mention_at + n) % MENTIONS];
		m->kind = kind;
		memcpy(m->dir, dir, strlen(dir) + 1);
		memcpy(m->name, name, strlen(name) + 1);
		atomic_store(&g->mentions, n + 1);
	}
	pthread_mutex_unlock(&g->lock);
}

static bool is_cached(const struct bundle *b, const struct cop_listing_entry *e)
{
	char path[COLLECTION_DIR + 256];
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = path,
		.version = e->attr.version,
		.size = e->attr.size};
	struct cop_key key;

	memcpy(path, b->path, b->dir_len);
	memcpy(path + b->dir_len, e->name, e->name_len);
	path[b->dir_len + e->name_len] = '\0';
	if (!e->has_attr)
		return cop_coop_has_first(b->coop, path);
	key = cop_coop_key(&ask);
	return cop_cache_has(b->coop->conf.cache, &key);
}

static void look_up_file(
	const struct collection *from, const struct bundle *b, const char *stem, size_t len)
{
	size_t ending = strlen(from->ending);
	struct cop_listing_entry e;
	char name[MENTION_NAME];

	if (len + ending >= sizeof(name))
		return;
	memcpy(name, stem, len);
	memcpy(name + len, from->ending, ending + 1);
	if (cop_listing_find(b->list, name, len + ending, &e) && cop_coop_is_sibling(b, &e) &&
		!is_cached(b, &e))
		note(&b->coop->bundling, MENTION_FILE, from->dir, name);
}

static bool is_listed(struct cop_coop *c, const char *dir, const char *name)
{
	char path[COLLECTION_DIR + MENTION_NAME + 1];
	struct cop_ask ask = {.kind = COP_ASK_LISTING, .path = path};
	struct cop_key key;

	snprintf(path, sizeof(path), "%s%s%s", dir, *dir ? "/" : "", name);
	key = cop_coop_key(&ask);
	return cop_cache_has(c->conf.cache, &key);
}

static void look_up_dir(
	struct cop_coop *c, const char *dir, const void *list, const char *stem, size_t len)
{
	struct cop_listing_entry e;
	char name[MENTION_NAME];

	if (!cop_listing_find(list, stem, len, &e) || e.type != DT_DIR)
		return;
	memcpy(name, stem, len);
	name[len] = '\0';
	if (!is_listed(c, dir, name))
		note(&c->bundling, MENTION_DIR, dir, name);
}

/* Looks for directories in the one above that of a compiled file: dir, len bytes with a slash at
 * their end. */
static void look_above(struct cop_coop *c, const char *dir, size_t len, const struct names *all)
{
	char above[COLLECTION_DIR], *slash;
	struct cop_obj *list;

	if (!len || len > sizeof(above))
		return;
	memcpy(above, dir, len - 1);
	above[len - 1] = '\0';
	slash = strrchr(above, '/');
	if (strcmp(slash ? slash + 1 : above, COMPILED_DIR) == 0)
		*(slash ? slash : above) = '\0';
	list = cop_coop_peek(c, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = above});
	if (!list)
		return;
	if (!list->error && !atomic_load(&list->disproved))
		for (unsigned i = 0; i < all->n; i++)
			look_up_dir(c, above, list->data, all->name[i].at, all->name[i].len);
	cop_obj_put(c->conf.cache, list);
}

static void look_in(struct cop_coop *c, const struct collection *from, const struct names *all)
{
	struct bundle b;
	struct cop_obj *list = open_collection(c, from, &b);

	if (!list)
		return;
	for (unsigned i = 0; i < all->n; i++)
		look_up_file(from, &b, all->name[i].at, all->name[i].len);
	cop_obj_put(c->conf.cache, list);
}

static void look_everywhere(
	struct cop_coop *c, const char *path, const struct names *all, bool used)
{
	const char *slash = strrchr(path, '/');
	struct bundling *g = &c->bundling;
	struct collection from;

	if (used)
		look_above(c, path, slash ? (size_t)(slash + 1 - path) : 0, all);
	for (unsigned i = 0; i < COLLECTIONS && i < atomic_load(&g->collections); i++) {
		pthread_mutex_lock(&g->lock);
		from = g->collection[i];
		pthread_mutex_unlock(&g->lock);
		look_in(c, &from, all);
		if (used)
			look_above(c, from.dir, strlen(from.dir), all);
	}
}

void cop_coop_note_mentions(struct cop_coop *c, const struct cop_key *key, const void *data,
	size_t len, bool packed, bool used)
{
	struct names all = {0};
	void *raw = NULL;

	if (packed) {
		len = (size_t)key->size;
		raw = malloc(len);
		if (!raw || cop_pack_read(data, 0, len, raw)) {
			free(raw);
			return;
		}
		data = raw;
	}
	cop_mention_python(data, len, add_name, &all);
	if (all.n)
		look_everywhere(c, key->path, &all, used);
	free(raw);
}

/* ---- what is fetched ---- */

bool cop_coop_has_mentions(struct cop_coop *c, const struct cop_ask *ask)
{
	return !ask->background && !ask->along &&
	       atomic_load_explicit(&c->bundling.mentions, memory_order_relaxed);
}

static bool take_mention(struct bundling *g, struct mention *m)
{
	unsigned n;

	pthread_mutex_lock(&g->lock);
	n = atomic_load(&g->mentions);
	if (n) {
		*m = g->mention[g->mention_at];
		g->mention_at = (g->mention_at + 1) % MENTIONS;
		atomic_store(&g->mentions, n - 1);
	}
	pthread_mutex_unlock(&g->lock);
	return n != 0;
}

static bool find_collection(struct bundling *g, const char *dir, struct collection *found)
{
	bool is_known = false;

	pthread_mutex_lock(&g->lock);
	for (unsigned i = 0; i < COLLECTIONS && !is_known; i++) {
		is_known = g->collection[i].id.kind && !strcmp(g->collection[i].dir, dir);
		if (is_known)
			*found = g->collection[i];
	}
	pthread_mutex_unlock(&g->lock);
	return is_known;
}

static void bring_file(struct cop_coop *c, const struct mention *m)
{
	struct bundling *g = &c->bundling;
	struct collection from;
	struct cop_listing_entry e;
	struct cop_obj *list;
	struct bundle b;
	bool may;
	size_t size;

	list = find_collection(g, m->dir, &from) ? open_collection(c, &from, &b) : NULL;
	if (!list)
		return;
	if (cop_listing_find(b.list, m->name, strlen(m->name), &e) && cop_coop_is_sibling(&b, &e) &&
		!is_cached(&b, &e)) {
		/* Without attributes the bytes are counted when they come. */
		size = e.has_attr ? e.attr.size : 0;
		pthread_mutex_lock(&g->lock);
		may = cop_cache_has_headroom(c->conf.cache, size) &&
		      cop_bundle_mentioned(&g->policy, b.id, size);
		pthread_mutex_unlock(&g->lock);
		if (may) {
			cop_coop_ask_sibling(&b, &e);
			cop_coop_bring_source(c, m->dir, m->name);
		}
	}
	cop_obj_put(c->conf.cache, list);
}

/* The listing, and those of its companions. */
static void bring_listing(struct cop_coop *c, const struct mention *m)
{
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME];
	char path[COLLECTION_DIR + MENTION_NAME + 1];
	struct bundling *g = &c->bundling;
	unsigned n = 0;
	bool may;

	snprintf(path, sizeof(path), "%s%s%s", m->dir, *m->dir ? "/" : "", m->name);
	pthread_mutex_lock(&g->lock);
	may = cop_bundle_may_list_mentioned(&g->policy);
	if (may)
		n = cop_bundle_companions(&g->policy, path, true, name);
	pthread_mutex_unlock(&g->lock);
	if (may)
		cop_coop_guess(c, m->dir, m->name, true);
	for (unsigned i = 0; i < n; i++)
		cop_coop_guess(c, path, name[i], true);
}

void cop_coop_bring_mentioned(struct cop_coop *c)
{
	struct mention m;

	while (take_mention(&c->bundling, &m)) {
		if (m.kind == MENTION_FILE)
			bring_file(c, &m);
		else
			bring_listing(c, &m);
	}
}
