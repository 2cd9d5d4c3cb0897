/* SPDX-License-Identifier: BSD-3-Clause */
#include "cache/cache/cache_priv.h"

#include <assert.h>

static uint64_t key_hash(const struct cop_key *key)
{
	uint64_t seed = ((uint64_t)key->table << 8 | key->facet) +
			key->version * 0x9e3779b97f4a7c15ULL + key->index * 0xc2b2ae3d27d4eb4fULL +
			key->size * 0x165667b19e3779f9ULL;

	return cop_hash64(key->path, key->path_len, seed);
}

static bool key_is(const struct node *n, const struct cop_key *key)
{
	const struct cop_key *k = &n->obj.key;

	return k->table == key->table && k->facet == key->facet && k->version == key->version &&
	       k->size == key->size && k->index == key->index && k->path_len == key->path_len &&
	       memcmp(k->path, key->path, key->path_len) == 0;
}

const char *cop_table_name(enum cop_table t)
{
	static const char *const names[COP_TABLES] = {"data", "tree", "metadata"};

	return names[t];
}

struct cop_cache *cop_cache_new(uint64_t limit_bytes, struct cop_stats *stats)
{
	struct cop_cache *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->limit = limit_bytes;
	c->stats = stats;
	pthread_mutex_init(&c->reserve_lock, NULL);
	pthread_mutex_init(&c->pool.lock, NULL);
	for (unsigned i = 0; i < QUEUES; i++)
		cop_list_init(&c->reserve_queue[i]);
	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];

		pthread_mutex_init(&s->lock, NULL);
		cop_list_init(&s->sieve);
		cop_list_init(&s->copies);
		s->hand = &s->sieve;
	}
	return c;
}

void cop_cache_free(struct cop_cache *c)
{
	if (!c)
		return;
	cop_cache_drop_under(c, "");
	assert(atomic_load(&c->flights) == 0);
	for (unsigned i = 0; i < SHARDS; i++) {
		cop_htab_fini(&c->shard[i].table);
		pthread_mutex_destroy(&c->shard[i].lock);
	}
	cop_cache_pool_free(&c->pool);
	pthread_mutex_destroy(&c->pool.lock);
	pthread_mutex_destroy(&c->reserve_lock);
	free(c);
}

void cop_cache_trace(struct cop_cache *c, struct cop_tracer *tracer)
{
	c->tracer = tracer;
}

void cop_cache_spill(struct cop_cache *c, const struct cop_cache_spill *spill)
{
	c->spill = *spill;
}

static struct node *find_node(struct shard *s, uint64_t hash, const struct cop_key *key)
{
	struct cop_hlink *l = cop_htab_first(&s->table, hash);

	while (l && !key_is(node_at(l), key))
		l = cop_htab_next(l);
	return node_at(l);
}

void cop_cache_charge(struct cop_cache *c, struct node *n, size_t bytes)
{
	n->charged += bytes;
	atomic_fetch_add(&c->used, bytes);
}

static struct node *new_node(struct cop_cache *c, const struct cop_key *key)
{
	struct node *n = cop_cache_starves(c) ? NULL : calloc(1, sizeof(*n) + key->path_len + 1);

	if (!n)
		return NULL;
	memcpy(n->path, key->path, key->path_len);
	n->obj.key = *key;
	n->obj.key.path = n->path;
	n->born_ms = cop_now_ms();
	cop_list_init(&n->sieve);
	cop_list_init(&n->waiters);
	cop_list_init(&n->reserve_link);
	cop_cache_charge(c, n, sizeof(*n) + key->path_len + 1);
	return n;
}

static void insert_node(struct shard *s, struct node *n, uint64_t hash)
{
	n->in_table = true;
	cop_htab_add(&s->table, &n->link, hash);
}

/* Inserts a new flight into the table, with one reference for the table and one for the leader. */
static struct node *new_flight(
	struct cop_cache *c, struct shard *s, uint64_t hash, const struct cop_key *key)
{
	struct node *n = new_node(c, key);

	if (!n)
		return NULL;
	atomic_init(&n->refs, 2);
	insert_node(s, n, hash);
	atomic_fetch_add(&c->flights, 1);
	return n;
}

int cop_cache_find(struct cop_cache *c, const struct cop_key *key, struct cop_waiter *waiter,
	struct cop_obj **obj)
{
	uint64_t hash = key_hash(key);
	struct shard *s = shard_of(c, hash);
	struct node *n;
	int found;

	pthread_mutex_lock(&s->lock);
	n = find_node(s, hash, key);
	if (n && n->state == COMPLETE) {
		atomic_store_explicit(&n->visited, true, memory_order_relaxed);
		atomic_fetch_add(&n->refs, 1);
		found = COP_FOUND_HIT;
	} else {
		found = n ? COP_FOUND_JOINED : COP_FOUND_LEAD;
		if (!n)
			n = new_flight(c, s, hash, key);
		if (n && waiter)
			cop_list_push_back(&n->waiters, &waiter->link);
	}
	pthread_mutex_unlock(&s->lock);
	if (!n)
		return -ENOMEM;
	if (found == COP_FOUND_LEAD)
		cop_cache_back(c, hash);
	cop_stats_add(c->stats,
		found == COP_FOUND_HIT      ? COP_CACHE_HITS
		: found == COP_FOUND_JOINED ? COP_CACHE_JOINS
					    : COP_CACHE_MISSES,
		1);
	*obj = &n->obj;
	return found;
}

bool cop_cache_raise_priority(struct cop_cache *c, const struct cop_key *key)
{
	uint64_t hash = key_hash(key);
	struct shard *s = shard_of(c, hash);
	struct node *n;
	bool first;

	pthread_mutex_lock(&s->lock);
	n = find_node(s, hash, key);
	first = n && n->state == FLYING && atomic_exchange(&n->obj.background, false);
	pthread_mutex_unlock(&s->lock);
	return first;
}

enum cop_held cop_cache_look(struct cop_cache *c, const struct cop_key *key, struct cop_obj **obj)
{
	uint64_t hash = key_hash(key);
	struct shard *s = shard_of(c, hash);
	enum cop_held held;
	struct node *n;

	pthread_mutex_lock(&s->lock);
	n = find_node(s, hash, key);
	held = !n ? COP_HELD_NOT : n->state == COMPLETE ? COP_HELD_COMPLETE : COP_HELD_FLYING;
	if (obj && held == COP_HELD_COMPLETE)
		atomic_fetch_add(&n->refs, 1);
	pthread_mutex_unlock(&s->lock);
	if (obj)
		*obj = held == COP_HELD_COMPLETE ? &n->obj : NULL;
	return held;
}

bool cop_cache_has(struct cop_cache *c, const struct cop_key *key)
{
	return cop_cache_look(c, key, NULL) != COP_HELD_NOT;
}

bool cop_cache_has_soon(struct cop_cache *c, const struct cop_key *key)
{
	uint64_t hash = key_hash(key);
	struct shard *s = shard_of(c, hash);
	struct node *n;
	bool has;

	pthread_mutex_lock(&s->lock);
	n = find_node(s, hash, key);
	has = n && (n->state == COMPLETE || atomic_load(&n->obj.reading));
	pthread_mutex_unlock(&s->lock);
	return has;
}

struct cop_obj *cop_cache_peek(struct cop_cache *c, const struct cop_key *key)
{
	struct cop_obj *obj;

	cop_cache_look(c, key, &obj);
	return obj;
}

struct cop_obj *cop_obj_get(struct cop_obj *obj)
{
	atomic_fetch_add(&node_of(obj)->refs, 1);
	return obj;
}

static __thread unsigned locks_held;

void cop_cache_locked(void)
{
	locks_held++;
}

void cop_cache_unlocked(void)
{
	locks_held--;
}

void cop_cache_unref(struct cop_cache *c, struct node *n)
{
	if (atomic_fetch_sub(&n->refs, 1) != 1)
		return;
	atomic_fetch_sub(&c->used, n->charged);
	cop_cache_release(c, n->obj.data, n->obj.len);
	free(n);
}

void cop_obj_put(struct cop_cache *c, struct cop_obj *obj)
{
	assert(!locks_held);
	cop_cache_unref(c, node_of(obj));
	cop_cache_grant(c);
}

/* Accounts for an object that is added to or removed from its shard's list. */
static void count_listed(struct cop_cache *c, const struct node *n, bool enters)
{
	uint64_t bytes = enters ? n->charged : -(uint64_t)n->charged;

	atomic_fetch_add(&c->bytes[n->obj.key.table], bytes);
	atomic_fetch_add(&c->entries[n->obj.key.table], enters ? 1 : -(uint64_t)1);
	if (n->duty == COP_DUTY_COPY)
		atomic_fetch_add(&c->copies, bytes);
	else if (n->duty == COP_DUTY_HOME)
		atomic_fetch_add(&c->home_bytes, bytes);
}

void cop_cache_unlink(struct cop_cache *c, struct shard *s, struct node *n)
{
	cop_htab_remove(&s->table, &n->link);
	n->in_table = false;
	if (n->in_sieve) {
		if (s->hand == &n->sieve)
			s->hand = n->sieve.prev;
		cop_list_remove(&n->sieve);
		n->in_sieve = false;
		count_listed(c, n, false);
	}
}

static void keep_complete(struct cop_cache *c, struct shard *s, struct node *n)
{
	n->in_sieve = true;
	if (n->duty == COP_DUTY_COPY)
		n->order = atomic_fetch_add(&c->next_order, 1);
	cop_list_push_front(cop_cache_list_of(s, n), &n->sieve);
	count_listed(c, n, true);
}

/* The flight becomes an object; its waiters move to *waiters. Called with the lock held. */
static void complete_flight(
	struct cop_cache *c, struct shard *s, struct node *n, bool keep, struct cop_list *waiters)
{
	assert(n->state == FLYING);
	n->state = COMPLETE;
	cop_list_splice(waiters, &n->waiters);
	if (!n->in_table)
		return;
	if (keep) {
		keep_complete(c, s, n);
	} else {
		cop_cache_unlink(c, s, n);
		atomic_fetch_sub(&n->refs, 1);
	}
}

/* Sets the object's data, which may be larger or smaller than the reservation; false if it exceeds
 * the budget. */
static bool fill_object(struct cop_cache *c, struct node *n, const struct cop_completion *l)
{
	size_t reserved = n->reserved, len = l->rc ? 0 : l->len;
	bool fits;

	cop_cache_unreserve(c, n);
	fits = len <= reserved || cop_cache_evict_for(c, len - reserved);
	atomic_fetch_sub(&c->used, reserved);
	n->charged -= reserved;
	cop_cache_charge(c, n, len);
	if (l->rc)
		cop_cache_release(c, l->data, l->len);
	n->obj.error = l->rc;
	n->obj.data = l->rc ? NULL : l->data;
	n->obj.len = len;
	n->obj.sum = l->sum;
	n->obj.packed = l->packed;
	n->obj.from = (uint8_t)l->from;
	n->obj.completed_ms = cop_now_ms();
	n->obj.came_ms = n->obj.completed_ms;
	atomic_store(&n->obj.stamp_ms, n->obj.completed_ms);
	return fits;
}

/* Counts a fetched part of a file. */
static void count_part(struct cop_cache *c, const struct node *n, bool is_data)
{
	cop_stats_add(c->stats, COP_CACHE_FETCHED_BYTES, n->obj.len);
	if (is_data)
		cop_cache_distinct_add(&c->data, n->link.hash, n->charged);
	if (!cop_cache_keeps_for_root(n))
		cop_cache_distinct_add(&c->needed, n->link.hash, n->charged);
}

void cop_cache_complete(
	struct cop_cache *c, struct cop_obj *flight, const struct cop_completion *completion)
{
	struct node *n = node_of(flight);
	struct shard *s = shard_of(c, n->link.hash);
	struct cop_list waiters, *w;
	bool fits;

	assert(!locks_held);
	fits = fill_object(c, n, completion);
	if (!completion->rc && flight->key.table == COP_TABLE_DATA)
		count_part(c, n, completion->is_data);
	cop_list_init(&waiters);
	pthread_mutex_lock(&s->lock);
	complete_flight(c, s, n, completion->keep && fits, &waiters);
	pthread_mutex_unlock(&s->lock);
	atomic_fetch_sub(&c->flights, 1);
	while ((w = cop_list_pop_front(&waiters))) {
		struct cop_waiter *waiter = COP_CONTAINER_OF(w, struct cop_waiter, link);

		waiter->completed(waiter, flight, completion->rc);
	}
	cop_obj_put(c, flight);
}

/* Called with the lock held. */
static bool only_guesses_wait(const struct node *n)
{
	for (const struct cop_list *at = n->waiters.next; at != &n->waiters; at = at->next)
		if (!COP_CONTAINER_OF(at, const struct cop_waiter, link)->guesses)
			return false;
	return true;
}

bool cop_cache_withdraw(struct cop_cache *c, struct cop_obj *flight)
{
	struct node *n = node_of(flight);
	struct shard *s = shard_of(c, n->link.hash);
	bool unwanted, withdrawn;

	pthread_mutex_lock(&s->lock);
	unwanted = only_guesses_wait(n);
	withdrawn = unwanted && n->in_table;
	if (withdrawn)
		cop_cache_unlink(c, s, n);
	pthread_mutex_unlock(&s->lock);
	if (withdrawn)
		cop_obj_put(c, flight);
	return unwanted;
}

bool cop_cache_used(struct cop_cache *c, struct cop_obj *obj, enum cop_use use)
{
	unsigned before = atomic_load_explicit(&obj->uses, memory_order_relaxed);

	if (obj->error || obj->key.table != COP_TABLE_DATA || (before & use))
		return false;
	before = atomic_fetch_or_explicit(&obj->uses, (unsigned char)use, memory_order_relaxed);
	if (use == COP_USE_HERE && !(before & use))
		cop_stats_add(c->stats, COP_CACHE_USED_BYTES, obj->len);
	if (!before)
		cop_stats_add(c->stats, COP_CACHE_WANTED_BYTES, obj->len);
	return !(before & use);
}

void cop_cache_replace(struct cop_cache *c, struct cop_obj *obj, void *data, size_t len)
{
	struct node *was = node_of(obj),
		    *n = cop_cache_evict_for(c, len) ? new_node(c, &obj->key) : NULL;
	struct shard *s = shard_of(c, was->link.hash);
	bool replaced;

	if (!n) {
		cop_cache_release(c, data, len);
		return;
	}
	cop_cache_charge(c, n, len);
	n->state = COMPLETE;
	n->obj.data = data;
	n->obj.len = len;
	/* Part of the data is as old as the replaced object. */
	n->obj.completed_ms = obj->completed_ms;
	n->obj.came_ms = cop_now_ms();
	atomic_store(&n->obj.stamp_ms, n->obj.came_ms);
	atomic_init(&n->refs, 1);
	pthread_mutex_lock(&s->lock);
	replaced = was->in_table;
	if (replaced) {
		cop_cache_unlink(c, s, was);
		insert_node(s, n, was->link.hash);
		keep_complete(c, s, n);
	}
	pthread_mutex_unlock(&s->lock);
	/* Drops the table's reference to the old object, or the only one to the new object. */
	cop_obj_put(c, replaced ? obj : &n->obj);
}

void cop_cache_drop(struct cop_cache *c, struct cop_obj *obj)
{
	struct node *n = node_of(obj);
	struct shard *s = shard_of(c, n->link.hash);
	bool dropped;

	pthread_mutex_lock(&s->lock);
	dropped = n->in_table;
	if (dropped)
		cop_cache_unlink(c, s, n);
	pthread_mutex_unlock(&s->lock);
	if (dropped)
		cop_obj_put(c, obj);
}

void cop_cache_forget(struct cop_cache *c, const struct cop_key *key)
{
	uint64_t hash = key_hash(key);
	struct shard *s = shard_of(c, hash);
	struct node *n;

	pthread_mutex_lock(&s->lock);
	n = find_node(s, hash, key);
	if (n)
		cop_cache_unlink(c, s, n);
	pthread_mutex_unlock(&s->lock);
	if (n)
		cop_obj_put(c, &n->obj);
}

/* Selects a path with everything below it, or one facet of it. */
struct which {
	const char *path;
	size_t len;
	bool one_facet;
	enum cop_table table;
	enum cop_facet facet;
};

static bool is_of(const struct cop_key *key, const struct which *w)
{
	if (w->one_facet)
		return key->table == w->table && key->facet == w->facet &&
		       key->path_len == w->len && memcmp(key->path, w->path, w->len) == 0;
	if (w->len == 0)
		return true;
	return key->path_len >= w->len && memcmp(key->path, w->path, w->len) == 0 &&
	       (key->path_len == w->len || key->path[w->len] == '/');
}

/* Removes matching nodes from the shard's table and returns them as a list. A flight among them is
 * dropped on completion. */
static struct cop_hlink *unlink_all(struct cop_cache *c, struct shard *s, const struct which *w)
{
	struct cop_hlink *l, *next, *list = NULL;

	for (l = cop_htab_after(&s->table, NULL); l; l = next) {
		next = cop_htab_after(&s->table, l);
		if (!is_of(&node_at(l)->obj.key, w))
			continue;
		cop_cache_unlink(c, s, node_at(l));
		l->next = list;
		list = l;
	}
	return list;
}

static size_t drop_all(struct cop_cache *c, const struct which *w)
{
	size_t dropped = 0;

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];
		struct cop_hlink *l, *list;

		pthread_mutex_lock(&s->lock);
		list = unlink_all(c, s, w);
		pthread_mutex_unlock(&s->lock);
		while ((l = list)) {
			list = l->next;
			cop_obj_put(c, &node_at(l)->obj);
			dropped++;
		}
	}
	return dropped;
}

size_t cop_cache_drop_under(struct cop_cache *c, const char *path)
{
	return drop_all(c, &(struct which){.path = path, .len = strlen(path)});
}

size_t cop_cache_drop_facet(struct cop_cache *c, enum cop_table table, enum cop_facet facet,
	const char *path, size_t path_len)
{
	return drop_all(c, &(struct which){.path = path,
				   .len = path_len,
				   .one_facet = true,
				   .table = table,
				   .facet = facet});
}
