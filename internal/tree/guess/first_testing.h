/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of first.c: "d" has so many names that its listing has no attributes. Node 2
 * sends requests to node 1, and node 1 to the root. */
#ifndef COP_TREE_GUESS_FIRST_TESTING_H
#define COP_TREE_GUESS_FIRST_TESTING_H

#include "tree/guess/guess_priv.h"

#define FILES (COP_ORIGIN_LISTING_ATTRS + 6)
#define LEN 3000u
#define LEAF 2u
#define BUDGET (4 << 20)

static inline const char *path_of(unsigned i)
{
	static char path[FILES][16];

	snprintf(path[i], sizeof(path[i]), "d/f%02u.py", i);
	return path[i];
}

static inline void fill(struct tree *t, unsigned i, uint8_t with)
{
	uint8_t data[LEN];

	memset(data, with, sizeof(data));
	put_file(t, path_of(i), data, LEN);
}

static inline struct tree *open_nodes(uint32_t count, uint64_t budget)
{
	struct tree *t;

	bundle = true;
	t = open_tree(count, 1, 1, budget);
	for (unsigned i = 0; i < FILES; i++)
		fill(t, i, (uint8_t)i);
	assert_int_equal(ask_and_forget(t, count - 1, listing("d")), 0);
	return t;
}

static inline struct cop_ask entry(const char *path)
{
	return (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path};
}

static inline uint64_t stat_of(struct tree *t, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&t->node[rank].stats, c);
}

static inline size_t reads_of(struct tree *t, uint32_t rank)
{
	return cop_origin_fake_counts(t->node[rank].origin).reads;
}

static inline size_t stats_of(struct tree *t, uint32_t rank)
{
	return cop_origin_fake_counts(t->node[rank].origin).stats;
}

/* The entry on this node, which must be a file's. */
static inline struct cop_attr known(struct tree *t, uint32_t rank, const char *path)
{
	struct cop_ask what = entry(path);
	struct cop_obj *obj = cop_fetch_peek(t->node[rank].fetch, &what);
	struct cop_attr attr;

	assert_non_null(obj);
	assert_int_equal(obj->error, 0);
	cop_entry_get(obj->data, &attr, NULL, NULL);
	cop_obj_put(t->node[rank].cache, obj);
	return attr;
}

/* Whether this node has the bytes of a file with a cached entry. */
static inline bool has_bytes(struct tree *t, uint32_t rank, const char *path)
{
	struct cop_attr attr = known(t, rank, path);
	struct cop_ask what = chunk(&attr, path, 0);
	struct cop_obj *obj = cop_fetch_peek(t->node[rank].fetch, &what);

	if (obj)
		cop_obj_put(t->node[rank].cache, obj);
	return obj != NULL;
}

static inline bool knows(struct tree *t, uint32_t rank, struct cop_ask what)
{
	struct cop_obj *obj = cop_fetch_peek(t->node[rank].fetch, &what);

	if (obj)
		cop_obj_put(t->node[rank].cache, obj);
	return obj != NULL;
}

static inline void looks_up(struct tree *t, uint32_t rank, const char *path)
{
	assert_int_equal(ask_and_forget(t, rank, entry(path)), 0);
}

static inline void reads_as(struct tree *t, uint32_t rank, unsigned i, uint8_t with)
{
	struct cop_attr attr = known(t, rank, path_of(i));
	uint8_t out[LEN];
	const void *data;
	struct asked a;

	ask_fetch(t, rank, chunk(&attr, path_of(i), 0), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_fetch_chunk_part(a.obj, 0, LEN, out, &data), 0);
	for (unsigned at = 0; at < LEN; at++)
		assert_int_equal(((const uint8_t *)data)[at], with);
	cop_fetch_used(a.node->fetch, a.obj);
	forget(&a);
}

/* A program opens it (which includes a lookup) and reads it. */
static inline void opens(struct tree *t, uint32_t rank, unsigned i)
{
	looks_up(t, rank, path_of(i));
	reads_as(t, rank, i, (uint8_t)i);
}

/* All reservations of flights have been released: only complete objects are charged. */
static inline void nothing_is_reserved(struct tree *t)
{
	for (uint32_t r = 0; r < t->count; r++) {
		struct cop_cache_usage u;
		uint64_t tables = 0;

		cop_cache_usage(t->node[r].cache, &u);
		for (unsigned i = 0; i < COP_TABLES; i++)
			tables += u.table[i].bytes;
		assert_int_equal(u.flights, 0);
		assert_int_equal(u.used_bytes, tables);
	}
}

#endif
