/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases from the W3C's test suite for Trace Context, and our own edge cases. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "otlp.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define SPAN "b7ad6b7169203331"

static void a_parent_is_read(void **state)
{
	static const struct {
		const char *text;
		uint8_t flags;
	} cases[] = {
		{"00-" TRACE "-" SPAN "-01", 1},
		{"00-" TRACE "-" SPAN "-00", 0},
		{"00-" TRACE "-" SPAN "-02", 2},
		{"00-" TRACE "-" SPAN "-ff", 3}, /* the other flags belong to later levels */
		{"cc-" TRACE "-" SPAN "-01", 1}, /* a later version, */
		{"cc-" TRACE "-" SPAN "-01-what-will-be", 1}, /* which may be longer */
		{"cc-" TRACE "-" SPAN "-01-", 1},
	};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_otlp_context c = {0};

		assert_int_equal(cop_otlp_parent(cases[i].text, &c), 0);
		assert_int_equal(c.flags, cases[i].flags);
		assert_int_equal(c.trace[0], 0x0a);
		assert_int_equal(c.trace[15], 0x9c);
		assert_int_equal(c.span[0], 0xb7);
		assert_int_equal(c.span[7], 0x31);
	}
}

static void what_is_no_parent_is_refused_and_nothing_is_changed(void **state)
{
	static const char *const cases[] = {
		"",
		"00",
		"00-" TRACE "-" SPAN,
		"00-" TRACE "-" SPAN "-",
		"00-" TRACE "-" SPAN "-1",
		"00-" TRACE "-" SPAN "-011",
		"00-" TRACE "-" SPAN "-01-",
		"00-" TRACE "-" SPAN "-01-what",
		"ff-" TRACE "-" SPAN "-01",
		"cc-" TRACE "-" SPAN "-01.what",
		"cc-" TRACE "-" SPAN "-011",
		".0-" TRACE "-" SPAN "-01",
		"0-" TRACE "-" SPAN "-01",
		"000-" TRACE "-" SPAN "-01",
		"00_" TRACE "-" SPAN "-01",
		"00-" TRACE "_" SPAN "-01",
		"00-" TRACE "-" SPAN "_01",
		"00-" TRACE "-" SPAN "-.1",
		"00-" TRACE "-" SPAN "-0A",
		"00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01",
		"00-" TRACE "-B7AD6B7169203331-01",
		"00-00000000000000000000000000000000-" SPAN "-01",
		"00-" TRACE "-0000000000000000-01",
		"00-0af7651916cd43dd8448eb211c80319-" SPAN "-01x",
		"00-.af7651916cd43dd8448eb211c80319c-" SPAN "-01",
		" 00-" TRACE "-" SPAN "-01",
		"00-" TRACE "-" SPAN "-01 ",
	};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_otlp_context c = {.flags = 7};

		if (cop_otlp_parent(cases[i], &c) != -EBADMSG || c.flags != 7)
			fail_msg("taken: %s", cases[i]);
	}
}

static void a_state_is_a_list_of_members(void **state)
{
	static const char *const good[] = {"a=b", "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
		"t/e_n*a-n@t=1 2!", "a=b , c=d", "a=b,,c=d", "1a=x"};
	static const char *const bad[] = {
		"", ",", "a", "=b", "a=", "A=b", "a=b=c", "a b=c", "a=\x7f", "a=\xc3\xa4", "a=b,c"};
	char many[33 * 4 + 1] = "", longest[COP_OTLP_STATE_MAX + 2];

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(good); i++)
		if (!cop_otlp_is_state(good[i]))
			fail_msg("refused: %s", good[i]);
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		if (cop_otlp_is_state(bad[i]))
			fail_msg("taken: %s", bad[i]);
	for (unsigned i = 0; i < 32; i++)
		strcat(many, "a=b,");
	assert_true(cop_otlp_is_state(many));
	strcat(many, "a=b");
	assert_false(cop_otlp_is_state(many));
	memset(longest, 'x', sizeof(longest));
	longest[1] = longest[258] = '=';
	longest[256] = ',';
	longest[COP_OTLP_STATE_MAX] = '\0';
	assert_true(cop_otlp_is_state(longest));
	longest[COP_OTLP_STATE_MAX] = 'x';
	longest[COP_OTLP_STATE_MAX + 1] = '\0';
	assert_false(cop_otlp_is_state(longest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_parent_is_read),
		cmocka_unit_test(what_is_no_parent_is_refused_and_nothing_is_changed),
		cmocka_unit_test(a_state_is_a_list_of_members),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
