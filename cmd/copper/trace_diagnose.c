/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "trace.h"
#include "trace/diagnose/diagnose.h"
#include "trace/timeline/timeline.h"

/* Maximum number of paths shown with a command. */
#define PATHS_MAX 400u

struct args {
	struct trace_select select; /* first */
	struct cop_opt_many paths;
};

static const struct cop_opt rows[] = {TRACE_SELECT_ROWS};
static const struct cop_opt_operand operands[] = {
	{.name = "PATH", .offset = offsetof(struct args, paths), .required = true, .many = true},
};
const struct cop_opt_table cop_cmd_trace_diagnose_options = {.command = "copper trace diagnose",
	.summary = "why it was slow: causes, evidence and remedies",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_diagnose_options;

struct job {
	struct trace_run run;
	struct cop_buf paths;
	struct cop_order *order;
	struct cop_diagnose *diagnose;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	cop_order_free(job->order);
	cop_diagnose_free(job->diagnose);
	job->order = cop_order_new(&(struct cop_order_conf){
		.threads = run->threads, .dir = cop_cmd_trace_temp(), .whole = true});
	job->diagnose = cop_diagnose_new(run->threads, run->files, job->paths.data);
	return job->order && job->diagnose ? 0 : -ENOMEM;
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;
	int rc = cop_diagnose_see(job->diagnose, worker, e);

	return rc || e->kind == COP_TRACE_META ? rc : cop_order_add(job->order, worker, e);
}

static int add_ordered(void *arg, const struct cop_trace_event *e)
{
	return cop_diagnose_add(arg, e);
}

static void put_paths(const struct args *a, struct cop_buf *out)
{
	for (size_t i = 0; i < a->paths.n && out->len < PATHS_MAX; i++)
		cop_diagnose_quote(a->paths.at[i], out);
	if (out->len >= PATHS_MAX) {
		out->len = 0;
		cop_buf_str(out, "PATH...");
	}
}

static int show(struct job *job, const struct args *a)
{
	struct cop_buf text = {0};
	struct cop_err err = {0};
	int rc = cop_order_each(job->order, add_ordered, job->diagnose);
	int code;

	if (!rc)
		rc = cop_diagnose_finish(job->diagnose);
	if (rc) {
		cop_err_set(&err, -rc, "the events cannot be put in order in %s: %s",
			cop_cmd_trace_temp(), strerror(-rc));
		return cop_cmd_trace_fail(&job->run, &err);
	}
	cop_diagnose_show(job->diagnose, cop_cmd_trace_form(&a->select), &text);
	code = cop_cmd_print(table->command, &text, NULL);
	cop_buf_free(&text);
	return code;
}

int cop_cmd_trace_diagnose(int argc, char **argv)
{
	struct args a = {0};
	struct job job = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	put_paths(&a, &job.paths);
	code = cop_cmd_trace_open(&job.run, table, &a.select, &a.paths);
	if (!code)
		code = cop_cmd_trace_read(&job.run, &(struct trace_reading){.names = true,
							    .args = true,
							    .unfinished = true,
							    .meta = true,
							    .temp = cop_cmd_trace_temp(),
							    .make = make,
							    .add = add_event,
							    .arg = &job});
	if (!code)
		code = show(&job, &a);
	cop_order_free(job.order);
	cop_diagnose_free(job.diagnose);
	cop_buf_free(&job.paths);
	cop_cmd_trace_close(&job.run);
	return code;
}
