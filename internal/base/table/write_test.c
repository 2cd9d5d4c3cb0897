/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "base/table/table.h"

typedef void write_fn(struct cop_buf *out, const char *text, size_t len);

static void check(write_fn *fn, const char *in, size_t len, const char *want)
{
	struct cop_buf b = {0};

	fn(&b, in, len);
	assert_int_equal(b.len, strlen(want));
	assert_string_equal(b.data ? b.data : "", want);
	cop_buf_free(&b);
}
#define CHECK(fn, in, want) check(fn, in, sizeof(in) - 1, want)

static void csv_fields_keep_every_byte(void **state)
{
	(void)state;
	CHECK(cop_csv_quoted, "", "\"\"");
	CHECK(cop_csv_quoted, "\"", "\"\"\"\"");
	CHECK(cop_csv_quoted, "a\"\"b", "\"a\"\"\"\"b\"");
	CHECK(cop_csv_quoted, "\"a\"", "\"\"\"a\"\"\"");
	CHECK(cop_csv_quoted, "/a,b\nc\xff\r", "\"/a,b\nc\xff\r\"");
}

static void raw_lines_hold_a_newline_and_a_backslash(void **state)
{
	(void)state;
	CHECK(cop_csv_escaped, "", "");
	CHECK(cop_csv_escaped, "\n", "\\n");
	CHECK(cop_csv_escaped, "a\\n\nb\xff\" {", "a\\\\n\\nb\xff\" {");
	CHECK(cop_csv_escaped, "\\\\", "\\\\\\\\");
}

static void a_table_cell_holds_no_bar_and_no_control_byte(void **state)
{
	(void)state;
	CHECK(cop_csv_markdown, "/a|b", "`/a\\|b`");
	CHECK(cop_csv_markdown, "/\x1b[2J\n\t\x7f", "`/\\x1b[2J\\n\\x09\\x7f`");
	CHECK(cop_csv_markdown, "/a`b", "`` /a`b ``");
}

static void a_plain_field_is_quoted_only_where_it_must(void **state)
{
	(void)state;
	CHECK(cop_csv_field, "", "");
	CHECK(cop_csv_field, "total calls", "total calls");
	CHECK(cop_csv_field, "a,b", "\"a,b\"");
	CHECK(cop_csv_field, "a\"b", "\"a\"\"b\"");
	CHECK(cop_csv_field, "a\nb", "\"a\nb\"");
}

static void check_unescaped(const char *in, const char *want)
{
	char text[64];
	size_t len = strlen(in);

	memcpy(text, in, len);
	len = cop_csv_unescape(text, len);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(text, want, len);
}

static void escapes_of_raw_lines_are_undone_and_others_stay(void **state)
{
	struct cop_buf b = {0};
	const char name[] = "/\\n\n\\\\/\t\"{";

	(void)state;
	check_unescaped("", "");
	check_unescaped("\\", "\\");
	check_unescaped("\\n", "\n");
	check_unescaped("\\\\n", "\\n");
	check_unescaped("/a\\tb\\", "/a\\tb\\");
	cop_csv_escaped(&b, name, strlen(name));
	assert_null(strchr(b.data, '\n'));
	assert_int_equal(cop_csv_unescape(b.data, b.len), strlen(name));
	assert_memory_equal(b.data, name, strlen(name));
	cop_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_fields_keep_every_byte),
		cmocka_unit_test(a_plain_field_is_quoted_only_where_it_must),
		cmocka_unit_test(raw_lines_hold_a_newline_and_a_backslash),
		cmocka_unit_test(escapes_of_raw_lines_are_undone_and_others_stay),
		cmocka_unit_test(a_table_cell_holds_no_bar_and_no_control_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
