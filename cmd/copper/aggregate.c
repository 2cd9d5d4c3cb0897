/* SPDX-License-Identifier: BSD-3-Clause */
#include "cmd.h"
#include "base/opt/opt.h"
#include "writers/cluster/cluster.h"

#define SILENT_MS 1000 /* shorter work shows no progress */

struct args {
	const char *job_dir, *prefix, *output_dir;
	struct cop_opt_list roots;
	bool json, skip_home, no_coverage;
};

static const struct cop_opt rows[] = {
	COP_OPT(LIST, "usage-root", struct args, roots,
		"report how much of DIR was used; repeatable", .arg = "DIR"),
	COP_OPT(FLAG, "skip-home-inference", struct args, skip_home,
		"do not report the use of $HOME"),
	COP_OPT(FLAG, "no-coverage", struct args, no_coverage,
		"skip path coverage, which walks directories"),
	COP_OPT(STRING, "output-dir", struct args, output_dir, "write the files here", .arg = "DIR",
		.shown = "JOBDIR/profiling/cluster"),
	COP_OPT(FLAG, "json", struct args, json, "print the sums as JSON; keys are stable"),
};
static const struct cop_opt_operand operands[] = {
	{.name = "JOBDIR", .offset = offsetof(struct args, job_dir), .required = true},
	{.name = "PREFIX", .offset = offsetof(struct args, prefix)},
};
static const struct cop_opt_table table = {.command = "copper aggregate",
	.summary = "add up the profiles of a job's ranks",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands)};

struct progress {
	uint64_t start_ms;
	bool shown;
};

static void show_progress(void *arg, const char *what, uint64_t n)
{
	struct progress *p = arg;

	if (cop_now_ms() - p->start_ms < SILENT_MS)
		return;
	fprintf(stderr, "\rcopper aggregate: %" PRIu64 " %s read\033[K", n, what);
	p->shown = true;
}

static int print_aggregated(const struct cop_report_aggregated *a, const struct args *args)
{
	static const char *const names[] = {"profiling_aggregate.csv", "profiling_operations.csv",
		"profiling_summary.md", "profiling_top_paths.csv"};
	struct cop_buf text = {0}, besides = {0};
	int rc;

	if (args->json)
		cop_report_aggregated_json(a, args->prefix, &text);
	else
		cop_report_aggregated_table(a, &text);
	for (size_t i = 0; i < 3u + a->paths_written && !args->json; i++)
		cop_buf_printf(&text, "wrote %s/%s-%s\n", a->output, args->prefix, names[i]);
	cop_buf_printf(&besides, "the cluster files are in %s", a->output);
	rc = cop_cmd_print("copper aggregate", &text, besides.data);
	cop_buf_free(&besides);
	cop_buf_free(&text);
	return rc;
}

/* Prints remarks about the sums, and faults of single files, one per line. */
static void print_faults(const struct cop_report_aggregated *a)
{
	struct cop_buf mixed = {0}, missing = {0}, ending = {0};

	cop_report_aggregated_ending(a, &ending);
	if (ending.data)
		fprintf(stderr, "copper aggregate: %s\n", ending.data);
	cop_buf_free(&ending);
	cop_report_aggregated_mixed(a, &mixed);
	if (mixed.data)
		fprintf(stderr, "copper aggregate: %s\n", mixed.data);
	cop_buf_free(&mixed);
	if (a->doubts)
		fprintf(stderr,
			"copper aggregate: %" PRIu64
			" rank files under %s have values that were corrected or left out; their other values are in the sums:\n%s",
			a->doubts, a->input, a->doubted.data ? a->doubted.data : "");
	cop_report_aggregated_missing(a, &missing);
	if (missing.data)
		fprintf(stderr, "copper aggregate: %s\n", missing.data);
	cop_buf_free(&missing);
	if (!a->faults)
		return;
	fprintf(stderr,
		"copper aggregate: missing or unusable under %s: %" PRIu64
		" rank files; the sums do not include them:\n%s",
		a->input, a->faults, a->named.data ? a->named.data : "");
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
	rc = cop_report_aggregate(&(struct cop_report_aggregate){.job_dir = a.job_dir,
					  .prefix = a.prefix,
					  .output_dir = a.output_dir,
					  .usage_root = a.roots.at,
					  .usage_roots = a.roots.n,
					  .no_coverage = a.no_coverage,
					  .home = a.skip_home ? NULL : getenv("HOME"),
					  .progress = isatty(2) ? show_progress : NULL,
					  .arg = &progress},
		&result, &err);
	if (progress.shown)
		fputs("\r\033[K", stderr);
	print_faults(&result);
	if (rc)
		fprintf(stderr, "copper aggregate: %s\n", err.text);
	else
		rc = print_aggregated(&result, &a);
	cop_report_aggregated_free(&result);
	return rc == -EINVAL ? 2 : rc ? 1 : 0;
}
