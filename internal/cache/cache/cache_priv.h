/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: each shard has one, for its table, its SIEVE list and the states and waiters of its
 * objects. The reserve lock protects the queues of flights waiting to reserve. The pool's lock is
 * innermost. A shard's lock may be taken under the reserve lock (to evict), never the other way
 * round, and never two shard locks at once. No lock is held while a waiter or a start function is
 * called. leaves() of struct cop_cache_spill is called under a shard's lock. Byte sums are atomic;
 * reservations grow only under the reserve lock and therefore never exceed the limit. */
#ifndef COP_CACHE_PRIV_H
#define COP_CACHE_PRIV_H

#include "base/base/htab.h"
#include "cache/cache/cache.h"

#define SHARDS 16u

enum state { FLYING, COMPLETE };

struct node {
	struct cop_obj obj; /* must be first: a cop_obj is the head of its node */
	_Atomic uint32_t refs;
	_Atomic bool visited;
	enum state state;
	bool in_table, in_sieve, local;
	uint8_t duty; /* enum cop_duty; shares four bytes with the three fields above, to save
			 budget */
	struct cop_hlink link; /* in its shard's table */
	uint64_t born_ms;
	size_t charged;  /* bytes of this node in the budget */
	size_t reserved; /* the part of charged for a buffer that is not filled yet */
	struct cop_list sieve;
	struct cop_list waiters;
	struct cop_list reserve_link; /* in a reservation queue */
	union {
		size_t reserve_bytes; /* bytes to reserve */
		uint64_t order;       /* age of a complete copy among all copies */
	};
	void (*reserve_start)(void *arg);
	void *reserve_arg;
	char path[];
};

struct shard {
	pthread_mutex_t lock;
	struct cop_htab table;
	struct cop_list sieve; /* newest first */
	struct cop_list *hand;
	struct cop_list
		copies; /* objects with COP_DUTY_COPY, which are not in sieve; newest first */
};

/* Queues of flights waiting to reserve: for other nodes, for local programs, for parts of large
 * files with this node as home. */
enum cop_queue { QUEUE_OTHERS, QUEUE_LOCAL, QUEUE_HOME, QUEUES };

#define POOL_MAX 16u

/* Freed buffers of chunk size, for reuse (pool.c). They do not count against the budget; their
 * total is at most a 32nd of it. */
struct pool {
	pthread_mutex_t lock;
	size_t bytes;
	unsigned max, count;
	void *data[POOL_MAX];
};

/* Evicted objects, by hash: the lower half is the number of bytes, the upper half distinguishes
 * hashes in the same slot. A later eviction may overwrite the slot, and a refetch then goes
 * undetected; this is rarer with a smaller budget. */
#define GHOSTS 16384u

/* Estimates the size of all distinct objects, each counted once (distinct.c). */
#define DISTINCT_CLASSES 1024u
struct distinct {
	_Atomic uint8_t rank[DISTINCT_CLASSES];
	_Atomic uint64_t added, bytes; /* of all fetches, including repeated ones */
};

struct cop_cache {
	_Atomic uint64_t ghost[GHOSTS];
	struct distinct data, needed; /* file data: completed with is_data; not kept for a root */
	struct pool pool;
	struct shard shard[SHARDS];
	struct cop_stats *stats;
	struct cop_tracer *tracer;    /* NULL: none */
	struct cop_cache_spill spill; /* zeroed: none */
	uint64_t limit;
	_Atomic uint64_t used;
	_Atomic uint64_t flying; /* reserved by flights */
	/* Parts of flying: for other nodes and local, without and with COP_DUTY_COPY; and with
	 * COP_DUTY_HOME. */
	_Atomic uint64_t flying_plain[2], flying_copies[2], flying_home;
	_Atomic uint64_t copies; /* bytes of complete copies in the lists */
	_Atomic uint64_t next_order;
	_Atomic uint64_t home_bytes;
	_Atomic uint64_t bytes[COP_TABLES], entries[COP_TABLES];
	_Atomic uint64_t flights;
	_Atomic bool starving;       /* for tests: allocations fail after a countdown */
	_Atomic int allocations;     /* the countdown */
	_Atomic unsigned evict_next; /* first shard of the next eviction */
	pthread_mutex_t reserve_lock;
	struct cop_list reserve_queue[QUEUES];
	uint64_t granted[2]; /* bytes granted to each of the first two queues while both had flights
				waiting */
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

/* Whether a test makes this allocation fail. */
static inline bool cop_cache_starves(struct cop_cache *c)
{
	return atomic_load_explicit(&c->starving, memory_order_relaxed) &&
	       atomic_fetch_sub(&c->allocations, 1) <= 0;
}

/* Evicts until `need` more bytes fit into the budget; false if that is impossible. */
bool cop_cache_evict_for(struct cop_cache *c, size_t need);
/* The list of a complete object in its shard. */
static inline struct cop_list *cop_cache_list_of(struct shard *s, const struct node *n)
{
	return n->duty == COP_DUTY_COPY ? &s->copies : &s->sieve;
}
/* Starts the waiting flights that fit now. */
void cop_cache_grant(struct cop_cache *c);
/* Removes n from its shard's table and list. Called with the shard's lock held. */
void cop_cache_unlink(struct cop_cache *c, struct shard *s, struct node *n);
void cop_cache_charge(struct cop_cache *c, struct node *n, size_t bytes);
/* Drops a reference without starting waiting flights that would fit now. */
void cop_cache_unref(struct cop_cache *c, struct node *n);
/* Whether this node keeps the chunk only because its root has no room: with a larger cache there,
 * this node would not have it. */
static inline bool cop_cache_keeps_for_root(const struct node *n)
{
	return n->obj.key.table == COP_TABLE_DATA && n->obj.key.facet == COP_FACET_HOME &&
	       n->duty == COP_DUTY_HOME;
}
/* ghost.c: records an evicted object; counts a new flight for a recorded one. */
void cop_cache_gone(struct cop_cache *c, const struct node *n);
void cop_cache_back(struct cop_cache *c, uint64_t hash);
/* distinct.c: counts a fetched part of a file. */
void cop_cache_distinct_add(struct distinct *d, uint64_t hash, size_t bytes);
void cop_cache_pool_free(struct pool *p);
/* Ends the reservation of a completed flight. */
void cop_cache_unreserve(struct cop_cache *c, struct node *n);

/* ---- size.c ---- */

/* cop_cache_size for a machine with ram bytes of memory, of which the job may use limit. */
uint64_t cop_cache_size_within(uint64_t asked, uint64_t least, uint64_t ram, uint64_t limit,
	char note[COP_CACHE_NOTE_SIZE]);

#endif
