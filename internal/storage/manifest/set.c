/* SPDX-License-Identifier: BSD-3-Clause */
/* Items keyed by kind and path. Most files are read contiguously from the start; only the others
 * need an array of ranges, so most items are one small allocation. */
#include "base/base/htab.h"
#include "storage/manifest/manifest.h"

/* Allocator overhead and two chain heads. */
#define OVERHEAD 48

struct record {
	struct cop_hlink link;
	uint64_t order, size;
	int64_t mtime_s;
	struct cop_range one, *more; /* more: an array, if one range is not enough */
	uint32_t mtime_nsec;
	uint8_t kind, ranges, room, unused;
	uint16_t len;
	char path[];
};

struct cop_manifest_set {
	pthread_mutex_t lock;
	struct cop_htab table;
	uint64_t bytes, max_bytes, order;
};

void cop_manifest_range_add(struct cop_manifest_item *item, uint64_t start, uint64_t end)
{
	struct cop_range r[COP_MANIFEST_RANGES_MAX + 1];

	memcpy(r, item->range, item->ranges * sizeof(*r));
	item->ranges = cop_range_add(r, item->ranges, COP_MANIFEST_RANGES_MAX, start, end);
	memcpy(item->range, r, item->ranges * sizeof(*r));
}

static struct record *record_of(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct record, link) : NULL;
}

struct cop_manifest_set *cop_manifest_set_new(uint64_t max_bytes)
{
	struct cop_manifest_set *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->max_bytes = max_bytes;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

void cop_manifest_set_free(struct cop_manifest_set *s)
{
	if (!s)
		return;
	for (struct cop_hlink *l = cop_htab_after(&s->table, NULL), *next; l; l = next) {
		next = cop_htab_after(&s->table, l);
		free(record_of(l)->more);
		free(record_of(l));
	}
	cop_htab_fini(&s->table);
	pthread_mutex_destroy(&s->lock);
	free(s);
}

static bool is_of(const struct record *r, const struct cop_manifest_item *item)
{
	return r->kind == item->kind && r->len == item->len &&
	       memcmp(r->path, item->path, item->len) == 0;
}

static struct record *find_record(
	struct cop_manifest_set *s, uint64_t hash, const struct cop_manifest_item *item)
{
	struct cop_hlink *l = cop_htab_first(&s->table, hash);

	while (l && !is_of(record_of(l), item))
		l = cop_htab_next(l);
	return record_of(l);
}

static struct record *insert_record(
	struct cop_manifest_set *s, uint64_t hash, const struct cop_manifest_item *item)
{
	uint64_t bytes = sizeof(struct record) + item->len + 1 + OVERHEAD;
	struct record *r =
		s->bytes + bytes <= s->max_bytes ? calloc(1, sizeof(*r) + item->len + 1) : NULL;

	if (!r)
		return NULL;
	s->bytes += bytes;
	r->kind = (uint8_t)item->kind;
	r->len = (uint16_t)item->len;
	memcpy(r->path, item->path, item->len);
	r->order = UINT64_MAX;
	cop_htab_add(&s->table, &r->link, hash);
	return r;
}

static void load_item(const struct record *r, struct cop_manifest_item *item)
{
	*item = (struct cop_manifest_item){.kind = (enum cop_manifest_kind)r->kind,
		.path = r->path,
		.len = r->len,
		.size = r->size,
		.mtime_s = r->mtime_s,
		.mtime_nsec = r->mtime_nsec,
		.unused = r->unused,
		.ranges = r->ranges};
	if (r->ranges)
		memcpy(item->range, r->more ? r->more : &r->one, r->ranges * sizeof(r->one));
}

/* Makes room for this many ranges, if memory is available. */
static void make_room(struct cop_manifest_set *s, struct record *r, unsigned ranges)
{
	unsigned room = COP_MAX(r->room, 4);
	struct cop_range *more;
	uint64_t bytes;

	while (room < ranges)
		room *= 2;
	bytes = (room - r->room) * sizeof(*more);
	more = s->bytes + bytes <= s->max_bytes ? realloc(r->more, room * sizeof(*more)) : NULL;
	if (!more)
		return;
	s->bytes += bytes;
	r->more = more;
	r->room = (uint8_t)room;
}

/* If there is no memory for all ranges, stores a single one that covers them. */
static void store_item(
	struct cop_manifest_set *s, struct record *r, const struct cop_manifest_item *item)
{
	if (item->ranges > 1 && item->ranges > r->room)
		make_room(s, r, item->ranges);
	r->ranges = (uint8_t)item->ranges;
	if (item->ranges <= r->room) {
		memcpy(r->more, item->range, item->ranges * sizeof(*r->more));
	} else if (item->ranges) {
		free(r->more);
		s->bytes -= r->room * sizeof(*r->more);
		r->more = NULL;
		r->room = 0;
		r->one =
			(struct cop_range){item->range[0].start, item->range[item->ranges - 1].end};
		r->ranges = 1;
	}
}

static void merge_item(struct cop_manifest_set *s, struct record *r,
	const struct cop_manifest_item *item, uint64_t order)
{
	struct cop_manifest_item both;

	r->order = COP_MIN(r->order, order);
	r->unused = 0;
	if (r->kind != COP_MANIFEST_FILE)
		return;
	r->size = item->size;
	r->mtime_s = item->mtime_s;
	r->mtime_nsec = item->mtime_nsec;
	/* Most reads continue at the end of the previous one, or repeat it. */
	if (r->ranges == 1 && !r->more && item->ranges == 1 &&
		item->range[0].start >= r->one.start && item->range[0].start <= r->one.end) {
		r->one.end = COP_MAX(r->one.end, item->range[0].end);
		return;
	}
	load_item(r, &both);
	for (unsigned i = 0; i < item->ranges; i++)
		cop_manifest_range_add(&both, item->range[i].start, item->range[i].end);
	store_item(s, r, &both);
}

static bool is_valid(const struct cop_manifest_item *item)
{
	return cop_manifest_path_ok(item->path, item->len) &&
	       (item->len || item->kind == COP_MANIFEST_DIR);
}

int cop_manifest_set_add(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, uint64_t order)
{
	uint64_t hash = cop_hash64(item->path, item->len, item->kind);
	struct record *r;

	if (!is_valid(item))
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	r = find_record(s, hash, item);
	if (!r)
		r = insert_record(s, hash, item);
	if (r)
		merge_item(s, r, item, order ? order : ++s->order);
	pthread_mutex_unlock(&s->lock);
	return r ? 0 : -ENOMEM;
}

int cop_manifest_set_keep(
	struct cop_manifest_set *s, const struct cop_manifest_item *item, unsigned unused)
{
	uint64_t hash = cop_hash64(item->path, item->len, item->kind);
	struct record *r;

	if (!is_valid(item))
		return -EINVAL;
	pthread_mutex_lock(&s->lock);
	r = find_record(s, hash, item);
	if (!r) {
		r = insert_record(s, hash, item);
		if (r)
			merge_item(s, r, item, ++s->order);
		if (r)
			r->unused = (uint8_t)COP_MIN(unused, UINT8_MAX);
	}
	pthread_mutex_unlock(&s->lock);
	return r ? 0 : -ENOMEM;
}

size_t cop_manifest_set_count(struct cop_manifest_set *s)
{
	size_t n;

	pthread_mutex_lock(&s->lock);
	n = s->table.count;
	pthread_mutex_unlock(&s->lock);
	return n;
}

/* Most recently needed items first; of those used at the same time, a directory before its
 * contents. */
static int by_order(const void *a, const void *b)
{
	const struct record *x = *(struct record *const *)a, *y = *(struct record *const *)b;
	int names;

	if (x->unused != y->unused)
		return x->unused < y->unused ? -1 : 1;
	if (x->order != y->order)
		return x->order < y->order ? -1 : 1;
	names = memcmp(x->path, y->path, COP_MIN(x->len, y->len));
	if (names || x->len != y->len)
		return names ? names : x->len < y->len ? -1 : 1;
	return x->kind < y->kind ? -1 : x->kind > y->kind;
}

/* Records are freed only with the set, so pointers to them remain valid. */
static struct record **sorted_records(struct cop_manifest_set *s, size_t *count)
{
	struct record **all;
	size_t n = 0;

	pthread_mutex_lock(&s->lock);
	all = calloc(s->table.count ? s->table.count : 1, sizeof(*all));
	for (struct cop_hlink *l = cop_htab_after(&s->table, NULL); l && all;
		l = cop_htab_after(&s->table, l))
		all[n++] = record_of(l);
	if (all)
		qsort(all, n, sizeof(*all), by_order);
	pthread_mutex_unlock(&s->lock);
	*count = n;
	return all;
}

int cop_manifest_set_each(
	struct cop_manifest_set *s, int (*fn)(void *arg, struct cop_manifest_item *item), void *arg)
{
	size_t n;
	struct record **all = sorted_records(s, &n);
	struct cop_manifest_item item;
	int rc = all ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !rc; i++) {
		pthread_mutex_lock(&s->lock);
		load_item(all[i], &item);
		pthread_mutex_unlock(&s->lock);
		rc = fn(arg, &item);
	}
	free(all);
	return rc;
}

bool cop_manifest_set_find(struct cop_manifest_set *s, const struct cop_manifest_item *item,
	struct cop_manifest_item *found)
{
	struct record *r;

	pthread_mutex_lock(&s->lock);
	r = find_record(s, cop_hash64(item->path, item->len, item->kind), item);
	if (r && found)
		load_item(r, found);
	pthread_mutex_unlock(&s->lock);
	return r != NULL;
}

struct writing {
	struct cop_buf *out;
	uint64_t items;
	unsigned unused;
};

static int write_item(void *arg, struct cop_manifest_item *item)
{
	struct writing *w = arg;

	if (item->unused != w->unused)
		cop_buf_printf(w->out, "unused %u\n", item->unused);
	w->unused = item->unused;
	cop_manifest_add(w->out, item);
	w->items++;
	return w->out->failed ? -ENOMEM : 0;
}

int cop_manifest_set_write(
	struct cop_manifest_set *s, struct cop_buf *out, uint64_t *items, unsigned *unused)
{
	struct writing w = {.out = out, .items = *items, .unused = *unused};
	int rc = cop_manifest_set_each(s, write_item, &w);

	*items = w.items;
	*unused = w.unused;
	return rc;
}
