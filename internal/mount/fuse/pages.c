/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes in a large directory, whose listing has none. A name that is looked up is requested by
 * itself, because a page costs the storage up to a thousand operations. But a program that
 * traverses the directory needs the attributes of all names. Its lookups reveal a traversal in
 * three ways.
 *
 * First, a few consecutive lookups follow the listing order, as when a program reads each name and
 * then examines it (ls -lU). From then on directory reads return attributes too, and wait for their
 * pages.
 *
 * Second, several consecutive lookups are each for a name that sorts after the previous one, as
 * when a program sorts the names first (a shell's glob). Recorded starts of Python, Perl and GCC
 * had at most 7 such lookups in a row, so a few more are enough evidence for fetching a single
 * page.
 *
 * Third, there have been many lookups, in any order. Each page takes another LOOKUPS_PER_PAGE
 * lookups. If the directory has only one page, that page is requested after lookups of a third of
 * the names: Python looks up 47 of 207 and 37 of 171.
 *
 * Lookups of names whose entry is cached cost nothing and do not count as evidence.
 *
 * A single entry takes precedence over its page, so that a name keeps the attributes that programs
 * on this node saw first. */
#include "mount/fuse/fuse_priv.h"

#include <sys/stat.h>

/* RUN lookups, each less than GAP entries after the previous one, are no coincidence in a directory
 * of many pages. The second pair is for a directory with a single page, whose entries are always
 * close to each other. */
#define RUN 2
#define GAP 32
#define RUN_SINGLE 3
#define GAP_SINGLE 4
#define LOOKUPS_PER_PAGE 32u
/* In a directory with a single page, the lookups that justify the page: 1/PART of the names in any
 * order, but at least LOOKUPS_PER_PAGE; or 1/RISEN_PART of the names in sorted order, but at least
 * RISEN and at most LOOKUPS_PER_PAGE. */
#define PART 3u
#define RISEN_PART 16u
#define RISEN 8u
/* Pages requested in advance. */
#define AHEAD 2

static bool is_large(const void *names)
{
	return cop_listing_count(names) > COP_ORIGIN_LISTING_ATTRS;
}

static uint64_t version_of(const void *names)
{
	struct cop_attr dir;

	cop_listing_dir(names, &dir);
	return dir.version;
}

/* Whether this object can answer for a name. */
static bool is_usable(
	struct op *op, const struct cop_obj *obj, const struct cop_attr *attr, const char *target)
{
	return (!S_ISLNK(attr->mode) || target) &&
	       cop_fetch_believes(op->fs->conf.fetch, obj, attr);
}

/* ---- lookups ---- */

static bool has_single_page(const void *names)
{
	return cop_listing_pages(names) == 1;
}

static uint32_t run_wanted(const void *names)
{
	return has_single_page(names) ? RUN_SINGLE : RUN;
}

static uint32_t gap_allowed(const void *names)
{
	return has_single_page(names) ? GAP_SINGLE : GAP;
}

/* How many lookups in any order justify a page. */
static uint32_t lookups_per_page(const void *names)
{
	if (!has_single_page(names))
		return LOOKUPS_PER_PAGE;
	return COP_MAX(cop_listing_count(names) / PART, LOOKUPS_PER_PAGE);
}

/* The same for lookups in sorted order. */
static uint32_t risen_per_page(const void *names)
{
	return COP_MIN(COP_MAX(cop_listing_count(names) / RISEN_PART, RISEN), LOOKUPS_PER_PAGE);
}

/* Whether the name of this entry sorts after that of the entry before index `at`, which may be
 * from another version of the listing. */
static bool rises(const void *names, uint32_t at, uint32_t entry)
{
	struct cop_listing_entry was, is;
	int order;

	if (!at || at > cop_listing_count(names))
		return false;
	cop_listing_at(names, at - 1, &was);
	cop_listing_at(names, entry, &is);
	order = memcmp(was.name, is.name, COP_MIN(was.name_len, is.name_len));
	return order < 0 || (order == 0 && was.name_len < is.name_len);
}

/* Records a lookup of this entry. True: a program is traversing the directory. Concurrent lookups
 * by several programs may be mistaken for one program's, which wastes or misses a page. */
static bool goes_through(struct inode *dir, const void *names, uint32_t entry)
{
	struct sweep *s = &dir->sweep;
	uint32_t at = atomic_exchange(&s->at, entry + 1), run = atomic_load(&s->run);
	uint32_t risen = atomic_load(&s->risen), looked = atomic_load(&s->looked);

	/* Skip repeated lookups of the same name. */
	if (at != entry + 1) {
		run = at && entry >= at && entry - at < gap_allowed(names) ? run + 1 : 0;
		risen = rises(names, at, entry) ? risen + 1 : 0;
		atomic_store(&s->run, run);
		atomic_store(&s->risen, risen);
		looked = atomic_fetch_add(&s->looked, 1) + 1;
	}
	return run >= run_wanted(names) ||
	       (has_single_page(names) && risen >= risen_per_page(names)) ||
	       looked / lookups_per_page(names) > atomic_load(&s->paged);
}

/* A name that a traversal passes is not recorded, because no program needs it at its start. */
static void record_op(struct op *op)
{
	const struct sweep *s = &op->inode->sweep;

	if (atomic_load(&s->run) < RUN && atomic_load(&s->risen) < RISEN)
		cop_fuse_record_name(op);
}

static bool answer_from(struct op *op, const struct cop_obj *page)
{
	struct cop_listing_entry e;

	if (!cop_listing_find(page->data, op->name, op->name_len, &e) ||
		!is_usable(op, page, &e.attr, e.target))
		return false;
	record_op(op);
	cop_fuse_reply_entry(op, &e.attr, e.target, e.target_len);
	return true;
}

static void with_page(struct op *op, struct cop_obj *page, int rc)
{
	if (rc)
		atomic_store(&op->inode->sweep.failed, op->version);
	if (rc || !answer_from(op, page))
		cop_fuse_lookup_singly(op);
}

static bool is_here(struct op *op, const struct cop_ask *ask)
{
	struct cop_obj *obj = cop_fetch_peek(op->fs->conf.fetch, ask);

	if (obj)
		cop_obj_put(op->fs->conf.cache, obj);
	return obj != NULL;
}

static bool has_entry(struct op *op)
{
	char path[PATH_BYTES];

	return cop_fuse_path(op->inode, op->name, op->name_len, path) < 0 ||
	       is_here(op, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = path});
}

bool cop_fuse_page_lookup(struct op *op, const void *names, const struct cop_listing_entry *listed)
{
	struct cop_fuse *fs = op->fs;
	struct cop_obj *page;
	char dir[PATH_BYTES];
	struct cop_ask ask;
	bool through, answered;

	if (!is_large(names) || listed->has_attr || cop_fuse_path(op->inode, "", 0, dir) < 0 ||
		has_entry(op))
		return false;
	through = goes_through(op->inode, names, cop_listing_seek(names, listed->cookie) - 1);
	ask = cop_fetch_page_ask(dir, names, op->name, op->name_len);
	page = cop_fetch_peek(fs->conf.fetch, &ask);
	if (page) {
		answered = answer_from(op, page);
		cop_obj_put(fs->conf.cache, page);
		return answered;
	}
	if (!through || atomic_load(&op->inode->sweep.failed) == ask.version)
		return false;
	atomic_fetch_add(&op->inode->sweep.paged, 1);
	op->version = ask.version;
	cop_fuse_ask(op, &ask, with_page);
	return true;
}

/* ---- directory reads ---- */

bool cop_fuse_attrs_init(struct attrs *a, struct op *op, const void *names, struct cop_obj *page)
{
	int len;

	if (!op->plus || op->fs->n_places || !is_large(names))
		return false;
	len = cop_fuse_path(op->inode, "", 0, a->dir);
	if (len < 0)
		return false;
	a->op = op;
	a->names = names;
	a->entry = NULL;
	a->page = page ? cop_obj_get(page) : NULL;
	a->index = page ? page->key.index : UINT64_MAX;
	memcpy(a->path, a->dir, (size_t)len);
	a->dir_len = (size_t)len;
	if (len)
		a->path[a->dir_len++] = '/';
	return true;
}

static void drop_object(struct attrs *a, struct cop_obj **obj)
{
	if (*obj)
		cop_obj_put(a->op->fs->conf.cache, *obj);
	*obj = NULL;
}

void cop_fuse_attrs_fini(struct attrs *a)
{
	drop_object(a, &a->page);
	drop_object(a, &a->entry);
}

static const struct cop_obj *find_entry(struct attrs *a, struct cop_listing_entry *e)
{
	drop_object(a, &a->entry);
	if (a->dir_len + e->name_len >= PATH_BYTES)
		return NULL;
	memcpy(a->path + a->dir_len, e->name, e->name_len);
	a->path[a->dir_len + e->name_len] = '\0';
	a->entry = cop_fetch_peek(
		a->op->fs->conf.fetch, &(struct cop_ask){.kind = COP_ASK_ENTRY, .path = a->path});
	if (!a->entry)
		return NULL;
	if (!a->entry->error) {
		cop_entry_get(a->entry->data, &e->attr, &e->target, &e->target_len);
		e->has_attr = true;
	}
	return a->entry;
}

const struct cop_obj *cop_fuse_attrs_find(struct attrs *a, struct cop_listing_entry *e)
{
	const struct cop_obj *entry = find_entry(a, e);
	struct cop_listing_entry got;
	struct cop_ask ask;

	/* An entry's error says more about the name than a page does. */
	if (entry)
		return entry->error ? NULL : entry;
	ask = cop_fetch_page_ask(a->dir, a->names, e->name, e->name_len);
	if (a->index != ask.index) {
		drop_object(a, &a->page);
		a->index = ask.index;
		a->page = cop_fetch_peek(a->op->fs->conf.fetch, &ask);
	}
	if (!a->page || !cop_listing_find(a->page->data, e->name, e->name_len, &got))
		return NULL;
	e->attr = got.attr;
	e->target = got.target;
	e->target_len = got.target_len;
	e->has_attr = true;
	return a->page;
}

static void request_ahead(struct op *op, struct cop_ask ask)
{
	struct cop_obj *obj;

	for (unsigned i = 0; i < AHEAD && ++ask.index < ask.size; i++)
		if (cop_cache_can_reserve(op->fs->conf.cache, COP_PAGE_NAMES * 128) &&
			cop_fetch_get(op->fs->conf.fetch, &ask, NULL, &obj) == 1)
			cop_obj_put(op->fs->conf.cache, obj);
}

bool cop_fuse_attrs_want(
	struct op *op, const void *names, uint32_t entry, char dir[PATH_BYTES], struct cop_ask *ask)
{
	const struct sweep *s = &op->inode->sweep;
	uint32_t at = atomic_load(&s->at);
	struct cop_listing_entry e;

	if (!op->plus || op->fs->n_places || !is_large(names) ||
		entry >= cop_listing_count(names) || atomic_load(&s->run) < run_wanted(names) ||
		entry + GAP < at || entry > at + GAP ||
		atomic_load(&s->failed) == version_of(names) ||
		cop_fuse_path(op->inode, "", 0, dir) < 0)
		return false;
	cop_listing_at(names, entry, &e);
	*ask = cop_fetch_page_ask(dir, names, e.name, e.name_len);
	request_ahead(op, *ask);
	return true;
}

void cop_fuse_attrs_fail(struct op *op, const void *names)
{
	atomic_store(&op->inode->sweep.failed, version_of(names));
}

void cop_fuse_attrs_given(struct op *op, uint32_t entry)
{
	if (entry > atomic_load(&op->inode->sweep.at))
		atomic_store(&op->inode->sweep.at, entry);
}
