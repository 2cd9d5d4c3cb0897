/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree/fetch/fetch_priv.h"

#include <semaphore.h>
#include <sys/stat.h>

#include "base/log/log.h"

/* Read-ahead window, in chunks, for a file in a single tree. */
#define WINDOW 8u

struct cop_fetch *cop_fetch_new(const struct cop_fetch_conf *conf)
{
	struct cop_fetch *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->conf = *conf;
	c->guess = cop_guess_new(c, &c->conf);
	if (!c->guess) {
		free(c);
		return NULL;
	}
	pthread_mutex_init(&c->group_lock, NULL);
	pthread_mutex_init(&c->resting.lock, NULL);
	pthread_mutex_init(&c->telling.lock, NULL);
	pthread_mutex_init(&c->doubted.lock, NULL);
	cop_list_init(&c->telling.waiting);
	c->resting.min_ms = REST_MIN_MS;
	c->started_ns = cop_now_ns();
	cop_cache_pool(conf->cache, conf->chunk_bytes);
	atomic_init(&c->parent, cop_topo_parent(&conf->topo, 0, conf->rank));
	c->homes = conf->topo;
	c->homes.trees = conf->topo.nodes;
	return c;
}

void cop_fetch_waited(const struct flight *f, enum cop_counter c)
{
	if (f->local && !f->ask.along && !atomic_load(&f->obj->background))
		cop_stats_add(f->fetch->conf.stats, c, (cop_now_ns() - f->asked_ns) / 1000);
}

struct barrier {
	struct cop_endpoint_work work;
	sem_t passed;
};

static void pass_barrier(struct cop_endpoint_work *w)
{
	sem_post(&COP_CONTAINER_OF(w, struct barrier, work)->passed);
}

void cop_fetch_close(struct cop_fetch *c)
{
	struct barrier b = {.work.run = pass_barrier};

	atomic_store(&c->closing, true);
	if (!c->conf.rpc)
		return;
	/* By the time this runs, all callbacks that the progress thread began before the store have
	 * returned. */
	sem_init(&b.passed, 0, 0);
	if (cop_endpoint_post(cop_rpc_fabric(c->conf.rpc), &b.work) == 0)
		while (sem_wait(&b.passed) && errno == EINTR)
			;
	sem_destroy(&b.passed);
}

void cop_fetch_free(struct cop_fetch *c)
{
	if (!c)
		return;
	pthread_mutex_destroy(&c->doubted.lock);
	pthread_mutex_destroy(&c->telling.lock);
	pthread_mutex_destroy(&c->resting.lock);
	pthread_mutex_destroy(&c->group_lock);
	cop_guess_free(c->guess);
	free(c);
}

uint32_t cop_fetch_parent(const struct cop_fetch *c)
{
	return atomic_load(&((struct cop_fetch *)c)->parent);
}

size_t cop_fetch_chunk_bytes(const struct cop_fetch *c)
{
	return c->conf.chunk_bytes;
}

unsigned cop_fetch_window(const struct cop_fetch *c, uint64_t size)
{
	uint64_t all = c->conf.topo.trees * cop_fetch_group_chunks(c), fits;

	if (!cop_fetch_is_striped(c, size))
		return WINDOW;
	fits = cop_cache_room_for_copies(c->conf.cache) / 4 / c->conf.chunk_bytes;
	all = COP_MAX(COP_MIN(all, COP_FETCH_WINDOW_MAX), WINDOW);
	return (unsigned)COP_MAX(COP_MIN(all, fits), 1u);
}

size_t cop_fetch_chunk_len(const struct cop_fetch *c, uint64_t size, uint64_t index)
{
	uint64_t chunk = c->conf.chunk_bytes;

	/* Divides, because index may come from outside and a multiplication could overflow. */
	if (index > size / chunk || (index == size / chunk && size % chunk == 0))
		return 0;
	return index == size / chunk ? size % chunk : chunk;
}

int cop_fetch_chunk_part(
	const struct cop_obj *obj, size_t skip, size_t len, void *out, const void **data)
{
	if (obj->packed) {
		*data = out;
		return cop_pack_read(obj->data, skip, len, out);
	}
	if (skip > obj->len || len > obj->len - skip)
		return -EBADMSG;
	*data = (const char *)obj->data + skip;
	return 0;
}

uint64_t cop_fetch_young_ms(const struct cop_fetch *c, const struct cop_attr *attr)
{
	return COP_MAX(cop_attr_young_ms(attr), (uint64_t)c->conf.enoent_ttl_ms);
}

bool cop_fetch_believes(
	const struct cop_fetch *c, const struct cop_obj *obj, const struct cop_attr *attr)
{
	return !cop_version_is_young(attr->version) || S_ISDIR(attr->mode) ||
	       cop_now_ms() - obj->completed_ms <= cop_fetch_young_ms(c, attr);
}

static bool is_old_entry(const struct cop_fetch *c, const struct cop_obj *obj)
{
	struct cop_attr attr;

	if (obj->key.table != COP_TABLE_METADATA || obj->key.facet != COP_FACET_MAIN)
		return false;
	cop_entry_get(obj->data, &attr, NULL, NULL);
	return !cop_fetch_believes(c, obj, &attr);
}

/* Whether a cached answer must be requested again. Negative answers and statfs expire after the
 * configured TTL, except a name absent from a listing, which stays absent for as long as the
 * listing is valid. Existing objects, and -E2BIG for a listing, are valid until invalidated; a
 * young version only until it is known to be final. */
static bool expired(struct cop_fetch *c, const struct cop_ask *ask, const struct cop_obj *obj)
{
	if (!obj->error && obj->key.facet != COP_FACET_STATFS)
		return is_old_entry(c, obj);
	if (obj->error == -E2BIG)
		return false;
	return cop_now_ms() - atomic_load(&obj->stamp_ms) > c->conf.enoent_ttl_ms &&
	       !(ask->kind == COP_ASK_ENTRY && obj->error == -ENOENT &&
		       cop_fetch_is_absent_still(c, obj));
}

/* Whether an answer may be cached: a success, or an error that stays true for a while rather than a
 * transient failure. */
static bool keeps(const struct flight *f, int rc)
{
	if (f->ask.kind == COP_ASK_CHECK || f->ask.kind == COP_ASK_NEWER)
		return false;
	if (rc == 0)
		return true;
	/* No program has looked up this name. If it is created soon, it must be visible at once. */
	if (f->ask.guess)
		return false;
	if (f->ask.kind == COP_ASK_CHUNK || f->ask.kind == COP_ASK_PAGE)
		return false;
	return rc == -ENOENT || rc == -EACCES || rc == -EPERM || rc == -ENOTDIR || rc == -ELOOP ||
	       rc == -ENAMETOOLONG || rc == -E2BIG;
}

void cop_fetch_complete(struct flight *f, const struct cop_completion *completion)
{
	struct cop_fetch *c = f->fetch;
	struct cop_completion l = *completion;
	struct cop_obj *entry = f->follows && !l.rc ? cop_obj_get(f->obj) : NULL;
	bool read_soon = !f->ask.along, mentioned = f->ask.mentioned;

	assert(!f->second);
	if (f->buf != l.data)
		cop_cache_release(c->conf.cache, f->buf, f->buf_len);
	cop_fetch_learn(f, &l);
	cop_guess_completed(c->guess, &f->ask, f->obj, &l);
	if (f->ask.kind == COP_ASK_ENTRY && l.rc == -ENOENT)
		cop_stats_add(c->conf.stats, COP_ENOENT_STORES, 1);
	else if (f->was_absent)
		cop_stats_add(c->conf.stats, COP_ENOENT_CLEARS, 1);
	l.keep = keeps(f, l.rc);
	/* The root has already counted what a home receives from it. */
	l.is_data = cop_fetch_is_root(f) && !cop_fetch_peeks(f);
	cop_fetch_trace_complete(f, &l);
	cop_fetch_pass(f, FLIGHT_COMPLETE);
	cop_cache_complete(c->conf.cache, f->obj, &l);
	free(f);
	if (entry) {
		cop_fetch_follow_first(c, entry, read_soon, mentioned);
		cop_obj_put(c->conf.cache, entry);
	}
}

void cop_fetch_fail(struct flight *f, int rc)
{
	cop_fetch_complete(f, &(struct cop_completion){.rc = rc});
}

bool cop_fetch_is_root(const struct flight *f)
{
	const struct cop_fetch_conf *conf = &f->fetch->conf;

	return cop_topo_parent(cop_fetch_topo(f->fetch, &f->ask), f->tree, conf->rank) ==
	       COP_TOPO_NONE;
}

static void init_flight(struct flight *f, struct cop_fetch *c, const struct cop_ask *ask,
	struct cop_obj *obj, bool local)
{
	f->fetch = c;
	f->obj = obj;
	f->ask = *ask;
	f->ask.path = obj->key.path;
	f->local = local;
	if (c->conf.tracer)
		f->led_ns = cop_now_ns();
	f->tree = cop_fetch_tree_of(c, ask);
	f->upstream = COP_TOPO_NONE;
	f->spread = ask->home || (ask->kind == COP_ASK_CHUNK && cop_fetch_is_striped(c, ask->size));
	atomic_store(&obj->background, ask->background);
	atomic_store(&obj->first, ask->along && cop_fetch_is_first_chunk(ask));
	atomic_store(&obj->bundled, ask->along && (ask->kind == COP_ASK_CHUNK || ask->guess));
	if (ask->kind == COP_ASK_CHUNK) {
		f->buf_len = cop_fetch_chunk_len(c, ask->size, ask->index);
		f->spilled = cop_spill_has(c->conf.spill, &obj->key);
		cop_fetch_set_duty(f);
	}
	if (local && !ask->background && atomic_load_explicit(&c->prefetched, memory_order_relaxed))
		cop_stats_add(c->conf.stats, COP_PREFETCH_LATER_BYTES, f->buf_len);
}

struct flight *cop_fetch_new_flight(
	struct cop_fetch *c, const struct cop_ask *ask, struct cop_obj *obj, bool local)
{
	struct flight *f = calloc(1, sizeof(*f));

	if (f)
		init_flight(f, c, ask, obj, local);
	return f;
}

/* Whether the flight's read may include other chunks. A full root reads only what it must. */
static bool may_group(const struct flight *f)
{
	return !f->spilled && cop_fetch_is_root(f) && (f->spread || !atomic_load(&f->fetch->lends));
}

/* Finds the object, joins its flight, or leads a new one. *f is the new flight, or NULL if it
 * failed or was answered immediately. */
static int find_or_lead(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	bool local, struct cop_obj **obj, struct flight **f)
{
	bool grouped = ask->kind == COP_ASK_CHUNK;
	struct cop_key key = cop_fetch_key(ask);
	bool checked;
	int found;

	*f = NULL;
	if (grouped)
		cop_fetch_lock_groups(c);
	found = cop_cache_find(c->conf.cache, &key, waiter, obj);
	checked = found == COP_FOUND_LEAD && cop_fetch_was_checked(c, ask, local);
	if (found == COP_FOUND_LEAD && !checked)
		*f = cop_fetch_new_flight(c, ask, *obj, local);
	if (grouped && *f && may_group(*f))
		cop_fetch_lead_group(*f);
	if (grouped)
		cop_fetch_unlock_groups(c);
	if (found == COP_FOUND_LEAD && !*f)
		cop_cache_complete(
			c->conf.cache, *obj, &(struct cop_completion){.rc = checked ? 0 : -ENOMEM});
	return found;
}

/* Starts the flight of a program's request and, in the same message, prefetches what is probably
 * needed next. The flight may have ended when this returns. */
static void reserve_for_program(struct flight *f)
{
	struct cop_fetch *c = f->fetch;
	struct cop_obj *obj = cop_obj_get(f->obj);
	struct cop_ask ask;

	cop_guess_before(c->guess, &f->ask);
	f->follows = cop_fetch_follows(f);
	ask = f->ask;
	cop_fetch_cork(c);
	cop_fetch_reserve(f);
	cop_guess_after(c->guess, &ask, obj);
	cop_fetch_uncork(c);
	cop_obj_put(c->conf.cache, obj);
}

/* A flight in progress has a new waiter. The parent need not be notified if the flight was a guess,
 * because it already treats guesses as needed soon. */
static void joined(struct cop_fetch *c, const struct cop_ask *ask, bool local)
{
	bool guessed = local && cop_guess_met(c->guess, ask, NULL);

	cop_fetch_raise_priority(c, ask, !guessed);
}

static void hit(struct cop_fetch *c, const struct cop_ask *ask, bool local, struct cop_obj *obj)
{
	if (local)
		cop_guess_met(c->guess, ask, obj);
	if (ask->kind == COP_ASK_ENTRY && obj->error == -ENOENT)
		cop_stats_add(c->conf.stats, COP_ENOENT_SERVES, 1);
}

int cop_fetch_get_for(struct cop_fetch *c, const struct cop_ask *asked, struct cop_waiter *waiter,
	bool local, struct cop_obj **obj)
{
	struct cop_ask routed = *asked;
	const struct cop_ask *ask = &routed;
	bool was_absent = false;
	struct flight *f;
	int found;

	if (!cop_fetch_is_proper(ask) ||
		(ask->kind == COP_ASK_CHUNK && cop_fetch_chunk_len(c, ask->size, ask->index) == 0))
		return -EINVAL;
	if (atomic_load(&c->closing))
		return -ESHUTDOWN;
	if (ask->kind == COP_ASK_NEWER && (*obj = cop_fetch_listing_but(c, ask)))
		return 1;
	if (ask->kind == COP_ASK_PAGE && cop_fetch_doubts_pages(c, ask))
		return -ESTALE;
	cop_fetch_route(c, &routed, local);
	if ((*obj = cop_fetch_other_copy(c, ask)))
		return 1;
	for (;;) {
		found = find_or_lead(c, ask, waiter, local, obj, &f);
		if (found != COP_FOUND_HIT || !expired(c, ask, *obj))
			break;
		was_absent = ask->kind == COP_ASK_ENTRY && (*obj)->error == -ENOENT;
		cop_stats_add(c->conf.stats, COP_ENOENT_EXPIRES, was_absent);
		cop_cache_drop(c->conf.cache, *obj);
		cop_obj_put(c->conf.cache, *obj);
	}
	if (found == COP_FOUND_HIT) {
		hit(c, ask, local, *obj);
		return 1;
	}
	if (found < 0)
		return found;
	if (found == COP_FOUND_JOINED && (!ask->background || cop_fetch_is_first_chunk(ask)))
		joined(c, ask, local);
	if (!f)
		return 0;
	f->was_absent = was_absent;
	if (local)
		reserve_for_program(f);
	else
		cop_fetch_reserve(f);
	return 0;
}

int cop_fetch_get(struct cop_fetch *c, const struct cop_ask *ask, struct cop_waiter *waiter,
	struct cop_obj **obj)
{
	return cop_fetch_get_for(c, ask, waiter, true, obj);
}

/* Chunks on the local disk are read from there on demand, not in a group.
 *
 * The flight is allocated before the lock is taken, because no object may be released under it. */
struct flight *cop_fetch_lead_member(struct cop_fetch *c, const struct cop_ask *ask, bool local)
{
	struct cop_key key = cop_fetch_key(ask);
	struct cop_obj *obj;
	struct flight *f;

	if (cop_fetch_chunk_len(c, ask->size, ask->index) == 0 || cop_fetch_has(c, ask) ||
		cop_spill_has(c->conf.spill, &key))
		return NULL;
	f = calloc(1, sizeof(*f));
	/* group_lock excludes other leaders, so this caller leads. */
	if (f && cop_cache_find(c->conf.cache, &key, NULL, &obj) == COP_FOUND_LEAD) {
		init_flight(f, c, ask, obj, local);
		return f;
	}
	free(f);
	return NULL;
}

void cop_fetch_cork(struct cop_fetch *c)
{
	if (c->conf.rpc)
		cop_rpc_cork(c->conf.rpc);
}

void cop_fetch_uncork(struct cop_fetch *c)
{
	if (c->conf.rpc)
		cop_rpc_uncork(c->conf.rpc);
}

void cop_fetch_used(struct cop_fetch *c, struct cop_obj *obj)
{
	cop_guess_used(c->guess, obj, cop_cache_used(c->conf.cache, obj, COP_USE_HERE));
}

/* The first delivery of each byte to the kernel is counted under the chunk's source; repeated
 * deliveries count as memory. */
void cop_fetch_given(struct cop_fetch *c, struct cop_obj *obj, size_t len)
{
	static const enum cop_counter from[] = {[COP_FROM_STORAGE] = COP_FROM_STORAGE_BYTES,
		[COP_FROM_NODES] = COP_FROM_NODES_BYTES,
		[COP_FROM_PASSED] = COP_FROM_PASSED_BYTES,
		[COP_FROM_DISK] = COP_FROM_DISK_BYTES,
		[COP_FROM_PACK] = COP_FROM_PACK_BYTES};
	size_t all = cop_fetch_chunk_len(c, obj->key.size, obj->key.index), fresh;
	uint32_t given = atomic_load_explicit(&obj->given, memory_order_relaxed);

	do {
		fresh = given < all ? COP_MIN(len, all - given) : 0;
	} while (fresh && !atomic_compare_exchange_weak(&obj->given, &given, given + fresh));
	cop_stats_add(c->conf.stats, from[obj->from], fresh);
	cop_stats_add(c->conf.stats, COP_FROM_OWN_BYTES, len - fresh);
}

void cop_fetch_looked_for(struct cop_fetch *c, const char *name, size_t len)
{
	cop_guess_looked_for(c->guess, name, len);
}

/* Larger files have several chunks and use read-ahead; files that bypass the tree must not be
 * cached. */
size_t cop_fetch_largest_small(const struct cop_fetch *c)
{
	uint64_t most = c->conf.max_cacheable ? c->conf.max_cacheable : UINT64_MAX;

	return (size_t)COP_MIN(most, COP_MIN((uint64_t)COP_GUESS_FILE_BYTES, c->conf.chunk_bytes));
}

void cop_fetch_use_pack(struct cop_fetch *c, bool use)
{
	atomic_store(&c->unpacked, !use);
	if (!use)
		cop_packfile_rest(c->conf.pack);
}

void cop_fetch_prefetched(struct cop_fetch *c)
{
	atomic_store(&c->prefetched, true);
}

void cop_fetch_ahead(struct cop_fetch *c, const struct cop_ask *ask)
{
	size_t len = cop_fetch_chunk_len(c, ask->size, ask->index);
	bool spread = cop_fetch_is_striped(c, ask->size) || atomic_load(&c->lends);
	struct cop_cache *cache = c->conf.cache;
	struct cop_obj *obj;

	if (len == 0 ||
		!(spread ? cop_cache_can_copy(cache, len) : cop_cache_can_reserve(cache, len)) ||
		cop_fetch_has(c, ask))
		return;
	if (cop_fetch_get(c, ask, NULL, &obj) == 1)
		cop_obj_put(cache, obj);
}

struct cop_obj *cop_fetch_peek(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_key key = cop_fetch_key(ask);
	struct cop_obj *obj;

	if (ask->kind == COP_ASK_PAGE && cop_fetch_doubts_pages(c, ask))
		return NULL;
	obj = cop_cache_peek(c->conf.cache, &key);
	return obj ? obj : cop_fetch_other_copy(c, ask);
}

bool cop_fetch_dir_attr(struct cop_fetch *c, const char *path, struct cop_attr *attr)
{
	struct cop_obj *list =
		cop_fetch_peek(c, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = path});
	bool known = list && !list->error && !atomic_load(&list->disproved);

	if (known)
		cop_listing_dir(list->data, attr);
	if (list)
		cop_obj_put(c->conf.cache, list);
	return known;
}

enum cop_held cop_fetch_held(struct cop_fetch *c, const struct cop_ask *ask)
{
	struct cop_key key = cop_fetch_key(ask);
	enum cop_held held = cop_cache_look(c->conf.cache, &key, NULL), other;

	if (!cop_fetch_has_two_facets(c, ask, &key))
		return held;
	other = cop_cache_look(c->conf.cache, &key, NULL);
	return COP_MAX(held, other);
}

bool cop_fetch_has(struct cop_fetch *c, const struct cop_ask *ask)
{
	return cop_fetch_held(c, ask) != COP_HELD_NOT;
}
