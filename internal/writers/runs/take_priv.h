/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts programs' logs to rows: take.c reads the files and calls rows.c. */
#ifndef COP_WRITERS_RUNS_TAKE_PRIV_H
#define COP_WRITERS_RUNS_TAKE_PRIV_H

#include "writers/runs/store_priv.h"

enum rows_statement {
	ROWS_RUN,
	ROWS_SEEN,
	ROWS_NAME,
	ROWS_RENAME,
	ROWS_REGROUP,
	ROWS_PARAM,
	ROWS_TAG,
	ROWS_RESOURCE,
	ROWS_POINT,
	ROWS_NAN,
	ROWS_RUNNING,
	ROWS_FINISHED,
	ROWS_FAILED,
	ROWS_JOB_FAILED,
	ROWS_STATEMENTS
};
struct rows {
	struct step step[ROWS_STATEMENTS];
	int code; /* the first error; all later calls do nothing */
};

/* Within a transaction. */
void cop_rows_open(struct rows *r, sqlite3 *db);
int cop_rows_close(struct rows *r);
/* A run outside of a Copper job has no version; the next three functions change only such runs,
 * except for ROWS_JOB_FAILED, which is for a finished job, and the end of cop_rows_status. */
void cop_rows_time(struct rows *r, enum rows_statement which, const char *id, double time_s);
void cop_rows_text(struct rows *r, enum rows_statement which, const char *id, const char *value);
/* FAILED is sticky; for a finished job, it means that the program failed. */
void cop_rows_status(struct rows *r, const char *id, enum cop_runrec_status status,
	const char *reason, double time_s);
/* A key that would conflict with the job's own data gets the prefix "program.". */
void cop_rows_pair(
	struct rows *r, const char *id, enum cop_runrec_list l, const char *key, const char *value);
void cop_rows_point(struct rows *r, const char *id, const char *key, uint64_t step, double time_s,
	double value);

/* Reads the files of a folder into a database in memory; the files remain. */
int cop_take_into(sqlite3 *db, const char *dir, struct cop_err *err);

#endif
