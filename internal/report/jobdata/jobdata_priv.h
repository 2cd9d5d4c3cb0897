/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_JOBDATA_PRIV_H
#define COP_REPORT_JOBDATA_PRIV_H

#include "base/table/table.h"
#include "report/jobdata/jobdata.h"

/* ---- sheet.c: CSV files by the names of their columns ---- */

#define SHEET_COLUMNS_MAX 40
#define SHEET_ROWS_MAX 1000000u

struct sheet {
	const char *const *column; /* names; NULL at the end */
	/* Each row, and before it the header; NULL: the header does not matter. A result other
	 * than 0 ends the reading and is returned. */
	int (*head)(void *arg, const struct cop_csv_record *r);
	int (*row)(void *arg, const struct sheet *s, const struct cop_csv_record *r);
	void *arg;
	int at[SHEET_COLUMNS_MAX]; /* which field; -1: the file has none of this name */
};

/* Reads the regular file dir/name. 0, also if a fault ended it early; -ENOENT if there is no such
 * file or not one of these columns; -ENOMEM. */
int cop_jobdata_sheet(struct sheet *s, const char *dir, const char *name);
/* The same from an input. */
int cop_jobdata_sheet_from(struct sheet *s, cop_csv_read *read, void *arg);
/* "" if the row has no such field. */
const char *cop_jobdata_text(
	const struct sheet *s, const struct cop_csv_record *r, unsigned column, size_t *len);
/* NAN if it is no finite number. */
double cop_jobdata_number(const struct sheet *s, const struct cop_csv_record *r, unsigned column);
/* 0 if it is none or below; at most 2^63. */
uint64_t cop_jobdata_count(const struct sheet *s, const struct cop_csv_record *r, unsigned column);
/* A number, or the name of a statistic. -EINVAL. */
int cop_jobdata_rank(
	const struct sheet *s, const struct cop_csv_record *r, unsigned column, int32_t *rank);
/* A copy; NULL if memory is short. */
char *cop_jobdata_copy(const char *text, size_t len);
/* Makes room for one more: zeroed, NULL if memory is short or there are max already. */
void *cop_jobdata_more(void *array, size_t *n, size_t size, size_t max);
int cop_jobdata_add_value(struct cop_jobdata_values *v, const char *name, double value);

/* ---- the parts; each returns 0 or -ENOMEM, and leaves empty what is not there ---- */

int cop_jobdata_head(struct cop_jobdata *j); /* head.c: logs/ */
int cop_jobdata_sums(struct cop_jobdata *j); /* sums.c */
int cop_jobdata_top(struct cop_jobdata *j);  /* top.c: after sums */
int cop_jobdata_used(struct cop_jobdata *j); /* used.c: paths_dir */

/* cluster_nodes.csv, cluster_telemetry.csv, cluster_events.csv and cluster_warnings.csv from an
 * input. */
typedef int cop_jobdata_from_fn(struct cop_jobdata *j, cop_csv_read *read, void *arg);
cop_jobdata_from_fn cop_jobdata_nodes_from, cop_jobdata_times_from, cop_jobdata_events_from,
	cop_jobdata_warnings_from;
/* Calls it with the contents of dir/name; 0 if there is no such file. */
int cop_jobdata_with_file(
	struct cop_jobdata *j, const char *dir, const char *name, cop_jobdata_from_fn *from);
/* Texts of files that end in a NUL byte; they are changed. */
int cop_jobdata_parse_counts(struct cop_jobdata *j, char *text);
int cop_jobdata_parse_unused(struct cop_jobdata *j, char *text);
/* The head of a log. */
int cop_jobdata_parse_log(struct cop_jobdata *j, const char *log);

#endif
