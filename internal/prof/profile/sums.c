/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts operations, and adds up shards and nodes. The number of calls is computed from the buckets
 * instead of stored, so the two always agree. */
#include "prof/profile/profile_priv.h"

#define RELAXED memory_order_relaxed

struct op_shard *cop_prof_op_shard(struct op_shard shards[OP_SHARDS])
{
	static _Atomic unsigned threads;
	static _Thread_local unsigned number; /* starts at 1 */

	if (!number)
		number = 1 + atomic_fetch_add_explicit(&threads, 1, RELAXED) % OP_SHARDS;
	return &shards[number - 1];
}

void cop_prof_raise(_Atomic uint64_t *max, uint64_t value)
{
	uint64_t old = atomic_load_explicit(max, RELAXED);

	while (old < value &&
		!atomic_compare_exchange_weak_explicit(max, &old, value, RELAXED, RELAXED))
		;
}

void cop_prof_op_count(struct op_cell *cell, enum cop_prof_outcome outcome, uint64_t latency_ns)
{
	if (outcome != COP_PROF_DONE)
		atomic_fetch_add_explicit(&cell->outcome[outcome], 1, RELAXED);
	atomic_fetch_add_explicit(&cell->latency_ns, latency_ns, RELAXED);
	cop_prof_raise(&cell->max_ns, latency_ns);
	atomic_fetch_add_explicit(&cell->bucket[cop_prof_hist_index(latency_ns)], 1, RELAXED);
}

struct cop_prof_sum *cop_prof_sum_new(void)
{
	return calloc(1, sizeof(struct cop_prof_sum));
}

void cop_prof_sum_free(struct cop_prof_sum *s)
{
	if (!s)
		return;
	for (unsigned c = 0; c < CATEGORIES; c++)
		cop_prof_sketch_free(&s->top[c]);
	cop_pathclass_totals_free(&s->classes);
	free(s->share);
	free(s);
}

static void add_cell(struct sum_op *into, const struct op_cell *cell)
{
	uint64_t max = atomic_load_explicit(&cell->max_ns, RELAXED);

	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		into->outcome[o] = cop_add_saturating(
			into->outcome[o], atomic_load_explicit(&cell->outcome[o], RELAXED));
	into->latency_ns = cop_add_saturating(
		into->latency_ns, atomic_load_explicit(&cell->latency_ns, RELAXED));
	into->max_ns = COP_MAX(into->max_ns, max);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] = cop_add_saturating(
			into->bucket[i], atomic_load_explicit(&cell->bucket[i], RELAXED));
}

/* Rounds as in the files. */
static uint64_t to_microseconds(uint64_t ns)
{
	return ns / 1000 + (ns % 1000 >= 500);
}

void cop_prof_sum_counts(struct cop_prof_sum *s, const struct cop_prof *p)
{
	uint64_t all_ns = 0;

	s->nodes = 1;
	s->top_n = p->top_n;
	for (unsigned i = 0; i < OP_SHARDS; i++) {
		const struct op_shard *shard = &p->shards[i];

		for (unsigned o = 0; o < COP_PROF_OPS; o++)
			add_cell(&s->op[o], &shard->op[o]);
		for (unsigned e = 0; e < COP_PROF_TTLS; e++)
			s->ttl[e] = cop_add_saturating(
				s->ttl[e], atomic_load_explicit(&shard->ttl[e], RELAXED));
	}
	for (unsigned o = 0; o < COP_PROF_OPS; o++) {
		s->op[o].latency_us = to_microseconds(s->op[o].latency_ns);
		all_ns = cop_add_saturating(all_ns, s->op[o].latency_ns);
	}
	s->latency_us = to_microseconds(all_ns);
}

/* How many paths of a category go into the classes: all that are known. */
static size_t class_limit(const struct cop_prof *p)
{
	return p->paths ? SIZE_MAX : p->top_n;
}

/* Adds the node's paths by class. */
static int add_classes(struct cop_prof_sum *s, const struct cop_prof *p)
{
	struct cop_buf path = {0};
	int rc = 0;

	for (unsigned c = 0; c < CATEGORIES && !rc; c++) {
		struct rows rows = {0};

		rc = cop_prof_rows_top(p, c, class_limit(p), &rows);
		for (size_t i = 0; i < rows.n && !rc; i++) {
			path.len = 0;
			cop_prof_text_path(&path, p->root, rows.row[i].path, rows.row[i].len);
			rc = path.failed ? -ENOMEM
					 : cop_pathclass_add(&s->classes, c == CATEGORY_TTL,
						   path.data ? path.data : "", path.len,
						   rows.row[i].events);
		}
		cop_prof_rows_free(&rows);
	}
	cop_buf_free(&path);
	return rc;
}

static int add_top(struct cop_prof_sum *s, const struct cop_prof *p)
{
	int rc = 0;

	for (unsigned c = 0; c < CATEGORIES && !rc; c++) {
		struct rows rows = {0};
		uint64_t error;

		/* Request one row too many: the sketch subtracts its weight from the others. */
		rc = p->paths ? cop_prof_rows_top(p, c, SKETCH_ROWS + 1, &rows)
			      : cop_prof_top_rows(p->top[c], &rows);
		error = p->paths ? cop_prof_paths_dropped(p->paths) : cop_prof_top_error(p->top[c]);
		if (!rc)
			rc = cop_prof_sketch_of(&rows, error, &s->top[c]);
		cop_prof_rows_free(&rows);
	}
	return rc;
}

static int add_shares(struct cop_prof_sum *s, const struct cop_prof *p)
{
	struct cop_prof_op_sum all;

	s->share = malloc(sizeof(*s->share));
	if (!s->share)
		return -ENOMEM;
	cop_prof_sum_all(s, &all);
	*s->share = (struct cop_prof_shares){.rank = p->rank,
		.value = {all.outcome[COP_PROF_HIT], all.outcome[COP_PROF_MISS],
			all.outcome[COP_PROF_NEGATIVE], s->ttl[COP_PROF_SERVE], all.latency_us}};
	s->shares = 1;
	return 0;
}

int cop_prof_sum_add(struct cop_prof_sum *s, const struct cop_prof *p)
{
	struct cop_prof_sum *one;
	int rc = 0;

	if (!p || !p->shards)
		return 0;
	one = cop_prof_sum_new();
	if (!one)
		return -ENOMEM;
	cop_prof_sum_counts(one, p);
	rc = add_shares(one, p);
	one->whole = p->paths && !cop_prof_paths_dropped(p->paths);
	if (!rc && (p->top_n || p->paths))
		rc = add_classes(one, p);
	if (!rc && (p->top_n || p->paths))
		rc = add_top(one, p);
	if (!rc)
		rc = cop_prof_merge(s, one);
	cop_prof_sum_free(one);
	return rc;
}

static void merge_op(struct sum_op *into, const struct sum_op *from)
{
	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		into->outcome[o] = cop_add_saturating(into->outcome[o], from->outcome[o]);
	into->latency_ns = cop_add_saturating(into->latency_ns, from->latency_ns);
	into->latency_us = cop_add_saturating(into->latency_us, from->latency_us);
	into->max_ns = COP_MAX(into->max_ns, from->max_ns);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] = cop_add_saturating(into->bucket[i], from->bucket[i]);
}

/* A total order, so that the result does not depend on the merge order. */
static int by_rank(const struct cop_prof_shares *a, const struct cop_prof_shares *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	for (unsigned v = 0; v < COP_PROF_SHARES; v++)
		if (a->value[v] != b->value[v])
			return a->value[v] < b->value[v] ? -1 : 1;
	return 0;
}

/* Merges both lists by rank; drops the list if there are too many nodes. -ENOMEM. */
static int merge_shares(
	const struct cop_prof_sum *a, const struct cop_prof_sum *b, struct cop_prof_shares **out)
{
	size_t n = a->shares + b->shares, i = 0, k = 0;

	*out = NULL;
	if (!n || n > COP_PROF_SHARES_MAX)
		return 0;
	*out = calloc(n, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	for (struct cop_prof_shares *to = *out; to < *out + n; to++)
		*to = k == b->shares || (i < a->shares && by_rank(&a->share[i], &b->share[k]) <= 0)
			      ? a->share[i++]
			      : b->share[k++];
	return 0;
}

/* Makes all allocations; the caller then replaces the old sums with the results. */
static int merge_paths(const struct cop_prof_sum *into, const struct cop_prof_sum *from,
	struct sketch top[CATEGORIES], struct cop_pathclass_totals *classes)
{
	int rc = cop_pathclass_merge(classes, &into->classes);

	if (!rc)
		rc = cop_pathclass_merge(classes, &from->classes);
	for (unsigned c = 0; c < CATEGORIES && !rc; c++)
		rc = cop_prof_sketch_merge(&into->top[c], &from->top[c], &top[c]);
	return rc;
}

int cop_prof_merge(struct cop_prof_sum *into, const struct cop_prof_sum *from)
{
	struct cop_pathclass_totals classes = {0};
	struct sketch top[CATEGORIES] = {0};
	struct cop_prof_shares *share = NULL;
	int rc = merge_paths(into, from, top, &classes);

	if (!rc)
		rc = merge_shares(into, from, &share);
	if (!rc) {
		free(into->share);
		into->share = share;
		into->whole = cop_add_saturating(into->whole, from->whole);
		into->shares = share ? into->shares + from->shares : 0;
		into->nodes = cop_add_saturating(into->nodes, from->nodes);
		into->latency_us = cop_add_saturating(into->latency_us, from->latency_us);
		into->top_n = COP_MAX(into->top_n, from->top_n);
		for (unsigned e = 0; e < COP_PROF_TTLS; e++)
			into->ttl[e] = cop_add_saturating(into->ttl[e], from->ttl[e]);
		for (unsigned o = 0; o < COP_PROF_OPS; o++)
			merge_op(&into->op[o], &from->op[o]);
		for (unsigned c = 0; c < CATEGORIES; c++) {
			struct sketch old = into->top[c];

			into->top[c] = top[c];
			top[c] = old;
		}
		struct cop_pathclass_totals old = into->classes;

		into->classes = classes;
		classes = old;
	}
	for (unsigned c = 0; c < CATEGORIES; c++)
		cop_prof_sketch_free(&top[c]);
	cop_pathclass_totals_free(&classes);
	return rc;
}

/* DONE counts calls without any other outcome. While other threads count, the counters may be
 * slightly inconsistent. */
static void derive_done(struct cop_prof_op_sum *out)
{
	uint64_t others = 0;

	for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
		others = cop_add_saturating(others, out->outcome[o]);
	out->outcome[COP_PROF_DONE] = out->calls > others ? out->calls - others : 0;
}

void cop_prof_sum_op(const struct cop_prof_sum *s, enum cop_prof_op op, struct cop_prof_op_sum *out)
{
	const struct sum_op *from = &s->op[op];

	*out = (struct cop_prof_op_sum){.latency_ns = from->latency_ns,
		.latency_us = from->latency_us,
		.max_ns = from->max_ns};
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		out->calls = cop_add_saturating(out->calls, from->bucket[i]);
	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		out->outcome[o] = from->outcome[o];
	derive_done(out);
	if (!out->calls)
		return;
	out->p50_ns = cop_prof_hist_quantile(from->bucket, out->calls, 500, from->max_ns);
	out->p90_ns = cop_prof_hist_quantile(from->bucket, out->calls, 900, from->max_ns);
	out->p99_ns = cop_prof_hist_quantile(from->bucket, out->calls, 990, from->max_ns);
	out->p999_ns = cop_prof_hist_quantile(from->bucket, out->calls, 999, from->max_ns);
}

void cop_prof_sum_octaves(
	const struct cop_prof_sum *s, enum cop_prof_op op, uint64_t out[COP_PROF_OCTAVES])
{
	for (unsigned k = 0; k < COP_PROF_OCTAVES; k++)
		out[k] = 0;
	for (unsigned i = 0; i < HIST_BUCKETS; i++) {
		uint64_t value = cop_prof_hist_value(i);
		unsigned k = value ? 63 - (unsigned)__builtin_clzll(value) : 0;

		out[k] = cop_add_saturating(out[k], s->op[op].bucket[i]);
	}
}

void cop_prof_sum_all(const struct cop_prof_sum *s, struct cop_prof_op_sum *out)
{
	*out = (struct cop_prof_op_sum){.latency_us = s->latency_us};
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum one;

		cop_prof_sum_op(s, op, &one);
		out->calls = cop_add_saturating(out->calls, one.calls);
		out->latency_ns = cop_add_saturating(out->latency_ns, one.latency_ns);
		out->max_ns = COP_MAX(out->max_ns, one.max_ns);
		for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
			out->outcome[o] = cop_add_saturating(out->outcome[o], one.outcome[o]);
	}
}

uint64_t cop_prof_sum_ttl(const struct cop_prof_sum *s, enum cop_prof_ttl event)
{
	return s->ttl[event];
}

uint64_t cop_prof_sum_nodes(const struct cop_prof_sum *s)
{
	return s->nodes;
}

const struct cop_pathclass_totals *cop_prof_sum_classes(const struct cop_prof_sum *s)
{
	return &s->classes;
}

bool cop_prof_sum_has_every_path(const struct cop_prof_sum *s)
{
	return s->nodes && s->whole == s->nodes;
}

const struct cop_prof_shares *cop_prof_sum_shares(const struct cop_prof_sum *s, size_t *n)
{
	*n = s->shares;
	return s->share;
}

int cop_prof_sum_each_path(const struct cop_prof_sum *s, const char *source,
	int (*fn)(void *arg, const char *category, const char *path, size_t len,
		const uint64_t counts[COP_PROF_TOP_COUNTS]),
	void *arg)
{
	char *root = cop_prof_root_dup(source);
	struct cop_buf path = {0};
	int rc = root ? 0 : -ENOMEM;

	for (unsigned c = 0; c < CATEGORIES && !rc; c++)
		for (size_t i = 0; i < s->top[c].n && !rc; i++) {
			const struct sketch_row *row = &s->top[c].row[i];
			uint64_t counts[COP_PROF_TOP_COUNTS] = {0};
			unsigned first = c == CATEGORY_TTL ? 3 : 0, n = c == CATEGORY_TTL ? 4 : 3;

			path.len = 0;
			cop_prof_text_path(&path, root, s->top[c].text + row->at, row->len);
			memcpy(counts + first, row->count, n * sizeof(counts[0]));
			rc = path.failed ? -ENOMEM
					 : fn(arg, cop_prof_category_name(c), path.data, path.len,
						   counts);
		}
	cop_buf_free(&path);
	free(root);
	return rc;
}
