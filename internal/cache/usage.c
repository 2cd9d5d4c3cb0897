/* SPDX-License-Identifier: BSD-3-Clause */
/* What cache-stats shows, and the invariants. */
#include "cache/cache_priv.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

void cop_cache_usage(struct cop_cache *c, struct cop_cache_usage *out)
{
	for (unsigned t = 0; t < COP_TABLES; t++) {
		out->table[t].bytes = atomic_load(&c->bytes[t]);
		out->table[t].entries = atomic_load(&c->entries[t]);
	}
	out->limit_bytes = c->limit;
	out->used_bytes = atomic_load(&c->used);
	out->flights = atomic_load(&c->flights);
	out->waiting_for_room = atomic_load(&c->room_waiting);
}

/* The landed objects of one shard and table, each with a reference; NULL without memory, or if
 * there is none. What lands between the two looks is left out. */
static struct node **hold_shard(struct shard *s, enum cop_table table, size_t *held)
{
	struct node **all;
	size_t count;

	pthread_mutex_lock(&s->lock);
	count = s->count;
	pthread_mutex_unlock(&s->lock);
	*held = 0;
	all = count ? malloc(count * sizeof(*all)) : NULL;
	if (!all)
		return NULL;
	pthread_mutex_lock(&s->lock);
	for (struct cop_list *l = s->sieve.next; l != &s->sieve && *held < count; l = l->next) {
		struct node *n = COP_CONTAINER_OF(l, struct node, sieve);

		if (n->obj.key.table != table)
			continue;
		atomic_fetch_add(&n->refs, 1);
		all[(*held)++] = n;
	}
	pthread_mutex_unlock(&s->lock);
	return all;
}

void cop_cache_each(struct cop_cache *c, enum cop_table table,
	void (*fn)(void *arg, const struct cop_key *key, size_t bytes), void *arg)
{
	for (unsigned i = 0; i < SHARDS; i++) {
		size_t held;
		struct node **all = hold_shard(&c->shard[i], table, &held);

		for (size_t k = 0; k < held; k++) {
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

void cop_cache_flights_json(struct cop_cache *c, unsigned max, struct cop_buf *out)
{
	uint64_t now = cop_now_ms();
	const char *comma = "";

	cop_buf_str(out, "[");
	for (unsigned i = 0; i < SHARDS && atomic_load(&c->flights); i++) {
		struct shard *s = &c->shard[i];

		pthread_mutex_lock(&s->lock);
		for (size_t b = 0; b < s->buckets; b++)
			for (struct node *n = s->bucket[b]; n; n = n->next) {
				if (n->state != FLYING || max == 0)
					continue;
				max--;
				cop_buf_printf(out, "%s{\"table\":\"%s\",\"path\":", comma,
					cop_table_name(n->obj.key.table));
				cop_buf_json_str(out, n->obj.key.path, n->obj.key.path_len);
				cop_buf_printf(out,
					",\"index\":%" PRIu64 ",\"ms\":%" PRIu64 ",\"waiters\":%u}",
					n->obj.key.index, now - n->born_ms,
					count_list(&n->waiters));
				comma = ",";
			}
		pthread_mutex_unlock(&s->lock);
	}
	cop_buf_str(out, "]");
}

void cop_cache_starve(struct cop_cache *c, int after)
{
	atomic_store(&c->allocations, after);
	atomic_store(&c->starving, after >= 0);
}

void cop_cache_check(struct cop_cache *c)
{
	uint64_t bytes[COP_TABLES] = {0}, entries[COP_TABLES] = {0};

	for (unsigned i = 0; i < SHARDS; i++) {
		struct shard *s = &c->shard[i];
		size_t count = 0, listed = 0;

		pthread_mutex_lock(&s->lock);
		for (size_t b = 0; b < s->buckets; b++)
			for (struct node *n = s->bucket[b]; n; n = n->next) {
				count++;
				assert(n->in_table && (n->hash & (s->buckets - 1)) == b);
				assert(n->in_sieve == (n->state == LANDED));
				if (!n->in_sieve)
					continue;
				listed++;
				bytes[n->obj.key.table] += n->charged;
				entries[n->obj.key.table]++;
			}
		assert(count == s->count && listed == count_list(&s->sieve));
		pthread_mutex_unlock(&s->lock);
	}
	for (unsigned t = 0; t < COP_TABLES; t++) {
		assert(bytes[t] == atomic_load(&c->bytes[t]));
		assert(entries[t] == atomic_load(&c->entries[t]));
	}
}
