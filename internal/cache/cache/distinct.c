/* SPDX-License-Identifier: BSD-3-Clause */
/* Estimates the amount of distinct data, for advice. A cache that fetches an object repeatedly must
 * count it once, but cannot remember every object. HyperLogLog (Flajolet, Fusy, Gandouet, Meunier,
 * 2007): each hash selects a class, which stores the longest run of leading zeros among its hashes.
 * The number of distinct hashes is estimated from these runs within 3 %, and more precisely from
 * the number of empty classes while most classes are empty; multiplied by the mean size of all
 * fetched objects, it gives the number of bytes. */
#include <math.h>

#include "cache/cache/cache_priv.h"

void cop_cache_distinct_add(struct distinct *d, uint64_t hash, size_t bytes)
{
	_Atomic uint8_t *at = &d->rank[hash % DISTINCT_CLASSES];
	uint8_t rank = (uint8_t)(1 + __builtin_clzll(hash | DISTINCT_CLASSES)),
		was = atomic_load_explicit(at, memory_order_relaxed);

	while (was < rank && !atomic_compare_exchange_weak(at, &was, rank))
		;
	atomic_fetch_add_explicit(&d->added, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&d->bytes, bytes, memory_order_relaxed);
}

static double estimate_count(const struct distinct *d)
{
	double m = DISTINCT_CLASSES, sum = 0, count;
	unsigned empty = 0;

	for (unsigned i = 0; i < DISTINCT_CLASSES; i++) {
		uint8_t rank = atomic_load_explicit(
			&((struct distinct *)d)->rank[i], memory_order_relaxed);

		sum += ldexp(1, -rank);
		empty += rank == 0;
	}
	count = 0.7213 / (1 + 1.079 / m) * m * m / sum;
	return count <= 2.5 * m && empty ? m * log(m / empty) : count;
}

static uint64_t estimate_bytes(const struct distinct *d)
{
	uint64_t added = atomic_load(&((struct distinct *)d)->added),
		 bytes = atomic_load(&((struct distinct *)d)->bytes);
	double count = estimate_count(d);

	return count < (double)added ? (uint64_t)((double)bytes / (double)added * count) : bytes;
}

void cop_cache_seen(struct cop_cache *c, struct cop_cache_seen *out)
{
	out->data_bytes = estimate_bytes(&c->data);
	out->needed_bytes = estimate_bytes(&c->needed) + atomic_load(&c->bytes[COP_TABLE_TREE]) +
			    atomic_load(&c->bytes[COP_TABLE_METADATA]);
}
