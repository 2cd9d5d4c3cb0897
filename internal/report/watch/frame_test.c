/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "report/watch/watch.h"

static void expect_shown(
	const char *text, bool utf8, unsigned columns, const char *want, unsigned used)
{
	struct cop_buf out = {0};

	cop_buf_str(&out, "");
	assert_int_equal(cop_screen_show(text, utf8, columns, &out), used);
	assert_string_equal(out.data, want);
	cop_buf_free(&out);
}

static void control_characters_are_shown_as_numbers(void **state)
{
	(void)state;
	expect_shown("a\033[2Jb", true, 80, "a\\x1b[2Jb", 9);
	expect_shown("\r\n\t\x7f", true, 80, "\\x0d\\x0a\\x09\\x7f", 16);
	/* CSI as one byte, and as UTF-8. */
	expect_shown("\x9b"
		     "2J",
		true, 80, "\\x9b2J", 6);
	expect_shown("\xc2\x9b"
		     "2J",
		true, 80, "\\xc2\\x9b2J", 10);
}

/* Wide characters, combining marks, and characters that change the direction would shift all that
 * follows. */
static void only_characters_of_one_column_are_shown_as_they_are(void **state)
{
	(void)state;
	expect_shown("n\xc3\xbc\xce\xbb\xd0\xb6\xe2\x96\x88", true, 80,
		"n\xc3\xbc\xce\xbb\xd0\xb6\xe2\x96\x88", 5);
	expect_shown("n\xc3\xbc", false, 80, "n\\xc3\\xbc", 9);
	expect_shown("\xe6\xbc\xa2", true, 80, "\\xe6\\xbc\\xa2", 12);
	expect_shown("e\xcc\x81", true, 80, "e\\xcc\\x81", 9);
	expect_shown("\xe2\x80\xae", true, 80, "\\xe2\\x80\\xae", 12);
	expect_shown("\xc2\xad", true, 80, "\\xc2\\xad", 8);
	expect_shown("\xf0\x9f\x98\x80", true, 80, "\\xf0\\x9f\\x98\\x80", 16);
	expect_shown("\xc3", true, 80, "\\xc3", 4);
}

static void a_text_is_cut_between_its_characters(void **state)
{
	(void)state;
	expect_shown("abcdef", true, 3, "abc", 3);
	expect_shown("ab\033", true, 4, "ab", 2);
	expect_shown("\xc3\xbc\xc3\xbc\xc3\xbc", true, 2, "\xc3\xbc\xc3\xbc", 2);
}

static void a_frame_is_its_lines_and_nothing_of_what_was_there(void **state)
{
	struct cop_screen_frame f = {0};

	(void)state;
	cop_screen_frame_begin(&f, 4, 10, false);
	cop_screen_frame_line(&f, COP_SCREEN_REVERSE, "%s", "title");
	cop_screen_frame_line(&f, COP_SCREEN_PLAIN, "%d", 42);
	cop_screen_frame_line(&f, COP_SCREEN_BOLD, "%s", "exactly 10, and more");
	cop_screen_frame_end(&f);
	assert_string_equal(f.out.data, "\033[1;1H\033[7mtitle     \033[0m"
					"\033[2;1H42\033[K"
					"\033[3;1H\033[1mexactly 10\033[0m"
					"\033[4;1H\033[J");
	cop_screen_frame_begin(&f, 1, 10, false);
	cop_screen_frame_line(&f, COP_SCREEN_PLAIN, "%s", "a\033c");
	cop_screen_frame_line(&f, COP_SCREEN_PLAIN, "%s", "below the last row");
	cop_screen_frame_end(&f);
	assert_string_equal(f.out.data, "\033[1;1Ha\\x1bc\033[K");
	cop_buf_free(&f.out);
}

static void a_terminal_of_any_size_has_a_frame(void **state)
{
	struct cop_screen_frame f = {0};

	(void)state;
	cop_screen_frame_begin(&f, 0, 0, true);
	assert_int_equal(f.rows, 1);
	assert_int_equal(f.columns, 1);
	cop_screen_frame_begin(&f, 100000, 100000, true);
	assert_int_equal(f.rows, COP_SCREEN_ROWS_MAX);
	assert_int_equal(f.columns, COP_SCREEN_COLUMNS_MAX);
	cop_buf_free(&f.out);
}

static void the_locale_says_whether_there_is_utf8(void **state)
{
	(void)state;
	setenv("LC_ALL", "C", 1);
	setenv("LANG", "de_DE.UTF-8", 1);
	assert_false(cop_screen_is_utf8());
	setenv("LC_ALL", "", 1);
	unsetenv("LC_CTYPE");
	assert_true(cop_screen_is_utf8());
	setenv("LC_CTYPE", "C.utf8", 1);
	setenv("LANG", "C", 1);
	assert_true(cop_screen_is_utf8());
	unsetenv("LC_CTYPE");
	unsetenv("LANG");
	assert_false(cop_screen_is_utf8());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(control_characters_are_shown_as_numbers),
		cmocka_unit_test(only_characters_of_one_column_are_shown_as_they_are),
		cmocka_unit_test(a_text_is_cut_between_its_characters),
		cmocka_unit_test(a_frame_is_its_lines_and_nothing_of_what_was_there),
		cmocka_unit_test(a_terminal_of_any_size_has_a_frame),
		cmocka_unit_test(the_locale_says_whether_there_is_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
