/* SPDX-License-Identifier: BSD-3-Clause */
/* The most used paths of a category in bounded memory: the Space-Saving algorithm (Metwally,
 * Agrawal and El Abbadi, Efficient Computation of Frequent and Top-k Elements in Data Streams, ICDT
 * 2005). There are m counters. A path without a counter takes over the smallest one, along with its
 * value. So a counter is too high by at most the value taken over (error), which is at most N / m
 * after N events, and every path with more than N / m events has a counter.
 *
 * The reported value is counter - error: the number of events since the path took over the counter.
 * It is never too high, and its split into outcomes is exact. Paths are distributed over shards by
 * hash; each shard summarizes its own paths. A binary heap has the smallest counter on top. */
#include "base/base/htab.h"
#include "prof/profile/profile_priv.h"

struct counter {
	struct cop_hlink link;
	uint64_t value, error;
	uint64_t count[SLOTS];
	uint32_t at; /* index in the heap */
	uint32_t len, cap;
	char *path;
};

struct shard {
	_Alignas(64) pthread_mutex_t lock;
	struct counter **heap;
	struct cop_htab by_path;
	uint32_t n;
};

struct top_summary {
	struct shard shard[TOP_SHARDS];
	uint32_t counters; /* per shard */
};

/* All shards together have far more counters than the rows requested, so listed paths are rarely
 * replaced. */
uint32_t cop_prof_top_counters(uint32_t top_n)
{
	return COP_MIN(COP_MAX(top_n, 64u), 4096u);
}

struct top_summary *cop_prof_top_new(uint32_t counters)
{
	struct top_summary *t = aligned_alloc(64, sizeof(*t));

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->counters = counters;
	for (unsigned i = 0; i < TOP_SHARDS; i++)
		pthread_mutex_init(&t->shard[i].lock, NULL);
	for (unsigned i = 0; i < TOP_SHARDS; i++) {
		t->shard[i].heap = calloc(counters, sizeof(*t->shard[i].heap));
		if (!t->shard[i].heap) {
			cop_prof_top_free(t);
			return NULL;
		}
	}
	return t;
}

static void free_counters(struct shard *s)
{
	for (uint32_t k = 0; k < s->n; k++) {
		free(s->heap[k]->path);
		free(s->heap[k]);
	}
	s->n = 0;
	cop_htab_fini(&s->by_path);
}

void cop_prof_top_free(struct top_summary *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < TOP_SHARDS; i++) {
		struct shard *s = &t->shard[i];

		free_counters(s);
		free(s->heap);
		pthread_mutex_destroy(&s->lock);
	}
	free(t);
}

static void set_slot(struct shard *s, struct counter *k, uint32_t at)
{
	s->heap[at] = k;
	k->at = at;
}

/* Moves a counter down past smaller ones after its value increases. */
static void sift_down(struct shard *s, struct counter *k)
{
	uint32_t at = k->at;

	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < s->n && s->heap[child + 1]->value < s->heap[child]->value)
			child++;
		if (child >= s->n || s->heap[child]->value >= k->value)
			break;
		set_slot(s, s->heap[child], at);
		at = child;
	}
	set_slot(s, k, at);
}

/* Moves a new counter up past larger ones. */
static void sift_up(struct shard *s, struct counter *k)
{
	uint32_t at = k->at;

	while (at && s->heap[(at - 1) / 2]->value > k->value) {
		set_slot(s, s->heap[(at - 1) / 2], at);
		at = (at - 1) / 2;
	}
	set_slot(s, k, at);
}

static struct counter *counter_at(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct counter, link) : NULL;
}

static struct counter *find_counter(struct shard *s, uint64_t hash, const char *path, size_t len)
{
	struct cop_hlink *l = cop_htab_first(&s->by_path, hash);

	while (l && !(counter_at(l)->len == len && memcmp(counter_at(l)->path, path, len) == 0))
		l = cop_htab_next(l);
	return counter_at(l);
}

/* Returns false if out of memory; nothing has changed then. */
static bool set_path(struct counter *k, const char *path, size_t len)
{
	if (k->cap < len || !k->path) {
		char *copy = malloc(len + 1);

		if (!copy)
			return false;
		free(k->path);
		k->path = copy;
		k->cap = (uint32_t)len;
	}
	memcpy(k->path, path, len);
	k->len = (uint32_t)len;
	return true;
}

static struct counter *new_counter(struct shard *s, const char *path, size_t len)
{
	struct counter *k = calloc(1, sizeof(*k));

	if (!k || !set_path(k, path, len)) {
		free(k);
		return NULL;
	}
	set_slot(s, k, s->n++);
	sift_up(s, k);
	return k;
}

static struct counter *take_over(struct shard *s, const char *path, size_t len)
{
	struct counter *k = s->heap[0];

	if (!set_path(k, path, len))
		return NULL;
	cop_htab_remove(&s->by_path, &k->link);
	k->error = k->value;
	memset(k->count, 0, sizeof(k->count));
	return k;
}

/* Returns the path's counter, which it may just have taken over; NULL: out of memory. Called with
 * the lock held. */
static struct counter *counter_of(
	struct top_summary *t, struct shard *s, uint64_t hash, const char *path, size_t len)
{
	struct counter *k = find_counter(s, hash, path, len);

	if (k)
		return k;
	k = s->n < t->counters ? new_counter(s, path, len) : take_over(s, path, len);
	if (k)
		cop_htab_add(&s->by_path, &k->link, hash);
	return k;
}

void cop_prof_top_count(struct top_summary *t, const char *path, size_t len, int slot)
{
	uint64_t hash = cop_hash64(path, len, 0);
	struct shard *s = &t->shard[hash >> 59];
	struct counter *k;

	if (slot == SLOT_NONE || len > PATH_LEN_MAX)
		return;
	pthread_mutex_lock(&s->lock);
	k = counter_of(t, s, hash, path, len);
	if (k) {
		k->value++;
		k->count[slot]++;
		sift_down(s, k);
	}
	pthread_mutex_unlock(&s->lock);
}

void cop_prof_top_drain(struct top_summary *t, struct top_summary *into)
{
	for (unsigned i = 0; i < TOP_SHARDS; i++) {
		struct shard *s = &t->shard[i], *o = &into->shard[i];
		struct counter **heap = o->heap;

		/* Only s needs its lock; the caller owns o. */
		pthread_mutex_lock(&s->lock);
		o->heap = s->heap;
		o->by_path = s->by_path;
		o->n = s->n;
		s->heap = heap;
		s->by_path = (struct cop_htab){0};
		s->n = 0;
		pthread_mutex_unlock(&s->lock);
	}
}

/* Merges two summaries (Agarwal et al., Mergeable Summaries): for a path in both, adds counts and
 * errors. */
static void put_back_one(struct top_summary *t, struct shard *s, const struct counter *taken)
{
	struct counter *k;

	pthread_mutex_lock(&s->lock);
	k = counter_of(t, s, taken->link.hash, taken->path, taken->len);
	if (k) {
		k->value += taken->value;
		k->error += taken->error;
		for (unsigned i = 0; i < SLOTS; i++)
			k->count[i] += taken->count[i];
		sift_down(s, k);
	}
	pthread_mutex_unlock(&s->lock);
}

void cop_prof_top_put_back(struct top_summary *t, struct top_summary *taken)
{
	for (unsigned i = 0; i < TOP_SHARDS; i++) {
		struct shard *s = &taken->shard[i];

		for (uint32_t k = 0; k < s->n; k++)
			put_back_one(t, &t->shard[i], s->heap[k]);
		free_counters(s);
	}
}

uint64_t cop_prof_top_error(struct top_summary *t)
{
	uint64_t error = 0;

	for (unsigned i = 0; i < TOP_SHARDS; i++) {
		struct shard *s = &t->shard[i];

		pthread_mutex_lock(&s->lock);
		if (s->n == t->counters)
			error = COP_MAX(error, s->heap[0]->value);
		pthread_mutex_unlock(&s->lock);
	}
	return error;
}

static int push_row(struct rows *out, const struct counter *k, uint64_t smallest)
{
	struct row row = {.len = k->len, .own = malloc(k->len + 1u)};
	int rc;

	if (!row.own)
		return -ENOMEM;
	memcpy(row.own, k->path, k->len);
	row.path = row.own;
	row.events = k->value - k->error;
	row.weight = k->value - smallest;
	memcpy(row.count, k->count, sizeof(row.count));
	rc = cop_prof_rows_push(out, &row);
	if (rc)
		free(row.own);
	return rc;
}

int cop_prof_top_rows(struct top_summary *t, struct rows *out)
{
	int rc = 0;

	for (unsigned i = 0; i < TOP_SHARDS && !rc; i++) {
		struct shard *s = &t->shard[i];

		pthread_mutex_lock(&s->lock);
		for (uint32_t k = 0; k < s->n && !rc; k++)
			rc = push_row(out, s->heap[k], s->n == t->counters ? s->heap[0]->value : 0);
		pthread_mutex_unlock(&s->lock);
	}
	return rc;
}
