/* SPDX-License-Identifier: BSD-3-Clause */
/* The most used paths over all ranks: sums by category and path, in bounded memory. */
#include "writers/cluster/cluster_priv.h"

const char *const cop_report_category[COP_REPORT_CATEGORIES] = {
	"metadata", "data", "tree", "metadata_ttl"};

int cop_report_category_of(const char *name)
{
	for (int c = 0; c < COP_REPORT_CATEGORIES; c++)
		if (strcmp(name, cop_report_category[c]) == 0)
			return c;
	return -EINVAL;
}

/* No seed against hash flooding is needed: the table is bounded, and no other process waits for
 * this one. */
static uint64_t hash_of(unsigned category, const char *path, size_t len)
{
	return cop_hash64(path, len, category);
}

static struct hot_path *find(
	const struct hot *h, unsigned category, const char *path, size_t len, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(&h->table, hash);

	for (; l; l = cop_htab_next(l)) {
		struct hot_path *p = COP_CONTAINER_OF(l, struct hot_path, link);

		if (p->category == category && p->len == len && memcmp(p->text, path, len) == 0)
			return p;
	}
	return NULL;
}

int cop_report_hot_add(struct hot *h, unsigned category, const char *path, size_t len,
	const uint64_t counts[COP_REPORT_TOP_COUNTS])
{
	uint64_t hash = hash_of(category, path, len);
	struct hot_path *p = find(h, category, path, len, hash);

	if (!p && (h->arena.bytes > HOT_BYTES_MAX || len > COP_PATHSET_LEN_MAX)) {
		h->full = true;
		return 0;
	}
	if (!p) {
		p = cop_walk_arena_alloc(&h->arena, sizeof(*p) + len + 1);
		if (!p)
			return -ENOMEM;
		*p = (struct hot_path){.len = (uint32_t)len, .category = (uint8_t)category};
		memcpy(p->text, path, len);
		p->text[len] = '\0';
		cop_htab_add(&h->table, &p->link, hash);
	}
	for (unsigned i = 0; i < COP_REPORT_TOP_COUNTS; i++)
		p->count[i] = cop_add_saturating(p->count[i], counts[i]);
	return 0;
}

static const struct hot_path *next(const struct hot *h, const struct hot_path *p)
{
	struct cop_hlink *l = cop_htab_after(&h->table, p ? (struct cop_hlink *)&p->link : NULL);

	return l ? COP_CONTAINER_OF(l, struct hot_path, link) : NULL;
}

int cop_report_hot_merge(struct hot *into, const struct hot *from)
{
	int rc = 0;

	into->full |= from->full;
	for (const struct hot_path *p = NULL; !rc && (p = next(from, p));)
		rc = cop_report_hot_add(into, p->category, p->text, p->len, p->count);
	return rc;
}

void cop_report_hot_clear(struct hot *h)
{
	cop_htab_fini(&h->table);
	cop_walk_arena_free(&h->arena);
	*h = (struct hot){0};
}

static int by_use(const void *a, const void *b)
{
	const struct hot_path *x = *(const struct hot_path *const *)a,
			      *y = *(const struct hot_path *const *)b;
	uint64_t i = x->count[COP_REPORT_TOP_EVENTS], k = y->count[COP_REPORT_TOP_EVENTS];

	if (i != k)
		return i > k ? -1 : 1;
	return strcmp(x->text, y->text);
}

size_t cop_report_hot_list(const struct hot *h, unsigned category, const struct hot_path ***out)
{
	const struct hot_path **list = calloc(h->table.count + 1, sizeof(struct hot_path *));
	size_t n = 0;

	for (const struct hot_path *p = NULL; list && (p = next(h, p));)
		if (p->category == category && p->count[COP_REPORT_TOP_EVENTS])
			list[n++] = p;
	if (n)
		qsort(list, n, sizeof(*list), by_use);
	*out = list;
	return n;
}
