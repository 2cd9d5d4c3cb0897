/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/base/base.h"

static void an_empty_buffer_needs_no_memory(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	assert_null(b.data);
	cop_buf_free(&b);
	cop_buf_add(&b, NULL, 0);
	assert_string_equal(b.data, "");
	assert_int_equal(b.len, 0);
	cop_buf_free(&b);
}

static void text_grows_and_stays_terminated(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	for (int i = 0; i < 10000; i++) {
		cop_buf_printf(&b, "%d,", i % 10);
		assert_int_equal(b.data[b.len], '\0');
	}
	assert_int_equal(b.len, 20000);
	assert_int_equal(strlen(b.data), 20000);
	cop_buf_str(&b, "end");
	assert_string_equal(b.data + 20000, "end");
	assert_false(b.failed);
	cop_buf_free(&b);
	assert_int_equal(b.len, 0);
}

static void bytes_with_nul_are_kept(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	cop_buf_add(&b, "a\0b", 3);
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.data, "a\0b", 4);
	cop_buf_free(&b);
}

static void a_length_that_cannot_be_had_fails_and_stays_failed(void **state)
{
	struct cop_buf b = {0};

	(void)state;
	cop_buf_str(&b, "kept");
	cop_buf_add(&b, "", SIZE_MAX / 2);
	assert_true(b.failed);
	cop_buf_str(&b, "more");
	assert_string_equal(b.data, "kept");
	cop_buf_free(&b);
	assert_false(b.failed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_needs_no_memory),
		cmocka_unit_test(text_grows_and_stays_terminated),
		cmocka_unit_test(bytes_with_nul_are_kept),
		cmocka_unit_test(a_length_that_cannot_be_had_fails_and_stays_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
