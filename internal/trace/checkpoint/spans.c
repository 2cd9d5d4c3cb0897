/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of one program thread arrive on several of our threads, in any order, and the trace has a
 * checkpoint event after the events nested in it, so nesting is known only at the end. Therefore,
 * checkpoint events and two unions of spans are stored for each program thread, in bounded memory.
 * Nested checkpoint events never count, so they are dropped when the memory is full. There are few
 * such events, so one lock per shard is enough; two locks are never held at once. */
#include <math.h>
#include <pthread.h>

#include "base/base/grow.h"
#include "base/base/htab.h"
#include "trace/checkpoint/checkpoint_priv.h"

#define SHARDS 64u

struct name { /* name of nested events */
	struct cop_hlink link;
	uint64_t nested, nested_ns;
	size_t len;
	char text[];
};
struct match { /* a checkpoint event */
	int64_t from, to;
	uint64_t size;
	bool has_size;
	struct name *name;
};
struct timeline { /* one thread of the program */
	struct cop_hlink link;
	struct cop_union checkpoint, slow;
	struct match *match;
	size_t n, cap;
	size_t source; /* 0 if the host identifies the process instead */
	size_t host_len, pid_len, len;
	char key[]; /* host, pid, tid */
};
struct shard {
	pthread_mutex_t lock;
	struct cop_htab table, names;
};
struct spans {
	struct shard shard[SHARDS];
};

struct spans *cop_ckpt_spans_new(void)
{
	struct spans *s = calloc(1, sizeof(*s));

	for (unsigned i = 0; s && i < SHARDS; i++)
		pthread_mutex_init(&s->shard[i].lock, NULL);
	return s;
}

static void free_timelines(struct cop_htab *table)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(table, NULL); l; l = next) {
		struct timeline *t = COP_CONTAINER_OF(l, struct timeline, link);

		next = cop_htab_after(table, l);
		cop_union_free(&t->checkpoint);
		cop_union_free(&t->slow);
		free(t->match);
		free(t);
	}
	cop_htab_fini(table);
}

static void free_names(struct cop_htab *table)
{
	struct cop_hlink *l, *next;

	for (l = cop_htab_after(table, NULL); l; l = next) {
		next = cop_htab_after(table, l);
		free(COP_CONTAINER_OF(l, struct name, link));
	}
	cop_htab_fini(table);
}

void cop_ckpt_spans_free(struct spans *s)
{
	if (!s)
		return;
	for (unsigned i = 0; i < SHARDS; i++) {
		free_timelines(&s->shard[i].table);
		free_names(&s->shard[i].names);
		pthread_mutex_destroy(&s->shard[i].lock);
	}
	free(s);
}

/* ---- identity ---- */

static uint64_t hash_of(const struct cop_trace_event *e)
{
	uint64_t h = cop_hash64(e->host.at, e->host.len, e->host.len ? 0 : e->source);

	return cop_hash64(e->tid.at, e->tid.len, cop_hash64(e->pid.at, e->pid.len, h));
}

static bool is_of(const struct timeline *t, const struct cop_trace_event *e)
{
	return t->source == (e->host.len ? 0 : e->source) && t->host_len == e->host.len &&
	       t->pid_len == e->pid.len && t->len == e->host.len + e->pid.len + e->tid.len &&
	       !memcmp(t->key, e->host.at, e->host.len) &&
	       !memcmp(t->key + t->host_len, e->pid.at, e->pid.len) &&
	       !memcmp(t->key + t->host_len + t->pid_len, e->tid.at, e->tid.len);
}

static struct timeline *find_or_make(
	struct cop_htab *table, const struct cop_trace_event *e, uint64_t hash)
{
	struct cop_hlink *l = cop_htab_first(table, hash);
	struct timeline *t;

	for (; l; l = cop_htab_next(l)) {
		t = COP_CONTAINER_OF(l, struct timeline, link);
		if (is_of(t, e))
			return t;
	}
	t = calloc(1, sizeof(*t) + e->host.len + e->pid.len + e->tid.len);
	if (!t)
		return NULL;
	t->checkpoint.max = t->slow.max = COP_CKPT_SPANS;
	t->source = e->host.len ? 0 : e->source;
	t->host_len = e->host.len;
	t->pid_len = e->pid.len;
	t->len = e->host.len + e->pid.len + e->tid.len;
	memcpy(t->key, e->host.at, e->host.len);
	memcpy(t->key + e->host.len, e->pid.at, e->pid.len);
	memcpy(t->key + e->host.len + e->pid.len, e->tid.at, e->tid.len);
	cop_htab_add(table, &t->link, hash);
	return t;
}

static struct name *name_of(struct cop_htab *names, struct cop_trace_str s)
{
	uint64_t hash = cop_hash64(s.at, s.len, 0);
	struct cop_hlink *l = cop_htab_first(names, hash);
	struct name *n;

	for (; l; l = cop_htab_next(l)) {
		n = COP_CONTAINER_OF(l, struct name, link);
		if (n->len == s.len && !memcmp(n->text, s.at, s.len))
			return n;
	}
	n = calloc(1, sizeof(*n) + s.len);
	if (!n)
		return NULL;
	n->len = s.len;
	memcpy(n->text, s.at, s.len);
	cop_htab_add(names, &n->link, hash);
	return n;
}

/* ---- outermost events ---- */

static int by_begin(const void *p, const void *q)
{
	const struct match *a = p, *b = q;

	if (a->from != b->from)
		return a->from < b->from ? -1 : 1;
	if (a->to != b->to)
		return a->to > b->to ? -1 : 1;
	return (a->size < b->size) - (a->size > b->size);
}

/* Drops nested events. */
static void drop_nested(struct timeline *t)
{
	int64_t end = INT64_MIN;
	size_t n = 0;

	if (t->n)
		qsort(t->match, t->n, sizeof(*t->match), by_begin);
	for (size_t i = 0; i < t->n; i++) {
		struct match m = t->match[i];

		if (n && m.to <= end) {
			m.name->nested++;
			m.name->nested_ns += (uint64_t)(m.to - m.from);
			continue;
		}
		end = m.to;
		t->match[n++] = m;
	}
	t->n = n;
}

static int add_match(struct shard *shard, struct timeline *t, const struct cop_trace_event *e)
{
	struct name *name = name_of(&shard->names, e->name);
	size_t full;

	if (!name)
		return -ENOMEM;
	if (t->n == t->cap) {
		drop_nested(t);
		full = t->n < t->cap / 2 ? t->n : t->cap;
		if (!COP_GROW(t->match, full, t->cap))
			return -ENOMEM;
	}
	t->match[t->n++] =
		(struct match){e->ts_ns, e->ts_ns + (int64_t)e->dur_ns, e->size, e->has_size, name};
	return 0;
}

int cop_ckpt_spans_add(struct spans *s, const struct cop_trace_event *e, bool checkpoint)
{
	uint64_t hash = hash_of(e);
	struct shard *shard = &s->shard[hash >> 32 & (SHARDS - 1)];
	struct timeline *t;
	int rc = -ENOMEM;

	pthread_mutex_lock(&shard->lock);
	t = find_or_make(&shard->table, e, hash);
	if (t)
		rc = cop_union_add(checkpoint ? &t->checkpoint : &t->slow, e->ts_ns,
			e->ts_ns + (int64_t)e->dur_ns);
	if (!rc && checkpoint)
		rc = add_match(shard, t, e);
	pthread_mutex_unlock(&shard->lock);
	return rc;
}

/* ---- sums ---- */

struct sums {
	struct cop_union flush, checkpoint;
	struct cop_tab *events, *nested;
	struct flush *out;
	struct pace *pace;
};

static void take_pace(const struct timeline *t, double dur, struct pace *pace)
{
	double whole = (double)(t->match[t->n - 1].to - t->match[0].from) / 1e9;

	/* On a tie, choose the thread with the longer run, so that the order of events does not
	 * matter. */
	if (dur < pace->dur || (dur == pace->dur && whole <= pace->whole))
		return;
	*pace = (struct pace){.n = (double)t->n,
		.dur = dur,
		.whole = whole,
		.cost = dur / (double)t->n,
		.interval = t->n > 1 ? (whole - dur) / (double)(t->n - 1) : NAN};
}

/* Adds a thread's checkpoint time and number of checkpoints as one event. */
static int add_thread(struct timeline *t, struct sums *sums)
{
	const struct cop_trace_str none = {"", 0};
	struct cop_trace_event e = {.kind = COP_TRACE_AGGREGATE,
		.name = none,
		.cat = none,
		.file = none,
		.host = {t->key, t->host_len},
		.pid = {t->key + t->host_len, t->pid_len},
		.tid = {t->key + t->host_len + t->pid_len, t->len - t->host_len - t->pid_len},
		.source = t->source};
	int64_t end = INT64_MIN;

	drop_nested(t);
	for (size_t i = 0; i < t->n; i++) {
		const struct match *m = &t->match[i];

		e.dur_ns += (uint64_t)(m->to - COP_MAX(m->from, end));
		end = m->to;
		e.size += m->size;
		e.has_size |= m->has_size;
	}
	e.count = t->n;
	e.dur_max_ns = e.dur_ns;
	if (!t->n)
		return 0;
	take_pace(t, (double)e.dur_ns / 1e9, sums->pace);
	return cop_tab_add(sums->events, 0, &e);
}

static int add_names(const struct cop_htab *names, struct cop_tab *nested)
{
	const struct cop_trace_str none = {"", 0};
	struct cop_hlink *l = cop_htab_after(names, NULL);
	int rc = 0;

	for (; l && !rc; l = cop_htab_after(names, l)) {
		const struct name *n = COP_CONTAINER_OF(l, struct name, link);
		struct cop_trace_event e = {.kind = COP_TRACE_AGGREGATE,
			.name = {n->text, n->len},
			.cat = none,
			.pid = none,
			.tid = none,
			.file = none,
			.host = none,
			.count = n->nested,
			.dur_ns = n->nested_ns};

		if (n->nested)
			rc = cop_tab_add(nested, 0, &e);
	}
	return rc;
}

static int finish_thread(struct timeline *t, struct sums *sums)
{
	struct cop_union flush = {0};
	double dur;
	int rc = cop_union_rest(&t->slow, &t->checkpoint, &flush);

	dur = (double)cop_union_length(&flush) / 1e9;
	sums->out->dur = COP_MAX(sums->out->dur, dur);
	sums->out->threads += dur > 0;
	dur = (double)(cop_union_length(&t->slow) - cop_union_alone(&t->slow, &t->checkpoint)) /
	      1e9;
	sums->out->inside = COP_MAX(sums->out->inside, dur);
	if (!rc)
		rc = cop_union_merge(&sums->flush, &flush);
	if (!rc)
		rc = cop_union_merge(&sums->checkpoint, &t->checkpoint);
	cop_union_free(&flush);
	return rc ? rc : add_thread(t, sums);
}

int cop_ckpt_spans_finish(struct spans *s, struct cop_tab *events, struct cop_tab *nested,
	struct flush *out, struct pace *pace)
{
	struct sums sums = {.events = events, .nested = nested, .out = out, .pace = pace};
	struct cop_hlink *l;
	int rc = 0;

	*out = (struct flush){0};
	*pace = (struct pace){.interval = NAN, .cost = NAN};
	for (unsigned i = 0; i < SHARDS && !rc; i++) {
		const struct cop_htab *table = &s->shard[i].table;

		for (l = cop_htab_after(table, NULL); l && !rc; l = cop_htab_after(table, l))
			rc = finish_thread(COP_CONTAINER_OF(l, struct timeline, link), &sums);
		if (!rc)
			rc = add_names(&s->shard[i].names, nested);
	}
	out->covered = (double)cop_union_length(&sums.flush) / 1e9;
	out->overlap = out->covered - (double)cop_union_alone(&sums.flush, &sums.checkpoint) / 1e9;
	out->about = (double)(sums.flush.closed_ns + sums.checkpoint.closed_ns) / 1e9;
	cop_union_free(&sums.flush);
	cop_union_free(&sums.checkpoint);
	return rc;
}
