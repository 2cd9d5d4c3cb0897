/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "trace/table/table.h"

static void quantiles_lie_between_values_as_in_pandas(void **state)
{
	static const uint64_t values[] = {7, 1, 5, 5, 100, 2};
	struct cop_quant *q = NULL;

	(void)state;
	assert_true(cop_quant_at(q, 0.5) == 0);
	for (size_t i = 0; i < COP_ARRAY_SIZE(values); i++)
		assert_int_equal(cop_quant_add(&q, values[i], 1), 0);
	assert_true(cop_quant_at(q, 0) == 1);
	assert_true(cop_quant_at(q, 0.25) == 2.75);
	assert_true(cop_quant_at(q, 0.5) == 5);
	assert_true(cop_quant_at(q, 0.75) == 6.5);
	assert_true(cop_quant_at(q, 1) == 100);
	assert_true(cop_quant_is_exact(q));
	cop_quant_free(q);
}

static uint64_t random_value(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint64_t)pow(10, (double)(*seed >> 40) / (double)(1 << 24) * 12);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Merges two parts of n random values, and returns the largest error of any percentile. */
static double worst(size_t n, bool *exact)
{
	uint64_t *v = calloc(n, sizeof(*v)), seed = n;
	struct cop_quant *a = NULL, *b = NULL;
	double worst = 0;

	assert_non_null(v);
	for (size_t i = 0; i < n; i++) {
		v[i] = random_value(&seed);
		assert_int_equal(cop_quant_add(i % 3 ? &a : &b, v[i], 1), 0);
	}
	assert_int_equal(cop_quant_merge(&a, b), 0);
	qsort(v, n, sizeof(*v), by_value);
	for (int percent = 0; percent <= 100; percent++) {
		double at = percent / 100.0 * (double)(n - 1), want = (double)v[(size_t)at];

		if (at != floor(at))
			want += ((double)v[(size_t)at + 1] - want) * (at - floor(at));
		worst = fmax(worst, fabs(cop_quant_at(a, percent / 100.0) - want) / want);
	}
	*exact = cop_quant_is_exact(a);
	cop_quant_free(a);
	cop_quant_free(b);
	free(v);
	return worst;
}

static void they_are_exact_up_to_a_million_values(void **state)
{
	bool exact;

	(void)state;
	assert_true(worst(1000, &exact) == 0);
	assert_true(exact);
	assert_true(worst(COP_TAB_EXACT_MAX, &exact) == 0);
	assert_true(exact);
}

static void they_are_within_a_hundredth_beyond(void **state)
{
	bool exact;

	(void)state;
	assert_true(worst(COP_TAB_EXACT_MAX + 1, &exact) < 0.01);
	assert_false(exact);
	assert_true(worst(3 * COP_TAB_EXACT_MAX, &exact) < 0.01);
}

static void a_value_may_come_many_times_at_once(void **state)
{
	struct cop_quant *q = NULL;

	(void)state;
	assert_int_equal(cop_quant_add(&q, 3, 10), 0);
	assert_int_equal(cop_quant_add(&q, 0, 30), 0);
	assert_true(cop_quant_at(q, 0.5) == 0);
	assert_true(cop_quant_at(q, 0.9) == 3);
	assert_int_equal(cop_quant_add(&q, 0, COP_TAB_EXACT_MAX), 0);
	assert_false(cop_quant_is_exact(q));
	assert_true(cop_quant_at(q, 0.5) == 0);
	assert_true(fabs(cop_quant_at(q, 1) - 3) < 0.03);
	cop_quant_free(q);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_lie_between_values_as_in_pandas),
		cmocka_unit_test(they_are_exact_up_to_a_million_values),
		cmocka_unit_test(they_are_within_a_hundredth_beyond),
		cmocka_unit_test(a_value_may_come_many_times_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
