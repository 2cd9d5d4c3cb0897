/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fabric/reach/reach.h"

static void a_clock_that_is_ahead_has_a_positive_offset(void **state)
{
	/* This clock is 1,000 ahead; the answer comes halfway through 200. */
	const struct cop_skew_sample s = {.left_us = 5000, .came_us = 5200, .there_us = 4100};

	(void)state;
	assert_true(cop_skew_is_valid(&s));
	assert_int_equal(cop_skew_rtt_us(&s), 200);
	assert_int_equal(cop_skew_offset_us(&s), 1000);
}

static void offsets_add_up_from_parent_to_parent(void **state)
{
	/* This clock is 50 behind the parent's, which is 300 behind rank 0's. */
	const struct cop_skew_sample s = {
		.left_us = 950, .came_us = 950, .there_us = 1000, .there_offset_us = -300};

	(void)state;
	assert_true(cop_skew_is_valid(&s));
	assert_int_equal(cop_skew_offset_us(&s), -350);
}

static void what_no_clock_says_is_not_believed(void **state)
{
	const struct cop_skew_sample backwards = {.left_us = 2, .came_us = 1},
				     late = {.there_us = INT64_MAX},
				     early = {.there_us = INT64_MIN},
				     far = {.there_offset_us = INT64_MIN};

	(void)state;
	assert_false(cop_skew_is_valid(&backwards));
	assert_false(cop_skew_is_valid(&late));
	assert_false(cop_skew_is_valid(&early));
	assert_false(cop_skew_is_valid(&far));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_clock_that_is_ahead_has_a_positive_offset),
		cmocka_unit_test(offsets_add_up_from_parent_to_parent),
		cmocka_unit_test(what_no_clock_says_is_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
