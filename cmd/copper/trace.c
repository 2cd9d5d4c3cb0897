/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what copper trace can do. */
#include <stdio.h>
#include <string.h>

#include "cmd.h"
#include "trace.h"

static const struct cop_cmd commands[] = {
	{"summary", "how much there is, where the time went, what each function did",
		cop_cmd_trace_summary},
	{"table", "groups of events, what they add up to, largest first", cop_cmd_trace_table},
	{"events", "the events themselves, in order of time", cop_cmd_trace_events},
	{"compare", "the same table for several runs, side by side", cop_cmd_trace_compare},
	{"checkpoint", "what checkpoints cost, on which storage, and what follows from it",
		cop_cmd_trace_checkpoint},
	{"merge", "one timeline of all of them, for Perfetto", cop_cmd_trace_merge},
};
static const struct cop_opt_table *const tables[] = {&cop_cmd_trace_summary_options,
	&cop_cmd_trace_table_options, &cop_cmd_trace_events_options, &cop_cmd_trace_compare_options,
	&cop_cmd_trace_checkpoint_options, &cop_cmd_trace_merge_options};

static int print_help(void)
{
	fputs("usage: copper trace SUBCOMMAND [options] PATH...\n"
	      "answer questions from the traces of nodes and programs: DFTracer, dlio_profiler,\n"
	      "PerfFlowAspect, torch.profiler and others, plain or gzip\n\n",
		stdout);
	for (size_t i = 0; i < COP_ARRAY_SIZE(commands); i++)
		printf("  %-12s%s\n", commands[i].name, commands[i].summary);
	fputs("\nPATH is a file, or a directory: everything below it that is a trace.\n"
	      "copper trace SUBCOMMAND --help: its options\n",
		stdout);
	return fflush(stdout) ? 1 : 0;
}

/* For completion and the manual: all options, each once. */
static int print_options(void)
{
	fputs("command\tcopper trace\tanswer questions from the traces of programs\n", stdout);
	fputs("operand\t", stdout);
	for (size_t i = 0; i < COP_ARRAY_SIZE(commands); i++)
		printf("%s%s", i ? "|" : "", commands[i].name);
	fputs("\trequired\noperand\tPATH...\trequired\n", stdout);
	for (size_t i = 0; i < COP_ARRAY_SIZE(tables); i++) {
		struct cop_buf text = {0};

		cop_opt_dump_rows(tables[i], tables, i, &text);
		if (text.data)
			fputs(text.data, stdout);
		cop_buf_free(&text);
	}
	return fflush(stdout) ? 1 : 0;
}

static int unknown(const char *word)
{
	const char *names[COP_ARRAY_SIZE(commands) + 2] = {NULL}, *near;
	const char *what = word[0] == '-' ? "option" : "subcommand";
	size_t n = 0;

	for (; n < COP_ARRAY_SIZE(commands); n++)
		names[n] = commands[n].name;
	names[n] = "--help";
	near = cop_opt_suggest(word, names);
	if (near)
		fprintf(stderr, "copper trace: unknown %s '%s' (did you mean '%s'?)\n", what, word,
			near);
	else
		fprintf(stderr, "copper trace: unknown %s '%s' (see copper trace --help)\n", what,
			word);
	return 2;
}

int cop_cmd_trace(int argc, char **argv)
{
	if (argc < 2) {
		fputs("copper trace: a subcommand is missing (see copper trace --help)\n", stderr);
		return 2;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "--help-all"))
		return print_help();
	if (!strcmp(argv[1], "--dump-options"))
		return print_options();
	for (size_t i = 0; i < COP_ARRAY_SIZE(commands); i++)
		if (!strcmp(argv[1], commands[i].name))
			return commands[i].run(argc - 1, argv + 1);
	return unknown(argv[1]);
}
