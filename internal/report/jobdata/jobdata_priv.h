/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_REPORT_JOBDATA_PRIV_H
#define COP_REPORT_JOBDATA_PRIV_H

#include "base/table/table.h"
#include "report/jobdata/jobdata.h"

/* ---- sheet.c: CSV files with columns found by name ---- */

#define SHEET_COLUMNS_MAX 40
#define SHEET_ROWS_MAX 1000000u

struct sheet {
	const char *const *column; /* column names, NULL-terminated */
	/* head (may be NULL) is called for the header, then row for each row. A nonzero return
	 * value stops the reading and is returned to the caller. */
	int (*head)(void *arg, const struct cop_csv_record *r);
	int (*row)(void *arg, const struct sheet *s, const struct cop_csv_record *r);
	void *arg;
	int at[SHEET_COLUMNS_MAX]; /* field number of each column; -1: not in the file */
};

/* Reads the regular file dir/name. Returns 0, even if a fault ended it early; -ENOENT if the file
 * or all of the columns are missing; -ENOMEM. */
int cop_jobdata_sheet(struct sheet *s, const char *dir, const char *name);
/* Reads from an input instead. */
int cop_jobdata_sheet_from(struct sheet *s, cop_csv_read *read, void *arg);
/* The field as text; "" if the row lacks it. */
const char *cop_jobdata_text(
	const struct sheet *s, const struct cop_csv_record *r, unsigned column, size_t *len);
/* The field as a number; NAN if it is not a finite number. */
double cop_jobdata_number(const struct sheet *s, const struct cop_csv_record *r, unsigned column);
/* The field as a count; 0 if it is invalid or negative, and at most 2^63. */
uint64_t cop_jobdata_count(const struct sheet *s, const struct cop_csv_record *r, unsigned column);
/* Parses a rank or the name of a statistic. -EINVAL if it is neither. */
int cop_jobdata_rank(
	const struct sheet *s, const struct cop_csv_record *r, unsigned column, int32_t *rank);
/* Copies the text; NULL if out of memory. */
char *cop_jobdata_copy(const char *text, size_t len);
/* Appends a zeroed element; NULL if out of memory or at max. */
void *cop_jobdata_more(void *array, size_t *n, size_t size, size_t max);
int cop_jobdata_add_value(struct cop_jobdata_values *v, const char *name, double value);

/* ---- the parts; each returns 0 or -ENOMEM, and leaves fields without data empty ---- */

int cop_jobdata_head(struct cop_jobdata *j); /* head.c: reads logs/ */
int cop_jobdata_sums(struct cop_jobdata *j); /* sums.c */
int cop_jobdata_top(struct cop_jobdata *j);  /* top.c: called after cop_jobdata_sums */
int cop_jobdata_used(struct cop_jobdata *j); /* used.c: reads paths_dir */

/* Read cluster_nodes.csv, cluster_telemetry.csv, cluster_events.csv and cluster_warnings.csv from
 * an input. */
typedef int cop_jobdata_from_fn(struct cop_jobdata *j, cop_csv_read *read, void *arg);
cop_jobdata_from_fn cop_jobdata_nodes_from, cop_jobdata_times_from, cop_jobdata_events_from,
	cop_jobdata_warnings_from;
/* Calls from with the contents of dir/name; returns 0 if there is no such file. */
int cop_jobdata_with_file(
	struct cop_jobdata *j, const char *dir, const char *name, cop_jobdata_from_fn *from);
/* Parse NUL-terminated file contents in place. */
int cop_jobdata_parse_counts(struct cop_jobdata *j, char *text);
int cop_jobdata_parse_unused(struct cop_jobdata *j, char *text);
/* Parses the first lines of a log. */
int cop_jobdata_parse_log(struct cop_jobdata *j, const char *log);

#endif
