/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_PRIV_H
#define COP_REPORT_PRIV_H

#include "pathclass/pathclass.h"
#include "report/report.h"

/* ---- number.c: numbers without double ---- */

/* Millionths, at most COP_NUMBER_MAX: then every 64-bit counter is exact and so is a sum of latencies, whose files have six decimals. */
typedef unsigned __int128 cop_number_t;
#define COP_NUMBER_UNIT 1000000u
#define COP_NUMBER_MAX ((cop_number_t)UINT64_MAX * COP_NUMBER_UNIT)

/* "12", "0.250000", "1.5e-05" (what is below a millionth is rounded; what is too large is COP_NUMBER_MAX). decimal: it is not
 * written as an integer. -EINVAL for other text, negative numbers among them. */
int cop_report_number_parse(const char *text, cop_number_t *out, bool *decimal);
cop_number_t cop_report_number_add(cop_number_t a, cop_number_t b);
cop_number_t cop_report_number_of_double(double value);
/* With six decimals, or cut to an integer. */
void cop_report_number_print(struct cop_buf *out, cop_number_t n, bool decimal);

/* ---- cluster.c ---- */

/* More names than any version of Copper writes; past that a file is not one of ours. */
#define CLUSTER_NAMES_MAX 1024u
#define CLUSTER_NAME_BYTES 255u

/* A metric is a sum; an operation four counts (calls, hits, misses, negatives) and a sum of seconds. */
struct row {
	char *name;
	uint64_t count[4];
	cop_number_t sum;
	bool decimal;
};
struct rows { /* in order of name */
	struct row *row;
	size_t n, cap;
};
struct cop_report_cluster {
	uint64_t ranks;
	struct rows metrics, ops;
	struct cop_pathclass_totals classes;
	bool absences_served; /* a row of top paths says so */
};

/* Adds all of from; with -ENOBUFS (too many names) nothing. After -ENOMEM what is in it is anybody's guess. */
int cop_report_cluster_merge(struct cop_report_cluster *into, const struct cop_report_cluster *from);
/* Forgets what was added. */
void cop_report_cluster_clear(struct cop_report_cluster *c);
/* The row of a metric or an operation, or NULL. */
const struct row *cop_report_rows_find(const struct rows *rows, const char *name);
double cop_report_average_us(const struct row *op);

/* ---- write.c ---- */

/* notes: lines for the head of the summary, or NULL. */
int cop_report_cluster_write_noted(const struct cop_report_cluster *c, const char *dir, const char *prefix,
	const char *input, const char *notes, const char *coverage, struct cop_err *err);

#endif
