/* SPDX-License-Identifier: BSD-3-Clause */
/* Reset: moves the counts, one by one, to a separate profile, from which they are then written.
 * Each number moves in one atomic step, so each event ends up in exactly one of the two profiles,
 * and counting threads never wait longer than usual. An operation that finishes during the move may
 * have its outcome in one profile and its latency in the other. */
#include "prof/profile/profile_priv.h"

#define RELAXED memory_order_relaxed

static void move_counter(_Atomic uint64_t *from, _Atomic uint64_t *to)
{
	uint64_t value = atomic_load_explicit(from, RELAXED);

	/* Most counts are zero; a load is cheaper than an exchange. */
	if (value)
		value = atomic_exchange_explicit(from, 0, RELAXED);
	if (value)
		atomic_fetch_add_explicit(to, value, RELAXED);
}

static void move_cell(struct op_cell *from, struct op_cell *to)
{
	uint64_t max = atomic_exchange_explicit(&from->max_ns, 0, RELAXED);

	for (unsigned o = 0; o < COP_PROF_OUTCOMES; o++)
		move_counter(&from->outcome[o], &to->outcome[o]);
	move_counter(&from->latency_ns, &to->latency_ns);
	cop_prof_raise(&to->max_ns, max);
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		move_counter(&from->bucket[i], &to->bucket[i]);
}

static void move_shards(struct op_shard from[OP_SHARDS], struct op_shard to[OP_SHARDS])
{
	for (unsigned i = 0; i < OP_SHARDS; i++) {
		for (unsigned o = 0; o < COP_PROF_OPS; o++)
			move_cell(&from[i].op[o], &to[i].op[o]);
		for (unsigned e = 0; e < COP_PROF_TTLS; e++)
			move_counter(&from[i].ttl[e], &to[i].ttl[e]);
	}
}

static char *dup_or_null(const char *text, bool *failed)
{
	char *copy = text ? strdup(text) : NULL;

	*failed |= text && !copy;
	return copy;
}

/* Allocates everything, but moves nothing yet. */
static struct cop_prof *make_taken(const struct cop_prof *p, const struct cop_stats *stats)
{
	struct cop_prof *t = calloc(1, sizeof(*t));
	bool failed = false;

	if (!t)
		return NULL;
	t->level = p->level;
	t->top_n = p->top_n;
	t->enoent_ttl_ms = p->enoent_ttl_ms;
	t->stats = p->stats ? stats : NULL;
	t->observe = p->observe;
	t->further = p->further;
	t->ctx = p->ctx;
	t->job_dir = dup_or_null(p->job_dir, &failed);
	t->root = dup_or_null(p->root, &failed);
	t->stem = dup_or_null(p->stem, &failed);
	t->shards = calloc(OP_SHARDS, sizeof(*t->shards));
	failed |= !t->shards;
	for (unsigned c = 0; c < CATEGORIES && p->top[c] && !failed; c++) {
		t->top[c] = cop_prof_top_new(cop_prof_top_counters(p->top_n));
		failed |= !t->top[c];
	}
	if (p->paths && !failed) {
		t->paths = cop_prof_paths_new(UINT64_MAX);
		failed |= !t->paths;
	}
	if (failed) {
		cop_prof_free(t);
		return NULL;
	}
	return t;
}

int cop_prof_drain(struct cop_prof *p, const struct cop_stats *stats, struct cop_prof **out)
{
	struct cop_prof *t;
	int rc = 0;

	*out = NULL;
	if (!p || !p->shards)
		return 0;
	t = make_taken(p, stats);
	if (!t)
		return -ENOMEM;
	/* Move the paths first: that may still fail, in which case nothing has moved. */
	if (p->paths)
		rc = cop_prof_paths_drain(p->paths, t->paths);
	if (rc) {
		cop_prof_free(t);
		return rc;
	}
	for (unsigned c = 0; c < CATEGORIES && p->top[c]; c++)
		cop_prof_top_drain(p->top[c], t->top[c]);
	move_shards(p->shards, t->shards);
	*out = t;
	return 0;
}

void cop_prof_put_back(struct cop_prof *p, struct cop_prof *taken)
{
	if (!taken)
		return;
	move_shards(taken->shards, p->shards);
	for (unsigned c = 0; c < CATEGORIES && p->top[c]; c++)
		cop_prof_top_put_back(p->top[c], taken->top[c]);
	if (p->paths)
		cop_prof_paths_put_back(p->paths, taken->paths);
}
