/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/opt/opt.h"

struct args {
	const char *place, *extra, *name, *cpus;
	uint16_t port;
	uint32_t fanout, ttl_ms, wait_ms;
	uint64_t big, size;
	int64_t rank;
	unsigned color;
	bool force, quiet;
	struct cop_opt_list roots;
};

static const struct cop_opt_word colors[] = {{"red", 3}, {"green", 7}, {NULL, 0}};

#define AT(field) .offset = offsetof(struct args, field)
static const struct cop_opt rows[] = {
	{.name = "place",
		.letter = 'v',
		AT(place),
		.kind = COP_OPT_STRING,
		.hidden = true,
		.help = "another spelling"},
	{.name = "name",
		.letter = 'n',
		AT(name),
		.kind = COP_OPT_STRING,
		.arg = "NAME",
		.help = "a name",
		.initial = "tcp"},
	{.name = "cpus",
		.letter = 'b',
		AT(cpus),
		.kind = COP_OPT_CPUS,
		.arg = "LIST",
		.help = "processors"},
	{.name = "port",
		.letter = 'p',
		AT(port),
		.kind = COP_OPT_U16,
		.min = 1,
		.initial = "7720",
		.help = "a port",
		.arg = "N"},
	{.name = "fanout",
		.letter = 'k',
		AT(fanout),
		.kind = COP_OPT_U32,
		.min = 1,
		.max = 64,
		.initial = "8",
		.help = "children",
		.arg = "N"},
	{.name = "enoent-ttl-ms",
		.letter = 'E',
		AT(ttl_ms),
		.kind = COP_OPT_MS,
		.initial = "2000",
		.help = "time to live",
		.arg = "MS"},
	{.name = "wait",
		AT(wait_ms),
		.kind = COP_OPT_DURATION,
		.max = 3600000,
		.initial = "120",
		.help = "patience",
		.arg = "TIME",
		.rare = true},
	{.name = "big", AT(big), .kind = COP_OPT_U64, .help = "a count", .arg = "N"},
	{.name = "size",
		AT(size),
		.kind = COP_OPT_SIZE,
		.min = 65536,
		.max = 16 * COP_MIB,
		.help = "bytes",
		.arg = "SIZE"},
	{.name = "rank", AT(rank), .kind = COP_OPT_I64, .max = 99, .help = "place", .arg = "I"},
	{.name = "color",
		AT(color),
		.kind = COP_OPT_ENUM,
		.words = colors,
		.arg = "WORD",
		.help = "a color",
		.initial = "red"},
	{.name = "foreground", .letter = 'f', AT(force), .kind = COP_OPT_FLAG, .help = "stay"},
	{.name = "quiet", .letter = 'q', AT(quiet), .kind = COP_OPT_FLAG, .help = "say nothing"},
	{.name = "usage-root",
		.letter = 'r',
		AT(roots),
		.kind = COP_OPT_LIST,
		.arg = "DIR",
		.help = "a place"},
	{.letter = 's', .kind = COP_OPT_IGNORED, .hidden = true, .help = "of no use"},
};
static const struct cop_opt_operand operands[] = {
	{.name = "PLACE", AT(place), .required = true},
	{.name = "EXTRA", AT(extra)},
};

static const struct cop_opt_old old[] = {{"port_number", "port", false},
	{"fan_out", "fanout", true}, {"fg", "foreground", false}, {"gone", "not-here", false},
	{NULL, NULL, false}};

static void init(void *into)
{
	*(struct args *)into = (struct args){.rank = -1};
}

static int check(void *into, struct cop_err *err)
{
	struct args *a = into;

	return a->quiet && a->force ? cop_err_set(err, EINVAL, "not both") : 0;
}

static const struct cop_opt_table table = {
	.command = "copper test",
	.summary = "tests options",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.old = old,
	.init = init,
	.check = check,
};

static struct args got;
static struct cop_err err;
static struct cop_buf notes;
static enum cop_opt_ask ask;

/* Arguments: the words after the subcommand's name, NULL at the end. */
static int parse(const char *first, ...)
{
	char *argv[16] = {(char *)"test"};
	int argc = 1;
	va_list ap;

	va_start(ap, first);
	for (const char *word = first; word; word = va_arg(ap, const char *))
		argv[argc++] = (char *)word;
	va_end(ap);
	err = (struct cop_err){0};
	cop_buf_free(&notes);
	return cop_opt_parse(&table, argc, argv, &got, &ask, &notes, &err);
}

#define REFUSED(sentence, ...)                                                                     \
	do {                                                                                       \
		assert_int_equal(parse(__VA_ARGS__, NULL), -EINVAL);                               \
		assert_string_equal(err.text, sentence);                                           \
	} while (0)

static void a_missing_operand_is_named(void **state)
{
	(void)state;
	REFUSED("PLACE is missing (see copper test --help)", "-f");
	REFUSED("PLACE is empty", "");
	assert_int_equal(parse(NULL), -EINVAL);
}

static void an_operand_too_many_is_named(void **state)
{
	(void)state;
	REFUSED("'c' is one argument too many (see copper test --help)", "a", "b", "c");
}

static void an_operand_given_twice_in_two_ways_is_refused(void **state)
{
	(void)state;
	REFUSED("PLACE is given twice: '/b' and '/a'", "/a", "-v", "/b");
	assert_int_equal(parse("/a", "--place=/a", NULL), 0);
	assert_int_equal(parse("--place", "/a", NULL), 0);
	assert_string_equal(got.place, "/a");
}

static void values_that_are_not_of_the_kind_are_named(void **state)
{
	(void)state;
	REFUSED("--enoent-ttl-ms: 'abc' is not a number of milliseconds", "--enoent-ttl-ms", "abc",
		"x");
	REFUSED("--enoent-ttl-ms: '-5' is not a number of milliseconds", "-E-5", "x");
	REFUSED("--fanout: '' is not a number", "--fanout=", "x");
	REFUSED("--fanout: '8x' is not a number", "-k8x", "x");
	REFUSED("--fanout: '0x8' is not a number", "-k", "0x8", "x");
	REFUSED("--size: '1Q' is not a size (such as 64K or 2G)", "--size", "1Q", "x");
	REFUSED("--wait: '5d' is not a time (such as 30, 500ms or 2m)", "--wait=5d", "x");
	REFUSED("--wait: 'ms' is not a time (such as 30, 500ms or 2m)", "--wait=ms", "x");
	REFUSED("--name: the value is empty", "--name=", "x");
	REFUSED("--color: 'blue' is not one of red, green", "--color", "blue", "x");
}

static void values_out_of_range_are_named_with_the_range(void **state)
{
	(void)state;
	REFUSED("--fanout: 99 is out of range 1..64", "--fanout", "99", "x");
	REFUSED("--fanout: 0 is out of range 1..64", "-k0", "x");
	REFUSED("--port: 65536 is out of range 1..65535", "-p65536", "x");
	REFUSED("--fanout: 99999999999999999999999 is out of range 1..64", "-k",
		"99999999999999999999999", "x");
	REFUSED("--size: 1K is out of range 64 KiB..16 MiB", "--size", "1K", "x");
	REFUSED("--wait: 2h is out of range 0s..3600s", "--wait", "2h", "x");
	REFUSED("--wait: 99999999999999999m is out of range 0s..3600s", "--wait",
		"99999999999999999m", "x");
	REFUSED("--enoent-ttl-ms: 4294967296 is out of range 0..4294967295", "-E4294967296", "x");
	REFUSED("--rank: 100 is out of range 0..99", "--rank=100", "x");
}

static void a_refused_value_leaves_the_default(void **state)
{
	(void)state;
	assert_int_equal(parse("-k99", "x", NULL), -EINVAL);
	assert_int_equal(got.fanout, 8);
}

static void an_unknown_option_gets_a_suggestion_if_one_is_close(void **state)
{
	(void)state;
	REFUSED("unknown option '--foo' (did you mean '--foreground'?)", "--foo");
	REFUSED("unknown option '--fanuot' (did you mean '--fanout'?)", "--fanuot=3");
	REFUSED("unknown option '--hepl' (did you mean '--help'?)", "--hepl");
	REFUSED("unknown option '--zzz' (see copper test --help)", "--zzz");
	REFUSED("unknown option '-z' (see copper test --help)", "-fz");
	REFUSED("unknown option '--fan' (did you mean '--fanout'?)", "--fan", "3");
}

static void a_missing_value_is_named(void **state)
{
	(void)state;
	REFUSED("--fanout: N is missing", "x", "--fanout");
	REFUSED("--fanout: N is missing", "x", "-k");
	REFUSED("--quiet: takes no value", "x", "--quiet=yes");
}

static void defaults_come_from_the_table(void **state)
{
	(void)state;
	assert_int_equal(parse("x", NULL), 0);
	assert_string_equal(got.name, "tcp");
	assert_int_equal(got.port, 7720);
	assert_int_equal(got.fanout, 8);
	assert_int_equal(got.ttl_ms, 2000);
	assert_int_equal(got.wait_ms, 120000);
	assert_int_equal(got.color, 3);
	assert_true(got.rank == -1);
	assert_false(got.force);
	assert_null(got.extra);
}

static void every_kind_is_written_to_its_field(void **state)
{
	(void)state;
	assert_int_equal(
		parse("--name=n", "--cpus=0-3,8", "--port=1", "--fanout=64", "--enoent-ttl-ms=0",
			"--wait=500ms", "--big=18446744073709551615", "--size=1MiB", "--rank=7",
			"--color=green", "--foreground", "x", NULL),
		0);
	assert_string_equal(got.name, "n");
	assert_string_equal(got.cpus, "0-3,8");
	assert_int_equal(got.port, 1);
	assert_int_equal(got.fanout, 64);
	assert_int_equal(got.ttl_ms, 0);
	assert_int_equal(got.wait_ms, 500);
	assert_true(got.big == UINT64_MAX);
	assert_true(got.size == COP_MIB);
	assert_true(got.rank == 7);
	assert_int_equal(got.color, 7);
	assert_true(got.force);
	assert_false(got.quiet);
}

static void durations_have_units(void **state)
{
	(void)state;
	assert_int_equal(parse("--wait", "30", "x", NULL), 0);
	assert_int_equal(got.wait_ms, 30000);
	assert_int_equal(parse("--wait", "2m", "x", NULL), 0);
	assert_int_equal(got.wait_ms, 120000);
	assert_int_equal(parse("--wait", "1h", "x", NULL), 0);
	assert_int_equal(got.wait_ms, 3600000);
}

static void letters_cluster_and_carry_values(void **state)
{
	(void)state;
	assert_int_equal(parse("-fk9", "x", NULL), 0);
	assert_true(got.force);
	assert_int_equal(got.fanout, 9);
	assert_int_equal(parse("-fk", "10", "x", NULL), 0);
	assert_int_equal(got.fanout, 10);
	assert_int_equal(parse("-nf", "x", NULL), 0);
	assert_string_equal(got.name, "f");
	assert_false(got.force);
}

static void words_of_an_older_program_have_one_dash(void **state)
{
	(void)state;
	assert_int_equal(parse("-port_number", "7", "x", "-fan_out", "3", "-fg", NULL), 0);
	assert_int_equal(got.port, 7);
	assert_int_equal(got.fanout, 3);
	assert_true(got.force);
	assert_int_equal(parse("-fan_out", "0", "x", NULL), 0);
	assert_int_equal(got.fanout, 8);
	REFUSED("-port_number: N is missing", "x", "-port_number");
	REFUSED("--port: 'y' is not a number", "-port_number", "y", "x");
	REFUSED("unknown option '-g' (see copper test --help)", "-gone", "x");
	REFUSED("--fanout: 0 is out of range 1..64", "-k", "0", "x");
}

static void options_and_operands_come_in_any_order(void **state)
{
	(void)state;
	assert_int_equal(parse("x", "-k3", "y", "-f", NULL), 0);
	assert_string_equal(got.place, "x");
	assert_string_equal(got.extra, "y");
	assert_int_equal(got.fanout, 3);
	assert_true(got.force);
}

static void two_dashes_end_the_options(void **state)
{
	(void)state;
	assert_int_equal(parse("x", "--", "-f", NULL), 0);
	assert_string_equal(got.place, "x");
	assert_string_equal(got.extra, "-f");
	assert_false(got.force);
	assert_int_equal(parse("--name", "--", "-", NULL), 0);
	assert_string_equal(got.name, "--");
	assert_string_equal(got.place, "-");
}

static void the_last_of_two_wins(void **state)
{
	(void)state;
	assert_int_equal(parse("-k3", "--fanout=5", "x", NULL), 0);
	assert_int_equal(got.fanout, 5);
}

static void a_list_keeps_all_in_their_order(void **state)
{
	(void)state;
	assert_int_equal(parse("x", NULL), 0);
	assert_int_equal(got.roots.n, 0);
	assert_int_equal(parse("--usage-root", "/b", "-r/a", "x", "--usage-root=/b", NULL), 0);
	assert_int_equal(got.roots.n, 3);
	assert_string_equal(got.roots.at[0], "/b");
	assert_string_equal(got.roots.at[1], "/a");
	assert_string_equal(got.roots.at[2], "/b");
	REFUSED("--usage-root: the value is empty", "--usage-root=", "x");
	REFUSED("--usage-root: DIR is missing", "x", "-r");
}

static void a_list_has_an_end(void **state)
{
	char *argv[COP_OPT_LIST_MAX + 4] = {(char *)"test", (char *)"x"};
	int argc = 2;

	(void)state;
	while (argc < COP_OPT_LIST_MAX + 2)
		argv[argc++] = (char *)"-ra";
	assert_int_equal(cop_opt_parse(&table, argc, argv, &got, &ask, NULL, &err), 0);
	assert_int_equal(got.roots.n, COP_OPT_LIST_MAX);
	argv[1] = (char *)"x";
	for (int i = 2; i < COP_OPT_LIST_MAX + 3; i++)
		argv[i] = (char *)"-ra";
	assert_int_equal(
		cop_opt_parse(&table, COP_OPT_LIST_MAX + 3, argv, &got, &ask, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "--usage-root: more than 64"));
}

static void an_ignored_option_leaves_a_note(void **state)
{
	(void)state;
	assert_int_equal(parse("-s", "x", NULL), 0);
	assert_non_null(notes.data);
	assert_string_equal(notes.data, "copper test: note: -s is ignored: of no use\n");
	cop_buf_free(&notes);
}

static void the_tables_check_runs_last(void **state)
{
	(void)state;
	REFUSED("not both", "-fq", "x");
	assert_int_equal(parse("-fq", "--help", NULL), 0);
	assert_int_equal(ask, COP_OPT_ASK_HELP);
}

static void help_is_asked_for_in_two_ways_and_stops_the_walk(void **state)
{
	(void)state;
	assert_int_equal(parse("--help", "--nonsense", NULL), 0);
	assert_int_equal(ask, COP_OPT_ASK_HELP);
	assert_int_equal(parse("-fh", NULL), 0);
	assert_int_equal(ask, COP_OPT_ASK_HELP);
	assert_int_equal(parse("--help-all", NULL), 0);
	assert_int_equal(ask, COP_OPT_ASK_HELP_ALL);
	assert_int_equal(parse("--dump-options", NULL), 0);
	assert_int_equal(ask, COP_OPT_ASK_DUMP);
	assert_int_equal(parse("--nonsense", "--help", NULL), -EINVAL);
	assert_int_equal(ask, COP_OPT_ASK_NONE);
}

static void a_processor_list_is_checked(void **state)
{
	static const char *const bad[] = {"", "a", "1-", "-1", "3-1", "1,,2", "1,", "1 2", "70000"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(parse("--cpus", bad[i], "x", NULL), -EINVAL);
	assert_int_equal(parse("--cpus", "5", "x", NULL), 0);
	assert_int_equal(parse("--cpus", "0-0,7,9-11", "x", NULL), 0);
}

static void help_shows_what_is_common_and_names_what_is_rare(void **state)
{
	struct cop_buf text = {0};

	(void)state;
	cop_opt_help(&table, false, &text);
	assert_non_null(strstr(text.data, "usage: copper test [options] PLACE [EXTRA]\n"));
	assert_non_null(strstr(text.data, "  -k, --fanout N             children (8)\n"));
	assert_non_null(strstr(text.data, "more (--help-all): --wait\n"));
	assert_null(strstr(text.data, "patience"));
	assert_null(strstr(text.data, "--place"));
	cop_buf_free(&text);
	cop_opt_help(&table, true, &text);
	assert_non_null(strstr(text.data, "patience (120)"));
	cop_buf_free(&text);
}

static void the_dump_has_a_line_of_eight_columns_for_each_row(void **state)
{
	struct cop_buf text = {0};
	unsigned options = 0;
	char *line, *save;

	(void)state;
	cop_opt_dump(&table, &text);
	assert_non_null(strstr(text.data, "option\t--fanout\t-k\tnumber\tN\t8\t1..64\tchildren\n"));
	for (line = strtok_r(text.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned tabs = 0;

		if (strncmp(line, "option\t", 7))
			continue;
		options++;
		for (const char *p = line; *p; p++)
			tabs += *p == '\t';
		assert_int_equal(tabs, 7);
	}
	assert_int_equal(options, COP_ARRAY_SIZE(rows));
	cop_buf_free(&text);
}

static void add_changed(void *arg, const char *name, const char *value)
{
	cop_buf_printf(arg, "%s=%s ", name, value);
}

static void what_differs_is_visited_as_a_user_would_write_it(void **state)
{
	struct args defaults;
	struct cop_buf out = {0};

	(void)state;
	cop_opt_defaults(&table, &defaults);
	assert_int_equal(parse("/p", "--name", "x", "--port=7", "-k8", "--wait", "2s", "--color",
				 "green", "--size=64K", "-f", "-rdir", "--rank=0", NULL),
		0);
	cop_opt_each_changed(&table, &got, &defaults, add_changed, &out);
	assert_string_equal(out.data,
		"name=x port=7 wait=2000ms size=65536 rank=0 color=green foreground=true ");
	cop_buf_free(&out);
}

static void suggestions_prefer_the_nearest_word(void **state)
{
	static const char *const words[] = {"mount", "serve", "stop", "cache-stats", NULL};

	(void)state;
	assert_string_equal(cop_opt_suggest("mnt", words), "mount");
	assert_string_equal(cop_opt_suggest("stpo", words), "stop");
	assert_string_equal(cop_opt_suggest("cache", words), "cache-stats");
	assert_null(cop_opt_suggest("", words));
	assert_null(cop_opt_suggest("x", words));
	assert_null(
		cop_opt_suggest("a-very-long-word-that-is-longer-than-any-option-we-have", words));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_operand_is_named),
		cmocka_unit_test(an_operand_too_many_is_named),
		cmocka_unit_test(an_operand_given_twice_in_two_ways_is_refused),
		cmocka_unit_test(values_that_are_not_of_the_kind_are_named),
		cmocka_unit_test(values_out_of_range_are_named_with_the_range),
		cmocka_unit_test(a_refused_value_leaves_the_default),
		cmocka_unit_test(an_unknown_option_gets_a_suggestion_if_one_is_close),
		cmocka_unit_test(a_missing_value_is_named),
		cmocka_unit_test(defaults_come_from_the_table),
		cmocka_unit_test(every_kind_is_written_to_its_field),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(letters_cluster_and_carry_values),
		cmocka_unit_test(words_of_an_older_program_have_one_dash),
		cmocka_unit_test(options_and_operands_come_in_any_order),
		cmocka_unit_test(two_dashes_end_the_options),
		cmocka_unit_test(the_last_of_two_wins),
		cmocka_unit_test(a_list_keeps_all_in_their_order),
		cmocka_unit_test(a_list_has_an_end),
		cmocka_unit_test(an_ignored_option_leaves_a_note),
		cmocka_unit_test(the_tables_check_runs_last),
		cmocka_unit_test(help_is_asked_for_in_two_ways_and_stops_the_walk),
		cmocka_unit_test(a_processor_list_is_checked),
		cmocka_unit_test(help_shows_what_is_common_and_names_what_is_rare),
		cmocka_unit_test(the_dump_has_a_line_of_eight_columns_for_each_row),
		cmocka_unit_test(what_differs_is_visited_as_a_user_would_write_it),
		cmocka_unit_test(suggestions_prefer_the_nearest_word),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
