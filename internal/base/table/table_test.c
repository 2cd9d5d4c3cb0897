/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/table/table.h"

static const struct cop_grid_col cols[] = {
	{"file", COP_GRID_TEXT},
	{"pid", COP_GRID_LABEL},
	{"size", COP_GRID_NUMBER},
	{"a,b:dur", COP_GRID_SECONDS},
	{"bytes", COP_GRID_WHOLE},
	{"b/a", COP_GRID_RATIO},
};
static const struct {
	const char *text[3];
	double value[3];
} rows[] = {
	{{"/a \"b\"", "12", "4096"}, {1.5, 7, 0.25}},
	{{"\xc3\xa9\n", "007", ""}, {NAN, 2.5, NAN}},
};

static struct cop_grid_cell cell(const void *arg, size_t row, unsigned col)
{
	assert_ptr_equal(arg, rows);
	if (col < 3)
		return (struct cop_grid_cell){
			rows[row].text[col], strlen(rows[row].text[col]), NAN};
	return (struct cop_grid_cell){NULL, 0, rows[row].value[col - 3]};
}

static void check(enum cop_grid_form form, size_t n, const char *want)
{
	struct cop_grid g = {cols, COP_ARRAY_SIZE(cols), n, cell, rows};
	struct cop_buf out = {0};

	cop_grid_show(&g, form, &out);
	assert_false(out.failed);
	assert_string_equal(out.data, want);
	cop_buf_free(&out);
}

static void csv_quotes_what_needs_it_and_leaves_blanks(void **state)
{
	(void)state;
	check(COP_GRID_CSV, 2,
		"file,pid,size,\"a,b:dur\",bytes,b/a\n"
		"\"/a \"\"b\"\"\",12,4096,1.500000000,7,0.250000\n"
		"\"\xc3\xa9\n\",007,,,2.500,\n");
}

static void json_has_numbers_where_they_are_numbers(void **state)
{
	(void)state;
	check(COP_GRID_JSON, 2,
		"[\n"
		"{\"file\":\"/a \\\"b\\\"\",\"pid\":12,\"size\":4096,\"a,b:dur\":1.500000000,"
		"\"bytes\":7,\"b/a\":0.250000}\n"
		",{\"file\":\"\xc3\xa9\\u000a\",\"pid\":\"007\",\"size\":null,\"a,b:dur\":null,"
		"\"bytes\":2.500,\"b/a\":null}\n"
		"]\n");
}

static void a_terminal_gets_columns_and_no_control_characters(void **state)
{
	(void)state;
	check(COP_GRID_PLAIN, 2,
		"file    pid  size   a,b:dur  bytes   b/a\n"
		"/a \"b\"  12   4096  1.500000      7  0.25\n"
		"\xc3\xa9?      007               -      2     -\n");
}

static void a_table_without_rows_has_its_columns(void **state)
{
	(void)state;
	check(COP_GRID_CSV, 0, "file,pid,size,\"a,b:dur\",bytes,b/a\n");
	check(COP_GRID_JSON, 0, "[]\n");
	check(COP_GRID_PLAIN, 0, "file  pid  size  a,b:dur  bytes  b/a\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(csv_quotes_what_needs_it_and_leaves_blanks),
		cmocka_unit_test(json_has_numbers_where_they_are_numbers),
		cmocka_unit_test(a_terminal_gets_columns_and_no_control_characters),
		cmocka_unit_test(a_table_without_rows_has_its_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
