/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "trace.h"
#include "trace/checkpoint/checkpoint.h"

struct args {
	struct trace_select select; /* first */
	struct cop_opt_list tier, model, scheme;
	const char *event, *nodes, *mtbf;
	uint64_t limit;
	struct cop_opt_many runs;
};

static const struct cop_opt rows[] = {
	COP_OPT(LIST, "tier", struct args, tier, "files of a storage tier; repeat, fastest first",
		.arg = "NAME=PREFIX"),
	COP_OPT(STRING, "event", struct args, event, "names of checkpoint events", .arg = "RE",
		.initial = "[Cc]heckpoint"),
	COP_OPT(LIST, "model", struct args, model,
		"predict with this bandwidth: 2.5GB/s, 2GB/s/node", .arg = "NAME=BYTES/S"),
	COP_OPT(STRING, "nodes", struct args, nodes, "predict for these numbers of nodes",
		.arg = "N,...", .shown = "those of the run"),
	COP_OPT(LIST, "scheme", struct args, scheme, "predict for single, partner, xor:N, rs:N:K",
		.arg = "WORD"),
	COP_OPT(STRING, "mtbf", struct args, mtbf, "mean time between failures, as 24h",
		.arg = "TIME"),
	COP_OPT(U64, "limit", struct args, limit, "rows per list, for each run and tier",
		.arg = "N", .initial = "10", .min = 1),
	TRACE_SELECT_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "NAME=PATH[,PATH...]",
		.offset = offsetof(struct args, runs),
		.required = true,
		.many = true},
};
const struct cop_opt_table cop_cmd_trace_checkpoint_options = {.command = "copper trace checkpoint",
	.summary = "cost of checkpoints on each storage, with advice",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};
static const struct cop_opt_table *const table = &cop_cmd_trace_checkpoint_options;

static int configure(const struct args *a, struct cop_ckpt_conf *conf)
{
	struct cop_err err = {0};

	conf->event = a->event;
	conf->limit = a->limit;
	if (!a->tier.n)
		cop_err_set(&err, EINVAL,
			"--tier is missing: name each storage and where it is, as in --tier ssd=/mnt/ssd --tier pfs=/lustre");
	for (unsigned i = 0; i < a->tier.n && !err.text[0]; i++)
		cop_ckpt_add_tier(conf, a->tier.at[i], &err);
	for (unsigned i = 0; i < a->model.n && !err.text[0]; i++)
		cop_ckpt_add_model(conf, a->model.at[i], &err);
	for (unsigned i = 0; i < a->scheme.n && !err.text[0]; i++)
		cop_ckpt_add_scheme(conf, a->scheme.at[i], &err);
	if (a->nodes && !err.text[0])
		cop_ckpt_add_nodes(conf, a->nodes, &err);
	if (a->mtbf && !err.text[0])
		cop_ckpt_set_mtbf(conf, a->mtbf, &err);
	return err.text[0] ? cop_opt_misuse(table, &err) : 0;
}

struct job {
	const struct cop_ckpt_conf *conf;
	struct cop_ckpt *run;
};

static int make(void *arg, const struct trace_run *run, int64_t first_ns)
{
	struct job *job = arg;

	(void)first_ns;
	cop_ckpt_free(job->run);
	job->run = NULL;
	return cop_ckpt_new(job->conf, run->threads, &job->run, NULL);
}

static int add_event(void *arg, unsigned worker, const struct cop_trace_event *e)
{
	struct job *job = arg;

	return cop_ckpt_add(job->run, worker, e);
}

static int show(const struct args *a, struct cop_ckpt *const *runs, const struct trace_cases *cases)
{
	const struct trace_run self = {.table = table};
	const struct cop_trace_files *files[TRACE_CASES_MAX];
	struct cop_ckpt_report *report = NULL;
	struct cop_buf text = {0};
	struct cop_err err = {0};
	int code;

	for (size_t i = 0; i < cases->n; i++)
		files[i] = cases->at[i].run.files;
	if (cop_ckpt_report_new(runs, cases->name, cases->n, &report, &err))
		return cop_cmd_trace_fail(&self, &err);
	cop_ckpt_report_show(report, files, cop_cmd_trace_form(&a->select), &text);
	code = cop_cmd_print(table->command, &text, NULL);
	cop_buf_free(&text);
	cop_ckpt_report_free(report);
	return code;
}

/* Reports an invalid expression before anything is read. */
static int check_expressions(const struct cop_ckpt_conf *conf)
{
	struct cop_ckpt *probe = NULL;
	struct cop_err err = {0};
	int rc = cop_ckpt_new(conf, 1, &probe, &err);

	cop_ckpt_free(probe);
	return rc ? cop_cmd_trace_fail(&(struct trace_run){.table = table}, &err) : 0;
}

static int report(const struct args *a, const struct cop_ckpt_conf *conf, struct trace_cases *cases)
{
	struct cop_ckpt **runs;
	int code = cop_cmd_trace_cases_open(cases, table, &a->select, &a->runs);

	if (code)
		return code;
	runs = calloc(cases->n, sizeof(struct cop_ckpt *));
	if (!runs)
		return cop_cmd_trace_fail(&(struct trace_run){.table = table},
			&(struct cop_err){.text = "no memory"});
	for (size_t i = 0; i < cases->n && !code; i++) {
		struct job job = {.conf = conf};

		code = cop_cmd_trace_read(&cases->at[i].run,
			&(struct trace_reading){
				.names = true, .make = make, .add = add_event, .arg = &job});
		runs[i] = job.run;
	}
	if (!code)
		code = show(a, runs, cases);
	for (size_t i = 0; i < cases->n; i++)
		cop_ckpt_free(runs[i]);
	free(runs);
	return code;
}

int cop_cmd_trace_checkpoint(int argc, char **argv)
{
	struct args a = {0};
	struct cop_ckpt_conf conf = {0};
	struct trace_cases cases = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	code = configure(&a, &conf);
	if (!code)
		code = check_expressions(&conf);
	if (!code)
		code = report(&a, &conf, &cases);
	cop_cmd_trace_cases_close(&cases);
	cop_ckpt_conf_fini(&conf);
	return code;
}
