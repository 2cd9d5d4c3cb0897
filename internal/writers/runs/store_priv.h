/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c checks files without SQLite; db.c opens and closes databases and creates the tables; put.c
 * writes records; beside.c writes the files in STORE.d; open.c and read.c serve readers. Each file
 * calls only those listed before it. */
#ifndef COP_WRITERS_RUNS_STORE_PRIV_H
#define COP_WRITERS_RUNS_STORE_PRIV_H

#include <sqlite3.h>

#include "writers/runs/runs.h"

#define STORE_APPLICATION 0x436f5273 /* "CoRs" */

struct cop_store {
	sqlite3 *db;
	const char *name; /* for messages */
};

/* ---- file.c ---- */
/* Checks whether the file is a run store or can become one. 0: it is one; 1: it is empty or
 * missing. */
int cop_store_look(const char *path, struct cop_err *err);
/* 0, or -ENOLCK if the file system does not support locks. make: creates the file. This process
 * must not have the database open, because closing any descriptor of a file drops all its locks. */
int cop_store_try_lock(const char *path, bool make, struct cop_err *err);

/* ---- db.c ---- */
/* Fills err from the database's last error. */
int cop_store_fail(sqlite3 *db, const char *name, int code, struct cop_err *err);
/* vfs: NULL, or "unix-none", which takes no locks. The caller closes *db even after an error. */
int cop_store_db_open(const char *path, int flags, const char *vfs, uint64_t deadline_ms,
	sqlite3 **db, struct cop_err *err);
/* Opens the store for writing, creating it if needed. The caller closes *db even after an error. */
int cop_store_db_change(const char *path, uint64_t deadline_ms, sqlite3 **db, struct cop_err *err);
/* Creates missing tables. Call within a transaction. */
int cop_store_db_tables(sqlite3 *db, const char *name, struct cop_err *err);
/* In one transaction, creates missing tables and calls work. Rolls back if work fails. */
int cop_store_db_transact(sqlite3 *db, const char *name,
	int (*work)(void *arg, sqlite3 *db, struct cop_err *err), void *arg, struct cop_err *err);

/* A statement executed for many rows. After an error, which is kept in code, all calls do
 * nothing. */
struct step {
	sqlite3 *db;
	sqlite3_stmt *stmt;
	int code;
};
/* A column of a row as text; "" instead of NULL. */
const char *cop_step_column(sqlite3_stmt *q, int col);
struct step cop_step_prepare(sqlite3 *db, const char *sql);
void cop_step_text(struct step *s, int at, const char *value);
void cop_step_real(struct step *s, int at, double value);
void cop_step_integer(struct step *s, int at, uint64_t value);
/* Executes the statement with the bound values. */
void cop_step_row(struct step *s);
/* Frees the statement and returns code. */
int cop_step_finish(struct step *s);

/* ---- put.c ---- */
/* Call within a transaction. */
int cop_store_put_record(sqlite3 *db, const char *name, const struct cop_runrec *r,
	uint64_t from_step, struct cop_err *err);

/* ---- beside.c ---- */
/* Calls take for each record in STORE.d, and removes the file if take returns 0, unless keep is
 * set. Adds a line to notes, which may be NULL, for each unreadable record. Returns the number of
 * records that remain; 0 if there is no directory. */
size_t cop_store_each_beside(const char *path,
	int (*take)(void *arg, const struct cop_runrec *r, struct cop_err *err), void *arg,
	bool keep, struct cop_buf *notes);

/* ---- where.c: terms of a filter ---- */
struct store_key {
	const char *sql;
	char key[COP_RUNREC_KEY_MAX + 1]; /* "": a column */
};
struct store_where {
	struct store_key key;
	const char *op;
	char value[COP_RUNREC_VALUE_MAX + 1];
	bool is_number;
	double number;
};
int cop_store_parse_where(const char *text, struct store_where *out, struct cop_err *err);
int cop_store_parse_sort(const char *text, struct store_key *out, bool *down, struct cop_err *err);
/* Both append SQL. parameter: the number of the key's SQL parameter; the next two are the value, as
 * text and as a number. */
void cop_store_put_where(struct cop_buf *sql, const struct store_where *w, unsigned parameter);
void cop_store_put_sort(
	struct cop_buf *sql, const struct store_key *key, bool down, unsigned parameter);

#endif
