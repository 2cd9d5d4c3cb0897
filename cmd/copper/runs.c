/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the subcommands of copper runs; without a subcommand it lists the runs. */
#include "runs.h"

#include "cmd.h"
#include "family.h"

static const struct cop_cmd commands[] = {
	{"list", "the runs, newest first", cop_cmd_runs_list},
	{"show", "one run: its outcome, parameters, tags and metrics", cop_cmd_runs_show},
	{"compare", "parameters that differ, metrics side by side", cop_cmd_runs_compare},
	{"log", "record parameters, tags, metrics and the status of a run", cop_cmd_runs_log},
	{"import", "add runs from job directories, MLflow or Slurm", cop_cmd_runs_import},
	{"export", "write runs to an MLflow database", cop_cmd_runs_export},
};
static const struct cop_opt_table *const tables[] = {&cop_cmd_runs_list_options,
	&cop_cmd_runs_show_options, &cop_cmd_runs_compare_options, &cop_cmd_runs_log_options,
	&cop_cmd_runs_import_options, &cop_cmd_runs_export_options};

static const struct family family = {.command = "copper runs",
	.summary = "list, show and compare the runs of a store",
	.head = "copper runs [SUBCOMMAND] [options] [ID|JOBDIR]...\n"
		"the runs that jobs recorded with copper mount --store FILE, or $COPPER_STORE\n\n",
	.tail = "\nID is the beginning of a run's ID, or last, last~1, ...\n"
		"copper runs alone is copper runs list, copper runs ID is copper runs show ID\n",
	.operands = "operand\tID|JOBDIR...\toptional\n",
	.optional = true,
	.commands = commands,
	.tables = tables,
	.n = COP_ARRAY_SIZE(commands)};

/* Shows the run if the word is a run and not a subcommand. */
static bool is_run(const char *word)
{
	size_t len = strlen(word);

	return !strcmp(word, "last") || !strncmp(word, "last~", 5) ||
	       (len >= 4 && strspn(word, "0123456789abcdef") == len);
}

int cop_cmd_runs(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	int status;

	if (cop_cmd_family_run(&family, argc, argv, &status))
		return status;
	if (is_run(word))
		return cop_cmd_runs_show(argc, argv);
	return *word && *word != '-' ? cop_cmd_family_unknown(&family, word)
				     : cop_cmd_runs_list(argc, argv);
}
