/* SPDX-License-Identifier: BSD-3-Clause */
/* What the subcommands that group events share. */
#include <errno.h>
#include <stdio.h>

#include "trace.h"

const struct cop_opt_word cop_cmd_trace_thens[] = {
	{"max", COP_THEN_MAX}, {"sum", COP_THEN_SUM}, {"mean", COP_THEN_MEAN}, {NULL, 0}};

int cop_cmd_trace_group(
	const struct cop_opt_table *table, const struct trace_group *g, struct cop_tab_conf *conf)
{
	struct cop_err err = {0};

	if (!g->by)
		cop_err_set(&err, EINVAL, "--by is missing (see %s --help)", table->command);
	else if (!g->per != !g->then)
		cop_err_set(&err, EINVAL, "--per needs --then, and --then needs --per");
	else
		cop_cmd_trace_interval(g->interval, &conf->interval_ns, &err);
	if (err.text[0])
		return cop_opt_misuse(table, &err);
	conf->then = g->then;
	if (cop_tab_keys(g->by, false, conf, &err) ||
		(g->per && cop_tab_keys(g->per, true, conf, &err)) ||
		cop_tab_cols(g->show, conf, &err))
		return cop_cmd_trace_fail(&(struct trace_run){.table = table}, &err);
	return 0;
}

struct job {
	const struct cop_tab_conf *conf;
	struct cop_tab *tab;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	cop_tab_free(job->tab);
	job->tab = cop_tab_new(job->conf, run->threads, first_ns);
	return job->tab ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return cop_tab_add(job->tab, worker, e);
}

int cop_cmd_trace_group_read(
	struct trace_run *run, const struct cop_tab_conf *conf, struct cop_rows *rows)
{
	struct job job = {.conf = conf};
	struct cop_err err = {0};
	int code =
		cop_cmd_trace_read(run, &(struct trace_reading){.names = cop_tab_needs_names(conf),
						.first = cop_tab_needs_first(conf),
						.make = make,
						.add = add_event,
						.arg = &job});

	*rows = (struct cop_rows){0};
	if (code)
		cop_tab_free(job.tab);
	else if (cop_tab_rows(job.tab, rows, &err))
		code = cop_cmd_trace_fail(run, &err);
	return code;
}

void cop_cmd_trace_about(const struct trace_run *run, const struct cop_rows *rows)
{
	if (rows->about)
		fprintf(stderr, "%s: %s%squantiles of more than %u values are within 1 %%\n",
			run->table->command, run->name ? run->name : "", run->name ? ": " : "",
			COP_TAB_EXACT_MAX);
}
