/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/table/table.h"

struct input {
	const char *text;
	size_t len, at, step;
};

static ssize_t read_input(void *arg, void *data, size_t len)
{
	struct input *in = arg;
	size_t n = COP_MIN(COP_MIN(len, in->step), in->len - in->at);

	memcpy(data, in->text + in->at, n);
	in->at += n;
	return (ssize_t)n;
}

/* Prints the records as [a|b] one after another, "cut" after one without a line end, and the fault
 * at the end. */
static void check_steps(const char *text, size_t len, size_t step, const char *want)
{
	struct input in = {.text = text, .len = len, .step = step};
	struct cop_csv c = {0};
	struct cop_csv_record r;
	struct cop_buf got = {0};
	int rc;

	assert_int_equal(cop_csv_open(&c, read_input, &in), 0);
	while ((rc = cop_csv_next(&c, &r)) > 0) {
		for (unsigned i = 0; i < r.n; i++) {
			assert_int_equal(strlen(r.field[i].text), r.field[i].len);
			cop_buf_printf(&got, "%c%s", i ? '|' : '[', r.field[i].text);
		}
		cop_buf_printf(&got, "]%s", r.cut ? "cut" : "");
	}
	if (rc)
		cop_buf_printf(&got, "%d:%s", (int)c.line, rc == -EBADMSG ? c.why : strerror(-rc));
	assert_string_equal(got.data ? got.data : "", want);
	cop_buf_free(&got);
	cop_csv_free(&c);
}

static void check_bytes(const char *text, size_t len, const char *want)
{
	for (size_t step = 1; step <= len + 1; step++)
		check_steps(text, len, step, want);
}
#define CHECK(text, want) check_bytes(text, sizeof(text) - 1, want)

static void records_are_cut_at_commas_and_line_ends(void **state)
{
	(void)state;
	CHECK("", "");
	CHECK("\n\n\r\n", "");
	CHECK("a\n", "[a]");
	CHECK("a,b\nc,\n", "[a|b][c|]");
	CHECK("a,b\r\n\r\n,\r\n", "[a|b][|]");
	CHECK("a b , c\n", "[a b | c]");
}

static void quotes_are_undone(void **state)
{
	(void)state;
	CHECK("\"\"\n", "[]");
	CHECK("\"a\"\"b\",c\n", "[a\"b|c]");
	CHECK("\"\"\"\"\n", "[\"]");
	CHECK("x,\"a,\n\r\nb\"\r\ny\n", "[x|a,\n\r\nb][y]");
}

static void a_last_line_without_an_end_is_said_to_be_cut(void **state)
{
	(void)state;
	CHECK("a,b\nc", "[a|b][c]cut");
	CHECK("\"a\"", "[a]cut");
}

static void invalid_csv_is_refused_with_its_line(void **state)
{
	(void)state;
	CHECK("a\n\"b\nc", "[a]2:a quote is not closed");
	CHECK("a\"b\"\n", "1:there is a quote inside a field");
	CHECK("\"a\"b,\"\"\n", "1:there is text after a closing quote");
	CHECK("\"a\nb\"\n\"c\"d\n", "[a\nb]3:there is text after a closing quote");
	check_bytes("a\0b\n", 4, "1:it has a NUL byte, so it is not text");
}

static void there_is_a_limit_to_the_fields_of_a_line(void **state)
{
	char text[COP_CSV_FIELDS_MAX + 2], want[COP_CSV_FIELDS_MAX + 3];

	(void)state;
	memset(text, ',', COP_CSV_FIELDS_MAX - 1);
	strcpy(text + COP_CSV_FIELDS_MAX - 1, "\n");
	memset(want, '|', sizeof(want));
	want[0] = '[';
	strcpy(want + COP_CSV_FIELDS_MAX, "]");
	check_bytes(text, strlen(text), want);
	strcpy(text + COP_CSV_FIELDS_MAX - 1, ",\n");
	check_bytes(text, strlen(text), "1:a line has more fields than any that Copper writes");
}

static void a_line_without_end_takes_no_memory_without_end(void **state)
{
	char *text = malloc(COP_CSV_RECORD_MAX + 2);

	(void)state;
	assert_non_null(text);
	memset(text, 'x', COP_CSV_RECORD_MAX + 2);
	check_steps(text, COP_CSV_RECORD_MAX + 2, SIZE_MAX,
		"1:a line is longer than any that Copper writes");
	text[0] = text[COP_CSV_RECORD_MAX - 1] = '\n';
	memset(text + 1, '\n', 5);
	memset(text + 6, ',', 3);
	memset(text + 9, '\n', COP_CSV_RECORD_MAX - 9);
	text[COP_CSV_RECORD_MAX + 1] = '\n';
	check_steps(text, COP_CSV_RECORD_MAX + 2, SIZE_MAX, "[|||][x]");
	free(text);
}

static ssize_t fail_to_read(void *arg, void *data, size_t len)
{
	(void)arg;
	(void)data;
	(void)len;
	return -EIO;
}

static void a_failed_read_is_passed_on(void **state)
{
	struct cop_csv c = {0};
	struct cop_csv_record r;

	(void)state;
	assert_int_equal(cop_csv_open(&c, fail_to_read, NULL), 0);
	assert_int_equal(cop_csv_next(&c, &r), -EIO);
	cop_csv_free(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_cut_at_commas_and_line_ends),
		cmocka_unit_test(quotes_are_undone),
		cmocka_unit_test(a_last_line_without_an_end_is_said_to_be_cut),
		cmocka_unit_test(invalid_csv_is_refused_with_its_line),
		cmocka_unit_test(there_is_a_limit_to_the_fields_of_a_line),
		cmocka_unit_test(a_line_without_end_takes_no_memory_without_end),
		cmocka_unit_test(a_failed_read_is_passed_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
