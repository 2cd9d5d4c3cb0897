/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the sums over all nodes: those that the job wrote when it stopped, or else sums computed
 * here from the ranks' final files or the newest snapshot. While a job runs, its snapshots are
 * newer than the files of an earlier job in the same directory. */
#include <sys/stat.h>

#include "report/jobdata/jobdata_priv.h"
#include "writers/cluster/cluster.h"

static double mtime_of(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (double)st.st_mtim.tv_sec + (double)st.st_mtim.tv_nsec * 1e-9;
}

struct place {
	char *folder;
	enum cop_jobdata_from from;
	double at; /* time of writing; 0: does not exist */
};

static int find_place(const struct cop_jobdata *j, const char *folder, const char *file,
	enum cop_jobdata_from from, struct place *out)
{
	char *path = NULL;

	*out = (struct place){.from = from};
	if (asprintf(&out->folder, "%s%s%s", j->dir, *folder ? "/profiling/" : "", folder) < 0) {
		out->folder = NULL;
		return -ENOMEM;
	}
	if (asprintf(&path, "%s/%s", out->folder, file) < 0)
		return -ENOMEM;
	out->at = mtime_of(path);
	free(path);
	return 0;
}

static int take_ops(struct cop_jobdata *j, const struct cop_report_cluster *c)
{
	struct cop_report_op sums;
	const char *name;

	for (size_t i = 0;
		i < COP_JOBDATA_OPS_MAX && (name = cop_report_cluster_op_at(c, i, &sums)); i++) {
		struct cop_jobdata_op *op =
			cop_jobdata_more(&j->op, &j->ops, sizeof(*op), COP_JOBDATA_OPS_MAX);

		if (!op)
			return -ENOMEM;
		*op = (struct cop_jobdata_op){.name = cop_jobdata_copy(name, strlen(name)),
			.calls = sums.calls,
			.hits = sums.hits,
			.misses = sums.misses,
			.negatives = sums.negatives,
			.latency_s = sums.latency_s};
		if (!op->name)
			return -ENOMEM;
	}
	return 0;
}

static int take_metrics(struct cop_jobdata *j, const struct cop_report_cluster *c)
{
	const char *name;
	double value;
	int rc = 0;

	for (size_t i = 0; !rc && (name = cop_report_cluster_metric_at(c, i, &value)); i++)
		rc = cop_jobdata_add_value(&j->metrics, name, value);
	return rc;
}

/* Returns 0, -ENOMEM, or another error if the directory has no data. */
static int read_place(struct cop_jobdata *j, struct place *p)
{
	struct cop_report_cluster *c = NULL;
	uint64_t faults = 0;
	double ranks;
	int rc = p->from == COP_JOBDATA_CLUSTER ? cop_report_cluster_read(p->folder, "cluster", &c)
						: cop_report_ranks_sum(p->folder, &c, &faults);

	j->faults += faults;
	if (!rc)
		rc = take_ops(j, c);
	if (!rc)
		rc = take_metrics(j, c);
	if (!rc) {
		ranks = cop_jobdata_value(&j->metrics, "ranks_with_aggregate_files");
		j->ranks = p->from == COP_JOBDATA_CLUSTER && ranks > 0 && ranks < 1e9
				   ? (uint64_t)ranks
				   : cop_report_cluster_rank_count(c);
		j->from = p->from;
		j->folder = p->folder;
		j->folder_unix_s = p->at;
		p->folder = NULL;
	}
	cop_report_cluster_free(c);
	return rc;
}

static int newest_first(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	return (x->at < y->at) - (x->at > y->at);
}

/* ---- quantiles and the counters of the network ---- */

static int latency_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	struct cop_jobdata *j = arg;
	const char *name = cop_jobdata_text(s, r, 0, NULL);

	for (size_t i = 0; i < j->ops; i++) {
		struct cop_jobdata_op *op = &j->op[i];

		if (strcmp(op->name, name) != 0)
			continue;
		op->has_quantiles = true;
		op->p50_us = cop_jobdata_number(s, r, 1);
		op->p90_us = cop_jobdata_number(s, r, 2);
		op->p99_us = cop_jobdata_number(s, r, 3);
		op->max_us = cop_jobdata_number(s, r, 4);
	}
	return 0;
}

static int fabric_row(void *arg, const struct sheet *s, const struct cop_csv_record *r)
{
	return cop_jobdata_add_value(
		arg, cop_jobdata_text(s, r, 0, NULL), cop_jobdata_number(s, r, 1));
}

static int read_beside(struct cop_jobdata *j)
{
	static const char *const latency[] = {
		"operation", "p50_us", "p90_us", "p99_us", "max_us", NULL};
	static const char *const fabric[] = {"metric", "value", NULL};
	struct sheet s = {.column = latency, .row = latency_row, .arg = j};
	int rc = cop_jobdata_sheet(&s, j->folder, "cluster-profiling_latency.csv");

	if (rc == -ENOMEM)
		return rc;
	s = (struct sheet){.column = fabric, .row = fabric_row, .arg = &j->fabric};
	rc = cop_jobdata_sheet(&s, j->folder, "cluster-profiling_fabric.csv");
	return rc == -ENOMEM ? rc : 0;
}

static int most_time_first(const void *a, const void *b)
{
	const struct cop_jobdata_op *x = a, *y = b;

	if (x->latency_s != y->latency_s)
		return x->latency_s < y->latency_s ? 1 : -1;
	if (x->calls != y->calls)
		return x->calls < y->calls ? 1 : -1;
	return strcmp(x->name, y->name);
}

#define PLACES 6

static int find_places(struct cop_jobdata *j, struct place place[PLACES])
{
	static const struct {
		const char *folder, *file;
		enum cop_jobdata_from from;
	} at[PLACES] = {
		{"cluster", "cluster-profiling_operations.csv", COP_JOBDATA_CLUSTER},
		{"final", "", COP_JOBDATA_RANKS},
		{"runtime-snapshot", "", COP_JOBDATA_SNAPSHOT},
		{"ioctl-snapshot", "", COP_JOBDATA_SNAPSHOT},
		{"pre-destroy", "", COP_JOBDATA_SNAPSHOT},
		{"", "", COP_JOBDATA_RANKS},
	};
	bool runs = j->runs;
	int rc = 0;

	for (unsigned i = 0; i < PLACES && !rc; i++)
		rc = find_place(j, at[i].folder, at[i].file, at[i].from, &place[i]);
	if (!rc) /* after the end only snapshots are considered; the directory itself comes last */
		qsort(place + (runs ? 0 : 2), runs ? 5 : 3, sizeof(*place), newest_first);
	return rc;
}

int cop_jobdata_sums(struct cop_jobdata *j)
{
	struct place place[PLACES] = {0};
	int rc = find_places(j, place);

	for (unsigned i = 0; i < PLACES && !rc && !j->from; i++)
		if (place[i].at > 0 && read_place(j, &place[i]) == -ENOMEM)
			rc = -ENOMEM;
	for (unsigned i = 0; i < PLACES; i++)
		free(place[i].folder);
	if (!rc && j->from)
		rc = read_beside(j);
	if (j->ops)
		qsort(j->op, j->ops, sizeof(*j->op), most_time_first);
	return rc;
}
