/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: each shard has one, for its table, its SIEVE list and the states and waiters of its
 * objects; the reserve lock guards the queues of flights that wait to reserve; the pool's lock is
 * taken last. A shard's lock may be taken under the reserve lock (to evict), never the other way
 * round, and never two shards at once; none is held while a waiter or a start function is called.
 * Byte sums are atomics; reservations change under the reserve lock only in growing, so that they
 * never pass the limit. */
#ifndef COP_CACHE_PRIV_H
#define COP_CACHE_PRIV_H

#include "base/htab.h"
#include "cache/cache.h"

#define SHARDS 16u

enum state { FLYING, COMPLETE };

struct node {
	struct cop_obj obj; /* first: a cop_obj is the head of its node */
	_Atomic uint32_t refs;
	_Atomic bool visited;
	enum state state;
	bool in_table, in_sieve, local;
	struct cop_hlink link; /* in its shard's table */
	uint64_t born_ms;
	size_t charged;  /* bytes of this node in the budget */
	size_t reserved; /* part of it that stands for a buffer that is not filled */
	struct cop_list sieve;
	struct cop_list waiters;
	struct cop_list reserve_link; /* in the queue to reserve */
	size_t reserve_bytes;
	void (*reserve_start)(void *arg);
	void *reserve_arg;
	char path[];
};

struct shard {
	pthread_mutex_t lock;
	struct cop_htab table;
	struct cop_list sieve; /* newest first */
	struct cop_list *hand;
};

#define POOL_MAX 16u

/* Buffers of one chunk that are kept for the next ones (pool.c); beside the budget, at most a 32nd
 * of it. */
struct pool {
	pthread_mutex_t lock;
	size_t bytes;
	unsigned max, count;
	void *data[POOL_MAX];
};

struct cop_cache {
	struct pool pool;
	struct shard shard[SHARDS];
	struct cop_stats *stats;
	uint64_t limit;
	_Atomic uint64_t used;
	_Atomic uint64_t flying; /* bytes reserved by flights */
	_Atomic uint64_t flying_local;
	_Atomic uint64_t bytes[COP_TABLES], entries[COP_TABLES];
	_Atomic uint64_t flights;
	_Atomic bool starving;       /* for tests: allocations are counted down */
	_Atomic int allocations;     /* that are left */
	_Atomic unsigned evict_next; /* shard where the next eviction starts */
	pthread_mutex_t reserve_lock;
	struct cop_list reserve_queue[2]; /* flights for other nodes; local ones */
	uint64_t granted[2]; /* bytes that each queue was given while both had some waiting */
	_Atomic uint64_t reserve_waiting;
};

static inline struct node *node_of(struct cop_obj *obj)
{
	return (struct node *)obj;
}
static inline struct node *node_at(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct node, link) : NULL;
}
static inline struct shard *shard_of(struct cop_cache *c, uint64_t hash)
{
	return &c->shard[hash >> 60];
}

/* Whether a test wants this allocation to fail. */
static inline bool cop_cache_starves(struct cop_cache *c)
{
	return atomic_load_explicit(&c->starving, memory_order_relaxed) &&
	       atomic_fetch_sub(&c->allocations, 1) <= 0;
}

/* Evicts until need more bytes fit into the budget; false if they cannot. */
bool cop_cache_evict_for(struct cop_cache *c, size_t need);
/* Starts waiting flights that fit now. */
void cop_cache_grant(struct cop_cache *c);
/* Takes n out of its shard's table and list; the lock is held. */
void cop_cache_unlink(struct cop_cache *c, struct shard *s, struct node *n);
void cop_cache_charge(struct cop_cache *c, struct node *n, size_t bytes);
/* Drops a reference without looking for flights that could start now. */
void cop_cache_unref(struct cop_cache *c, struct node *n);
void cop_cache_pool_free(struct pool *p);
/* A flight is complete: its reservation ends. */
void cop_cache_unreserve(struct cop_cache *c, struct node *n);

/* ---- size.c ---- */

/* cop_cache_size where the machine has ram bytes, and the job may use limit of them. */
uint64_t cop_cache_size_within(uint64_t asked, uint64_t least, uint64_t ram, uint64_t limit,
	char note[COP_CACHE_NOTE_SIZE]);

#endif
