/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "trace.h"
#include "trace/table/table.h"

struct args {
	struct trace_select select; /* first */
	const char *interval;
	struct cop_opt_list class;
	struct cop_opt_many paths;
};

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "interval", struct args, interval,
		"length of the intervals into which the run is divided", .arg = "SECONDS",
		.initial = "30"),
	COP_OPT(LIST, "class", struct args, class,
		"redefine compute, app_io or posix, or add a class", .arg = "NAME=RE"),
	TRACE_SELECT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_summary_options = {.command = "copper trace summary",
	.summary = "event counts, where the time went, what each function did",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_summary_options;

struct job {
	uint64_t interval_ns;
	struct cop_classes *classes;
	struct cop_sum *sum;
};

/* Reading names takes a pass over the files and matters only if some events are omitted. */
static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	cop_sum_free(job->sum);
	job->sum = cop_sum_new(&(struct cop_sum_conf){.threads = run->threads,
		.names = !cop_select_is_all(run->select),
		.first_ns = first_ns,
		.interval_ns = job->interval_ns,
		.classes = job->classes,
		.files = run->files});
	return job->sum ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return cop_sum_add(job->sum, worker, e);
}

static int show(const struct trace_run *run, const struct args *a, struct cop_sum *sum)
{
	struct cop_sum_result result;
	struct cop_buf text = {0};
	struct cop_err err = {0};
	int rc = cop_sum_finish(sum, &result, &err);

	if (rc) {
		rc = cop_cmd_trace_fail(run, &err);
	} else {
		cop_sum_show(
			&result, run->files, a->class.n > 0, cop_cmd_trace_form(&a->select), &text);
		rc = cop_cmd_print(table->command, &text, NULL);
	}
	cop_buf_free(&text);
	cop_sum_result_free(&result);
	return rc;
}

int cop_cmd_trace_summary(int argc, char **argv)
{
	struct args a = {0};
	struct job job = {0};
	struct trace_run run = {0};
	struct cop_err err = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	if (cop_cmd_trace_interval(a.interval, &job.interval_ns, &err))
		return cop_opt_misuse(table, &err);
	if (cop_classes_new(a.class.at, a.class.n, cop_trace_threads(0), &job.classes, &err))
		return cop_cmd_trace_fail(&(struct trace_run){.table = table}, &err);
	code = cop_cmd_trace_open(&run, table, &a.select, &a.paths);
	if (!code)
		code = cop_cmd_trace_read(
			&run, &(struct trace_reading){.names = !cop_select_is_all(run.select),
				      .first = true,
				      .unfinished = true,
				      .meta = true,
				      .make = make,
				      .add = add_event,
				      .arg = &job});
	if (!code)
		code = show(&run, &a, job.sum);
	cop_sum_free(job.sum);
	cop_classes_free(job.classes);
	cop_cmd_trace_close(&run);
	return code;
}
