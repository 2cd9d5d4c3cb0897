/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the subcommands of copper trace. */
#include "cmd.h"
#include "family.h"
#include "trace.h"

static const struct cop_cmd commands[] = {
	{"summary", "event counts, where the time went, what each function did",
		cop_cmd_trace_summary},
	{"table", "groups of events with their sums, largest first", cop_cmd_trace_table},
	{"events", "individual events, in order of time", cop_cmd_trace_events},
	{"compare", "the same table for several runs, side by side", cop_cmd_trace_compare},
	{"checkpoint", "cost of checkpoints on each storage, with advice",
		cop_cmd_trace_checkpoint},
	{"diagnose", "why it was slow: causes, evidence and remedies", cop_cmd_trace_diagnose},
	{"index", "index large files, so that later queries are faster", cop_cmd_trace_index},
	{"merge", "merge all traces into one timeline, for Perfetto", cop_cmd_trace_merge},
	{"timeline", "write the same timeline as one HTML page", cop_cmd_trace_timeline},
};
static const struct cop_opt_table *const tables[] = {&cop_cmd_trace_summary_options,
	&cop_cmd_trace_table_options, &cop_cmd_trace_events_options, &cop_cmd_trace_compare_options,
	&cop_cmd_trace_checkpoint_options, &cop_cmd_trace_diagnose_options,
	&cop_cmd_trace_index_options, &cop_cmd_trace_merge_options,
	&cop_cmd_trace_timeline_options};

static const struct family family = {.command = "copper trace",
	.summary = "answer questions from the traces of programs",
	.head = "copper trace SUBCOMMAND [options] PATH...\n"
		"analyse the traces of nodes and programs: DFTracer, dlio_profiler,\n"
		"PerfFlowAspect, torch.profiler and others, plain or gzip\n\n",
	.tail = "\nPATH is a file, or a directory: everything below it that is a trace.\n",
	.operands = "operand\tPATH...\trequired\n",
	.commands = commands,
	.tables = tables,
	.n = COP_ARRAY_SIZE(commands)};

int cop_cmd_trace(int argc, char **argv)
{
	int status;

	if (argc < 2) {
		fputs("copper trace: a subcommand is missing (see copper trace --help)\n", stderr);
		return 2;
	}
	return cop_cmd_family_run(&family, argc, argv, &status)
		       ? status
		       : cop_cmd_family_unknown(&family, argv[1]);
}
