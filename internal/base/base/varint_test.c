/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base/base.h"

static void a_number_comes_back_in_as_many_bytes_as_it_needs(void **state)
{
	static const struct {
		uint64_t value;
		size_t bytes;
	} cases[] = {{0, 1}, {1, 1}, {127, 1}, {128, 2}, {16383, 2}, {16384, 3}, {UINT32_MAX, 5},
		{UINT64_MAX >> 1, 9}, {UINT64_MAX, 10}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_buf b = {0};
		const unsigned char *at;
		uint64_t value;

		cop_buf_varint(&b, cases[i].value);
		assert_int_equal(b.len, cases[i].bytes);
		at = (unsigned char *)b.data;
		assert_true(cop_varint(&at, at + b.len, &value));
		assert_int_equal(value, cases[i].value);
		assert_ptr_equal(at, b.data + b.len);
		cop_buf_free(&b);
	}
}

static bool is_number(const unsigned char *data, size_t len)
{
	uint64_t value;

	return cop_varint(&data, data + len, &value);
}

static void other_bytes_are_no_number(void **state)
{
	static const unsigned char longest[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 1};
	static const unsigned char beyond[] = {255, 255, 255, 255, 255, 255, 255, 255, 255, 2};
	static const unsigned char endless[] = {
		128, 128, 128, 128, 128, 128, 128, 128, 128, 129, 1};

	(void)state;
	assert_true(is_number(longest, sizeof(longest)));
	assert_false(is_number(longest, sizeof(longest) - 1));
	assert_false(is_number(longest, 0));
	assert_false(is_number(beyond, sizeof(beyond)));
	assert_false(is_number(endless, sizeof(endless)));
	assert_false(is_number((const unsigned char[]){0x81, 0}, 2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_number_comes_back_in_as_many_bytes_as_it_needs),
		cmocka_unit_test(other_bytes_are_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
