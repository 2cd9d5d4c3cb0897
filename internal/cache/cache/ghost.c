/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts evictions of objects that are later fetched again. Only hashes of evicted objects are
 * stored, so a refetch may be missed, or an object mistaken for another; both are rare, and the
 * counts are only for display. */
#include "cache/cache/cache_priv.h"

static _Atomic uint64_t *ghost_of(struct cop_cache *c, uint64_t hash)
{
	return &c->ghost[hash % GHOSTS];
}

void cop_cache_gone(struct cop_cache *c, const struct node *n)
{
	uint64_t hash = n->link.hash, bytes = COP_MIN(n->charged, (size_t)UINT32_MAX);

	atomic_store_explicit(
		ghost_of(c, hash), (hash & ~(uint64_t)UINT32_MAX) | bytes, memory_order_relaxed);
}

void cop_cache_back(struct cop_cache *c, uint64_t hash)
{
	uint64_t ghost = atomic_load_explicit(ghost_of(c, hash), memory_order_relaxed);

	if (!ghost || (ghost ^ hash) >> 32 ||
		!atomic_compare_exchange_strong(ghost_of(c, hash), &ghost, 0))
		return;
	cop_stats_add(c->stats, COP_CACHE_REFETCHES, 1);
	cop_stats_add(c->stats, COP_CACHE_REFETCHED_BYTES, ghost & UINT32_MAX);
}
