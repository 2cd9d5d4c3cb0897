/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "trace/table/table.h"

static void spans_that_overlap_or_touch_are_one(void **state)
{
	struct cop_union u = {0};

	(void)state;
	assert_int_equal(cop_union_add(&u, 10, 20), 0);
	assert_int_equal(cop_union_add(&u, 0, 5), 0);
	assert_int_equal(cop_union_add(&u, 15, 30), 0);
	assert_int_equal(cop_union_add(&u, 30, 31), 0);
	assert_int_equal(cop_union_add(&u, 40, 40), 0);
	assert_int_equal(cop_union_length(&u), 26);
	cop_union_free(&u);
}

static void alone_is_what_the_other_does_not_cover(void **state)
{
	struct cop_union a = {0}, b = {0};

	(void)state;
	assert_int_equal(cop_union_alone(&a, &b), 0);
	assert_int_equal(cop_union_add(&a, 0, 100), 0);
	assert_int_equal(cop_union_alone(&a, &b), 100);
	assert_int_equal(cop_union_add(&b, 90, 200), 0);
	assert_int_equal(cop_union_add(&b, 10, 20), 0);
	assert_int_equal(cop_union_add(&b, -5, 1), 0);
	assert_int_equal(cop_union_alone(&a, &b), 79);
	assert_int_equal(cop_union_alone(&b, &a), 105);
	cop_union_free(&a);
	cop_union_free(&b);
}

/* Compares with a bitmap that has one bit per nanosecond. */
static void many_in_any_order_are_as_one_by_one(void **state)
{
	static bool covered[100000];
	struct cop_union u = {0}, v = {0};
	uint64_t sum = 0;

	(void)state;
	srand(7);
	for (int i = 0; i < 20000; i++) {
		int64_t from = rand() % 99990, to = from + rand() % 10;

		assert_int_equal(cop_union_add(i % 2 ? &u : &v, from, to), 0);
		for (int64_t at = from; at < to; at++)
			covered[at] = true;
	}
	for (size_t i = 0; i < COP_ARRAY_SIZE(covered); i++)
		sum += covered[i];
	assert_int_equal(cop_union_merge(&u, &v), 0);
	assert_int_equal(cop_union_length(&u), sum);
	assert_int_equal(u.closed_ns, 0);
	cop_union_free(&u);
	cop_union_free(&v);
}

static void beyond_the_limit_gaps_are_closed_and_counted(void **state)
{
	struct cop_union u = {0};
	size_t n = 2 * COP_UNION_MAX;
	uint64_t length;

	(void)state;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cop_union_add(&u, (int64_t)i * 1000,
					 (int64_t)i * 1000 + 500 + (int64_t)(i % 7)),
			0);
	length = cop_union_length(&u);
	assert_true(u.cap <= COP_UNION_MAX);
	assert_true(u.closed_ns > 0);
	assert_true(length > 503 * n - 1000 && length - u.closed_ns <= 504 * n);
	cop_union_free(&u);
}

static void what_another_does_not_cover_is_the_rest(void **state)
{
	const int64_t u[][2] = {{0, 10}, {20, 30}, {40, 50}, {60, 70}};
	const int64_t v[][2] = {{2, 3}, {5, 22}, {40, 50}, {58, 61}, {69, 80}};
	const int64_t want[][2] = {{0, 2}, {3, 5}, {22, 30}, {61, 69}};
	struct cop_union a = {.max = 2048}, b = {0}, rest = {0};

	(void)state;
	for (size_t i = COP_ARRAY_SIZE(u); i--;)
		assert_int_equal(cop_union_add(&a, u[i][0], u[i][1]), 0);
	for (size_t i = COP_ARRAY_SIZE(v); i--;)
		assert_int_equal(cop_union_add(&b, v[i][0], v[i][1]), 0);
	assert_int_equal(cop_union_rest(&a, &b, &rest), 0);
	assert_int_equal(rest.n, COP_ARRAY_SIZE(want));
	for (size_t i = 0; i < COP_ARRAY_SIZE(want); i++) {
		assert_int_equal(rest.at[i].from, want[i][0]);
		assert_int_equal(rest.at[i].to, want[i][1]);
	}
	assert_int_equal(cop_union_length(&rest), cop_union_alone(&a, &b));
	cop_union_free(&a);
	cop_union_free(&b);
	cop_union_free(&rest);
}

static void a_small_union_closes_gaps_and_says_so(void **state)
{
	struct cop_union u = {.max = 2048};

	(void)state;
	for (int64_t i = 0; i < 10000; i++)
		assert_int_equal(cop_union_add(&u, i * 10000, i * 10000 + 1000), 0);
	assert_true(u.cap <= 2048);
	assert_int_equal(cop_union_length(&u) - u.closed_ns, 10000 * 1000);
	cop_union_free(&u);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(spans_that_overlap_or_touch_are_one),
		cmocka_unit_test(alone_is_what_the_other_does_not_cover),
		cmocka_unit_test(many_in_any_order_are_as_one_by_one),
		cmocka_unit_test(beyond_the_limit_gaps_are_closed_and_counted),
		cmocka_unit_test(what_another_does_not_cover_is_the_rest),
		cmocka_unit_test(a_small_union_closes_gaps_and_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
