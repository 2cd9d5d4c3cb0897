/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads sums from a job directory without writing any. */
#include <fcntl.h>

#include "writers/cluster/cluster_priv.h"

uint64_t cop_report_cluster_rank_count(const struct cop_report_cluster *c)
{
	return c->ranks;
}

const char *cop_report_cluster_op_at(
	const struct cop_report_cluster *c, size_t i, struct cop_report_op *out)
{
	const struct row *row = i < c->ops.n ? &c->ops.row[i] : NULL;

	if (!row)
		return NULL;
	*out = (struct cop_report_op){.calls = row->count[0],
		.hits = row->count[1],
		.misses = row->count[2],
		.negatives = row->count[3],
		.latency_s = (double)row->sum / COP_NUMBER_UNIT};
	return row->name;
}

const char *cop_report_cluster_metric_at(
	const struct cop_report_cluster *c, size_t i, double *value)
{
	if (i >= c->metrics.n)
		return NULL;
	*value = (double)c->metrics.row[i].sum / COP_NUMBER_UNIT;
	return c->metrics.row[i].name;
}

/* Returns whether the file was added. */
static bool add_file(struct rank_reader *r, int dir, const char *prefix, enum cop_report_kind kind,
	struct cop_report_cluster *into)
{
	struct cop_buf why = {0};
	char name[RANK_NAME_MAX];
	int rc = -EINVAL;

	if (snprintf(name, sizeof(name), "%s-%s", prefix, cop_report_kind_name(kind)) <
		(int)sizeof(name))
		rc = cop_report_read_file(r, dir, name, kind, &why);
	if (!rc)
		rc = cop_report_cluster_merge(into, r->file);
	cop_buf_free(&why);
	return rc == 0;
}

int cop_report_cluster_read(const char *dir, const char *prefix, struct cop_report_cluster **out)
{
	struct cop_report_cluster *sums = *out = cop_report_cluster_new();
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = fd < 0 ? -errno : 0;
	struct rank_reader r;
	bool any = false;

	if (!sums || cop_report_reader_open(&r)) {
		rc = -ENOMEM;
	} else {
		for (unsigned k = COP_REPORT_AGGREGATE; k <= COP_REPORT_OPERATIONS && !rc; k++)
			any |= add_file(&r, fd, prefix, k, sums);
		cop_report_reader_close(&r);
	}
	if (fd >= 0)
		close(fd);
	return rc ? rc : any ? 0 : -ENODATA;
}

int cop_report_ranks_sum(const char *dir, struct cop_report_cluster **out, uint64_t *faults)
{
	struct cop_report_aggregate what = {.job_dir = dir};
	struct ranks_result ranks = {0};
	int rc = cop_report_read_ranks(dir, &what, &ranks, NULL);

	*faults = ranks.faults.count;
	*out = ranks.sums;
	ranks.sums = NULL;
	if (!rc && !ranks.found)
		rc = -ENOENT;
	if (!rc && !(ranks.files[COP_REPORT_AGGREGATE] + ranks.files[COP_REPORT_OPERATIONS]))
		rc = -ENODATA;
	cop_report_ranks_fini(&ranks);
	return rc;
}
