/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tree/op/op.h"

static void expect_same(const struct cop_nodeline *a, const struct cop_nodeline *b)
{
	assert_int_equal(a->rank, b->rank);
	assert_int_equal(a->state, b->state);
	assert_int_equal(a->below, b->below);
	assert_memory_equal(a->value, b->value, sizeof(a->value));
	assert_string_equal(a->host, b->host);
	assert_string_equal(a->reason, b->reason);
}

static void what_is_written_is_read(void **state)
{
	struct cop_nodeline n = {.rank = 70000, .host = "n7.cluster", .reason = ""}, back;
	struct cop_buf out = {0};

	(void)state;
	for (unsigned v = 0; v < COP_NODELINE_VALUES; v++)
		n.value[v] = UINT64_MAX - v;
	cop_nodeline_write(&n, &out);
	assert_int_equal(cop_nodeline_read(out.data, &back), 0);
	expect_same(&n, &back);
	cop_buf_free(&out);
}

static void each_state_has_a_word_that_is_read(void **state)
{
	(void)state;
	for (unsigned s = 0; s < COP_NODELINE_STATES; s++) {
		struct cop_nodeline n = {.state = (enum cop_nodeline_state)s,
					    .host = "a",
					    .reason = "why",
					    .below = s},
				    back;
		struct cop_buf out = {0};

		cop_nodeline_write(&n, &out);
		assert_int_equal(cop_nodeline_read(out.data, &back), 0);
		expect_same(&n, &back);
		cop_buf_free(&out);
	}
}

/* A host's name can be anything that a host file contains. */
static void a_line_stays_one_line_whatever_it_says(void **state)
{
	struct cop_nodeline n = {.host = "a\tb\nc\033[2J%41", .reason = "\x7f\r\xff%"}, back;
	struct cop_buf out = {0};

	(void)state;
	cop_nodeline_write(&n, &out);
	assert_null(strpbrk(out.data, "\n\r\033\x7f"));
	assert_int_equal(cop_nodeline_read(out.data, &back), 0);
	expect_same(&n, &back);
	cop_buf_free(&out);
}

static void another_form_is_refused(void **state)
{
#define NUMBERS "\t1\t2\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13\t14\t15"
	static const char *const bad[] = {"", "1", "1\tok\t0" NUMBERS "\ta", /* too few fields */
		"1\tok\t0" NUMBERS "\ta\tb\tc", "-1\tok\t0" NUMBERS "\ta\t",
		"4294967296\tok\t0" NUMBERS "\ta\t", "1\tfine\t0" NUMBERS "\ta\t",
		"1\tok\tx" NUMBERS "\ta\t", "1\tok\t0\tx" NUMBERS "\ta",
		"1\tok\t0" NUMBERS "\ta%\t", "1\tok\t0" NUMBERS "\ta%0\t",
		"1\tok\t0" NUMBERS "\ta%00\t", "1\tok\t0" NUMBERS "\ta%41\t",
		"1\tok\t0" NUMBERS "\ta\t\033[2J", "1\tok\t0" NUMBERS "\ta%1B\t"};
	static const char good[] = "1\tok\t0" NUMBERS "\ta\t";
	struct cop_nodeline n;
	char line[256];

	(void)state;
	strcpy(line, good);
	assert_int_equal(cop_nodeline_read(line, &n), 0);
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		strcpy(line, bad[i]);
		assert_int_equal(cop_nodeline_read(line, &n), -EBADMSG);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_written_is_read),
		cmocka_unit_test(each_state_has_a_word_that_is_read),
		cmocka_unit_test(a_line_stays_one_line_whatever_it_says),
		cmocka_unit_test(another_form_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
