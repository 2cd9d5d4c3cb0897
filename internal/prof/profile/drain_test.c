/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "prof/profile/profile_testing.h"

#define THREADS 3
#define EACH 20000

struct crowd {
	struct cop_prof *p;
	_Atomic unsigned running;
};

/* Uses few paths, so that the top level can keep all of them. */
static void *count_events(void *arg)
{
	struct crowd *c = arg;
	char path[32];

	for (unsigned i = 0; i < EACH; i++) {
		size_t len = (size_t)snprintf(path, sizeof(path), "p/%u", i % 50);

		cop_prof_op(c->p, COP_PROF_OP_READ, COP_PROF_HIT, i);
		cop_prof_read(c->p, path, len, COP_PROF_MISS, i, 10);
		cop_prof_ttl(c->p, path, len, COP_PROF_SERVE);
	}
	atomic_fetch_sub(&c->running, 1);
	return NULL;
}

struct total {
	uint64_t calls, hits, latency_ns, serves, path_events;
};

static void add_total(struct total *t, const struct cop_prof *p)
{
	struct cop_prof_sum *s = cop_prof_sum_new();
	struct cop_prof_op_sum op;
	struct rows rows = {0};

	assert_non_null(s);
	assert_int_equal(cop_prof_sum_add(s, p), 0);
	cop_prof_sum_op(s, COP_PROF_OP_READ, &op);
	t->calls += op.calls;
	t->hits += op.outcome[COP_PROF_HIT];
	t->latency_ns += op.latency_ns;
	t->serves += cop_prof_sum_ttl(s, COP_PROF_SERVE);
	assert_int_equal(cop_prof_rows_top(p, CATEGORY_DATA, SIZE_MAX, &rows), 0);
	for (size_t i = 0; i < rows.n; i++)
		t->path_events += rows.row[i].count[1];
	cop_prof_rows_free(&rows);
	cop_prof_sum_free(s);
}

static void check_total(const struct total *t)
{
	uint64_t all = THREADS * EACH;

	assert_int_equal(t->calls, all);
	assert_int_equal(t->hits, all);
	assert_int_equal(t->serves, all);
	assert_int_equal(t->path_events, all);
	assert_int_equal(t->latency_ns, THREADS * (uint64_t)EACH * (EACH - 1) / 2);
}

static void no_event_is_lost_between_drained_and_later_counts(void **state)
{
	static const enum cop_prof_level levels[] = {COP_PROF_TOP, COP_PROF_FULL};

	(void)state;
	for (size_t k = 0; k < COP_ARRAY_SIZE(levels); k++) {
		struct crowd c = {.p = profile(levels[k], 100), .running = THREADS};
		struct total t = {0};
		struct cop_prof *taken;
		pthread_t thread[THREADS];
		unsigned takes = 0;

		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(
				cop_thread_start(&thread[i], "count", count_events, &c), 0);
		for (; atomic_load(&c.running) || !takes; takes++) {
			assert_int_equal(cop_prof_drain(c.p, NULL, &taken), 0);
			/* Every other drained profile is put back. */
			if (takes % 2)
				cop_prof_put_back(c.p, taken);
			add_total(&t, taken);
			cop_prof_free(taken);
		}
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(thread[i], NULL);
		add_total(&t, c.p);
		check_total(&t);
		cop_prof_free(c.p);
	}
}

static void drained_counts_are_written_as_a_profile(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 5), *taken;
	char *ops, *events;

	(void)state;
	cop_prof_op(p, COP_PROF_OP_OPEN, COP_PROF_HIT, 1000);
	cop_prof_read(p, "lib/a.so", 8, COP_PROF_MISS, 0, 4096);
	assert_int_equal(cop_prof_drain(p, NULL, &taken), 0);
	cop_prof_op(p, COP_PROF_OP_STATFS, COP_PROF_DONE, 1000);
	cop_prof_read(p, "lib/b.so", 8, COP_PROF_MISS, 0, 10);
	snapshot(taken, "pre-reset", NULL);
	snapshot(p, NULL, NULL);
	ops = read_job("profiling/pre-reset/nid-01.site-4711-pre-reset-profiling_operations.csv");
	check_has(ops, "\nopen,1,1,0,0,");
	assert_null(strstr(ops, "statfs"));
	free(ops);
	ops = read_job("profiling/final/nid-01.site-4711-profiling_operations.csv");
	check_has(ops, "\nstatfs,1,0,0,0,");
	assert_null(strstr(ops, "open"));
	free(ops);
	events = read_job("tables/final/nid-01.site-4711-data_table_cache_event.output");
	check_has(events, "/soft/lib/b.so {");
	assert_null(strstr(events, "a.so"));
	free(events);
	cop_prof_free(taken);
	cop_prof_free(p);
}

static int ranges_of_a(void *arg, const struct cop_prof_touch *touch)
{
	unsigned *seen = arg;

	assert_int_equal(touch->len, 1);
	assert_int_equal(touch->ranges, 2);
	assert_true(touch->range[0].start == 0 && touch->range[0].end == 20);
	assert_true(touch->range[1].start == 50 && touch->range[1].end == 60);
	++*seen;
	return 0;
}

static void counts_that_are_put_back_are_as_before(void **state)
{
	struct cop_prof *p = profile(COP_PROF_FULL, 0), *taken;
	unsigned seen = 0;

	(void)state;
	cop_prof_read(p, "a", 1, COP_PROF_HIT, 0, 10);
	assert_int_equal(cop_prof_drain(p, NULL, &taken), 0);
	assert_int_equal(cop_prof_each_touch(p, ranges_of_a, &seen), 0);
	assert_int_equal(seen, 0);
	cop_prof_read(p, "a", 1, COP_PROF_HIT, 50, 10);
	cop_prof_put_back(p, taken);
	cop_prof_read(p, "a", 1, COP_PROF_HIT, 10, 10);
	assert_int_equal(cop_prof_each_touch(p, ranges_of_a, &seen), 0);
	assert_int_equal(seen, 1);
	cop_prof_free(taken);
	cop_prof_free(p);
}

static void counts_that_are_put_back_are_in_one_profile_only(void **state)
{
	static const enum cop_prof_level levels[] = {COP_PROF_TOP, COP_PROF_FULL};

	(void)state;
	for (size_t k = 0; k < COP_ARRAY_SIZE(levels); k++) {
		struct cop_prof *p = profile(levels[k], 100), *taken;
		struct total left = {0}, back = {0};

		cop_prof_op(p, COP_PROF_OP_READ, COP_PROF_HIT, 5);
		cop_prof_path(p, COP_PROF_DATA, "a", 1, COP_PROF_MISS);
		assert_int_equal(cop_prof_drain(p, NULL, &taken), 0);
		cop_prof_path(p, COP_PROF_DATA, "a", 1, COP_PROF_MISS);
		cop_prof_put_back(p, taken);
		add_total(&left, taken);
		add_total(&back, p);
		assert_int_equal(left.calls + left.path_events, 0);
		assert_int_equal(back.calls, 1);
		assert_int_equal(back.path_events, 2);
		cop_prof_free(taken);
		cop_prof_free(p);
	}
}

static void without_a_profile_there_is_nothing_to_take(void **state)
{
	struct cop_prof *taken = (void *)1;

	(void)state;
	assert_int_equal(cop_prof_drain(NULL, NULL, &taken), 0);
	assert_null(taken);
	cop_prof_put_back(NULL, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(no_event_is_lost_between_drained_and_later_counts),
		T(drained_counts_are_written_as_a_profile),
		T(counts_that_are_put_back_are_as_before),
		T(counts_that_are_put_back_are_in_one_profile_only),
		T(without_a_profile_there_is_nothing_to_take),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
