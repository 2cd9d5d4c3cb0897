/* SPDX-License-Identifier: BSD-3-Clause */
/* report: what is said about a job after it: sums over its ranks (aggregate) and what it used of its environment (paths). It reads
 * job directories, those of Copper 1.0 too, and believes nothing that it reads there. It knows no running node. */
#ifndef COP_REPORT_H
#define COP_REPORT_H

#include "base/base.h"

/* ---- sums over ranks: the cluster files of copper-formats.5 -------------------------------------------------------------------- */

struct cop_report_cluster;

/* One row of an operations file. */
struct cop_report_op {
	uint64_t calls, hits, misses, negatives;
	double latency_s;
};

/* One row of a top paths file, in the order of its columns. */
enum { COP_REPORT_TOP_COUNTS = 8 };

/* NULL without memory. */
struct cop_report_cluster *cop_report_cluster_new(void);
void cop_report_cluster_free(struct cop_report_cluster *c);
/* n more ranks are in the sums. */
void cop_report_cluster_ranks(struct cop_report_cluster *c, uint64_t n);
/* Each adds to the row of that name; value is a number as a CSV file has it ("12", "0.250000"), -EINVAL if it is none. -ENOMEM. */
int cop_report_cluster_metric(struct cop_report_cluster *c, const char *name, const char *value);
int cop_report_cluster_op(struct cop_report_cluster *c, const char *name, const struct cop_report_op *op);
int cop_report_cluster_top(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS]);
/* Writes <dir>/<prefix>-profiling_{aggregate,operations}.csv and -profiling_summary.md, each whole or not at all; makes dir.
 * input: the directory that the summary names; coverage: text for its path coverage table, or NULL for none. */
int cop_report_cluster_write(const struct cop_report_cluster *c, const char *dir, const char *prefix,
	const char *input, const char *coverage, struct cop_err *err);

#endif
