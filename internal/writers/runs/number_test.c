/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the number formatting of copper/run.h, also in locales whose decimal separator is a comma
 * or the two-byte Arabic one. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *comma = ",";

/* Equivalent to snprintf with "%.*g". */
static int local_print(char *out, size_t size, const char *form, int digits, double value)
{
	char text[64], *at;

	(void)form;
	snprintf(text, sizeof(text), "%.*g", digits, value);
	at = strchr(text, '.');
	return at ? snprintf(out, size, "%.*s%s%s", (int)(at - text), text, comma, at + 1)
		  : snprintf(out, size, "%s", text);
}

static double local_read(const char *text, char **end)
{
	char plain[64];
	const char *at = strstr(text, comma);

	(void)end;
	assert_null(strchr(text, '.'));
	if (!at)
		return strtod(text, NULL);
	snprintf(plain, sizeof(plain), "%.*s.%s", (int)(at - text), text, at + strlen(comma));
	return strtod(plain, NULL);
}

#define COPPER_RUN_I_PRINT local_print
#define COPPER_RUN_I_READ local_read
#define COPPER_RUN_PRIVATE
#include "include/copper/run.h"

static const char *text_of(double value)
{
	static char text[COPPER_RUN_I_NUMBER + 1];
	char *end;

	memset(text, 'x', sizeof(text));
	end = copper_run_i_real(text, value);
	assert_true(end - text < COPPER_RUN_I_NUMBER);
	*end = '\0';
	return text;
}

/* Extracts the significant digits of a number in text, without leading and trailing zeros. */
static void digits_of(const char *text, char out[32])
{
	size_t n = 0;

	for (; *text && *text != 'e'; text++)
		if (*text >= '0' && *text <= '9' && (n || *text != '0') && n < 31)
			out[n++] = *text;
	while (n && out[n - 1] == '0')
		n--;
	out[n] = '\0';
}

/* The C library rounds correctly, but near a power of two, whose lower neighbour is closer, the
 * correctly rounded result may not read back as the same value. */
static void check(double value)
{
	char ours[32], shortest[32], text[64];
	const char *got = text_of(value);
	int digits = 1;

	do
		snprintf(text, sizeof(text), "%.*e", digits - 1, value);
	while (strtod(text, NULL) != value && digits++ < 17);
	digits_of(got, ours);
	digits_of(text, shortest);
	if (strtod(got, NULL) != value || signbit(strtod(got, NULL)) != signbit(value) ||
		strlen(ours) > strlen(shortest) ||
		(strlen(ours) == strlen(shortest) && strcmp(ours, shortest) != 0))
		fail_msg("%.17g is \"%s\", and not \"%s\"", value, got, text);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void a_number_has_the_fewest_digits_that_read_back(void **state)
{
	uint64_t seed = 88172645463325252u;

	(void)state;
	for (int i = 0; i < 20000; i++) {
		uint64_t bits = next(&seed);
		double any;

		memcpy(&any, &bits, sizeof(any));
		if (isfinite(any))
			check(any);
		check(1 / (1. + i));
		check((double)(next(&seed) % 1000000) / 1000);
		check((double)(next(&seed) >> 11) * 0x1p-53);
		check(ldexp((double)(1 | next(&seed) >> (11 + next(&seed) % 50)),
			-(int)(next(&seed) % 100)));
		check(-i * 0.1);
	}
	/* Powers of two, whose lower neighbour is half as far away as the upper one. */
	for (int i = -1074; i < 1024; i++) {
		check(ldexp(1, i));
		check(nextafter(ldexp(1, i), 0));
		check(nextafter(ldexp(1, i), INFINITY));
	}
	for (int i = -320; i < 309; i++) {
		char text[16];

		snprintf(text, sizeof(text), "1e%d", i);
		check(strtod(text, NULL));
		check(nextafter(strtod(text, NULL), INFINITY));
	}
	check(DBL_MAX);
	check(DBL_MIN);
}

static void a_number_looks_as_people_write_it(void **state)
{
	static const struct {
		double value;
		const char *text;
	} rows[] = {{0, "0"}, {-0., "-0"}, {1, "1"}, {-3, "-3"}, {0.1, "0.1"}, {-2.5, "-2.5"},
		{1. / 3, "0.3333333333333333"}, {100, "100"}, {1e15, "1000000000000000"},
		{0.001, "0.001"}, {0.00012, "0.00012"}, {0.00001, "1e-05"}, {1.5e-7, "1.5e-07"},
		{1e-13, "1e-13"}, {1e-14, "1e-14"}, {1e300, "1e+300"}, {5e-324, "5e-324"},
		{123456.789, "123456.789"}, {2251799813685249.5, "2251799813685249.5"},
		{9007199254740991., "9007199254740991"}, {INFINITY, "inf"}, {-INFINITY, "-inf"},
		{NAN, "nan"}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(text_of(rows[i].value), rows[i].text);
}

static void no_locale_changes_a_number(void **state)
{
	(void)state;
	for (int i = 0; i < 2; i++) {
		comma = i ? "\xd9\xab" : ",";
		assert_string_equal(text_of(2.5), "2.5");
		assert_string_equal(text_of(2.5e-20), "2.5e-20");
		assert_string_equal(text_of(-1.7976931348623157e308), "-1.7976931348623157e+308");
	}
	comma = ",";
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_has_the_fewest_digits_that_read_back),
		cmocka_unit_test(a_number_looks_as_people_write_it),
		cmocka_unit_test(no_locale_changes_a_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
