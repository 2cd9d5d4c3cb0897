/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#include "writers/cluster/cluster_priv.h"

/* cut: the number is too large and is clamped. */
static void check_as(const char *text, const char *want, bool cut)
{
	cop_number_t n = 0;
	bool decimal = false;
	struct cop_buf b = {0};

	assert_int_equal(cop_report_number_parse(text, &n, &decimal), cut);
	cop_report_number_print(&b, n, decimal);
	assert_string_equal(b.data, want);
	cop_buf_free(&b);
}

static void check(const char *text, const char *want)
{
	check_as(text, want, false);
}

static void check_cut(const char *text, const char *want)
{
	check_as(text, want, true);
}

static void refuse(const char *text)
{
	cop_number_t n;
	bool decimal;

	assert_int_equal(cop_report_number_parse(text, &n, &decimal), -EINVAL);
}

static void integers_are_exact_up_to_64_bits_and_stop_there(void **state)
{
	(void)state;
	check("0", "0");
	check("007", "7");
	check("18446744073709551614", "18446744073709551614");
	check("18446744073709551615", "18446744073709551615");
	check_cut("18446744073709551616", "18446744073709551615");
	check_cut("99999999999999999999999999999999999999999999999999", "18446744073709551615");
}

static void decimals_have_six_digits_and_the_last_is_rounded(void **state)
{
	(void)state;
	check("0.000001", "0.000001");
	check("0.0000004999999999999999999999999999999", "0.000000");
	check("0.0000005", "0.000001");
	check("1.", "1.000000");
	check("12.3456789", "12.345679");
	check("0.9999999", "1.000000");
	check("9007199254740993.000001", "9007199254740993.000001");
	check_cut("18446744073709551615.5", "18446744073709551615.000000");
}

static void exponents_are_numbers_too(void **state)
{
	(void)state;
	check("1.5e-05", "0.000015");
	check("1e3", "1000.000000");
	check("2.5E+2", "250.000000");
	check("1e-999999999999", "0.000000");
	check_cut("1e999999999999", "18446744073709551615.000000");
	check("0e999999999999", "0.000000");
	check("123456789012345678901234567890e-27", "123.456789");
}

static void text_is_not_a_number(void **state)
{
	static const char *const texts[] = {"", " 1", "1 ", "-1", "+1", ".5", "1e", "1e+", "1.5.2",
		"0x10", "nan", "inf", "12MB", "1_000", "full-path"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(texts); i++)
		refuse(texts[i]);
}

static void a_double_becomes_whole_millionths(void **state)
{
	(void)state;
	assert_true(cop_report_number_of_double(0.25) == 250000);
	assert_true(cop_report_number_of_double(0.1 + 0.2) == 300000);
	assert_true(cop_report_number_of_double(-1) == 0);
	assert_true(cop_report_number_of_double(NAN) == 0);
	assert_true(cop_report_number_of_double(INFINITY) == COP_NUMBER_MAX);
	assert_true(cop_report_number_of_double(1e300) == COP_NUMBER_MAX);
}

static void sums_stop_at_the_largest(void **state)
{
	(void)state;
	assert_true(cop_report_number_add(1, 2) == 3);
	assert_true(cop_report_number_add(COP_NUMBER_MAX, COP_NUMBER_MAX) == COP_NUMBER_MAX);
	assert_true(cop_report_number_add(COP_NUMBER_MAX - 1, 1) == COP_NUMBER_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_exact_up_to_64_bits_and_stop_there),
		cmocka_unit_test(decimals_have_six_digits_and_the_last_is_rounded),
		cmocka_unit_test(exponents_are_numbers_too),
		cmocka_unit_test(text_is_not_a_number),
		cmocka_unit_test(a_double_becomes_whole_millionths),
		cmocka_unit_test(sums_stop_at_the_largest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
