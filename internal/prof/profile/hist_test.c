/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>

#include "prof/profile/profile_priv.h"

static void small_values_have_a_bucket_each(void **state)
{
	(void)state;
	for (uint64_t v = 0; v < 64; v++) {
		assert_int_equal(cop_prof_hist_index(v), v);
		assert_int_equal(cop_prof_hist_value((unsigned)v), v);
	}
}

static void buckets_follow_each_other_without_gap_or_overlap(void **state)
{
	unsigned last = 0;

	(void)state;
	for (uint64_t v = 0; v < 1 << 20; v++) {
		unsigned i = cop_prof_hist_index(v);

		assert_true(i == last || i == last + 1);
		last = i;
	}
	for (unsigned i = 0; i < HIST_BUCKETS; i++)
		assert_int_equal(cop_prof_hist_index(cop_prof_hist_value(i)), i);
}

static void no_value_is_further_than_a_64th_from_its_bucket(void **state)
{
	uint64_t v = 1;

	(void)state;
	for (unsigned k = 0; k < 200000; k++) {
		uint64_t mid;

		v = v * 6364136223846793005ull + 1442695040888963407ull;
		mid = cop_prof_hist_value(cop_prof_hist_index(v >> (24 + k % 40)));
		assert_true((mid > v >> (24 + k % 40) ? mid - (v >> (24 + k % 40))
						      : (v >> (24 + k % 40)) - mid) *
				    64 <=
			    (v >> (24 + k % 40)));
	}
	/* The ends of each power of two are the worst cases. */
	for (unsigned bit = 6; bit < 40; bit++)
		for (int d = -1; d <= 1; d++) {
			uint64_t edge = (1ull << bit) + (uint64_t)d;
			uint64_t mid = cop_prof_hist_value(cop_prof_hist_index(edge));

			assert_true((mid > edge ? mid - edge : edge - mid) * 64 <= edge);
		}
}

static void values_past_the_range_share_the_last_bucket(void **state)
{
	(void)state;
	assert_int_equal(cop_prof_hist_index((1ull << 40) - 1), HIST_BUCKETS - 1);
	assert_int_equal(cop_prof_hist_index(1ull << 40), HIST_BUCKETS - 1);
	assert_int_equal(cop_prof_hist_index(UINT64_MAX), HIST_BUCKETS - 1);
}

static int order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Compares with exact quantiles of the sorted values, over six orders of magnitude. */
static void quantiles_are_within_three_percent_of_the_exact_ones(void **state)
{
	static uint64_t value[50000], bucket[HIST_BUCKETS];
	static const unsigned permille[] = {1, 500, 900, 990, 999, 1000};
	uint64_t seed = 7;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(value); i++) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		value[i] = 100 + (seed >> 40) * (1u << (seed >> 33) % 16);
		bucket[cop_prof_hist_index(value[i])]++;
	}
	qsort(value, COP_ARRAY_SIZE(value), sizeof(value[0]), order);
	for (size_t k = 0; k < COP_ARRAY_SIZE(permille); k++) {
		uint64_t exact = value[COP_ARRAY_SIZE(value) * permille[k] / 1000 - 1];
		uint64_t got = cop_prof_hist_quantile(bucket, COP_ARRAY_SIZE(value), permille[k],
			value[COP_ARRAY_SIZE(value) - 1]);

		assert_true((got > exact ? got - exact : exact - got) * 1000 <= exact * 30);
	}
}

static void a_quantile_is_never_above_the_largest_value(void **state)
{
	static uint64_t bucket[HIST_BUCKETS];

	(void)state;
	bucket[cop_prof_hist_index(1000)] = 1;
	assert_int_equal(cop_prof_hist_quantile(bucket, 1, 500, 1000), 1000);
	bucket[HIST_BUCKETS - 1] = 1000;
	assert_true(cop_prof_hist_quantile(bucket, 1001, 999, UINT64_MAX) == UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_values_have_a_bucket_each),
		cmocka_unit_test(buckets_follow_each_other_without_gap_or_overlap),
		cmocka_unit_test(no_value_is_further_than_a_64th_from_its_bucket),
		cmocka_unit_test(values_past_the_range_share_the_last_bucket),
		cmocka_unit_test(quantiles_are_within_three_percent_of_the_exact_ones),
		cmocka_unit_test(a_quantile_is_never_above_the_largest_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
