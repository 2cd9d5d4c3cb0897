/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trace/table/table.h"

static struct cop_trace_str str(const char *text)
{
	return (struct cop_trace_str){text, strlen(text)};
}

struct event {
	const char *name, *pid;
	unsigned dur_s;
};

static void make_rows(const struct event *e, size_t n, const char *keys, struct cop_rows *out)
{
	struct cop_tab_conf conf = {.interval_ns = 1};
	struct cop_tab *t;

	assert_int_equal(cop_tab_keys(keys, false, &conf, NULL), 0);
	assert_int_equal(cop_tab_cols("count,dur", &conf, NULL), 0);
	t = cop_tab_new(&conf, 1, 0);
	assert_non_null(t);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cop_tab_add(t, 0,
					 &(struct cop_trace_event){.kind = COP_TRACE_SPAN,
						 .name = str(e[i].name),
						 .cat = str(""),
						 .pid = str(e[i].pid),
						 .tid = str("1"),
						 .file = str(""),
						 .host = str(""),
						 .dur_ns = (uint64_t)e[i].dur_s * 1000000000,
						 .count = 1}),
			0);
	assert_int_equal(cop_tab_rows(t, out, NULL), 0);
}

static const struct event first[] = {
	{"read", "9", 4}, {"read", "10", 2}, {"write", "9", 8}, {"write", "9", 2}};
static const struct event second[] = {{"read", "10", 1}, {"write", "9", 5}, {"sync", "", 3}};

static void check(
	const char *keys, unsigned runs, enum cop_grid_form form, size_t limit, const char *want)
{
	static const char *const names[] = {"base", "new,one"};
	struct cop_rows rows[2] = {0};
	struct cop_compare *c = NULL;
	struct cop_buf out = {0};

	make_rows(first, COP_ARRAY_SIZE(first), keys, &rows[0]);
	make_rows(second, COP_ARRAY_SIZE(second), keys, &rows[1]);
	assert_int_equal(cop_compare_new(rows, names, runs, &c, NULL), 0);
	cop_compare_show(c, form, limit, &out);
	assert_false(out.failed);
	assert_string_equal(out.data, want);
	cop_buf_free(&out);
	cop_compare_free(c);
	cop_rows_free(&rows[0]);
	cop_rows_free(&rows[1]);
}

static void rows_that_one_run_has_are_blank_in_the_other(void **state)
{
	(void)state;
	check("name,pid", 2, COP_GRID_CSV, 0,
		"name,pid,base:count,\"new,one:count\",base:dur,\"new,one:dur\"\n"
		"write,9,2,1,10.000000000,5.000000000\n"
		"read,9,1,,4.000000000,\n"
		"read,10,1,1,2.000000000,1.000000000\n"
		"sync,,,1,,3.000000000\n");
}

static void a_terminal_gets_the_ratio_of_the_first_column(void **state)
{
	(void)state;
	check("name", 2, COP_GRID_PLAIN, 0,
		"name   base:count  new,one:count  new,one/base   base:dur  new,one:dur\n"
		"write           2              1          0.50  10.000000     5.000000\n"
		"read            2              1          0.50   6.000000     1.000000\n"
		"sync            -              1             -          -     3.000000\n");
}

static void json_is_flat(void **state)
{
	(void)state;
	check("name", 2, COP_GRID_JSON, 1,
		"[\n{\"name\":\"write\",\"base:count\":2,\"new,one:count\":1,"
		"\"base:dur\":10.000000000,\"new,one:dur\":5.000000000}\n]\n");
}

static void one_run_is_its_own_table(void **state)
{
	(void)state;
	check("pid", 1, COP_GRID_CSV, 0,
		"pid,base:count,base:dur\n9,3,14.000000000\n10,1,2.000000000\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_that_one_run_has_are_blank_in_the_other),
		cmocka_unit_test(a_terminal_gets_the_ratio_of_the_first_column),
		cmocka_unit_test(json_is_flat),
		cmocka_unit_test(one_run_is_its_own_table),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
