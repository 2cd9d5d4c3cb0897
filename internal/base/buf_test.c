/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/base.h"

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

static void expect_json(const char *text, size_t len, const char *want)
{
	struct cop_buf b = {0};

	cop_buf_json_str(&b, text, len);
	assert_string_equal(b.data, want);
	cop_buf_free(&b);
}

static void json_strings_escape_what_they_must(void **state)
{
	(void)state;
	expect_json("", 0, "\"\"");
	expect_json("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	expect_json("\n\t\0\x7f", 4, "\"\\u000a\\u0009\\u0000\\u007f\"");
	expect_json("gr\xc3\xbc\xc3\x9f", 6, "\"gr\xc3\xbc\xc3\x9f\"");
	expect_json("\xf0\x9f\x8c\xb3", 4, "\"\xf0\x9f\x8c\xb3\"");
	expect_json("\xe2\x82\xac", 3, "\"\xe2\x82\xac\"");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
	(void)state;
	expect_json("\xff", 1, "\"\\ufffd\"");
	expect_json("\x80", 1, "\"\\ufffd\"");
	expect_json("\xc3", 1, "\"\\ufffd\"");
	expect_json("\xc3(", 2, "\"\\ufffd(\"");
	expect_json("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");
	expect_json("\xe0\x80\xaf", 3, "\"\\ufffd\\ufffd\\ufffd\"");
	expect_json("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");
	expect_json("\xf0\x80\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	expect_json("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	/* Cut in the middle: the byte past the end is not looked at. */
	expect_json("\xe2\x82\xac", 2, "\"\\ufffd\\ufffd\"");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_needs_no_memory),
		cmocka_unit_test(text_grows_and_stays_terminated),
		cmocka_unit_test(bytes_with_nul_are_kept),
		cmocka_unit_test(a_length_that_cannot_be_had_fails_and_stays_failed),
		cmocka_unit_test(json_strings_escape_what_they_must),
		cmocka_unit_test(bytes_that_are_not_utf8_become_replacement_characters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
