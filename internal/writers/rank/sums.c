/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the cluster files from the sums that arrive through the tree. They contain the numbers
 * that copper aggregate computes from the nodes' files, plus quantiles, counters and the most used
 * paths over all nodes. */
#include "writers/rank/rank_priv.h"

#include <dirent.h>

#include "base/log/log.h"
#include "writers/cluster/cluster.h"

static int add_metric(void *arg, const char *metric, const char *value)
{
	int rc = cop_report_cluster_metric(arg, metric, value);

	return rc < 0 ? rc : 0;
}

static int add_path(void *arg, const char *category, const char *path, size_t len,
	const uint64_t counts[COP_PROF_TOP_COUNTS])
{
	uint64_t row[COP_REPORT_TOP_COUNTS] = {0};

	for (unsigned i = 0; i < COP_PROF_TOP_COUNTS; i++) {
		row[COP_REPORT_TOP_HITS + i] = counts[i];
		row[COP_REPORT_TOP_EVENTS] =
			cop_add_saturating(row[COP_REPORT_TOP_EVENTS], counts[i]);
	}
	return cop_report_cluster_path(arg, category, path, len, row);
}

static const char *host_of(const struct cop_tally_job *job, uint32_t rank)
{
	return rank < job->hosts->count ? job->hosts->host[rank].name : "localhost";
}

static int add_shares(
	const struct cop_tally_job *job, struct cop_report_cluster *c, const struct cop_prof_sum *s)
{
	const struct cop_prof_shares *share;
	size_t n;
	int rc = 0;

	share = cop_prof_sum_shares(s, &n);
	for (size_t i = 0; i < n && !rc; i++)
		rc = cop_report_cluster_share(c, host_of(job, share[i].rank), &share[i]);
	return rc;
}

static int fill_cluster(const struct cop_tally_job *job, struct cop_report_cluster *c,
	const struct cop_prof_sum *s, const struct cop_stats *stats)
{
	int rc = cop_prof_each_metric(s, add_metric, c);

	if (!rc)
		rc = cop_prof_each_storage(stats, add_metric, c);
	for (unsigned op = 0; op < COP_PROF_OPS && !rc; op++) {
		struct cop_prof_op_sum sum;
		struct cop_report_op row;

		cop_prof_sum_op(s, op, &sum);
		if (!sum.calls)
			continue;
		row = (struct cop_report_op){sum.calls, sum.outcome[COP_PROF_HIT],
			sum.outcome[COP_PROF_MISS], sum.outcome[COP_PROF_NEGATIVE],
			(double)sum.latency_us / 1e6};
		rc = cop_report_cluster_op(c, cop_prof_op_name(op), &row);
	}
	cop_report_cluster_ranks(c, cop_prof_sum_nodes(s));
	if (!rc)
		rc = cop_report_cluster_classes(
			c, cop_prof_sum_classes(s), cop_prof_sum_ttl(s, COP_PROF_SERVE) > 0);
	if (!rc)
		rc = cop_prof_sum_each_path(s, job->source, add_path, c);
	if (!rc)
		rc = add_shares(job, c, s);
	if (cop_prof_sum_has_every_path(s))
		cop_report_cluster_every_path(c);
	return rc;
}

/* If nodes are missing, says in the summary how many, and which did not answer. */
static void note_missing(
	const struct cop_tally_job *job, const struct cop_op_sum *sum, struct cop_buf *out)
{
	uint64_t nodes = cop_prof_sum_nodes(sum->prof);
	uint32_t named = COP_MIN(sum->missing, (uint32_t)COP_OP_NAMED);

	if (nodes < job->topo.nodes)
		cop_buf_printf(out,
			"- Nodes of the job that are not in these sums: `%" PRIu64
			"` (dead, stopped before, or started without a profile)\n",
			job->topo.nodes - nodes);
	for (uint32_t i = 0; i < named; i++)
		cop_buf_printf(out, "%s`%s` (rank %" PRIu32 ")",
			i ? ", " : "- Nodes that did not answer: ", host_of(job, sum->lost[i]),
			sum->lost[i]);
	if (sum->missing > named)
		cop_buf_printf(out, " and %" PRIu32 " more", sum->missing - named);
	if (named)
		cop_buf_str(out, "\n");
}

/* Writes the warnings next to the other files; copper report looks for this name. */
static int write_warnings(const struct cop_advices *a, const char *dir, struct cop_err *err)
{
	struct cop_buf text = {0};
	char path[4096 + 64];
	int rc;

	snprintf(path, sizeof(path), "%s/cluster_warnings.csv", dir);
	cop_advice_csv(a, &text);
	rc = text.failed ? -ENOMEM : cop_write_file(path, text.data, text.len, 0644);
	cop_buf_free(&text);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", path, strerror(-rc)) : 0;
}

static int write_into(const struct cop_tally_job *job, const struct cop_op_sum *sum,
	const struct cop_report_cluster *c, const char *dir, struct cop_err *err)
{
	char input[4096 + 32];
	struct cop_buf notes = {0};
	struct cop_advices advices;
	int rc;

	snprintf(input, sizeof(input), "%s/profiling/final", job->job_dir);
	cop_tally_judge(sum, &advices);
	note_missing(job, sum, &notes);
	cop_advice_markdown(&advices, &notes);
	rc = cop_report_cluster_write(c, dir, "cluster", input, notes.data, NULL, err);
	cop_buf_free(&notes);
	if (!rc)
		rc = write_warnings(&advices, dir, err);
	return rc ? rc
		  : cop_prof_write_sums(sum->prof, dir, "cluster", job->source, &sum->stats, err);
}

/* Removes a directory that this process created, and the files in it. */
static void clear_away(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *e;

	while (d && (e = readdir(d)))
		unlinkat(dirfd(d), e->d_name, 0);
	if (d)
		closedir(d);
	rmdir(dir);
}

/* Saves the sums in $TMPDIR, because no other copy exists once the nodes have stopped. */
static void keep_elsewhere(const struct cop_tally_job *job, const struct cop_op_sum *sum,
	const struct cop_report_cluster *c, struct cop_err *err)
{
	const char *tmp = getenv("TMPDIR");
	struct cop_err ignored = {0};
	char dir[512], why[sizeof(err->text)], *end;

	snprintf(why, sizeof(why), "%s", err->text);
	/* Keep the error, but not the hint after it. */
	end = strrchr(why, ';');
	if (end)
		*end = '\0';
	if (snprintf(dir, sizeof(dir), "%s/copper-sums-XXXXXX",
		    tmp && *tmp == '/' ? tmp : "/tmp") >= (int)sizeof(dir) ||
		!mkdtemp(dir))
		return;
	if (write_into(job, sum, c, dir, &ignored) == 0)
		cop_err_set(err, err->code,
			"%.600s; the sums of %" PRIu64 " nodes are kept in %s on this host", why,
			cop_prof_sum_nodes(sum->prof), dir);
	else
		clear_away(dir);
}

static int write_files(const struct cop_tally_job *job, const struct cop_op_sum *sum,
	const struct cop_report_cluster *c, struct cop_err *err)
{
	char dir[4096 + 32];
	int rc;

	snprintf(dir, sizeof(dir), "%s/profiling/cluster", job->job_dir);
	rc = write_into(job, sum, c, dir, err);
	if (rc && rc != -ENOMEM)
		keep_elsewhere(job, sum, c, err);
	return rc;
}

static int write_prof(
	const struct cop_tally_job *job, const struct cop_op_sum *sum, struct cop_err *err)
{
	struct cop_report_cluster *c;
	int rc;

	c = cop_report_cluster_new();
	rc = c ? fill_cluster(job, c, sum->prof, &sum->stats) : -ENOMEM;
	rc = rc ? cop_err_set(err, -rc, "no memory for the cluster files")
		: write_files(job, sum, c, err);
	cop_report_cluster_free(c);
	if (rc)
		cop_log_error("cluster files not written: %s", err->text);
	else
		cop_log_info("cluster files written nodes=%" PRIu64, cop_prof_sum_nodes(sum->prof));
	return rc;
}

static const char *host_name(void *ctx, uint32_t rank)
{
	return host_of(ctx, rank);
}

void cop_tally_write_telemetry(
	const struct cop_tally_job *job, struct cop_telemetry_sum *sum, const char *folder)
{
	struct cop_telemetry_job t = {
		.topo = job->topo, .host = host_name, .ctx = (void *)(uintptr_t)job};
	struct cop_err err = {0};
	char dir[4096 + 32];

	if (!*job->job_dir || !sum)
		return;
	snprintf(dir, sizeof(dir), "%s/profiling/%.64s", job->job_dir, folder);
	cop_telemetry_finish(sum);
	if (cop_telemetry_write(sum, &t, dir, &err))
		cop_log_error("telemetry not written: %s", err.text);
	else
		cop_log_debug("telemetry written nodes=%" PRIu32, cop_telemetry_sum_nodes(sum));
}

int cop_tally_write_sums(
	const struct cop_tally_job *job, const struct cop_op_sum *sum, struct cop_err *err)
{
	int rc = 0;

	if (!*job->job_dir)
		return 0;
	/* Write what the user requested first, in case the disk fills up. */
	if (sum->prof && cop_prof_sum_nodes(sum->prof))
		rc = write_prof(job, sum, err);
	cop_tally_write_telemetry(job, sum->telemetry, "cluster");
	return rc;
}
