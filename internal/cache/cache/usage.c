/* SPDX-License-Identifier: BSD-3-Clause */
/* Usage figures for cache-stats, and the check of the invariants. */
#include "base/base/json.h"
#include "cache/cache/cache_priv.h"

#include <assert.h>

void cop_cache_usage(struct cop_cache *c, struct cop_cache_usage *out)
{
	for (unsigned t = 0; t < COP_TABLES; t++) {
		out->table[t].bytes = atomic_load(&c->bytes[t]);
		out->table[t].entries = atomic_load(&c->entries[t]);
	}
	out->limit_bytes = c->limit;
	out->used_bytes = atomic_load(&c->used);
	out->flights = atomic_load(&c->flights);
	out->waiting_to_reserve = atomic_load(&c->reserve_waiting);
	out->home_bytes = atomic_load(&c->home_bytes);
	out->spill_bytes = out->spill_limit_bytes = 0;
	if (c->spill.usage)
		c->spill.usage(c->spill.ctx, &out->spill_bytes, &out->spill_limit_bytes);
}

/* Takes references to the list's objects of this table, at most max, and stores them in out;
 * returns their number. Called with the shard's lock held. */
static size_t ref_list(
	const struct cop_list *list, enum cop_table table, struct node **out, size_t max)
{
	size_t n_refs = 0;

	for (struct cop_list *l = list->next; l != list && n_refs < max; l = l->next) {
		struct node *n = COP_CONTAINER_OF(l, struct node, sieve);

		if (n->obj.key.table != table)
			continue;
		atomic_fetch_add(&n->refs, 1);
		out[n_refs++] = n;
	}
	return n_refs;
}

/* References all complete objects of a shard and table; NULL if memory is short or there are none.
 * Omits objects that complete between the two passes. */
static struct node **ref_shard(struct shard *s, enum cop_table table, size_t *n_refs)
{
	struct node **all;
	size_t count;

	pthread_mutex_lock(&s->lock);
	count = s->table.count;
	pthread_mutex_unlock(&s->lock);
	*n_refs = 0;
	all = count ? malloc(count * sizeof(*all)) : NULL;
	if (!all)
		return NULL;
	pthread_mutex_lock(&s->lock);
	*n_refs = ref_list(&s->sieve, table, all, count);
	*n_refs += ref_list(&s->copies, table, all + *n_refs, count - *n_refs);
	pthread_mutex_unlock(&s->lock);
	return all;
}

void cop_cache_each(struct cop_cache *c, enum cop_table table,
	void (*fn)(void *arg, const struct cop_key *key, size_t bytes), void *arg)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		size_t n_refs;
		struct node **all = ref_shard(&c->shard[i], table, &n_refs);

		for (size_t k = 0; k < n_refs; k++) {
			fn(arg, &all[k]->obj.key, all[k]->charged);
			cop_obj_put(c, &all[k]->obj);
		}
		free(all);
	}
}

static unsigned count_list(const struct cop_list *head)
{
	unsigned count = 0;

	for (const struct cop_list *l = head->next; l != head; l = l->next)
		count++;
	return count;
}

static void copy_wait(const struct node *n, uint64_t now, struct cop_cache_wait *w)
{
	const struct cop_key *key = &n->obj.key;
	size_t len = COP_MIN(key->path_len, sizeof(w->path) - 1);

	*w = (struct cop_cache_wait){.table = key->table,
		.index = key->index,
		.size = key->size,
		.ms = now - n->born_ms,
		.waiters = count_list(&n->waiters)};
	memcpy(w->path, key->path + key->path_len - len, len);
	for (char *p = w->path; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

/* Inserts it in order; returns the new count. */
static unsigned insert_wait(
	struct cop_cache_wait *out, unsigned n, unsigned max, const struct node *node, uint64_t now)
{
	unsigned at = n;

	while (at && out[at - 1].ms < now - node->born_ms)
		at--;
	if (at == max)
		return n;
	n = COP_MIN(n + 1, max);
	memmove(out + at + 1, out + at, (n - 1 - at) * sizeof(*out));
	copy_wait(node, now, &out[at]);
	return n;
}

unsigned cop_cache_oldest(struct cop_cache *c, struct cop_cache_wait *out, unsigned max)
{
	uint64_t now = cop_now_ms();
	unsigned n = 0;

	for (unsigned i = 0; i < SHARDS && atomic_load(&c->flights); i++) {
		struct shard *s = &c->shard[i];

		pthread_mutex_lock(&s->lock);
		for (struct cop_hlink *l = cop_htab_after(&s->table, NULL); l;
			l = cop_htab_after(&s->table, l))
			if (node_at(l)->state == FLYING)
				n = insert_wait(out, n, max, node_at(l), now);
		pthread_mutex_unlock(&s->lock);
	}
	return n;
}

static void flight_json(const struct node *n, uint64_t now, struct cop_json *j)
{
	const struct cop_key *key = &n->obj.key;

	cop_json_object(j, NULL);
	cop_json_str(j, "table", cop_table_name(key->table));
	cop_json_bytes(j, "path", key->path, key->path_len);
	cop_json_u64(j, "index", key->index);
	cop_json_u64(j, "ms", now - n->born_ms);
	cop_json_u64(j, "waiters", count_list(&n->waiters));
	cop_json_end(j);
}

void cop_cache_flights_json(struct cop_cache *c, unsigned max, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);
	uint64_t now = cop_now_ms();

	cop_json_array(&j, NULL);
	for (unsigned i = 0; i < SHARDS && atomic_load(&c->flights); i++) {
		struct shard *s = &c->shard[i];

		pthread_mutex_lock(&s->lock);
		for (struct cop_hlink *l = cop_htab_after(&s->table, NULL); l && max;
			l = cop_htab_after(&s->table, l)) {
			if (node_at(l)->state != FLYING)
				continue;
			max--;
			flight_json(node_at(l), now, &j);
		}
		pthread_mutex_unlock(&s->lock);
	}
	cop_json_end(&j);
}

void cop_cache_starve(struct cop_cache *c, int after)
{
	atomic_store(&c->allocations, after);
	atomic_store(&c->starving, after >= 0);
}

void cop_cache_check(struct cop_cache *c)
{
	uint64_t bytes[COP_TABLES] = {0}, entries[COP_TABLES] = {0}, duty[COP_DUTIES] = {0};

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];
		size_t count = 0, listed = 0;

		pthread_mutex_lock(&s->lock);
		for (struct cop_hlink *l = cop_htab_after(&s->table, NULL); l;
			l = cop_htab_after(&s->table, l)) {
			const struct node *n = node_at(l);

			count++;
			assert(n->in_table && shard_of(c, l->hash) == s);
			assert(n->in_sieve == (n->state == COMPLETE));
			if (!n->in_sieve)
				continue;
			listed++;
			bytes[n->obj.key.table] += n->charged;
			entries[n->obj.key.table]++;
			duty[n->duty] += n->charged;
		}
		assert(count == s->table.count &&
			listed == count_list(&s->sieve) + count_list(&s->copies));
		pthread_mutex_unlock(&s->lock);
	}
	for (unsigned t = 0; t < COP_TABLES; t++) {
		assert(bytes[t] == atomic_load(&c->bytes[t]));
		assert(entries[t] == atomic_load(&c->entries[t]));
	}
	assert(duty[COP_DUTY_COPY] == atomic_load(&c->copies));
	assert(duty[COP_DUTY_HOME] == atomic_load(&c->home_bytes));
}
