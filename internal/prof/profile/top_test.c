/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "prof/profile/profile_priv.h"

#define KEYS 5000

static size_t name(unsigned key, char out[32])
{
	return (size_t)snprintf(out, 32, "lib/%u/name", key);
}

static unsigned key_of(const struct row *row)
{
	return (unsigned)strtoul(row->path + 4, NULL, 10);
}

static void without_displacement_every_count_is_exact(void **state)
{
	struct top_summary *t = cop_prof_top_new(64);
	struct rows rows = {0};
	char path[32];

	(void)state;
	assert_non_null(t);
	for (unsigned k = 0; k < 64; k++)
		for (unsigned i = 0; i <= k; i++)
			cop_prof_top_count(t, path, name(k, path), (int)(i % 3));
	assert_int_equal(cop_prof_top_error(t), 0);
	assert_int_equal(cop_prof_top_rows(t, &rows), 0);
	assert_int_equal(rows.n, 64);
	for (size_t i = 0; i < rows.n; i++) {
		unsigned k = key_of(&rows.row[i]);

		assert_int_equal(rows.row[i].events, k + 1);
		assert_int_equal(rows.row[i].count[0], k / 3 + 1);
		assert_int_equal(rows.row[i].count[1], (k + 2) / 3);
		assert_int_equal(rows.row[i].count[2], (k + 1) / 3);
	}
	cop_prof_rows_free(&rows);
	cop_prof_top_free(t);
}

static void events_without_an_outcome_take_no_counter(void **state)
{
	struct top_summary *t = cop_prof_top_new(1);
	struct rows rows = {0};

	(void)state;
	assert_non_null(t);
	cop_prof_top_count(t, "a", 1, SLOT_NONE);
	assert_int_equal(cop_prof_top_rows(t, &rows), 0);
	assert_int_equal(rows.n, 0);
	cop_prof_rows_free(&rows);
	cop_prof_top_free(t);
}

/* A skewed stream over far more paths than counters, with its exact counts. */
static void feed(struct top_summary *t, uint64_t exact[KEYS], unsigned events)
{
	uint64_t seed = 11;
	char path[32];

	for (unsigned i = 0; i < events; i++) {
		unsigned key;

		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		key = (unsigned)((seed >> 33) % KEYS);
		for (unsigned spread = (seed >> 20) % 8; spread; spread--)
			key /= 3;
		exact[key]++;
		cop_prof_top_count(t, path, name(key, path), (int)(i % 3));
	}
}

static void check_shard_guarantee(struct top_summary *t, const uint64_t exact[KEYS],
	uint32_t counters, const struct rows *rows)
{
	uint64_t total[TOP_SHARDS] = {0}, worst = 0;
	bool listed[KEYS] = {false};
	char path[32];

	for (unsigned k = 0; k < KEYS; k++)
		total[cop_hash64(path, name(k, path), 0) >> 59] += exact[k];
	for (unsigned i = 0; i < TOP_SHARDS; i++)
		worst = COP_MAX(worst, total[i] / counters);
	assert_true(cop_prof_top_error(t) <= worst);
	for (size_t i = 0; i < rows->n; i++)
		listed[key_of(&rows->row[i])] = true;
	for (unsigned k = 0; k < KEYS; k++)
		if (exact[k] * counters > total[cop_hash64(path, name(k, path), 0) >> 59])
			assert_true(listed[k]);
}

static void counts_are_never_too_high_and_too_low_by_at_most_the_stated_error(void **state)
{
	static const uint32_t counters[] = {1, 2, 10, 64};

	(void)state;
	for (size_t c = 0; c < COP_ARRAY_SIZE(counters); c++) {
		struct top_summary *t = cop_prof_top_new(counters[c]);
		uint64_t exact[KEYS] = {0}, error;
		struct rows rows = {0};

		assert_non_null(t);
		feed(t, exact, 100000);
		error = cop_prof_top_error(t);
		assert_true(error > 0);
		assert_int_equal(cop_prof_top_rows(t, &rows), 0);
		assert_int_equal(rows.n, counters[c] * TOP_SHARDS);
		for (size_t i = 0; i < rows.n; i++) {
			uint64_t want = exact[key_of(&rows.row[i])];
			const uint64_t *n = rows.row[i].count;

			assert_true(
				rows.row[i].events <= want && want - rows.row[i].events <= error);
			assert_int_equal(n[0] + n[1] + n[2], rows.row[i].events);
		}
		check_shard_guarantee(t, exact, counters[c], &rows);
		cop_prof_rows_free(&rows);
		cop_prof_top_free(t);
	}
}

static void no_path_has_two_counters(void **state)
{
	struct top_summary *t = cop_prof_top_new(10);
	uint64_t exact[KEYS] = {0};
	bool seen[KEYS] = {false};
	struct rows rows = {0};

	(void)state;
	assert_non_null(t);
	feed(t, exact, 50000);
	assert_int_equal(cop_prof_top_rows(t, &rows), 0);
	for (size_t i = 0; i < rows.n; i++) {
		assert_false(seen[key_of(&rows.row[i])]);
		seen[key_of(&rows.row[i])] = true;
	}
	cop_prof_rows_free(&rows);
	cop_prof_top_free(t);
}

static void *count_many(void *arg)
{
	char path[32];

	for (unsigned i = 0; i < 20000; i++)
		cop_prof_top_count(arg, path, name(i % 3 ? i % 7 : i % KEYS, path), 0);
	return NULL;
}

static void many_threads_lose_no_event_of_a_busy_path(void **state)
{
	struct top_summary *t = cop_prof_top_new(256);
	pthread_t thread[4];
	struct rows rows = {0};
	uint64_t sum = 0;

	(void)state;
	assert_non_null(t);
	for (size_t i = 0; i < COP_ARRAY_SIZE(thread); i++)
		assert_int_equal(cop_thread_start(&thread[i], "count", count_many, t), 0);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(cop_prof_top_rows(t, &rows), 0);
		cop_prof_rows_free(&rows);
	}
	for (size_t i = 0; i < COP_ARRAY_SIZE(thread); i++)
		pthread_join(thread[i], NULL);
	assert_int_equal(cop_prof_top_error(t), 0);
	assert_int_equal(cop_prof_top_rows(t, &rows), 0);
	for (size_t i = 0; i < rows.n; i++)
		sum += rows.row[i].events;
	assert_int_equal(sum, 4 * 20000);
	cop_prof_rows_free(&rows);
	cop_prof_top_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_without_an_outcome_take_no_counter),
		cmocka_unit_test(without_displacement_every_count_is_exact),
		cmocka_unit_test(counts_are_never_too_high_and_too_low_by_at_most_the_stated_error),
		cmocka_unit_test(no_path_has_two_counters),
		cmocka_unit_test(many_threads_lose_no_event_of_a_busy_path),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
