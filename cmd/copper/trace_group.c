/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the subcommands that group events. */
#include "trace.h"
#include "trace/timeline/timeline.h"

int cop_cmd_trace_group(const struct cop_opt_table *table, const struct trace_group *g,
	const char *cols, struct cop_tab_conf *conf)
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
	if (cop_tab_keys(g->by, false, conf, &err) ||
		(g->per && cop_tab_keys(g->per, true, conf, &err)) ||
		(g->show && cop_tab_cols(g->show, conf, &err)))
		return cop_cmd_trace_fail(&(struct trace_run){.table = table}, &err);
	/* COL=WORD also selects the column to show. */
	if (!g->show && !(g->then && strchr(g->then, '='))) {
		cop_tab_cols(cols, conf, NULL);
		cop_tab_cols("unfinished", conf, NULL);
	}
	if (g->then && cop_tab_thens(g->then, conf, &err))
		return cop_opt_misuse(table, &err);
	return 0;
}

void cop_cmd_trace_group_trim(const struct trace_group *g, struct cop_rows *rows, size_t n)
{
	uint64_t unfinished = 0;

	for (size_t i = 0; i < n; i++)
		unfinished += rows[i].unfinished;
	if (g->show || unfinished || (g->then && strchr(g->then, '=')))
		return;
	for (size_t i = 0; i < n; i++)
		rows[i].conf.cols--;
}

/* ---- reading ---- */

struct job {
	struct trace_run *run;
	struct cop_tab_conf conf;
	struct cop_tab *tab;
	struct cop_order *order; /* if self time is requested */
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	cop_tab_free(job->tab);
	cop_order_free(job->order);
	job->order = NULL;
	job->tab = cop_tab_new(&job->conf, run->threads, first_ns);
	if (!job->tab || !cop_tab_needs_self(&job->conf))
		return job->tab ? 0 : -ENOMEM;
	job->order = cop_order_new(&(struct cop_order_conf){
		.threads = run->threads, .dir = cop_cmd_trace_temp(), .whole = true});
	return job->order ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;
	int rc;

	if (!job->order)
		return cop_tab_add(job->tab, worker, e);
	rc = cop_tab_see(job->tab, worker, e);
	if (rc || (e->kind != COP_TRACE_SPAN && e->kind != COP_TRACE_AGGREGATE))
		return rc;
	return cop_order_add(job->order, worker, e);
}

/* A span reduces the self time of its ancestors even if it is not selected. */
static int add_self(void *arg, const struct cop_trace_event *e, uint64_t self_ns)
{
	struct job *job = arg;

	return cop_select_test(job->run->select, 0, e) ? cop_tab_add_self(job->tab, 0, e, self_ns)
						       : 0;
}

static int add_ordered(void *arg, const struct cop_trace_event *e)
{
	return cop_self_add(arg, e);
}

static int add_all_selves(struct job *job)
{
	struct cop_self *self = cop_self_new(add_self, job);
	struct cop_err err = {0};
	int rc = self ? cop_order_each(job->order, add_ordered, self) : -ENOMEM;

	if (!rc)
		rc = cop_self_end(self);
	cop_self_free(self);
	if (!rc)
		return 0;
	cop_err_set(&err, -rc, "the events cannot be put in order in %s: %s", cop_cmd_trace_temp(),
		strerror(-rc));
	return cop_cmd_trace_fail(job->run, &err);
}

int cop_cmd_trace_group_read(
	struct trace_run *run, const struct cop_tab_conf *conf, struct cop_rows *rows)
{
	struct job job = {.run = run, .conf = *conf};
	bool self = cop_tab_needs_self(conf);
	struct cop_err err = {0};
	int code;

	job.conf.files = run->files;
	code = cop_cmd_trace_read(run, &(struct trace_reading){.names = cop_tab_needs_names(conf),
					       .first = cop_tab_needs_first(conf),
					       .args = cop_tab_needs_args(conf),
					       .unfinished = cop_tab_has_col(conf, "unfinished"),
					       .meta = cop_tab_needs_who(conf),
					       .all = self,
					       .temp = self ? cop_cmd_trace_temp() : NULL,
					       .make = make,
					       .add = add_event,
					       .arg = &job});
	*rows = (struct cop_rows){0};
	if (!code && job.order)
		code = add_all_selves(&job);
	if (code)
		cop_tab_free(job.tab);
	else if (cop_tab_rows(job.tab, rows, &err))
		code = cop_cmd_trace_fail(run, &err);
	cop_order_free(job.order);
	return code;
}

static void note(const struct trace_run *run, const char *text)
{
	fprintf(stderr, "%s: %s%s%s\n", run->table->command, run->name ? run->name : "",
		run->name ? ": " : "", text);
}

void cop_cmd_trace_about(const struct trace_run *run, const struct cop_rows *rows)
{
	char text[128];

	if (rows->about) {
		snprintf(text, sizeof(text), "quantiles of more than %u values are within 1 %%",
			COP_TAB_EXACT_MAX);
		note(run, text);
	}
	if (rows->closed > 0) {
		snprintf(text, sizeof(text), "the times of busy may be up to %.9f s too long",
			rows->closed);
		note(run, text);
	}
	if (rows->shared)
		note(run,
			"several processes have one pid, on other hosts or in other files, and a row adds them up: add the key trace, host, rank or process");
}
