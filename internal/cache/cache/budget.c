/* SPDX-License-Identifier: BSD-3-Clause */
/* The byte budget: SIEVE eviction and the queues of flights that wait to reserve their bytes. */
#include "cache/cache/cache_priv.h"

/* Moves the hand around a shard at most twice and evicts one unreferenced object that was not used
 * since the hand last passed it. In SIEVE the hand moves from old to new. */
static struct node *sieve_one(struct cop_cache *c, struct shard *s)
{
	struct cop_list *at = s->hand;
	/* Twice around, because the first pass may only clear bits. */
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

/* The oldest unreferenced copy of a shard, or NULL. Called with its lock held. */
static struct node *oldest_copy(struct shard *s)
{
	for (struct cop_list *at = s->copies.prev; at != &s->copies; at = at->prev) {
		struct node *n = COP_CONTAINER_OF(at, struct node, sieve);

		if (atomic_load(&n->refs) == 1)
			return n;
	}
	return NULL;
}

static struct node *take_copy(struct cop_cache *c, struct shard *s)
{
	struct node *n = oldest_copy(s);

	if (n)
		cop_cache_unlink(c, s, n);
	return n;
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

/* Whether to offer an object to the second tier. Small files that were prefetched with others and
 * never used are not. */
static bool is_worth_keeping(const struct node *n)
{
	return n->obj.key.table == COP_TABLE_DATA && n->duty != COP_DUTY_COPY && n->obj.len &&
	       (atomic_load(&n->obj.uses) || !atomic_load(&n->obj.bundled));
}

static void count_dropped(struct cop_cache *c, const struct node *n)
{
	cop_stats_add(c->stats, COP_CACHE_EVICTIONS, 1);
	cop_stats_add(c->stats, COP_CACHE_EVICTED_BYTES, n->charged);
	if (cop_cache_keeps_for_root(n))
		cop_stats_add(c->stats, COP_CACHE_EVICTED_HOME_BYTES, n->charged);
	else
		cop_cache_gone(c, n);
}

/* n has been removed from its shard, whose lock is still held: a caller that drops the objects of
 * all shards and then those of the second tier misses none in between. */
static enum cop_cache_left pass_on(struct cop_cache *c, struct node *n)
{
	enum cop_cache_left left;
	size_t charged = n->charged;

	if (!c->spill.leaves || !is_worth_keeping(n))
		return COP_CACHE_LEFT_DROPPED;
	/* Another thread may free it as soon as it is taken. */
	n->charged = 0;
	left = c->spill.leaves(c->spill.ctx, &n->obj);
	if (left == COP_CACHE_LEFT_TAKEN)
		atomic_fetch_sub(&c->used, charged);
	else
		n->charged = charged;
	return left;
}

static bool evict_from(struct cop_cache *c, unsigned first,
	struct node *(*take)(struct cop_cache *c, struct shard *s))
{
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[(first + i) % SHARDS];
		enum cop_cache_left left = COP_CACHE_LEFT_TAKEN;
		struct node *n;

		pthread_mutex_lock(&s->lock);
		n = take(c, s);
		if (n && c->tracer)
			trace_eviction(c, n);
		if (n)
			left = pass_on(c, n);
		pthread_mutex_unlock(&s->lock);
		if (!n)
			continue;
		if (left == COP_CACHE_LEFT_DROPPED)
			count_dropped(c, n);
		if (left != COP_CACHE_LEFT_TAKEN)
			cop_cache_unref(c, n);
		return true;
	}
	return false;
}

/* The shard with the globally oldest copy. Copies are read once in order, or forwarded and not read
 * again, so past use is no reason to keep a copy, and the newest have not been read yet. */
static unsigned shard_with_oldest_copy(struct cop_cache *c)
{
	uint64_t oldest = UINT64_MAX;
	unsigned found = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];
		const struct node *n;

		pthread_mutex_lock(&s->lock);
		n = oldest_copy(s);
		if (n && n->order < oldest) {
			oldest = n->order;
			found = i;
		}
		pthread_mutex_unlock(&s->lock);
	}
	return found;
}

static bool evict_copies_for(struct cop_cache *c, size_t need)
{
	while (atomic_load(&c->used) + need > c->limit)
		if (!atomic_load(&c->copies) ||
			!evict_from(c, shard_with_oldest_copy(c), take_copy))
			return false;
	return true;
}

bool cop_cache_evict_for(struct cop_cache *c, size_t need)
{
	while (!evict_copies_for(c, need))
		if (!evict_from(c, atomic_fetch_add(&c->evict_next, 1), sieve_one))
			return false;
	return true;
}

/* Bytes of copies, complete and in flight. */
static uint64_t bytes_of_copies(struct cop_cache *c)
{
	return atomic_load(&c->copies) + atomic_load(&c->flying_copies[false]) +
	       atomic_load(&c->flying_copies[true]);
}

static uint64_t used_by_others(struct cop_cache *c)
{
	uint64_t used = atomic_load(&c->used), copies = bytes_of_copies(c);

	return used - COP_MIN(copies, used);
}

size_t cop_cache_room_for_copies(struct cop_cache *c)
{
	uint64_t others = used_by_others(c);

	return COP_MAX(c->limit - COP_MIN(others, c->limit), c->limit / 8);
}

/* The sum, in addition to c->flying, that includes the flight's reservation. */
static _Atomic uint64_t *flying_with(struct cop_cache *c, const struct node *n)
{
	if (n->duty == COP_DUTY_HOME)
		return &c->flying_home;
	return n->duty == COP_DUTY_COPY ? &c->flying_copies[n->local] : &c->flying_plain[n->local];
}

static void count_flying(struct cop_cache *c, const struct node *n, uint64_t bytes)
{
	atomic_fetch_add(&c->flying, bytes);
	atomic_fetch_add(flying_with(c, n), bytes);
}

void cop_cache_unreserve(struct cop_cache *c, struct node *n)
{
	count_flying(c, n, -(uint64_t)n->reserved);
	n->reserved = 0;
}

/* Whether the flights' share has room for one of this size, regardless of the bytes in use. */
static bool share_left(struct cop_cache *c, size_t bytes, bool local)
{
	uint64_t mine = atomic_load(&c->flying_plain[true]);
	uint64_t all = mine + atomic_load(&c->flying_plain[false]);

	if (all == 0)
		return true;
	if (local && mine + bytes > c->limit / 2)
		return false;
	return all + bytes <= c->limit / 4 * 3;
}

bool cop_cache_is_full(struct cop_cache *c, size_t bytes)
{
	return used_by_others(c) + bytes > c->limit - c->limit / 8 || !share_left(c, bytes, false);
}

/* Whether only local flights in progress prevent this one from starting: it then waits for them and
 * does not block the other queue. */
static bool waits_for_its_own(struct cop_cache *c, const struct node *n, bool local)
{
	uint64_t mine = atomic_load(&c->flying_plain[true]);

	return local && mine && n->reserve_bytes <= c->limit / 2 &&
	       mine + n->reserve_bytes > c->limit / 2;
}

/* The same for a copy. One local copy and one for other nodes may always start. */
static bool share_of_copies_left(struct cop_cache *c, size_t bytes, bool local)
{
	uint64_t room = cop_cache_room_for_copies(c);
	uint64_t mine = atomic_load(&c->flying_copies[local]);
	uint64_t all = mine + atomic_load(&c->flying_copies[!local]);

	if (mine == 0)
		return true;
	if (local && mine + bytes > room / 2)
		return false;
	return all + bytes <= room / 4 * 3;
}

/* Evicts other objects only while copies have less than their eighth, or if there would be no copy
 * in flight. */
static bool evict_for_copy(struct cop_cache *c, size_t bytes, bool local)
{
	return evict_copies_for(c, bytes) || ((bytes_of_copies(c) + bytes <= c->limit / 8 ||
						      atomic_load(&c->flying_copies[local]) == 0) &&
						     cop_cache_evict_for(c, bytes));
}

static bool home_share_left(struct cop_cache *c, size_t bytes)
{
	uint64_t mine = atomic_load(&c->flying_home);

	return mine == 0 || mine + bytes <= c->limit / 2;
}

static bool may_start(struct cop_cache *c, const struct node *n, size_t bytes, bool local)
{
	switch (n->duty) {
	case COP_DUTY_COPY:
		return share_of_copies_left(c, bytes, local) && evict_for_copy(c, bytes, local);
	case COP_DUTY_HOME:
		return home_share_left(c, bytes) && cop_cache_evict_for(c, bytes);
	default:
		return share_left(c, bytes, local) && cop_cache_evict_for(c, bytes);
	}
}

static bool try_reserve(struct cop_cache *c, struct node *n, size_t bytes, bool local)
{
	if (!may_start(c, n, bytes, local))
		return false;
	n->local = local;
	n->reserved += bytes;
	cop_cache_charge(c, n, bytes);
	count_flying(c, n, bytes);
	return true;
}

bool cop_cache_try_reserve(struct cop_cache *c, struct cop_obj *flight, size_t bytes)
{
	bool reserved;

	pthread_mutex_lock(&c->reserve_lock);
	reserved = try_reserve(c, node_of(flight), bytes, false);
	pthread_mutex_unlock(&c->reserve_lock);
	return reserved;
}

void cop_cache_set_duty(struct cop_cache *c, struct cop_obj *flight, enum cop_duty duty)
{
	struct node *n = node_of(flight);

	count_flying(c, n, -(uint64_t)n->reserved);
	n->duty = (uint8_t)duty;
	count_flying(c, n, n->reserved);
}

bool cop_cache_can_reserve(struct cop_cache *c, size_t bytes)
{
	return atomic_load(&c->reserve_waiting) == 0 && bytes < c->limit / 4 &&
	       share_left(c, bytes, true);
}

/* Whether there is a second tier for evicted objects. */
static bool spills(struct cop_cache *c)
{
	uint64_t used, limit = 0;

	if (c->spill.usage)
		c->spill.usage(c->spill.ctx, &used, &limit);
	return limit > 0;
}

bool cop_cache_can_home(struct cop_cache *c, size_t bytes)
{
	return (used_by_others(c) + bytes <= c->limit || spills(c)) && bytes < c->limit / 4 &&
	       home_share_left(c, bytes);
}

bool cop_cache_can_copy(struct cop_cache *c, size_t bytes)
{
	return atomic_load(&c->reserve_waiting) == 0 && bytes <= cop_cache_room_for_copies(c) / 4 &&
	       share_of_copies_left(c, bytes, true);
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

/* Both nodes have the same owner until they complete, so no other thread reads them. */
void cop_cache_share_reservation(
	struct cop_cache *c, struct cop_obj *from, struct cop_obj *to, size_t bytes)
{
	struct node *f = node_of(from), *t = node_of(to);

	count_flying(c, f, -(uint64_t)bytes);
	f->reserved -= bytes;
	f->charged -= bytes;
	t->reserved += bytes;
	t->charged += bytes;
	t->local = f->local;
	count_flying(c, t, bytes);
}

static enum cop_queue queue_of(const struct node *n, bool local)
{
	if (n->duty == COP_DUTY_HOME)
		return QUEUE_HOME;
	return local ? QUEUE_LOCAL : QUEUE_OTHERS;
}

/* Called with reserve_lock held. An empty queue does not accumulate a claim to later bytes. */
static void queue_reservation(struct cop_cache *c, struct node *n, bool local)
{
	n->local = local;
	atomic_fetch_add(&c->reserve_waiting, 1);
	if (queue_of(n, local) == QUEUE_HOME) {
		cop_list_push_back(&c->reserve_queue[QUEUE_HOME], &n->reserve_link);
		return;
	}
	if (cop_list_empty(&c->reserve_queue[local]))
		c->granted[local] = cop_list_empty(&c->reserve_queue[!local])
					    ? 0
					    : COP_MAX(c->granted[local], c->granted[!local]);
	if (cop_list_empty(&c->reserve_queue[!local]))
		c->granted[!local] = c->granted[local];
	cop_list_push_back(&c->reserve_queue[local], &n->reserve_link);
}

/* Whether this flight would overtake waiting flights with precedence. Called with reserve_lock
 * held. */
static bool has_to_queue(const struct cop_cache *c, const struct node *n, bool local)
{
	if (queue_of(n, local) == QUEUE_HOME)
		return !cop_list_empty(&c->reserve_queue[QUEUE_HOME]);
	return !cop_list_empty(&c->reserve_queue[QUEUE_OTHERS]) ||
	       !cop_list_empty(&c->reserve_queue[QUEUE_LOCAL]);
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
	waits = has_to_queue(c, n, local) || !try_reserve(c, n, bytes, local);
	if (waits) {
		/* The waiting flight itself is charged too. */
		cop_cache_evict_for(c, 0);
		queue_reservation(c, n, local);
	}
	pthread_mutex_unlock(&c->reserve_lock);
	if (!waits) {
		start(arg);
		return;
	}
	cop_stats_add(c->stats, COP_CACHE_WAITS, 1);
	/* The flight that blocked this one may have ended before it was queued, or may block only
	 * the flights ahead of it. */
	cop_cache_grant(c);
}

/* Starts the first flight of a queue, if it fits. *blocks: this flight must get freed bytes before
 * the flights in the other of the first two queues. Called with reserve_lock held. */
static struct node *grant_from(struct cop_cache *c, enum cop_queue queue, bool *blocks)
{
	bool local = queue == QUEUE_LOCAL;
	struct node *n;

	*blocks = false;
	if (cop_list_empty(&c->reserve_queue[queue]))
		return NULL;
	n = COP_CONTAINER_OF(c->reserve_queue[queue].next, struct node, reserve_link);
	if (queue == QUEUE_HOME)
		local = n->local;
	if (!try_reserve(c, n, n->reserve_bytes, local)) {
		/* Flights always end. Bytes referenced only by readers may remain in use until a
		 * flight of the other queue has started. */
		*blocks = n->duty == COP_DUTY_NONE && !share_left(c, n->reserve_bytes, local) &&
			  !waits_for_its_own(c, n, local);
		return NULL;
	}
	cop_list_remove(&n->reserve_link);
	atomic_fetch_sub(&c->reserve_waiting, 1);
	if (queue != QUEUE_HOME)
		c->granted[queue] += n->reserve_bytes;
	return n;
}

/* Removes a waiting flight that fits now and reserves its bytes; or returns NULL. The queue with
 * fewer granted bytes while both were waiting comes first. If its first flight waits for others to
 * complete, the other queue does not take the bytes that they free. */
static struct node *grant_one(struct cop_cache *c)
{
	struct node *granted;
	bool first, blocks;

	pthread_mutex_lock(&c->reserve_lock);
	first = c->granted[true] < c->granted[false];
	granted = grant_from(c, QUEUE_HOME, &blocks);
	if (!granted)
		granted = grant_from(c, first ? QUEUE_LOCAL : QUEUE_OTHERS, &blocks);
	if (!granted && !blocks)
		granted = grant_from(c, first ? QUEUE_OTHERS : QUEUE_LOCAL, &blocks);
	pthread_mutex_unlock(&c->reserve_lock);
	return granted;
}

/* A flight that fails on start frees its bytes for the next one and calls this function
 * recursively; the loop that started it continues. */
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
