/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all observed paths. Records are only ever added, and are freed with the table, so
 * lookups take no lock: a reader walks whatever chain it finds. While a shard grows, records move
 * one at a time to the chains of the new array. A reader in the old array may then miss its record,
 * but cannot loop, because every next pointer leads to a record that moved earlier or has not
 * moved. A reader that finds nothing searches again under the lock before it inserts. Old arrays
 * are kept for their readers; together they are smaller than the current one. base/htab.h does not
 * fit, because its readers need a lock. */
#include "prof/profile/profile_priv.h"

#define PATH_SHARDS 64u
#define FIRST_HEADS 64u
#define RELAXED memory_order_relaxed

struct record {
	struct record *_Atomic next;
	uint64_t hash;
	_Atomic uint64_t sequence[CATEGORIES]; /* position of the first touch; 0: untouched */
	_Atomic uint64_t count[CATEGORIES][SLOTS];
	_Atomic uint64_t read_from_0; /* bytes [0, this) are in ranges; read without the lock */
	struct ranges ranges;
	uint32_t len;
	char path[];
};

struct heads {
	struct heads *older;
	size_t n; /* a power of two */
	struct record *_Atomic head[];
};

struct shard {
	_Alignas(64) pthread_mutex_t lock;
	struct heads *_Atomic heads;
	size_t count;
};

struct path_table {
	struct shard shard[PATH_SHARDS];
	_Atomic uint64_t sequence, bytes, dropped;
	uint64_t max_bytes;
};

static struct heads *heads_new(size_t n, struct heads *older)
{
	struct heads *h = calloc(1, sizeof(*h) + n * sizeof(h->head[0]));

	if (h) {
		h->n = n;
		h->older = older;
	}
	return h;
}

struct path_table *cop_prof_paths_new(uint64_t max_bytes)
{
	struct path_table *t = aligned_alloc(64, sizeof(*t));

	if (!t)
		return NULL;
	memset(t, 0, sizeof(*t));
	t->max_bytes = max_bytes;
	for (unsigned i = 0; i < PATH_SHARDS; i++)
		pthread_mutex_init(&t->shard[i].lock, NULL);
	for (unsigned i = 0; i < PATH_SHARDS; i++) {
		struct heads *h = heads_new(FIRST_HEADS, NULL);

		if (!h) {
			cop_prof_paths_free(t);
			return NULL;
		}
		atomic_init(&t->shard[i].heads, h);
	}
	return t;
}

static void free_records(struct heads *h)
{
	for (size_t i = 0; i < h->n; i++)
		for (struct record *r = atomic_load(&h->head[i]), *next; r; r = next) {
			next = atomic_load(&r->next);
			free(r->ranges.range);
			free(r);
		}
}

void cop_prof_paths_free(struct path_table *t)
{
	if (!t)
		return;
	for (unsigned i = 0; i < PATH_SHARDS; i++) {
		struct heads *h = atomic_load(&t->shard[i].heads);

		if (h)
			free_records(h);
		while (h) {
			struct heads *older = h->older;

			free(h);
			h = older;
		}
		pthread_mutex_destroy(&t->shard[i].lock);
	}
	free(t);
}

static struct record *find_record(
	const struct shard *s, uint64_t hash, const char *path, size_t len)
{
	struct heads *h = atomic_load_explicit(&((struct shard *)s)->heads, memory_order_acquire);
	struct record *r = atomic_load_explicit(&h->head[hash & (h->n - 1)], memory_order_acquire);

	while (r && !(r->hash == hash && r->len == len && memcmp(r->path, path, len) == 0))
		r = atomic_load_explicit(&r->next, memory_order_acquire);
	return r;
}

static void push_record(struct heads *h, struct record *r)
{
	struct record *_Atomic *head = &h->head[r->hash & (h->n - 1)];

	atomic_store_explicit(&r->next, atomic_load_explicit(head, RELAXED), memory_order_release);
	atomic_store_explicit(head, r, memory_order_release);
}

/* If memory runs out, the chains just get longer. */
static void grow_shard(struct shard *s)
{
	struct heads *old = atomic_load_explicit(&s->heads, RELAXED),
		     *h = heads_new(old->n * 2, old);

	if (!h)
		return;
	for (size_t i = 0; i < old->n; i++)
		for (struct record *r = atomic_load_explicit(&old->head[i], RELAXED), *next; r;
			r = next) {
			next = atomic_load_explicit(&r->next, RELAXED);
			push_record(h, r);
		}
	atomic_store_explicit(&s->heads, h, memory_order_release);
}

static bool reserve_memory(struct path_table *t, uint64_t bytes)
{
	if (atomic_fetch_add_explicit(&t->bytes, bytes, RELAXED) + bytes <= t->max_bytes)
		return true;
	atomic_fetch_sub_explicit(&t->bytes, bytes, RELAXED);
	return false;
}

static struct record *insert_record(
	struct path_table *t, struct shard *s, uint64_t hash, const char *path, size_t len)
{
	/* Includes the record's share of the old and new head arrays, and malloc overhead. */
	uint64_t bytes = sizeof(struct record) + len + 48;
	bool reserved = reserve_memory(t, bytes);
	struct record *r = reserved ? calloc(1, sizeof(*r) + len) : NULL, *there;

	if (r) {
		r->hash = hash;
		r->len = (uint32_t)len;
		memcpy(r->path, path, len);
	}
	pthread_mutex_lock(&s->lock);
	there = find_record(s, hash, path, len);
	if (!there && r) {
		if (s->count >= atomic_load_explicit(&s->heads, RELAXED)->n)
			grow_shard(s);
		push_record(atomic_load_explicit(&s->heads, RELAXED), r);
		s->count++;
	}
	pthread_mutex_unlock(&s->lock);
	if (!there && r)
		return r;
	if (reserved)
		atomic_fetch_sub_explicit(&t->bytes, bytes, RELAXED);
	free(r);
	return there;
}

static struct record *find_or_add_record(
	struct path_table *t, const char *path, size_t len, struct shard **shard)
{
	uint64_t hash;
	struct record *r = NULL;

	if (len <= PATH_LEN_MAX) {
		hash = cop_hash64(path, len, 0);
		*shard = &t->shard[hash >> 58];
		r = find_record(*shard, hash, path, len);
		if (!r)
			r = insert_record(t, *shard, hash, path, len);
	}
	if (!r)
		atomic_fetch_add_explicit(&t->dropped, 1, RELAXED);
	return r;
}

/* Most ranges start at 0 and have been read before, so they need no lock. */
static void note_range(
	struct path_table *t, struct shard *s, struct record *r, const struct cop_range *read)
{
	unsigned cap;

	if (read->end <= atomic_load_explicit(&r->read_from_0, RELAXED))
		return;
	pthread_mutex_lock(&s->lock);
	cap = r->ranges.cap;
	if (atomic_load_explicit(&t->bytes, RELAXED) < t->max_bytes)
		cop_prof_ranges_add(&r->ranges, read->start, read->end);
	atomic_fetch_add_explicit(&t->bytes, (r->ranges.cap - cap) * sizeof(*read), RELAXED);
	if (r->ranges.n && r->ranges.range[0].start == 0)
		atomic_store_explicit(&r->read_from_0, r->ranges.range[0].end, RELAXED);
	pthread_mutex_unlock(&s->lock);
}

void cop_prof_paths_touch(struct path_table *t, enum category c, const char *path, size_t len,
	int slot, const struct cop_range *read)
{
	struct shard *s;
	struct record *r = find_or_add_record(t, path, len, &s);
	uint64_t zero = 0;

	if (!r)
		return;
	if (slot != SLOT_NONE)
		atomic_fetch_add_explicit(&r->count[c][slot], 1, RELAXED);
	if (!atomic_load_explicit(&r->sequence[c], RELAXED))
		atomic_compare_exchange_strong_explicit(&r->sequence[c], &zero,
			1 + atomic_fetch_add_explicit(&t->sequence, 1, RELAXED), RELAXED, RELAXED);
	if (read)
		note_range(t, s, r, read);
}

uint64_t cop_prof_paths_dropped(const struct path_table *t)
{
	return atomic_load_explicit(&((struct path_table *)t)->dropped, RELAXED);
}

static int push_row(struct rows *out, const struct record *r, enum category c)
{
	struct row row = {.path = r->path, .len = r->len};

	row.sequence = atomic_load_explicit(&((struct record *)r)->sequence[c], RELAXED);
	for (unsigned i = 0; i < SLOTS; i++) {
		row.count[i] = atomic_load_explicit(&((struct record *)r)->count[c][i], RELAXED);
		row.events += row.count[i];
	}
	/* Skip untouched paths. An event counted between the two steps of a drain has no
	 * position. */
	if (!row.sequence && !row.events)
		return 0;
	row.weight = row.events;
	return cop_prof_rows_push(out, &row);
}

static int shard_rows(struct shard *s, enum category c, struct rows *out)
{
	int rc = 0;

	pthread_mutex_lock(&s->lock);
	for (size_t i = 0; !rc && i < atomic_load(&s->heads)->n; i++)
		for (struct record *r = atomic_load(&atomic_load(&s->heads)->head[i]); r && !rc;
			r = atomic_load(&r->next))
			rc = push_row(out, r, c);
	pthread_mutex_unlock(&s->lock);
	return rc;
}

int cop_prof_paths_rows(struct path_table *t, enum category c, struct rows *out)
{
	int rc = 0;

	for (unsigned i = 0; i < PATH_SHARDS && !rc; i++)
		rc = shard_rows(&t->shard[i], c, out);
	return rc;
}

/* Copies the ranges, because callbacks run without the lock. */
static void copy_ranges(struct path_table *t, const struct row *row,
	struct cop_range out[COP_PROF_RANGES_MAX], unsigned *n)
{
	uint64_t hash = cop_hash64(row->path, row->len, 0);
	struct shard *s = &t->shard[hash >> 58];
	struct record *r;

	*n = 0;
	pthread_mutex_lock(&s->lock);
	r = find_record(s, hash, row->path, row->len);
	*n = r ? r->ranges.n : 0;
	if (*n)
		memcpy(out, r->ranges.range, *n * sizeof(*out));
	pthread_mutex_unlock(&s->lock);
}

static int touch_order(const void *a, const void *b)
{
	const struct cop_prof_touch *x = a, *y = b;

	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

static int copy_touches(struct path_table *t, struct cop_prof_touch **touches, size_t *n)
{
	struct rows rows = {0};
	size_t first[COP_PROF_TABLES + 1] = {0};
	int rc = 0;

	for (unsigned c = 0; c < COP_PROF_TABLES && !rc; c++) {
		rc = cop_prof_paths_rows(t, (enum category)c, &rows);
		first[c + 1] = rows.n;
	}
	*touches = rc ? NULL : calloc(rows.n ? rows.n : 1, sizeof(**touches));
	*n = rows.n;
	for (unsigned c = 0; c < COP_PROF_TABLES && *touches; c++)
		for (size_t i = first[c]; i < first[c + 1]; i++)
			(*touches)[i] = (struct cop_prof_touch){
				.sequence = rows.row[i].sequence,
				.table = (enum cop_prof_table)c,
				.path = rows.row[i].path,
				.len = rows.row[i].len,
			};
	cop_prof_rows_free(&rows);
	return *touches ? 0 : -ENOMEM;
}

int cop_prof_paths_each_touch(
	struct path_table *t, int (*fn)(void *arg, const struct cop_prof_touch *touch), void *arg)
{
	struct cop_range range[COP_PROF_RANGES_MAX];
	struct cop_prof_touch *touches;
	size_t n;
	int rc = copy_touches(t, &touches, &n);

	if (rc)
		return rc;
	qsort(touches, n, sizeof(*touches), touch_order);
	for (size_t i = 0; i < n && !rc; i++) {
		struct cop_prof_touch *one = &touches[i];
		struct row row = {.path = one->path, .len = (uint32_t)one->len};

		if (one->table == COP_PROF_DATA)
			copy_ranges(t, &row, range, &one->ranges);
		one->range = range;
		rc = fn(arg, one);
	}
	free(touches);
	return rc;
}

/* ---- reset ---- */

/* One path's records in both tables. */
struct pair {
	struct record *from, *to;
	struct shard *from_shard, *to_shard;
};
struct pairs {
	struct pair *pair;
	size_t n;
};

/* Records are freed only with the table, so callers may use them without the lock. */
static int list_records(struct path_table *t, struct pairs *out)
{
	size_t cap = 0;

	for (unsigned i = 0; i < PATH_SHARDS; i++) {
		struct shard *s = &t->shard[i];
		struct pair *grown;

		pthread_mutex_lock(&s->lock);
		cap += s->count;
		grown = reallocarray(out->pair, cap + 1, sizeof(*grown));
		if (grown) {
			out->pair = grown;
			for (size_t h = 0; h < atomic_load(&s->heads)->n; h++)
				for (struct record *r =
						atomic_load(&atomic_load(&s->heads)->head[h]);
					r; r = atomic_load(&r->next))
					out->pair[out->n++] =
						(struct pair){.from = r, .from_shard = s};
		}
		pthread_mutex_unlock(&s->lock);
		if (!grown)
			return -ENOMEM;
	}
	return 0;
}

/* Pairs up each path's records in both tables, creating missing ones in `to`. */
static int pair_up(struct path_table *from, struct path_table *to, struct pairs *out)
{
	int rc = list_records(from, out);

	for (size_t i = 0; i < out->n && !rc; i++) {
		struct pair *p = &out->pair[i];

		p->to = find_or_add_record(to, p->from->path, p->from->len, &p->to_shard);
		rc = p->to ? 0 : -ENOMEM;
	}
	return rc;
}

static void move_counter(_Atomic uint64_t *from, _Atomic uint64_t *to)
{
	uint64_t value = atomic_exchange_explicit(from, 0, RELAXED);

	if (value)
		atomic_fetch_add_explicit(to, value, RELAXED);
}

/* Moves the position first, so that later events get a new one. */
static void move_counts(struct pair *p)
{
	for (unsigned c = 0; c < CATEGORIES; c++) {
		uint64_t sequence = atomic_exchange(&p->from->sequence[c], 0);

		if (sequence)
			atomic_store(&p->to->sequence[c], sequence);
		for (unsigned i = 0; i < SLOTS; i++)
			move_counter(&p->from->count[c][i], &p->to->count[c][i]);
	}
}

static void move_ranges(struct path_table *from, struct path_table *to, struct pair *p)
{
	struct ranges ranges;

	pthread_mutex_lock(&p->from_shard->lock);
	ranges = p->from->ranges;
	p->from->ranges = (struct ranges){0};
	atomic_store_explicit(&p->from->read_from_0, 0, RELAXED);
	pthread_mutex_unlock(&p->from_shard->lock);
	atomic_fetch_sub_explicit(&from->bytes, ranges.cap * sizeof(*ranges.range), RELAXED);
	for (unsigned i = 0; i < ranges.n; i++)
		note_range(to, p->to_shard, p->to, &ranges.range[i]);
	free(ranges.range);
}

static void move_all(struct path_table *from, struct path_table *to, struct pairs *pairs)
{
	for (size_t i = 0; i < pairs->n; i++) {
		move_counts(&pairs->pair[i]);
		move_ranges(from, to, &pairs->pair[i]);
	}
	move_counter(&from->dropped, &to->dropped);
}

int cop_prof_paths_drain(struct path_table *t, struct path_table *into)
{
	struct pairs pairs = {0};
	int rc = pair_up(t, into, &pairs);

	if (!rc)
		move_all(t, into, &pairs);
	free(pairs.pair);
	return rc;
}

/* Every path is already in t, so only the list of pairs needs memory. */
void cop_prof_paths_put_back(struct path_table *t, struct path_table *taken)
{
	struct pairs pairs = {0};

	if (!pair_up(taken, t, &pairs))
		move_all(taken, t, &pairs);
	free(pairs.pair);
}
