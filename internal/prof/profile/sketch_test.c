/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prof/profile/profile_testing.h"

#define KEYS 20000

static size_t name(unsigned key, char out[32])
{
	return (size_t)snprintf(out, 32, "lib/%05u/name", key);
}

static unsigned key_of(const char *path)
{
	return (unsigned)strtoul(path + 4, NULL, 10);
}

static uint64_t next_random(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* One node's requests: a few paths often, many paths once or twice. Adds all of them to exact. */
static struct cop_prof_sum *a_node(
	enum cop_prof_level level, unsigned node, unsigned events, uint64_t exact[KEYS])
{
	struct cop_prof *p = profile(level, 20);
	struct cop_prof_sum *s = cop_prof_sum_new();
	uint64_t seed = node + 1;
	char path[32];

	assert_non_null(s);
	for (unsigned i = 0; i < events; i++) {
		unsigned key = (unsigned)next_random(&seed) % KEYS;

		for (unsigned narrow = (unsigned)next_random(&seed) % 6; narrow; narrow--)
			key /= 4;
		exact[key]++;
		cop_prof_path(p, COP_PROF_DATA, path, name(key, path),
			i % 3 ? COP_PROF_HIT : COP_PROF_MISS);
	}
	assert_int_equal(cop_prof_sum_add(s, p), 0);
	cop_prof_free(p);
	return s;
}

static void check_guarantee(const struct cop_prof_sum *s, const uint64_t exact[KEYS])
{
	const struct sketch *top = &s->top[CATEGORY_DATA];
	static bool listed[KEYS];
	uint64_t events = 0, weights = 0;

	memset(listed, 0, sizeof(listed));
	for (unsigned k = 0; k < KEYS; k++)
		events += exact[k];
	assert_true(top->n <= SKETCH_ROWS && top->text_len <= SKETCH_BYTES);
	for (size_t i = 0; i < top->n; i++) {
		const struct sketch_row *row = &top->row[i];
		unsigned key = key_of(top->text + row->at);
		uint64_t seen = row->count[0] + row->count[1] + row->count[2];

		assert_false(listed[key]);
		listed[key] = true;
		weights += row->weight;
		assert_true(seen <= exact[key] && exact[key] - seen <= top->error);
		assert_true(row->weight <= seen);
	}
	for (unsigned k = 0; k < KEYS; k++)
		assert_true(listed[k] || exact[k] <= top->error);
	/* No summary has fewer rows than the 64 counters of a shard. */
	assert_true(top->error * 64 <= events - weights);
}

#define NODES 12

static void in_any_order_counts_are_never_too_high_and_too_low_by_at_most_the_error(void **state)
{
	static const enum cop_prof_level levels[] = {COP_PROF_TOP, COP_PROF_FULL};
	static uint64_t exact[KEYS];

	(void)state;
	for (size_t l = 0; l < COP_ARRAY_SIZE(levels); l++) {
		for (unsigned fanout = 1; fanout < NODES; fanout += 5) {
			struct cop_prof_sum *s[NODES];

			memset(exact, 0, sizeof(exact));
			for (unsigned i = 0; i < NODES; i++)
				s[i] = a_node(levels[l], i, 20000, exact);
			for (unsigned i = NODES - 1; i; i--) {
				assert_int_equal(cop_prof_merge(s[(i - 1) / fanout], s[i]), 0);
				cop_prof_sum_free(s[i]);
			}
			assert_true(s[0]->top[CATEGORY_DATA].error > 0);
			check_guarantee(s[0], exact);
			cop_prof_sum_free(s[0]);
		}
	}
}

static void while_all_paths_fit_the_sum_of_parts_is_that_of_the_whole(void **state)
{
	static uint64_t exact[KEYS];
	struct cop_prof *whole = profile(COP_PROF_FULL, 20);
	struct cop_prof_sum *parts = cop_prof_sum_new(), *all = cop_prof_sum_new();
	char path[32];

	(void)state;
	memset(exact, 0, sizeof(exact));
	for (unsigned n = 0; n < 4; n++) {
		struct cop_prof *p = profile(COP_PROF_FULL, 20);

		for (unsigned i = 0; i < 3000; i++) {
			size_t len = name((i * (n + 1)) % 3500, path);

			cop_prof_path(p, COP_PROF_METADATA, path, len, COP_PROF_HIT);
			cop_prof_path(whole, COP_PROF_METADATA, path, len, COP_PROF_HIT);
			cop_prof_ttl(p, path, len, i % COP_PROF_TTLS);
			cop_prof_ttl(whole, path, len, i % COP_PROF_TTLS);
		}
		assert_int_equal(cop_prof_sum_add(parts, p), 0);
		cop_prof_free(p);
	}
	assert_int_equal(cop_prof_sum_add(all, whole), 0);
	assert_int_equal(parts->top[0].error, 0);
	for (unsigned c = 0; c < CATEGORIES; c++) {
		assert_int_equal(parts->top[c].n, all->top[c].n);
		if (!all->top[c].n)
			continue;
		assert_memory_equal(parts->top[c].text, all->top[c].text, all->top[c].text_len);
		assert_memory_equal(parts->top[c].row, all->top[c].row,
			all->top[c].n * sizeof(*all->top[c].row));
	}
	cop_prof_free(whole);
	cop_prof_sum_free(parts);
	cop_prof_sum_free(all);
}

static void long_names_leave_fewer_rows_and_a_stated_error(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 20);
	struct cop_prof_sum *s = cop_prof_sum_new();
	static char path[60000];

	(void)state;
	memset(path, 'x', sizeof(path));
	for (unsigned i = 0; i < 40; i++) {
		path[0] = (char)('A' + i);
		for (unsigned n = 0; n <= i; n++)
			cop_prof_path(p, COP_PROF_TREE, path, sizeof(path), COP_PROF_HIT);
	}
	assert_int_equal(cop_prof_sum_add(s, p), 0);
	assert_int_equal(s->top[CATEGORY_TREE].n, 17);
	assert_int_equal(s->top[CATEGORY_TREE].error, 40 - 17);
	assert_int_equal(s->top[CATEGORY_TREE].row[16].count[0], 40);
	assert_int_equal(s->top[CATEGORY_TREE].row[16].weight, 17);
	cop_prof_sum_free(s);
	cop_prof_free(p);
}

static void every_path_is_in_the_sum_without_a_limit_too(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 0);
	struct cop_prof_sum *s = cop_prof_sum_new();

	(void)state;
	cop_prof_path(p, COP_PROF_TREE, "a", 1, COP_PROF_HIT);
	cop_prof_path(p, COP_PROF_DATA, "b", 1, COP_PROF_HIT);
	assert_int_equal(cop_prof_sum_add(s, p), 0);
	assert_true(cop_prof_sum_has_every_path(s));
	assert_int_equal(s->top[CATEGORY_TREE].n, 1);
	assert_int_equal(cop_prof_sum_classes(s)->of[cop_pathclass_of(false, "a", 1)].entries, 2);
	cop_prof_sum_free(s);
	cop_prof_free(p);
}

static void without_paths_there_is_nothing_of_paths_in_the_sum(void **state)
{
	struct cop_prof *p = profile(COP_PROF_AGGREGATE, 0);
	struct cop_prof_sum *s = cop_prof_sum_new();

	(void)state;
	cop_prof_path(p, COP_PROF_TREE, "a", 1, COP_PROF_HIT);
	assert_int_equal(cop_prof_sum_add(s, p), 0);
	assert_int_equal(cop_prof_sum_add(s, NULL), 0);
	assert_int_equal(cop_prof_sum_nodes(s), 1);
	assert_false(cop_prof_sum_has_every_path(s));
	for (unsigned c = 0; c < CATEGORIES; c++)
		assert_int_equal(s->top[c].n, 0);
	assert_int_equal(cop_pathclass_seen(cop_prof_sum_classes(s)), 0);
	cop_prof_sum_free(s);
	cop_prof_free(p);
}

static void the_files_of_a_sum_hold_what_the_nodes_saw(void **state)
{
	struct cop_prof_sum *s = cop_prof_sum_new();
	struct cop_stats stats = {0};
	struct cop_err err = {0};
	char *text;

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct cop_prof *p = profile(COP_PROF_TOP, 20);

		cop_prof_op(p, COP_PROF_OP_LOOKUP, COP_PROF_HIT, 1000 * (i + 1));
		cop_prof_path(p, COP_PROF_DATA, "a,\"b", 4, COP_PROF_HIT);
		cop_prof_path(p, COP_PROF_DATA, "often", 5, COP_PROF_HIT);
		cop_prof_path(p, COP_PROF_DATA, "often", 5, COP_PROF_MISS);
		assert_int_equal(cop_prof_sum_add(s, p), 0);
		cop_prof_free(p);
	}
	assert_int_equal(cop_prof_write_sums(s, job, "cluster", "/soft", &stats, &err), 0);
	check_names("",
		"cluster-profiling_fabric.csv cluster-profiling_latency.csv cluster-profiling_top_paths.csv ");
	check_file("cluster-profiling_top_paths.csv",
		"category,path,total_events,cache_hits,cache_misses,negative_results,ttl_stores,ttl_serves,ttl_expires,"
		"ttl_clears,too_low_by_at_most\n"
		"data,\"/soft/often\",4,2,2,0,0,0,0,0,0\n"
		"data,\"/soft/a,\"\"b\",2,2,0,0,0,0,0,0,0\n");
	text = read_job("cluster-profiling_latency.csv");
	check_has(text, "lookup,2,1.00,2.00,2.00,2.00,2.00\n");
	free(text);
	cop_prof_sum_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(every_path_is_in_the_sum_without_a_limit_too),
		T(without_paths_there_is_nothing_of_paths_in_the_sum),
		T(while_all_paths_fit_the_sum_of_parts_is_that_of_the_whole),
		T(in_any_order_counts_are_never_too_high_and_too_low_by_at_most_the_error),
		T(long_names_leave_fewer_rows_and_a_stated_error),
		T(the_files_of_a_sum_hold_what_the_nodes_saw),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
