/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of any number of words: a command after the options, and the last operand. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt/opt.h"

static enum cop_opt_ask ask;

/* A command with further words. */
struct rest_args {
	const char *where;
	bool quiet;
	char **command;
};

static const struct cop_opt rest_rows[] = {
	{.name = "where",
		.offset = offsetof(struct rest_args, where),
		.kind = COP_OPT_OPTIONAL,
		.arg = "DIR",
		.help = "a place"},
	{.name = "quiet",
		.letter = 'q',
		.offset = offsetof(struct rest_args, quiet),
		.kind = COP_OPT_FLAG,
		.help = "say nothing"},
};
static const struct cop_opt_table rest_table = {.command = "copper try",
	.summary = "try it",
	.rest = "COMMAND [ARGUMENT]...",
	.rest_offset = offsetof(struct rest_args, command),
	COP_OPT_ROWS(rest_rows)};

static int parse_rest(int argc, char **argv, struct rest_args *a)
{
	*a = (struct rest_args){0};
	return cop_opt_parse(&rest_table, argc, argv, a, &ask, NULL, NULL);
}

static void a_command_ends_the_options_and_keeps_its_own(void **state)
{
	char *plain[] = {"try", "-q", "cmd", "-q", "--where", "--", "x", NULL};
	char *dashes[] = {"try", "--", "-cmd", "--quiet", NULL};
	char *none[] = {"try", "-q", NULL};
	struct rest_args a;

	(void)state;
	assert_int_equal(parse_rest(7, plain, &a), 0);
	assert_true(a.quiet);
	assert_null(a.where);
	assert_ptr_equal(a.command, plain + 2);
	assert_int_equal(parse_rest(4, dashes, &a), 0);
	assert_false(a.quiet);
	assert_ptr_equal(a.command, dashes + 2);
	assert_int_equal(parse_rest(2, none, &a), 0);
	assert_null(a.command);
}

static void an_optional_value_only_follows_an_equals_sign(void **state)
{
	char *without[] = {"try", "--where", "dir", NULL};
	char *with[] = {"try", "--where=dir", "cmd", NULL};
	char *empty[] = {"try", "--where=", "cmd", NULL};
	struct rest_args a;

	(void)state;
	assert_int_equal(parse_rest(3, without, &a), 0);
	assert_string_equal(a.where, "");
	assert_string_equal(a.command[0], "dir");
	assert_int_equal(parse_rest(3, with, &a), 0);
	assert_string_equal(a.where, "dir");
	assert_string_equal(a.command[0], "cmd");
	assert_int_equal(parse_rest(3, empty, &a), -EINVAL);
}

static void help_names_the_command_and_the_optional_value(void **state)
{
	struct cop_buf out = {0};

	(void)state;
	cop_opt_help(&rest_table, false, &out);
	assert_non_null(
		strstr(out.data, "usage: copper try [options] [--] COMMAND [ARGUMENT]...\n"));
	assert_non_null(strstr(out.data, "--where[=DIR]"));
	cop_buf_free(&out);
}

struct many_args {
	const char *what;
	struct cop_opt_many paths;
	bool quiet;
};
static const struct cop_opt many_rows[] = {
	{.name = "quiet",
		.letter = 'q',
		.offset = offsetof(struct many_args, quiet),
		.kind = COP_OPT_FLAG,
		.help = "no notes"},
};
static const struct cop_opt_operand many_operands[] = {
	{.name = "WHAT", .offset = offsetof(struct many_args, what), .required = true},
	{.name = "PATH",
		.offset = offsetof(struct many_args, paths),
		.required = true,
		.many = true},
};
static const struct cop_opt_table many_table = {
	.command = "copper try", COP_OPT_ROWS(many_rows), COP_OPT_OPERANDS(many_operands)};

static void the_last_operand_may_take_all_that_are_left(void **state)
{
	char *argv[] = {"try", "one", "a", "-q", "b", "--", "-c", NULL};
	char *none[] = {"try", "one", NULL};
	struct many_args a = {0};
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_opt_parse(&many_table, 7, argv, &a, &ask, NULL, &err), 0);
	assert_string_equal(a.what, "one");
	assert_true(a.quiet);
	assert_int_equal(a.paths.n, 3);
	assert_string_equal(a.paths.at[0], "a");
	assert_string_equal(a.paths.at[1], "b");
	assert_string_equal(a.paths.at[2], "-c");
	memset(&a, 0, sizeof(a));
	assert_int_equal(cop_opt_parse(&many_table, 2, none, &a, &ask, NULL, &err), -EINVAL);
	assert_string_equal(err.text, "PATH is missing (see copper try --help)");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_ends_the_options_and_keeps_its_own),
		cmocka_unit_test(an_optional_value_only_follows_an_equals_sign),
		cmocka_unit_test(help_names_the_command_and_the_optional_value),
		cmocka_unit_test(the_last_operand_may_take_all_that_are_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
