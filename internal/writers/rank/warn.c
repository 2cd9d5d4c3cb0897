/* SPDX-License-Identifier: BSD-3-Clause */
/* Turns counters into warnings: collects what advice needs. */
#include "base/log/log.h"
#include "writers/rank/rank_priv.h"

static uint64_t limit_of(struct cop_tally *t)
{
	struct cop_cache_usage usage = {0};

	if (t->cache)
		cop_cache_usage(t->cache, &usage);
	return usage.limit_bytes;
}

static struct cop_cache_seen seen_by(struct cop_tally *t)
{
	struct cop_cache_seen seen = {0};

	if (t->cache)
		cop_cache_seen(t->cache, &seen);
	return seen;
}

void cop_tally_judge_own(
	struct cop_tally *t, const struct cop_stats *stats, struct cop_advices *out)
{
	struct cop_cache_seen seen = seen_by(t);
	struct cop_advice_facts f = {.nodes = 1,
		.cache_needed = seen.needed_bytes,
		.data = seen.data_bytes,
		.memory = limit_of(t)};

	cop_advice_count(&f, stats);
	f.fell_back = f.fallbacks > 0;
	cop_advice_give(&f, out);
}

void cop_tally_judge(const struct cop_op_sum *sum, struct cop_advices *out)
{
	struct cop_advice_facts f = {.nodes = (uint64_t)sum->nodes + sum->missing,
		.fell_back = sum->fell_back,
		.cache_needed = sum->cache_needed,
		.data = sum->data_bytes,
		.memory = sum->memory_bytes};

	cop_advice_count(&f, &sum->stats);
	cop_advice_give(&f, out);
}

void cop_tally_add_facts(struct cop_tally *t, struct cop_op_sum *sum)
{
	struct cop_cache_seen seen = seen_by(t);

	sum->fell_back += cop_stats_get(t->conf.stats, COP_ORIGIN_FALLBACKS) > 0;
	sum->cache_needed = COP_MAX(sum->cache_needed, seen.needed_bytes);
	sum->data_bytes += seen.data_bytes;
	sum->memory_bytes += limit_of(t);
}

static void tell_advices(const struct cop_advices *a, struct cop_buf *out)
{
	for (unsigned i = 0; i < a->n; i++)
		cop_log_warn("note: %s", a->at[i].sentence);
	cop_advice_notes(a, COP_TALLY_NOTES, out);
}

void cop_tally_warn_own(struct cop_tally *t, struct cop_buf *out)
{
	struct cop_advices a;

	cop_tally_judge_own(t, t->conf.stats, &a);
	tell_advices(&a, out);
}

void cop_tally_warn(const struct cop_op_sum *sum, struct cop_buf *out)
{
	struct cop_advices a;

	cop_tally_judge(sum, &a);
	tell_advices(&a, out);
}
