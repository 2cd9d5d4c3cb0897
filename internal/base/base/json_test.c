/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/base/json.h"

static struct cop_buf out;
static struct cop_json j;

static int setup(void **state)
{
	(void)state;
	j = cop_json_to(&out);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_buf_free(&out);
	return 0;
}

static void a_value_may_stand_alone(void **state)
{
	(void)state;
	cop_json_u64(&j, NULL, UINT64_MAX);
	assert_string_equal(out.data, "18446744073709551615");
}

static void members_and_elements_are_separated_and_nest(void **state)
{
	(void)state;
	cop_json_object(&j, NULL);
	cop_json_object(&j, "empty");
	cop_json_end(&j);
	cop_json_array(&j, "list");
	cop_json_array(&j, NULL);
	cop_json_end(&j);
	cop_json_object(&j, NULL);
	cop_json_bool(&j, "yes", true);
	cop_json_bool(&j, "no", false);
	cop_json_end(&j);
	cop_json_null(&j, NULL);
	cop_json_end(&j);
	cop_json_u64(&j, "last", 0);
	cop_json_end(&j);
	assert_string_equal(out.data,
		"{\"empty\":{},\"list\":[[],{\"yes\":true,\"no\":false},null],\"last\":0}");
}

static void any_bytes_make_a_string_of_valid_text(void **state)
{
	(void)state;
	cop_json_object(&j, NULL);
	cop_json_str(&j, "quoted \"key\"", "a\\b\"c\n\x01\x7f\xc3\xa9");
	cop_json_bytes(&j, "cut", "\xc3\0\xff\xed\xa0\x80", 6);
	cop_json_end(&j);
	assert_string_equal(out.data,
		"{\"quoted \\\"key\\\"\":\"a\\\\b\\\"c\\u000a\\u0001\\u007f\xc3\xa9\","
		"\"cut\":\"\\ufffd\\u0000\\ufffd\\ufffd\\ufffd\\ufffd\"}");
}

static void expect_text(const char *text, size_t len, const char *want)
{
	struct cop_buf b = {0};
	struct cop_json alone = cop_json_to(&b);

	cop_json_bytes(&alone, NULL, text, len);
	assert_string_equal(b.data, want);
	cop_buf_free(&b);
}

static void strings_escape_what_they_must(void **state)
{
	(void)state;
	expect_text("", 0, "\"\"");
	expect_text("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	expect_text("\n\t\0\x7f", 4, "\"\\u000a\\u0009\\u0000\\u007f\"");
	expect_text("gr\xc3\xbc\xc3\x9f", 6, "\"gr\xc3\xbc\xc3\x9f\"");
	expect_text("\xf0\x9f\x8c\xb3", 4, "\"\xf0\x9f\x8c\xb3\"");
	expect_text("\xe2\x82\xac", 3, "\"\xe2\x82\xac\"");
}

static void bytes_that_are_not_utf8_become_replacement_characters(void **state)
{
	(void)state;
	expect_text("\xff", 1, "\"\\ufffd\"");
	expect_text("\x80", 1, "\"\\ufffd\"");
	expect_text("\xc3", 1, "\"\\ufffd\"");
	expect_text("\xc3(", 2, "\"\\ufffd(\"");
	expect_text("\xc0\xaf", 2, "\"\\ufffd\\ufffd\"");
	expect_text("\xe0\x80\xaf", 3, "\"\\ufffd\\ufffd\\ufffd\"");
	expect_text("\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\"");
	expect_text("\xf0\x80\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	expect_text("\xf4\x90\x80\x80", 4, "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
	/* Truncated in the middle: the byte past the end must not be read. */
	expect_text("\xe2\x82\xac", 2, "\"\\ufffd\\ufffd\"");
}

static void numbers_have_the_decimals_that_were_asked_for(void **state)
{
	(void)state;
	cop_json_array(&j, NULL);
	cop_json_double(&j, NULL, 1.005, 2);
	cop_json_double(&j, NULL, -0.5, 0);
	cop_json_double(&j, NULL, 1e15, 1);
	cop_json_double(&j, NULL, INFINITY, 2);
	cop_json_double(&j, NULL, NAN, 2);
	cop_json_end(&j);
	assert_string_equal(out.data, "[1.00,-0,1000000000000000.0,null,null]");
}

static void a_value_made_elsewhere_has_its_place(void **state)
{
	(void)state;
	cop_json_array(&j, NULL);
	cop_json_value(&j, NULL);
	cop_buf_str(&out, "{\"a\":1}");
	cop_json_value(&j, NULL);
	cop_buf_str(&out, "2");
	cop_json_end(&j);
	assert_string_equal(out.data, "[{\"a\":1},2]");
}

/* Levels of both kinds alternate, so that a closed one leaves nothing behind. */
static void the_deepest_nesting_closes_as_it_was_opened(void **state)
{
	char mirror[2 * COP_JSON_DEPTH_MAX + 1] = "";
	size_t n = 0;

	(void)state;
	for (unsigned turn = 0; turn < 2; turn++) {
		cop_buf_free(&out);
		j = turn ? j : cop_json_to(&out);
		j.comma = false;
		n = 0;
		for (unsigned i = 0; i < COP_JSON_DEPTH_MAX; i++) {
			const char *key = i && (i - 1 + turn) % 2 ? "k" : NULL;

			((i + turn) % 2 ? cop_json_object : cop_json_array)(&j, key);
		}
		while (j.depth)
			cop_json_end(&j);
		for (const char *c = out.data; *c; c++)
			if (strchr("[]{}", *c))
				mirror[n++] = *c;
		assert_int_equal(n, 2 * COP_JSON_DEPTH_MAX);
		for (size_t i = 0; i < n / 2; i++)
			assert_int_equal(mirror[n - 1 - i], mirror[i] == '[' ? ']' : '}');
	}
}

static void without_memory_the_buffer_is_marked_failed(void **state)
{
	(void)state;
	cop_json_array(&j, NULL);
	out.failed = true;
	cop_json_str(&j, NULL, "lost");
	cop_json_end(&j);
	assert_true(out.failed);
	assert_string_equal(out.data, "[");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_value_may_stand_alone),
		T(members_and_elements_are_separated_and_nest),
		T(any_bytes_make_a_string_of_valid_text),
		T(strings_escape_what_they_must),
		T(bytes_that_are_not_utf8_become_replacement_characters),
		T(numbers_have_the_decimals_that_were_asked_for),
		T(a_value_made_elsewhere_has_its_place),
		T(the_deepest_nesting_closes_as_it_was_opened),
		T(without_memory_the_buffer_is_marked_failed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
