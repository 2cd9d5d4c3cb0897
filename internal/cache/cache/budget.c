/* SPDX-License-Identifier: BSD-3-Clause */
/* The byte budget: SIEVE eviction and the queue of flights that wait to reserve their bytes. */
#include "cache/cache/cache_priv.h"

/* Moves the hand of one shard around at most twice, and removes one object that nobody references
 * and that was not used since the hand last passed it. SIEVE: the hand moves from old to new. */
static struct node *sieve_one(struct cop_cache *c, struct shard *s)
{
	struct cop_list *at = s->hand;
	/* Twice around, because the first time may only clear bits. */
	size_t steps = 2 * s->table.count + 2;

	while (steps-- && !cop_list_empty(&s->sieve)) {
		struct node *n;

		if (at == &s->sieve) {
			at = at->prev;
			continue;
		}
		n = COP_CONTAINER_OF(at, struct node, sieve);
		at = at->prev;
		if (atomic_load(&n->refs) > 1)
			continue;
		if (atomic_exchange_explicit(&n->visited, false, memory_order_relaxed))
			continue;
		s->hand = at;
		cop_cache_unlink(c, s, n);
		return n;
	}
	s->hand = at;
	return NULL;
}

static void trace_eviction(struct cop_cache *c, const struct node *n)
{
	static const char *const tables[COP_TABLES] = {[COP_TABLE_METADATA] = "metadata",
		[COP_TABLE_TREE] = "tree",
		[COP_TABLE_DATA] = "data"};
	const struct cop_key *key = &n->obj.key;
	const struct cop_tracer_arg args[] = {{.key = "table", .text = tables[key->table]},
		{.key = "index", .value = (int64_t)key->index},
		{.key = "bytes", .value = (int64_t)n->charged}};
	struct cop_tracer_event e = {.phase = COP_TRACER_SPAN,
		.name = "evict",
		.begin_ns = cop_now_ns(),
		.path = key->path,
		.path_len = key->path_len,
		.arg = args,
		.args = COP_ARRAY_SIZE(args)};

	e.end_ns = e.begin_ns;
	cop_tracer_event(c->tracer, &e);
}

static bool evict_one(struct cop_cache *c)
{
	unsigned first = atomic_fetch_add(&c->evict_next, 1);

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[(first + i) % SHARDS];
		struct node *n;

		pthread_mutex_lock(&s->lock);
		n = sieve_one(c, s);
		pthread_mutex_unlock(&s->lock);
		if (n) {
			cop_stats_add(c->stats, COP_CACHE_EVICTIONS, 1);
			cop_stats_add(c->stats, COP_CACHE_EVICTED_BYTES, n->charged);
			cop_cache_gone(c, n);
			if (c->tracer)
				trace_eviction(c, n);
			cop_cache_unref(c, n);
			return true;
		}
	}
	return false;
}

bool cop_cache_evict_for(struct cop_cache *c, size_t need)
{
	while (atomic_load(&c->used) + need > c->limit)
		if (!evict_one(c))
			return false;
	return true;
}

void cop_cache_unreserve(struct cop_cache *c, struct node *n)
{
	atomic_fetch_sub(&c->flying, n->reserved);
	if (n->local)
		atomic_fetch_sub(&c->flying_local, n->reserved);
	n->reserved = 0;
}

/* Whether a flight of this size may start now, regardless of the bytes in use. */
static bool share_left(struct cop_cache *c, size_t bytes, bool local)
{
	uint64_t all = atomic_load(&c->flying), mine = atomic_load(&c->flying_local);

	if (all == 0)
		return true;
	if (local && mine + bytes > c->limit / 2)
		return false;
	return all + bytes <= c->limit / 4 * 3;
}

/* Whether only local flights that have started keep this one from starting: it then waits for those
 * and blocks nobody. */
static bool waits_for_its_own(struct cop_cache *c, const struct node *n, bool local)
{
	uint64_t mine = atomic_load(&c->flying_local);

	return local && mine && n->reserve_bytes <= c->limit / 2 &&
	       mine + n->reserve_bytes > c->limit / 2;
}

static bool try_reserve(struct cop_cache *c, struct node *n, size_t bytes, bool local)
{
	if (!share_left(c, bytes, local) || !cop_cache_evict_for(c, bytes))
		return false;
	n->local = local;
	n->reserved += bytes;
	cop_cache_charge(c, n, bytes);
	atomic_fetch_add(&c->flying, bytes);
	if (local)
		atomic_fetch_add(&c->flying_local, bytes);
	return true;
}

bool cop_cache_can_reserve(struct cop_cache *c, size_t bytes)
{
	return atomic_load(&c->reserve_waiting) == 0 && bytes < c->limit / 4 &&
	       share_left(c, bytes, true);
}

bool cop_cache_has_headroom(struct cop_cache *c, size_t bytes)
{
	return cop_cache_can_reserve(c, bytes) &&
	       atomic_load(&c->used) + bytes <= c->limit - c->limit / 8;
}

size_t cop_cache_largest(const struct cop_cache *c)
{
	return c->limit - c->limit / 8;
}

bool cop_cache_reserve_more(struct cop_cache *c, struct cop_obj *flight, size_t bytes)
{
	struct node *n = node_of(flight);
	bool grown;

	pthread_mutex_lock(&c->reserve_lock);
	grown = bytes <= n->reserved || try_reserve(c, n, bytes - n->reserved, n->local);
	pthread_mutex_unlock(&c->reserve_lock);
	return grown;
}

void cop_cache_end_reservation(struct cop_cache *c, struct cop_obj *flight)
{
	struct node *n = node_of(flight);
	size_t bytes = n->reserved;

	cop_cache_unreserve(c, n);
	n->charged -= bytes;
	atomic_fetch_sub(&c->used, bytes);
}

/* Both belong to one owner until they complete, so nothing else reads them, and the sums do not
 * change. */
void cop_cache_share_reservation(struct cop_obj *from, struct cop_obj *to, size_t bytes)
{
	struct node *f = node_of(from), *t = node_of(to);

	f->reserved -= bytes;
	f->charged -= bytes;
	t->reserved += bytes;
	t->charged += bytes;
	t->local = f->local;
}

/* Under reserve_lock. A queue earns no claim while no flight waits in it. */
static void queue_reservation(struct cop_cache *c, struct node *n, bool local)
{
	if (cop_list_empty(&c->reserve_queue[local]))
		c->granted[local] = cop_list_empty(&c->reserve_queue[!local])
					    ? 0
					    : COP_MAX(c->granted[local], c->granted[!local]);
	if (cop_list_empty(&c->reserve_queue[!local]))
		c->granted[!local] = c->granted[local];
	cop_list_push_back(&c->reserve_queue[local], &n->reserve_link);
	atomic_fetch_add(&c->reserve_waiting, 1);
}

void cop_cache_reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes, bool local,
	void (*start)(void *arg), void *arg)
{
	struct node *n = node_of(flight);
	bool waits;

	n->reserve_bytes = bytes;
	n->reserve_start = start;
	n->reserve_arg = arg;
	pthread_mutex_lock(&c->reserve_lock);
	waits = atomic_load(&c->reserve_waiting) || !try_reserve(c, n, bytes, local);
	if (waits)
		queue_reservation(c, n, local);
	pthread_mutex_unlock(&c->reserve_lock);
	if (!waits) {
		start(arg);
		return;
	}
	cop_stats_add(c->stats, COP_CACHE_WAITS, 1);
	/* What blocked this flight may have ended before it was queued, or may block only the
	 * flights ahead of it. */
	cop_cache_grant(c);
}

/* Under reserve_lock: starts the first flight of a queue, if it fits. *blocks: freed bytes go to
 * this flight before the other queue. */
static struct node *grant_from(struct cop_cache *c, bool local, bool *blocks)
{
	struct node *n;

	*blocks = false;
	if (cop_list_empty(&c->reserve_queue[local]))
		return NULL;
	n = COP_CONTAINER_OF(c->reserve_queue[local].next, struct node, reserve_link);
	if (!try_reserve(c, n, n->reserve_bytes, local)) {
		/* Flights end by themselves. Bytes that only readers hold may stay in use until a
		 * flight of the other queue has started. */
		*blocks =
			!share_left(c, n->reserve_bytes, local) && !waits_for_its_own(c, n, local);
		return NULL;
	}
	cop_list_remove(&n->reserve_link);
	atomic_fetch_sub(&c->reserve_waiting, 1);
	c->granted[local] += n->reserve_bytes;
	return n;
}

/* Removes a waiting flight that fits now and reserves its bytes; or NULL. The queue that got fewer
 * bytes while both waited comes first. If its first flight waits for others to complete, the other
 * queue does not take the bytes that they free. */
static struct node *grant_one(struct cop_cache *c)
{
	struct node *granted;
	bool first, blocks;

	pthread_mutex_lock(&c->reserve_lock);
	first = c->granted[true] < c->granted[false];
	granted = grant_from(c, first, &blocks);
	if (!granted && !blocks)
		granted = grant_from(c, !first, &blocks);
	pthread_mutex_unlock(&c->reserve_lock);
	return granted;
}

/* A flight that fails when it starts frees its bytes for the next one and calls this function
 * again; the loop that started it continues. */
void cop_cache_grant(struct cop_cache *c)
{
	static __thread struct cop_cache *granting;
	struct cop_cache *outer = granting;
	struct node *n;

	if (granting == c)
		return;
	granting = c;
	while (atomic_load(&c->reserve_waiting) && (n = grant_one(c)))
		n->reserve_start(n->reserve_arg);
	granting = outer;
}
