/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "cmd.h"
#include "opt/opt.h"
#include "report/report.h"

#define SILENT_MS 1000 /* less work than this shows no progress */

struct args {
	const char *job_dir, *prefix;
	struct cop_opt_list roots;
	bool json;
};

static const struct cop_opt rows[] = {
	{.name = "usage-root", .kind = COP_OPT_LIST, .offset = offsetof(struct args, roots), .arg = "DIR",
		.help = "say how much of DIR was used; may be repeated"},
	{.name = "json", .kind = COP_OPT_FLAG, .offset = offsetof(struct args, json),
		.help = "the sums for scripts; keys are stable"},
};
static const struct cop_opt_operand operands[] = {
	{.name = "JOBDIR", .offset = offsetof(struct args, job_dir), .required = true},
	{.name = "PREFIX", .offset = offsetof(struct args, prefix)},
};
static const struct cop_opt_table table = {.command = "copper aggregate",
	.summary = "sum up the profiles of a job's ranks", COP_OPT_ROWS(rows), COP_OPT_OPERANDS(operands)};

struct progress {
	uint64_t start_ms;
	bool shown;
};

static void show_progress(void *arg, uint64_t ranks)
{
	struct progress *p = arg;

	if (cop_now_ms() - p->start_ms < SILENT_MS)
		return;
	fprintf(stderr, "\rcopper aggregate: %" PRIu64 " ranks read ", ranks);
	p->shown = true;
}

static int print(const struct cop_report_aggregated *a, const struct args *args)
{
	static const char *const names[] = {"profiling_aggregate.csv", "profiling_operations.csv", "profiling_summary.md"};
	struct cop_buf text = {0};
	int rc;

	if (args->json)
		cop_report_aggregated_json(a, args->prefix, &text);
	else
		cop_report_aggregated_table(a, &text);
	for (size_t i = 0; i < COP_ARRAY_SIZE(names) && !args->json; i++)
		cop_buf_printf(&text, "wrote %s/%s-%s\n", a->output, args->prefix, names[i]);
	rc = text.failed || fputs(text.data, stdout) == EOF || fflush(stdout);
	cop_buf_free(&text);
	return rc;
}

/* What was wrong with single files, a line each. */
static void print_faults(const struct cop_report_aggregated *a)
{
	if (!a->faults)
		return;
	fprintf(stderr, "copper aggregate: %" PRIu64 " files of ranks under %s are missing or of no use; the sums are without them:\n%s",
		a->faults, a->input, a->named.data ? a->named.data : "");
}

int cop_cmd_aggregate(int argc, char **argv)
{
	struct args a = {0};
	struct progress progress = {.start_ms = cop_now_ms()};
	struct cop_report_aggregated result;
	struct cop_err err = {0};
	int code, rc;

	if (!cop_opt_start(&table, argc, argv, &a, &code))
		return code;
	a.prefix = a.prefix ? a.prefix : "cluster";
	rc = cop_report_aggregate(&(struct cop_report_aggregate){.job_dir = a.job_dir, .prefix = a.prefix,
		.usage_root = a.roots.at, .usage_roots = a.roots.n, .progress = isatty(2) ? show_progress : NULL, .arg = &progress},
		&result, &err);
	if (progress.shown)
		fputs("\r\033[K", stderr);
	print_faults(&result);
	if (rc)
		fprintf(stderr, "copper aggregate: %s\n", err.text);
	else
		rc = print(&result, &a);
	cop_report_aggregated_free(&result);
	return rc == -EINVAL ? 2 : rc ? 1 : 0;
}
