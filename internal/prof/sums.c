/* SPDX-License-Identifier: BSD-3-Clause */
/* Counting operations, and adding up what shards and nodes have counted. The number of calls is not kept: it is the sum of
 * the buckets, so that the two never disagree. */
#include <stdlib.h>

#include "prof/prof_priv.h"

#define RELAXED memory_order_relaxed

struct op_shard *cop_prof_op_shard(struct op_shard shards[OP_SHARDS])
{
	static _Atomic unsigned threads;
	static _Thread_local unsigned number; /* from 1 */

	if (!number)
		number = 1 + atomic_fetch_add_explicit(&threads, 1, RELAXED) % OP_SHARDS;
	return &shards[number - 1];
}

static void raise_to(_Atomic uint64_t *max, uint64_t value)
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
	raise_to(&cell->max_ns, latency_ns);
	atomic_fetch_add_explicit(&cell->bucket[cop_prof_hist_index(latency_ns)], 1, RELAXED);
}

static uint64_t add(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

struct cop_prof_sum *cop_prof_sum_new(void)
{
	return calloc(1, sizeof(struct cop_prof_sum));
}

void cop_prof_sum_free(struct cop_prof_sum *s)
{
	free(s);
}

static void take_cell(struct sum_op *into, const struct op_cell *cell)
{
	uint64_t max = atomic_load_explicit(&cell->max_ns, RELAXED);

	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		into->outcome[o] = add(into->outcome[o], atomic_load_explicit(&cell->outcome[o], RELAXED));
	into->latency_ns = add(into->latency_ns, atomic_load_explicit(&cell->latency_ns, RELAXED));
	into->max_ns = COP_MAX(into->max_ns, max);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] = add(into->bucket[i], atomic_load_explicit(&cell->bucket[i], RELAXED));
}

void cop_prof_sum_add(struct cop_prof_sum *s, const struct cop_prof *p)
{
	if (!p || !p->shards)
		return;
	s->nodes = add(s->nodes, 1);
	for (unsigned i = 0; i < OP_SHARDS; i++) {
		const struct op_shard *shard = &p->shards[i];

		for (unsigned o = 0; o < COP_PROF_OPS; o++)
			take_cell(&s->op[o], &shard->op[o]);
		for (unsigned e = 0; e < COP_PROF_TTLS; e++)
			s->ttl[e] = add(s->ttl[e], atomic_load_explicit(&shard->ttl[e], RELAXED));
	}
}

static void merge_op(struct sum_op *into, const struct sum_op *from)
{
	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		into->outcome[o] = add(into->outcome[o], from->outcome[o]);
	into->latency_ns = add(into->latency_ns, from->latency_ns);
	into->max_ns = COP_MAX(into->max_ns, from->max_ns);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		into->bucket[i] = add(into->bucket[i], from->bucket[i]);
}

void cop_prof_merge(struct cop_prof_sum *into, const struct cop_prof_sum *from)
{
	into->nodes = add(into->nodes, from->nodes);
	for (unsigned e = 0; e < COP_PROF_TTLS; e++)
		into->ttl[e] = add(into->ttl[e], from->ttl[e]);
	for (unsigned o = 0; o < COP_PROF_OPS; o++)
		merge_op(&into->op[o], &from->op[o]);
}

/* What has one of the other outcomes is not merely done. Counters of other threads may be a moment ahead of each other. */
static void settle_done(struct cop_prof_op_sum *out)
{
	uint64_t others = 0;

	for (unsigned o = COP_PROF_HIT; o < COP_PROF_OUTCOMES; o++)
		others = add(others, out->outcome[o]);
	out->outcome[COP_PROF_DONE] = out->calls > others ? out->calls - others : 0;
}

void cop_prof_sum_op(const struct cop_prof_sum *s, enum cop_prof_op op, struct cop_prof_op_sum *out)
{
	const struct sum_op *from = &s->op[op];

	*out = (struct cop_prof_op_sum){.latency_ns = from->latency_ns, .max_ns = from->max_ns};
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		out->calls = add(out->calls, from->bucket[i]);
	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		out->outcome[o] = from->outcome[o];
	settle_done(out);
	if (!out->calls)
		return;
	out->p50_ns = cop_prof_hist_quantile(from->bucket, out->calls, 500, from->max_ns);
	out->p90_ns = cop_prof_hist_quantile(from->bucket, out->calls, 900, from->max_ns);
	out->p99_ns = cop_prof_hist_quantile(from->bucket, out->calls, 990, from->max_ns);
	out->p999_ns = cop_prof_hist_quantile(from->bucket, out->calls, 999, from->max_ns);
}

void cop_prof_sum_all(const struct cop_prof_sum *s, struct cop_prof_op_sum *out)
{
	*out = (struct cop_prof_op_sum){0};
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum one;

		cop_prof_sum_op(s, op, &one);
		out->calls = add(out->calls, one.calls);
		out->latency_ns = add(out->latency_ns, one.latency_ns);
		out->max_ns = COP_MAX(out->max_ns, one.max_ns);
		for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
			out->outcome[o] = add(out->outcome[o], one.outcome[o]);
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
