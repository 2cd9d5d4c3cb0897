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

static void add_range(struct ranges *r, uint64_t start, uint64_t end)
{
	assert_int_equal(cop_prof_ranges_add(r, start, end), 0);
}

static void check_ranges(const struct ranges *r, unsigned n, const struct cop_range *want)
{
	assert_int_equal(r->n, n);
	assert_memory_equal(r->range, want, n * sizeof(*want));
}

static void an_empty_range_adds_nothing(void **state)
{
	struct ranges r = {0};

	(void)state;
	add_range(&r, 5, 5);
	add_range(&r, 7, 6);
	assert_int_equal(r.n, 0);
	assert_null(r.range);
}

static void ranges_that_touch_or_overlap_become_one(void **state)
{
	struct ranges r = {0};

	(void)state;
	add_range(&r, 10, 20);
	add_range(&r, 30, 40);
	add_range(&r, 50, 60);
	check_ranges(&r, 3, (struct cop_range[]){{10, 20}, {30, 40}, {50, 60}});
	add_range(&r, 20, 25);
	check_ranges(&r, 3, (struct cop_range[]){{10, 25}, {30, 40}, {50, 60}});
	add_range(&r, 24, 55);
	check_ranges(&r, 1, (struct cop_range[]){{10, 60}});
	add_range(&r, 0, 5);
	add_range(&r, 12, 13);
	check_ranges(&r, 2, (struct cop_range[]){{0, 5}, {10, 60}});
	add_range(&r, 5, 10);
	check_ranges(&r, 1, (struct cop_range[]){{0, 60}});
	free(r.range);
}

static void one_range_too_many_closes_the_smallest_gap(void **state)
{
	struct ranges r = {0};

	(void)state;
	for (uint64_t i = 0; i < COP_PROF_RANGES_MAX; i++)
		add_range(&r, i * 100, i * 100 + 10);
	assert_int_equal(r.n, COP_PROF_RANGES_MAX);
	add_range(&r, 750,
		760); /* both gaps, after 710 and before 800, are 40: the first is closed */
	assert_int_equal(r.n, COP_PROF_RANGES_MAX);
	assert_int_equal(r.range[7].start, 700);
	assert_int_equal(r.range[7].end, 760);
	assert_int_equal(r.range[8].start, 800);
	assert_int_equal(r.range[15].end, 1510);
	add_range(&r, 5000, 5010);
	assert_int_equal(r.n, COP_PROF_RANGES_MAX);
	assert_int_equal(r.range[7].end, 810);
	assert_int_equal(r.range[15].start, 5000);
	free(r.range);
}

/* A bitmap records what was read. Ranges may cover more, but never less, and stay in order. */
static void ranges_cover_all_that_was_added(void **state)
{
	uint64_t seed = 5;

	(void)state;
	for (unsigned k = 0; k < 200; k++) {
		struct ranges r = {0};
		bool read[1000] = {false};

		for (unsigned i = 0; i < 60; i++) {
			uint64_t start, end;

			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			start = (seed >> 33) % 990;
			end = start + (seed >> 50) % 10;
			add_range(&r, start, end);
			for (uint64_t b = start; b < end; b++)
				read[b] = true;
		}
		assert_in_range(r.n, 1, COP_PROF_RANGES_MAX);
		for (unsigned i = 0, b = 0; b < 1000; b++) {
			while (i < r.n && r.range[i].end <= b)
				i++;
			assert_true(!read[b] || (i < r.n && r.range[i].start <= b));
		}
		for (unsigned i = 0; i + 1 < r.n; i++)
			assert_true(r.range[i].start < r.range[i].end &&
				    r.range[i].end < r.range[i + 1].start);
		free(r.range);
	}
}

static const struct row *row_of(const struct rows *rows, const char *path)
{
	for (size_t i = 0; i < rows->n; i++)
		if (rows->row[i].len == strlen(path) &&
			!memcmp(rows->row[i].path, path, strlen(path)))
			return &rows->row[i];
	return NULL;
}

static void a_path_is_counted_apart_in_each_category(void **state)
{
	struct path_table *t = cop_prof_paths_new(COP_MIB);
	struct rows md = {0}, data = {0};

	(void)state;
	assert_non_null(t);
	cop_prof_paths_touch(t, CATEGORY_METADATA, "a", 1, 0, NULL);
	cop_prof_paths_touch(t, CATEGORY_METADATA, "a", 1, 2, NULL);
	cop_prof_paths_touch(t, CATEGORY_METADATA, "", 0, SLOT_NONE, NULL);
	cop_prof_paths_touch(t, CATEGORY_DATA, "a", 1, 1, NULL);
	assert_int_equal(cop_prof_paths_rows(t, CATEGORY_METADATA, &md), 0);
	assert_int_equal(cop_prof_paths_rows(t, CATEGORY_DATA, &data), 0);
	assert_int_equal(md.n, 2);
	assert_int_equal(data.n, 1);
	assert_int_equal(row_of(&md, "a")->count[0], 1);
	assert_int_equal(row_of(&md, "a")->count[1], 0);
	assert_int_equal(row_of(&md, "a")->count[2], 1);
	assert_int_equal(row_of(&md, "a")->events, 2);
	assert_int_equal(row_of(&md, "")->events, 0);
	assert_int_equal(row_of(&data, "a")->count[1], 1);
	assert_int_equal(row_of(&md, "a")->sequence, 1);
	assert_int_equal(row_of(&md, "")->sequence, 2);
	assert_int_equal(row_of(&data, "a")->sequence, 3);
	cop_prof_rows_free(&md);
	cop_prof_rows_free(&data);
	cop_prof_paths_free(t);
}

static void names_that_differ_only_behind_a_nul_or_in_length_are_different(void **state)
{
	struct path_table *t = cop_prof_paths_new(COP_MIB);
	struct rows rows = {0};

	(void)state;
	assert_non_null(t);
	cop_prof_paths_touch(t, CATEGORY_TREE, "ab", 2, 0, NULL);
	cop_prof_paths_touch(t, CATEGORY_TREE, "ab", 1, 0, NULL);
	cop_prof_paths_touch(t, CATEGORY_TREE, "a\0b", 3, 0, NULL);
	assert_int_equal(cop_prof_paths_rows(t, CATEGORY_TREE, &rows), 0);
	assert_int_equal(rows.n, 3);
	cop_prof_rows_free(&rows);
	cop_prof_paths_free(t);
}

static void when_memory_is_used_up_new_paths_are_dropped_and_counted(void **state)
{
	struct path_table *t = cop_prof_paths_new(16 * COP_KIB);
	struct rows rows = {0};
	char path[16];
	size_t kept;

	(void)state;
	assert_non_null(t);
	for (unsigned i = 0; i < 1000; i++) {
		snprintf(path, sizeof(path), "path-%u", i);
		cop_prof_paths_touch(t, CATEGORY_METADATA, path, strlen(path), 0, NULL);
	}
	assert_int_equal(cop_prof_paths_rows(t, CATEGORY_METADATA, &rows), 0);
	kept = rows.n;
	assert_in_range(kept, 10, 100);
	assert_int_equal(kept + cop_prof_paths_dropped(t), 1000);
	cop_prof_rows_free(&rows);
	/* Events of known paths are still counted. */
	cop_prof_paths_touch(t, CATEGORY_METADATA, "path-0", 6, 0, NULL);
	assert_int_equal(cop_prof_paths_rows(t, CATEGORY_METADATA, &rows), 0);
	assert_int_equal(rows.n, kept);
	assert_int_equal(row_of(&rows, "path-0")->events, 2);
	cop_prof_rows_free(&rows);
	cop_prof_paths_free(t);
}

#define THREADS 6
#define PATHS 3000
#define ROUNDS 4

struct worker {
	struct path_table *t;
	unsigned number;
	pthread_t thread;
};

static void *touch_all(void *arg)
{
	struct worker *w = arg;
	char path[32];

	for (unsigned r = 0; r < ROUNDS; r++)
		for (unsigned i = 0; i < PATHS; i++) {
			unsigned k = (i * 7 + w->number * 501) % PATHS;
			struct cop_range read = {r * 100, r * 100 + 100};
			int len = snprintf(path, sizeof(path), "some/where/%u", k);

			cop_prof_paths_touch(
				w->t, CATEGORY_METADATA, path, (size_t)len, (int)(r % 3), NULL);
			cop_prof_paths_touch(w->t, CATEGORY_DATA, path, (size_t)len, 0, &read);
		}
	return NULL;
}

static int check_touch(void *arg, const struct cop_prof_touch *touch)
{
	uint64_t *last = arg;

	assert_true(touch->sequence > *last);
	*last = touch->sequence;
	if (touch->table == COP_PROF_DATA) {
		assert_int_equal(touch->ranges, 1);
		assert_int_equal(touch->range[0].start, 0);
		assert_int_equal(touch->range[0].end, ROUNDS * 100);
	} else {
		assert_int_equal(touch->ranges, 0);
	}
	return 0;
}

/* Meanwhile the table grows several times, and another thread reads it. */
static void no_event_is_lost_among_many_threads(void **state)
{
	struct path_table *t = cop_prof_paths_new(16 * COP_MIB);
	struct worker worker[THREADS];
	struct rows rows = {0};
	uint64_t last = 0;

	(void)state;
	assert_non_null(t);
	for (unsigned i = 0; i < THREADS; i++) {
		worker[i] = (struct worker){.t = t, .number = i};
		assert_int_equal(
			cop_thread_start(&worker[i].thread, "touch", touch_all, &worker[i]), 0);
	}
	for (unsigned i = 0; i < 20; i++) {
		assert_int_equal(cop_prof_paths_rows(t, CATEGORY_DATA, &rows), 0);
		assert_true(rows.n <= PATHS);
		cop_prof_rows_free(&rows);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(worker[i].thread, NULL);
	assert_int_equal(cop_prof_paths_rows(t, CATEGORY_METADATA, &rows), 0);
	assert_int_equal(rows.n, PATHS);
	for (size_t i = 0; i < rows.n; i++) {
		assert_int_equal(rows.row[i].count[0], 2 * THREADS);
		assert_int_equal(rows.row[i].count[1], THREADS);
		assert_int_equal(rows.row[i].count[2], THREADS);
	}
	assert_int_equal(cop_prof_paths_dropped(t), 0);
	assert_int_equal(cop_prof_paths_each_touch(t, check_touch, &last), 0);
	cop_prof_rows_free(&rows);
	cop_prof_paths_free(t);
}

static int stop_at_second(void *arg, const struct cop_prof_touch *touch)
{
	unsigned *calls = arg;

	assert_true(touch->len == 1);
	return ++*calls == 2 ? 42 : 0;
}

static void touches_come_in_order_until_the_callback_has_enough(void **state)
{
	struct path_table *t = cop_prof_paths_new(COP_MIB);
	unsigned calls = 0;

	(void)state;
	assert_non_null(t);
	assert_int_equal(cop_prof_paths_each_touch(t, stop_at_second, &calls), 0);
	assert_int_equal(calls, 0);
	cop_prof_paths_touch(t, CATEGORY_DATA, "z", 1, 0, NULL);
	cop_prof_paths_touch(t, CATEGORY_METADATA, "y", 1, 0, NULL);
	cop_prof_paths_touch(t, CATEGORY_TTL, "absent", 6, 0, NULL);
	cop_prof_paths_touch(t, CATEGORY_TREE, "x", 1, 0, NULL);
	assert_int_equal(cop_prof_paths_each_touch(t, stop_at_second, &calls), 42);
	assert_int_equal(calls, 2);
	cop_prof_paths_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_range_adds_nothing),
		cmocka_unit_test(ranges_that_touch_or_overlap_become_one),
		cmocka_unit_test(one_range_too_many_closes_the_smallest_gap),
		cmocka_unit_test(ranges_cover_all_that_was_added),
		cmocka_unit_test(a_path_is_counted_apart_in_each_category),
		cmocka_unit_test(names_that_differ_only_behind_a_nul_or_in_length_are_different),
		cmocka_unit_test(when_memory_is_used_up_new_paths_are_dropped_and_counted),
		cmocka_unit_test(touches_come_in_order_until_the_callback_has_enough),
		cmocka_unit_test(no_event_is_lost_among_many_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
