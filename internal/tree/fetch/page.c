/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages: the attributes of the names in a large directory, about a thousand names per page. A
 * page's cache key is the directory, its version, the number of pages and the index, which together
 * determine the page's names.
 *
 * If the storage contradicts the attributes in a page, the whole directory must be replaced by its
 * newer version (names.c). Other pages with the same error may be cached under other keys, here or
 * at the ancestors, so no page of this version of the directory is used any more. */
#include "tree/fetch/fetch_priv.h"

struct cop_ask cop_fetch_page_ask(
	const char *dir, const void *names, const char *name, size_t name_len)
{
	uint32_t pages = cop_listing_pages(names);
	struct cop_attr attr;

	cop_listing_dir(names, &attr);
	return (struct cop_ask){.kind = COP_ASK_PAGE,
		.path = dir,
		.version = attr.version,
		.size = pages,
		.index = cop_listing_page_of(name, name_len, pages)};
}

static struct cop_obj *peek_dir(
	struct cop_fetch *c, enum cop_facet facet, const char *dir, size_t dir_len)
{
	return cop_cache_peek(c->conf.cache,
		&(struct cop_key){
			.table = COP_TABLE_TREE, .facet = facet, .path = dir, .path_len = dir_len});
}

struct cop_obj *cop_fetch_names_of(struct cop_fetch *c, const char *dir, size_t dir_len)
{
	static const enum cop_facet facets[] = {COP_FACET_MAIN, COP_FACET_NAMES};

	for (size_t i = 0; i < COP_ARRAY_SIZE(facets); i++) {
		struct cop_obj *obj = peek_dir(c, facets[i], dir, dir_len);

		if (obj && !obj->error)
			return obj;
		if (obj)
			cop_obj_put(c->conf.cache, obj);
	}
	return NULL;
}

struct cop_obj *cop_fetch_page_with(struct cop_fetch *c, const struct cop_fetch_name *at)
{
	struct cop_obj *names = cop_fetch_names_of(c, at->path, at->dir_len), *page;
	struct cop_ask ask;

	if (!names)
		return NULL;
	ask = cop_fetch_page_ask(names->key.path, names->data, at->name, at->name_len);
	page = cop_fetch_peek(c, &ask);
	cop_obj_put(c->conf.cache, names);
	return page;
}

struct cop_obj *cop_fetch_listed(struct cop_fetch *c, const char *dir, size_t dir_len)
{
	struct cop_obj *list = peek_dir(c, COP_FACET_MAIN, dir, dir_len), *page;
	struct cop_ask ask;

	if (!list || list->error || cop_listing_count(list->data) <= COP_ORIGIN_LISTING_ATTRS ||
		cop_listing_pages(list->data) > 1)
		return list;
	ask = cop_fetch_page_ask(list->key.path, list->data, "", 0);
	page = cop_fetch_peek(c, &ask);
	if (!page || page->error || atomic_load(&list->disproved)) {
		if (page)
			cop_obj_put(c->conf.cache, page);
		return list;
	}
	cop_obj_put(c->conf.cache, list);
	return page;
}

/* ---- at the root ---- */

struct page_read {
	struct flight *flight;
	struct cop_obj *names; /* a reference until the origin has read the page */
};

static void page_read(void *arg, int rc, void *data, size_t len)
{
	struct page_read *r = arg;
	struct flight *f = r->flight;

	cop_obj_put(f->fetch->conf.cache, r->names);
	free(r);
	cop_fetch_blob_read(f, rc, data, len);
}

/* The listing that the request refers to; NULL if this node has another version or none. */
static struct cop_obj *same_names(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_obj *names = cop_fetch_names_of(c, ask->path, strlen(ask->path));
	struct cop_attr dir;

	if (!names)
		return NULL;
	cop_listing_dir(names->data, &dir);
	if (cop_version_same(dir.version, ask->version))
		return names;
	cop_obj_put(c->conf.cache, names);
	return NULL;
}

void cop_fetch_read_page(struct flight *f, struct cop_origin *o)
{
	struct cop_listing_page page = {.version = f->ask.version,
		.pages = (uint32_t)f->ask.size,
		.index = (uint32_t)f->ask.index};
	struct cop_obj *names = same_names(f->fetch, &f->ask);
	struct page_read *r = names ? malloc(sizeof(*r)) : NULL;

	if (r) {
		*r = (struct page_read){f, names};
		cop_origin_page(o, f->ask.path, &page, names->data, page_read, r);
		return;
	}
	if (names)
		cop_obj_put(f->fetch->conf.cache, names);
	cop_origin_page(o, f->ask.path, &page, NULL, cop_fetch_blob_read, f);
}

/* ---- contradicted pages ---- */

static uint64_t dir_hash(const char *path, uint64_t version)
{
	uint64_t hash = cop_hash64(path, strlen(path), version | 1);

	return hash ? hash : 1;
}

void cop_fetch_doubt_pages(struct cop_fetch *c, const struct cop_obj *page)
{
	uint64_t hash = dir_hash(page->key.path, page->key.version);
	struct doubted *d = &c->doubted;

	pthread_mutex_lock(&d->lock);
	d->dir[atomic_load(&d->count) % DOUBTED_SLOTS] = hash;
	atomic_fetch_add(&d->count, 1);
	pthread_mutex_unlock(&d->lock);
}

bool cop_fetch_doubts_pages(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct doubted *d = &c->doubted;
	bool found = false;
	uint64_t hash;

	if (!atomic_load(&d->count))
		return false;
	hash = dir_hash(ask->path, ask->version);
	pthread_mutex_lock(&d->lock);
	for (unsigned i = 0; i < DOUBTED_SLOTS && !found; i++)
		found = d->dir[i] == hash;
	pthread_mutex_unlock(&d->lock);
	return found;
}

void cop_fetch_trust_pages(struct cop_fetch *c)
{
	struct doubted *d = &c->doubted;

	pthread_mutex_lock(&d->lock);
	memset(d->dir, 0, sizeof(d->dir));
	atomic_store(&d->count, 0);
	pthread_mutex_unlock(&d->lock);
}
