/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "writers/otel/otel_priv.h"

static const enum cop_counter counted[] = {
#define COP_METRIC(name, unit, description)
#define COP_POINT(counter, key, value) COP_##counter,
#include "writers/otel/instruments.def"
#undef COP_METRIC
#undef COP_POINT
};

static void every_counter_has_one_instrument(void **state)
{
	unsigned times[COP_COUNTERS] = {0};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(counted); i++)
		times[counted[i]]++;
	/* fabric.rejected is the sum of its kinds. */
	times[COP_FABRIC_REJECTED]++;
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		if (times[c] != 1)
			fail_msg("%s.%s stands %u times in instruments.def", cop_counter_group(c),
				cop_counter_name(c), times[c]);
}

static void lines_become_rarer_and_end(void **state)
{
	struct pace p = {0};
	unsigned lines = 0;

	(void)state;
	for (unsigned i = 0; i < PACE_LINES; i++)
		lines += cop_otel_is_due(&p);
	assert_int_equal(lines, PACE_LINES);
	for (unsigned i = 0; i < 2 * PACE_LINES; i++)
		lines += cop_otel_is_due(&p);
	assert_int_equal(lines, 2 * PACE_LINES);
	for (unsigned i = 0; i < 1u << 20; i++)
		lines += cop_otel_is_due(&p);
	assert_in_range(lines, 13 * PACE_LINES, 14 * PACE_LINES);
	p.lines_all = LINES_MAX;
	p.stride = 1;
	assert_false(cop_otel_is_due(&p));
}

/* Adds up the values of a metric's points in a line; *start is the last point's. */
static uint64_t sum_of(const char *line, const char *metric, unsigned long long *start)
{
	char name[64];
	const char *at, *end;
	uint64_t sum = 0;

	snprintf(name, sizeof(name), "\"name\":\"%s\"", metric);
	at = strstr(line, name);
	assert_non_null(at);
	end = strstr(at + 1, "\"name\":\"copper.");
	while ((at = strstr(at, "\"startTimeUnixNano\":\"")) && (!end || at < end)) {
		*start = strtoull(at + 21, NULL, 10);
		at = strstr(at, "\"asInt\":\"") + 9;
		sum += strtoull(at, NULL, 10);
	}
	return sum;
}

static void sums_that_fall_begin_anew_at_the_line_before(void **state)
{
	static const struct cop_otlp_source from = {{NULL, 0}, "1"};
	static const struct {
		int64_t wall_ns;
		uint64_t reads;
		unsigned long long start_ns;
	} rounds[] = {{1000, 5, 100}, {2000, 9, 100}, {3000, 4, 2000}, {4000, 6, 2000},
		{3500, 6, 2000}, {3600, 1, 4001}};
	struct series s = {.start_ns = 100};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(rounds); i++) {
		struct cop_follow_numbers n = {.wall_ns = rounds[i].wall_ns, .nodes = 2};
		struct cop_buf out = {0};
		unsigned long long start;
		uint64_t before = s.time_ns;

		cop_stats_add(&n.stats, COP_FUSE_READ, rounds[i].reads);
		cop_otel_metrics(&out, &from, &s, &n, NULL);
		assert_int_equal(sum_of(out.data, "copper.fuse.requests", &start), rounds[i].reads);
		assert_int_equal(start, rounds[i].start_ns);
		assert_true(s.time_ns > before);
		cop_buf_free(&out);
	}
}

/* A latency equal to a bound belongs to the bucket below it. */
static void latencies_are_in_the_buckets_of_their_bounds(void **state)
{
	static const struct {
		uint64_t ns;
		unsigned bucket;
	} cases[] = {{0, 0}, {1023, 0}, {1024, 1}, {2047, 1}, {2048, 2},
		{(1ULL << LATENCY_LAST) - 1, LATENCY_BOUNDS - 1},
		{1ULL << LATENCY_LAST, LATENCY_BOUNDS}, {UINT64_MAX / 2, LATENCY_BOUNDS}};
	struct cop_prof_conf conf = {.level = COP_PROF_AGGREGATE, .host = "h"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_prof *p = cop_prof_new(&conf);
		struct cop_op_sum sum = {.nodes = 1, .prof = cop_prof_sum_new()};
		struct totals *t = calloc(1, sizeof(*t));

		cop_prof_op(p, COP_PROF_OP_READ, COP_PROF_DONE, cases[i].ns);
		assert_int_equal(cop_prof_sum_add(sum.prof, p), 0);
		cop_otel_take_totals(t, &sum);
		for (unsigned b = 0; b <= LATENCY_BOUNDS; b++)
			assert_int_equal(
				t->latency[COP_PROF_OP_READ].bucket[b], b == cases[i].bucket);
		assert_int_equal(t->latency[COP_PROF_OP_READ].sum_ns, cases[i].ns);
		assert_int_equal(t->latency[COP_PROF_OP_READ].max_ns, cases[i].ns);
		cop_prof_sum_free(sum.prof);
		cop_prof_free(p);
		free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_counter_has_one_instrument),
		cmocka_unit_test(lines_become_rarer_and_end),
		cmocka_unit_test(sums_that_fall_begin_anew_at_the_line_before),
		cmocka_unit_test(latencies_are_in_the_buckets_of_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
