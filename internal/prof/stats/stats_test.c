/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "prof/stats/stats.h"

static void counters_begin_at_zero_and_add_up(void **state)
{
	struct cop_stats s = {0};

	(void)state;
	assert_int_equal(cop_stats_get(&s, COP_ORIGIN_BYTES), 0);
	cop_stats_add(&s, COP_ORIGIN_BYTES, 5);
	cop_stats_add(&s, COP_ORIGIN_BYTES, UINT32_MAX);
	assert_true(cop_stats_get(&s, COP_ORIGIN_BYTES) == 5ull + UINT32_MAX);
	assert_int_equal(cop_stats_get(&s, COP_ORIGIN_OPERATIONS), 0);
	cop_stats_add(NULL, COP_ORIGIN_BYTES, 5);
}

static void the_sum_has_every_counter(void **state)
{
	struct cop_stats a = {0}, b = {0};

	(void)state;
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		cop_stats_add(&a, c, c);
		cop_stats_add(&b, c, 1000);
	}
	cop_stats_sum(&a, &b);
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		assert_int_equal(cop_stats_get(&a, c), 1000 + c);
	assert_int_equal(cop_stats_get(&b, 1), 1000);
}

static void draining_moves_each_count_and_nothing_else(void **state)
{
	struct cop_stats a = {0}, b = {0};

	(void)state;
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(&a, c, 7 + c);
	cop_stats_add(&b, 1, 1000);
	cop_stats_drain(&a, &b);
	cop_stats_add(&a, 2, 5);
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		assert_int_equal(cop_stats_get(&a, c), c == 2 ? 5 : 0);
		assert_int_equal(cop_stats_get(&b, c), 7 + c + (c == 1 ? 1000 : 0));
	}
}

static void json_is_groups_of_names_in_the_order_of_the_list(void **state)
{
	struct cop_stats s = {0};
	struct cop_buf b = {0};
	struct cop_json j = cop_json_to(&b);
	int depth = 0;

	(void)state;
	cop_stats_add(&s, COP_FUSE_LOOKUP, 12);
	cop_stats_add(&s, COP_PAST_BEYOND, UINT64_MAX);
	cop_json_object(&j, NULL);
	cop_stats_json(&s, &j);
	cop_json_end(&j);
	assert_ptr_equal(strstr(b.data, "{\"fuse\":{\"lookup\":12,\"forget\":0,"), b.data);
	assert_non_null(strstr(b.data, "},\"origin\":{\"operations\":0,"));
	assert_non_null(strstr(b.data, "\"beyond\":18446744073709551615}}"));
	for (size_t i = 0; i < b.len; i++) {
		depth += (b.data[i] == '{') - (b.data[i] == '}');
		assert_in_range(depth, 0, 2);
	}
	assert_int_equal(depth, 0);
	assert_int_equal(b.data[b.len - 1], '}');
	cop_buf_free(&b);
}

static void lines_are_read_back_and_what_follows_is_left(void **state)
{
	struct cop_stats s = {0}, back;
	struct cop_buf b = {0};

	(void)state;
	cop_stats_add(&s, COP_FUSE_LOOKUP, 12);
	cop_stats_add(&s, COP_PAST_BEYOND, UINT64_MAX);
	cop_stats_lines(&s, &b);
	assert_string_equal(b.data, "fuse.lookup 12\npast.beyond 18446744073709551615\n\n");
	cop_buf_str(&b, "fuse.getattr 3\n");
	assert_string_equal(cop_stats_read_lines(b.data, &back), "fuse.getattr 3\n");
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		assert_int_equal(cop_stats_get(&back, c), cop_stats_get(&s, c));
	cop_buf_free(&b);
}

static void names_of_another_version_are_passed_over(void **state)
{
	char text[] = "fuse.brew 1\nfuse 2\nlookup 3\nfuse.lookups 4\nfuse.lookup 5\n"
		      "fuse.lookup 6\n 7\n\n";
	struct cop_stats back;

	(void)state;
	assert_string_equal(cop_stats_read_lines(text, &back), "");
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		assert_int_equal(cop_stats_get(&back, c), c == COP_FUSE_LOOKUP ? 6 : 0);
}

static void lines_in_another_form_are_refused(void **state)
{
	static const char *const bad[] = {"", "fuse.lookup 12", "fuse.lookup 12\n",
		"fuse.lookup\n\n", "fuse.lookup \n\n", "fuse.lookup -1\n\n", "fuse.lookup 1 2\n\n",
		"fuse.lookup  1\n\n", "fuse.brew x\n\n", "fuse.lookup 18446744073709551616\n\n",
		"rank 0 of 1 on n0\n\n"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		struct cop_stats back;
		char text[64];

		snprintf(text, sizeof(text), "%s", bad[i]);
		assert_null(cop_stats_read_lines(text, &back));
	}
}

/* A group that appears in two places would be a duplicate key. */
static void rows_are_unique_groups_stand_together_and_names_are_keys(void **state)
{
	(void)state;
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		bool left_group = false;

		assert_true(strlen(cop_counter_unit(c)) > 0);
		assert_true(strlen(cop_counter_meaning(c)) > 0);
		for (const char *p = cop_counter_name(c); *p; p++)
			assert_true(islower((unsigned char)*p) || *p == '_');
		for (unsigned d = c + 1; d < COP_COUNTERS; d++) {
			bool same = strcmp(cop_counter_group(c), cop_counter_group(d)) == 0;

			assert_false(same && left_group);
			assert_false(same && strcmp(cop_counter_name(c), cop_counter_name(d)) == 0);
			left_group |= !same;
		}
	}
}

/* The keys that scripts read from cache-stats --json. */
static void the_keys_that_scripts_read_are_there(void **state)
{
	static const char *const keys[][2] = {{"fuse", "lookup"}, {"fuse", "getattr"},
		{"fuse", "read"}, {"origin", "operations"}, {"origin", "bytes"},
		{"fabric", "requests_sent"}, {"fabric", "requests_served"}, {"fabric", "bytes_in"},
		{"fabric", "bytes_out"}, {"fabric", "retries"}, {"fabric", "failovers"},
		{"fabric", "rejected"}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(keys); i++) {
		bool found = false;

		for (unsigned c = 0; c < COP_COUNTERS; c++)
			found |= strcmp(cop_counter_group(c), keys[i][0]) == 0 &&
				 strcmp(cop_counter_name(c), keys[i][1]) == 0;
		assert_true(found);
	}
}

static void the_kinds_of_what_was_rejected_add_up_to_it(void **state)
{
	static const int why[] = {-ETIMEDOUT, -EBADMSG, -EACCES, -EALREADY, -EHOSTUNREACH, -EPROTO};
	struct cop_stats s = {0};
	uint64_t sum = 0;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(why); i++)
		cop_stats_rejected(&s, why[i], i + 1);
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		if (strncmp(cop_counter_name(c), "rejected_", 9) == 0) {
			assert_true(cop_stats_get(&s, c) > 0);
			sum += cop_stats_get(&s, c);
		}
	assert_int_equal(sum, 21);
	assert_int_equal(cop_stats_get(&s, COP_FABRIC_REJECTED), 21);
	assert_int_equal(cop_stats_get(&s, COP_FABRIC_REJECTED_SECRET), 3);
}

static void the_first_example_stays(void **state)
{
	struct cop_stats s = {0}, sum = {0};
	char path[2 * COP_EXAMPLE_SIZE];

	(void)state;
	assert_string_equal(cop_stats_first(&s, COP_EXAMPLE_CHANGED), "");
	cop_stats_example(NULL, COP_EXAMPLE_CHANGED, "nobody");
	cop_stats_example(&s, COP_EXAMPLE_CHANGED, "");
	cop_stats_example(&s, COP_EXAMPLE_CHANGED, "a\nb\x7f\xc3\xa9");
	cop_stats_example(&s, COP_EXAMPLE_CHANGED, "second");
	assert_string_equal(cop_stats_first(&s, COP_EXAMPLE_CHANGED), "a?b?\xc3\xa9");
	assert_string_equal(cop_stats_first(&s, COP_EXAMPLE_BYPASSED), "");
	memset(path, 'x', sizeof(path));
	strcpy(path + sizeof(path) - 5, "/end");
	cop_stats_example(&s, COP_EXAMPLE_BYPASSED, path);
	assert_int_equal(strlen(cop_stats_first(&s, COP_EXAMPLE_BYPASSED)), COP_EXAMPLE_SIZE - 1);
	assert_non_null(strstr(cop_stats_first(&s, COP_EXAMPLE_BYPASSED), "x/end"));
	cop_stats_example(&sum, COP_EXAMPLE_BYPASSED, "own");
	cop_stats_sum(&sum, &s);
	assert_string_equal(cop_stats_first(&sum, COP_EXAMPLE_BYPASSED), "own");
	assert_string_equal(cop_stats_first(&sum, COP_EXAMPLE_CHANGED), "a?b?\xc3\xa9");
}

static void *count_events(void *arg)
{
	for (int i = 0; i < 100000; i++)
		cop_stats_add(arg, COP_CACHE_HITS, 1);
	return NULL;
}

static void threads_lose_no_count(void **state)
{
	struct cop_stats s = {0};
	pthread_t t[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&t[i], "count", count_events, &s), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(cop_stats_get(&s, COP_CACHE_HITS), 400000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counters_begin_at_zero_and_add_up),
		cmocka_unit_test(the_sum_has_every_counter),
		cmocka_unit_test(draining_moves_each_count_and_nothing_else),
		cmocka_unit_test(json_is_groups_of_names_in_the_order_of_the_list),
		cmocka_unit_test(the_kinds_of_what_was_rejected_add_up_to_it),
		cmocka_unit_test(lines_are_read_back_and_what_follows_is_left),
		cmocka_unit_test(names_of_another_version_are_passed_over),
		cmocka_unit_test(lines_in_another_form_are_refused),
		cmocka_unit_test(rows_are_unique_groups_stand_together_and_names_are_keys),
		cmocka_unit_test(the_keys_that_scripts_read_are_there),
		cmocka_unit_test(the_first_example_stays),
		cmocka_unit_test(threads_lose_no_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
