/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "report/watch/watch.h"

/* The keys that the bytes give, at most 16, and 0 at their end. */
static void expect(const char *bytes, const int *want)
{
	struct cop_screen_keys k = {0};

	for (; *bytes; bytes++) {
		int key = cop_screen_keys_take(&k, (unsigned char)*bytes);

		if (key != COP_SCREEN_KEY_NONE)
			assert_int_equal(key, *want++);
	}
	assert_int_equal(*want, 0);
}

#define EXPECT(bytes, ...) expect(bytes, (const int[]){__VA_ARGS__})

static void characters_are_themselves(void **state)
{
	(void)state;
	EXPECT("q? ~", 'q', '?', ' ', '~', 0);
	EXPECT("\x0c", COP_SCREEN_KEY_REDRAW, 0);
	EXPECT("\x01\r\n\t\x7f\x80\xff", 0);
}

static void terminals_differ_in_what_they_send(void **state)
{
	(void)state;
	EXPECT("\033[A\033OA\033[B\033OB", COP_SCREEN_KEY_UP, COP_SCREEN_KEY_UP,
		COP_SCREEN_KEY_DOWN, COP_SCREEN_KEY_DOWN, 0);
	EXPECT("\033[5~\033[6~", COP_SCREEN_KEY_PAGE_UP, COP_SCREEN_KEY_PAGE_DOWN, 0);
	EXPECT("\033[H\033OH\033[1~\033[7~", COP_SCREEN_KEY_HOME, COP_SCREEN_KEY_HOME,
		COP_SCREEN_KEY_HOME, COP_SCREEN_KEY_HOME, 0);
	EXPECT("\033[F\033OF\033[4~\033[8~", COP_SCREEN_KEY_END, COP_SCREEN_KEY_END,
		COP_SCREEN_KEY_END, COP_SCREEN_KEY_END, 0);
}

/* A sequence must not count as the letter that it ends with, one of which ends the program. */
static void other_sequences_are_no_keys(void **state)
{
	(void)state;
	EXPECT("\033[1;5q\033[200~x", 'x', 0);
	EXPECT("\033qx", 'x', 0);
	EXPECT("\033[111111111111111111111111111111111111111qx", 'x', 0);
	EXPECT("\033[<0;12;13Mw", 'w', 0);
	EXPECT("\033[5\033[6~", COP_SCREEN_KEY_PAGE_DOWN, 0);
	EXPECT("\033[\x80q", 'q', 0);
}

static void escape_alone_is_a_key_when_nothing_follows(void **state)
{
	struct cop_screen_keys k = {0};

	(void)state;
	assert_int_equal(cop_screen_keys_idle(&k), COP_SCREEN_KEY_NONE);
	assert_int_equal(cop_screen_keys_take(&k, 27), COP_SCREEN_KEY_NONE);
	assert_int_equal(cop_screen_keys_idle(&k), COP_SCREEN_KEY_ESCAPE);
	assert_int_equal(cop_screen_keys_take(&k, 'q'), 'q');
	assert_int_equal(cop_screen_keys_take(&k, 27), COP_SCREEN_KEY_NONE);
	assert_int_equal(cop_screen_keys_take(&k, '['), COP_SCREEN_KEY_NONE);
	assert_int_equal(cop_screen_keys_idle(&k), COP_SCREEN_KEY_NONE);
	assert_int_equal(cop_screen_keys_take(&k, 'A'), 'A');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(characters_are_themselves),
		cmocka_unit_test(terminals_differ_in_what_they_send),
		cmocka_unit_test(other_sequences_are_no_keys),
		cmocka_unit_test(escape_alone_is_a_key_when_nothing_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
