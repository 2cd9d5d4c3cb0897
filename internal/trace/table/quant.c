/* SPDX-License-Identifier: BSD-3-Clause */
/* The exact form is an array of sorted distinct values with their counts, followed by a buffer of
 * new values that is merged in when full. The buffer grows with the number of values, so each value
 * is moved only a few times. Sizes and durations repeat: a million of them usually have a few
 * thousand distinct values. Beyond COP_TAB_EXACT_MAX values, a DDSketch counts value v in bucket
 * ceil(log_g v), where g = (1 + a)/(1 - a); the middle of a bucket is within a relative error a of
 * its values. */
#include <math.h>

#include "base/base/grow.h"
#include "trace/table/table.h"

#define ALPHA 0.008   /* leaves room for interpolation between two values */
#define BUCKETS 2800u /* covers values up to 2^64 */

struct pair {
	uint64_t v, n;
};
struct cop_quant {
	uint64_t count;
	uint64_t *bucket; /* [0] counts zeros; NULL: still exact */
	struct pair *pair;
	size_t sorted, used, cap; /* pairs */
};

static double log_gamma(void)
{
	return log((1 + ALPHA) / (1 - ALPHA));
}

static unsigned bucket_of(uint64_t v)
{
	double i;

	if (!v)
		return 0;
	i = ceil(log((double)v) / log_gamma()) + 1;
	return i < BUCKETS ? (unsigned)i : BUCKETS - 1;
}

static double middle_of(unsigned bucket)
{
	double g = (1 + ALPHA) / (1 - ALPHA);

	return bucket ? 2 * pow(g, (double)bucket - 1) / (g + 1) : 0;
}

static int by_value(const void *a, const void *b)
{
	const struct pair *p = a, *q = b;

	return (p->v > q->v) - (p->v < q->v);
}

/* Merges pairs with equal values in place. */
static size_t fold(struct pair *p, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++) {
		if (to && p[to - 1].v == p[i].v)
			p[to - 1].n += p[i].n;
		else
			p[to++] = p[i];
	}
	return to;
}

/* Merges the sorted values with a sorted copy of the buffer, working down from the end of the
 * array, so nothing is overwritten too early. */
static void merge_buffer(struct cop_quant *q, size_t fresh, struct pair *copy)
{
	size_t a = q->sorted, b = fresh, to = a + b;

	while (b)
		q->pair[--to] = a && q->pair[a - 1].v > copy[b - 1].v ? q->pair[--a] : copy[--b];
	q->sorted = q->used = fold(q->pair, q->sorted + fresh);
}

static int compact(struct cop_quant *q)
{
	size_t fresh = q->used - q->sorted;
	struct pair *at = q->pair + q->sorted, *copy;

	if (!fresh)
		return 0;
	qsort(at, fresh, sizeof(*at), by_value);
	fresh = fold(at, fresh);
	copy = malloc(fresh * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, at, fresh * sizeof(*copy));
	merge_buffer(q, fresh, copy);
	free(copy);
	return 0;
}

static int become_sketch(struct cop_quant *q)
{
	q->bucket = calloc(BUCKETS, sizeof(*q->bucket));
	if (!q->bucket)
		return -ENOMEM;
	for (size_t i = 0; i < q->used; i++)
		q->bucket[bucket_of(q->pair[i].v)] += q->pair[i].n;
	free(q->pair);
	q->pair = NULL;
	q->sorted = q->used = q->cap = 0;
	return 0;
}

/* Reserves space for one more pair. */
static int reserve_pair(struct cop_quant *q)
{
	int rc = compact(q);

	if (rc || (q->cap && q->sorted <= q->cap / 2))
		return rc;
	return COP_GROW(q->pair, q->cap, q->cap) ? 0 : -ENOMEM;
}

static int add_value(struct cop_quant *q, uint64_t v, uint64_t n)
{
	int rc = 0;

	q->count += n;
	if (!q->bucket && q->count > COP_TAB_EXACT_MAX)
		rc = become_sketch(q);
	if (rc)
		return rc;
	if (q->bucket) {
		q->bucket[bucket_of(v)] += n;
		return 0;
	}
	if (q->used > q->sorted && q->pair[q->used - 1].v == v) {
		q->pair[q->used - 1].n += n;
		return 0;
	}
	if (q->used == q->cap)
		rc = reserve_pair(q);
	if (!rc)
		q->pair[q->used++] = (struct pair){v, n};
	return rc;
}

int cop_quant_add(struct cop_quant **q, uint64_t v, uint64_t n)
{
	if (!*q)
		*q = calloc(1, sizeof(**q));
	return *q ? add_value(*q, v, n) : -ENOMEM;
}

int cop_quant_merge(struct cop_quant **to, const struct cop_quant *from)
{
	int rc = 0;

	if (!from)
		return 0;
	if (!*to)
		*to = calloc(1, sizeof(**to));
	if (!*to)
		return -ENOMEM;
	for (size_t i = 0; i < from->used && !rc; i++)
		rc = add_value(*to, from->pair[i].v, from->pair[i].n);
	if (rc || !from->bucket)
		return rc;
	(*to)->count += from->count;
	if (!(*to)->bucket)
		rc = become_sketch(*to);
	for (unsigned i = 0; i < BUCKETS && !rc; i++)
		(*to)->bucket[i] += from->bucket[i];
	return rc;
}

void cop_quant_free(struct cop_quant *q)
{
	if (!q)
		return;
	free(q->bucket);
	free(q->pair);
	free(q);
}

bool cop_quant_is_exact(const struct cop_quant *q)
{
	return !q || !q->bucket;
}

/* Returns the value at a rank, counted from 0. */
static double ranked(const struct cop_quant *q, uint64_t rank)
{
	uint64_t seen = 0;

	if (q->bucket) {
		for (unsigned i = 0; i < BUCKETS; i++)
			if ((seen += q->bucket[i]) > rank)
				return middle_of(i);
		return middle_of(BUCKETS - 1);
	}
	for (size_t i = 0; i < q->used; i++)
		if ((seen += q->pair[i].n) > rank)
			return (double)q->pair[i].v;
	return 0;
}

double cop_quant_at(struct cop_quant *q, double p)
{
	double at, low;

	if (!q || !q->count || compact(q))
		return 0;
	at = p * (double)(q->count - 1);
	low = ranked(q, (uint64_t)at);
	if (q->bucket || at == floor(at))
		return low;
	return low + (ranked(q, (uint64_t)at + 1) - low) * (at - floor(at));
}
