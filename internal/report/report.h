/* SPDX-License-Identifier: BSD-3-Clause */
/* report: what is said about a job after it: sums over its ranks (aggregate) and what it used of its environment (paths). It reads
 * job directories, those of Copper 1.0 too, and believes nothing that it reads there. It knows no running node. */
#ifndef COP_REPORT_H
#define COP_REPORT_H

#include "base/base.h"
#include "pathclass/pathclass.h"

/* ---- sums over ranks: the cluster files of copper-formats.5 -------------------------------------------------------------------- */

struct cop_report_cluster;

/* One row of an operations file. */
struct cop_report_op {
	uint64_t calls, hits, misses, negatives;
	double latency_s;
};

/* One row of a top paths file, in the order of its columns. */
enum cop_report_top_count {
	COP_REPORT_TOP_EVENTS, COP_REPORT_TOP_HITS, COP_REPORT_TOP_MISSES, COP_REPORT_TOP_NEGATIVES,
	COP_REPORT_TOP_TTL_STORES, COP_REPORT_TOP_TTL_SERVES, COP_REPORT_TOP_TTL_EXPIRES,
	COP_REPORT_TOP_TTL_CLEARS,
	COP_REPORT_TOP_COUNTS
};

/* NULL without memory. */
struct cop_report_cluster *cop_report_cluster_new(void);
void cop_report_cluster_free(struct cop_report_cluster *c);
/* n more ranks are in the sums. */
void cop_report_cluster_ranks(struct cop_report_cluster *c, uint64_t n);
/* Each adds to the row of that name; value is a number as a CSV file has it ("12", "0.250000"), -EINVAL if it is none. -ENOMEM;
 * -ENOBUFS past 1,024 different names, or for a name that is empty or above 255 bytes. Sums stop at 2^64-1 and latencies are
 * rounded to microseconds row by row: the order of adding does not matter. Of a top path only its class is kept: a row for each
 * rank and path, as the files of the ranks have them, gives the table of Copper 1.0 (its "Entries" are rows). */
int cop_report_cluster_metric(struct cop_report_cluster *c, const char *name, const char *value);
int cop_report_cluster_op(struct cop_report_cluster *c, const char *name, const struct cop_report_op *op);
int cop_report_cluster_top(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS]);
/* The rows of many ranks at once, by class, where the ranks summed them up themselves (pathclass.h). */
int cop_report_cluster_classes(struct cop_report_cluster *c, const struct cop_pathclass_totals *rows,
	bool absences_served);
/* Writes <dir>/<prefix>-profiling_{aggregate,operations}.csv and -profiling_summary.md, each whole or not at all; makes dir.
 * input: the directory that the summary names; coverage: text for its path coverage table, or NULL for none. */
int cop_report_cluster_write(const struct cop_report_cluster *c, const char *dir, const char *prefix,
	const char *input, const char *coverage, struct cop_err *err);

#endif
