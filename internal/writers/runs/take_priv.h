/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts program logs to rows: take.c reads the files and calls rows.c. */
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

/* Call within a transaction. */
void cop_rows_open(struct rows *r, sqlite3 *db);
int cop_rows_close(struct rows *r);
/* The next three functions change only runs outside of Copper jobs, which have no version, except
 * for ROWS_JOB_FAILED, which changes a finished job, and the end of cop_rows_status. */
void cop_rows_time(struct rows *r, enum rows_statement which, const char *id, double time_s);
void cop_rows_text(struct rows *r, enum rows_statement which, const char *id, const char *value);
/* Once FAILED, a run stays FAILED. In a finished job, FAILED means that the program failed. */
void cop_rows_status(struct rows *r, const char *id, enum cop_runrec_status status,
	const char *reason, double time_s);
/* Prefixes a key with "program." if it would conflict with the job's own data. */
void cop_rows_pair(
	struct rows *r, const char *id, enum cop_runrec_list l, const char *key, const char *value);
void cop_rows_point(struct rows *r, const char *id, const char *key, uint64_t step, double time_s,
	double value);

/* Reads the files of a directory into an in-memory database, and keeps the files. */
int cop_take_into(sqlite3 *db, const char *dir, struct cop_err *err);

#endif
