/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base/json_read.h"

/* The length of the value at text, or -1 if it is not one. *odd: it deviates from JSON. */
static long length(const char *text, bool *odd)
{
	char room[256];
	struct cop_json_scan s = {0};
	size_t len = strlen(text);
	const char *after;

	memcpy(room, text, len);
	cop_json_pad(room + len);
	after = cop_json_nested(room, room + len, &s);
	*odd = s.odd;
	return after ? after - room : -1;
}

static void what_is_json_is_read_to_its_end(void **state)
{
	static const char *const texts[] = {"[]", "{}", "[1,-2.5,3e5,1E-3]",
		"{\"a\":[{\"b\":null}]}", "[ true , false , \"\\u00e9\\\"\" ]", "[[[],[]],{}]"};
	bool odd;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(texts); i++) {
		assert_int_equal(length(texts[i], &odd), strlen(texts[i]));
		assert_false(odd);
	}
}

static void what_writers_get_wrong_is_read_as_odd(void **state)
{
	static const char *const texts[] = {"[1,]", "{\"a\":1,}", "[NaN,-inf]", "[01]", "[1.]",
		"[.5]", "[+1]", "[\"C:\\Users\"]"};
	bool odd;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(texts); i++) {
		assert_int_equal(length(texts[i], &odd), strlen(texts[i]));
		assert_true(odd);
	}
}

static void what_is_no_json_is_refused(void **state)
{
	static const char *const texts[] = {"[", "{\"a\"", "[1 2]", "{1:2}", "[1}", "{\"a\":}",
		"[\"a\nb\"]", "[nul]", "[1.2.3]", "[,]", "{\"a\" 1}", "[\"a"};
	bool odd;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(texts); i++)
		assert_int_equal(length(texts[i], &odd), -1);
}

static void escapes_are_undone(void **state)
{
	static const char text[] = "a\\n\\u00e9\\ud83d\\ude00\\udc00\\q";
	char out[sizeof(text)] = {0};

	(void)state;
	assert_int_equal(cop_json_undo(text, strlen(text), out), 13);
	assert_string_equal(out, "a\n\xc3\xa9\xf0\x9f\x98\x80\xef\xbf\xbd\\q");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_json_is_read_to_its_end),
		cmocka_unit_test(what_writers_get_wrong_is_read_as_odd),
		cmocka_unit_test(what_is_no_json_is_refused),
		cmocka_unit_test(escapes_are_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
