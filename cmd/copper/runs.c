/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of the subcommands of copper runs; without one it lists the runs. */
#include "runs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd.h"
#include "family.h"

static const struct cop_cmd commands[] = {
	{"list", "the runs, newest first", cop_cmd_runs_list},
	{"show", "one run: how it went, its parameters, tags and metrics", cop_cmd_runs_show},
	{"compare", "parameters that differ, metrics side by side", cop_cmd_runs_compare},
	{"import", "add runs that could not be written to their store", cop_cmd_runs_import},
};
static const struct cop_opt_table *const tables[] = {&cop_cmd_runs_list_options,
	&cop_cmd_runs_show_options, &cop_cmd_runs_compare_options, &cop_cmd_runs_import_options};

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

/* A run without a subcommand is shown. */
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

/* ---- what they share ---- */

int cop_cmd_runs_check(void *common, struct cop_err *err)
{
	struct runs_common *c = common;

	if (!c->store)
		c->store = getenv("COPPER_STORE");
	if (!c->store || !*c->store)
		return cop_err_set(err, EINVAL,
			"no run store is named: give --store FILE, or set $COPPER_STORE, as for copper mount");
	return 0;
}

int cop_cmd_runs_fail(const struct cop_opt_table *table, const struct cop_err *err)
{
	fprintf(stderr, "%s: %s\n", table->command, err->text);
	return 1;
}

static int open_store(
	const struct cop_opt_table *table, const struct runs_common *c, struct cop_store **out)
{
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	int rc = cop_store_open(c->store, out, &notes, &err);

	if (notes.data)
		fputs(notes.data, stderr);
	cop_buf_free(&notes);
	return rc ? cop_cmd_runs_fail(table, &err) : 0;
}

int cop_cmd_runs_answer(const struct cop_opt_table *table, int argc, char **argv, void *args,
	int (*answer)(const void *args, struct cop_store *store))
{
	struct cop_store *store = NULL;
	int code;

	if (!cop_opt_start(table, argc, argv, args, &code))
		return code;
	code = open_store(table, args, &store);
	if (!code)
		code = answer(args, store);
	cop_store_close(store);
	return code;
}

int cop_cmd_runs_load(
	struct cop_store *s, const char *ref, struct cop_runrec *r, struct cop_err *err)
{
	char id[COP_RUNREC_ID_LEN + 1];
	int rc = cop_store_find(s, ref, id, err);

	return rc ? rc : cop_store_load(s, id, r, err);
}

char *cop_cmd_runs_time(double time_s, char out[32])
{
	time_t t = (time_t)time_s;
	struct tm tm;

	if (time_s <= 0 || !localtime_r(&t, &tm) || !strftime(out, 32, "%Y-%m-%d %H:%M:%S", &tm))
		strcpy(out, "-");
	return out;
}

double cop_cmd_runs_seconds(const struct cop_runrec *r)
{
	return fmax(0, (r->end_s > 0 ? r->end_s : r->seen_s) - r->start_s);
}

char *cop_cmd_runs_span(const struct cop_runrec *r, char out[32])
{
	double s = cop_cmd_runs_seconds(r);

	if (s < 60)
		snprintf(out, 32, "%.1f s", s);
	else if (s < 3600)
		snprintf(out, 32, "%.0f min", s / 60);
	else
		snprintf(out, 32, "%.1f h", s / 3600);
	return out;
}

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);

	return len >= n && strcmp(text + len - n, end) == 0;
}

char *cop_cmd_runs_value(const char *key, double value, char out[32])
{
	bool bytes = ends_in(key, "bytes") || ends_in(key, "bytes_max") ||
		     ends_in(key, "bytes_in") || ends_in(key, "bytes_out");

	if (bytes && value >= 1024 && value < 1e18)
		cop_format_size((uint64_t)value, out);
	else if (value == floor(value) && fabs(value) < 1e15)
		snprintf(out, 32, "%.0f", value);
	else
		snprintf(out, 32, "%.6g", value);
	return out;
}
