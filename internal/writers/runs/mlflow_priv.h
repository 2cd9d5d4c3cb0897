/* SPDX-License-Identifier: BSD-3-Clause */
/* MLflow's databases: mlflow_db.c opens one and creates its tables; mlflow_export.c and
 * mlflow_import.c copy rows between such a database and a store. Each has its own connection,
 * because a store may be in memory (open.c). Data without a column in the store's own tables goes
 * into its mlflow_* tables, which only imports create. */
#ifndef COP_WRITERS_RUNS_MLFLOW_PRIV_H
#define COP_WRITERS_RUNS_MLFLOW_PRIV_H

#include "writers/runs/store_priv.h"

/* MLflow stores infinity as the largest finite number. */
#define MLFLOW_INFINITY "1.7976931348623157e308"

/* Fields of a run without an MLflow column become tags with this prefix. */
#define MLFLOW_OWN "copper."
#define MLFLOW_RESOURCE MLFLOW_OWN "resource."

struct mlflow {
	sqlite3 *db;
	const char *name; /* for messages */
	bool created;     /* this export created the file */
	bool made;        /* and created its tables */
	bool workspaces;  /* experiments have a workspace column */
};

/* Opens the database and begins a transaction; write: creates the database if needed. -EPROTO, with
 * both versions in the message: unknown schema; -EMEDIUMTYPE: another program's database. The
 * caller closes it even after an error. */
int cop_mlflow_open(
	struct mlflow *m, const char *file, bool write, uint64_t deadline_ms, struct cop_err *err);
/* Creates the indices of a new database. */
int cop_mlflow_index(struct mlflow *m);
/* Commits if rc is 0; otherwise rolls back, and removes a file that this export created. Returns
 * rc, or -errno with a message. */
int cop_mlflow_close(struct mlflow *m, int rc, struct cop_err *err);

/* Creates a store's mlflow_* tables; for_reading: only missing ones, as temporary tables of this
 * connection. */
int cop_mlflow_side_tables(sqlite3 *store, bool for_reading);

/* Adds the SQL functions copper_id(run_uuid), copper_text(real) and copper_real(text); the last two
 * convert without loss. */
int cop_mlflow_functions(sqlite3 *db);

/* Copies rows from a query on one connection to a statement on another. */
struct transfer {
	sqlite3 *from_db, *to_db;
	sqlite3_stmt *from, *to;
	int code;
	bool from_failed; /* the error is from the query */
};
struct transfer cop_transfer_prepare(
	sqlite3 *from_db, const char *query, sqlite3 *to_db, const char *to);
void cop_transfer_text(struct transfer *t, int at, const char *value);
void cop_transfer_integer(struct transfer *t, int at, int64_t value);
/* Runs the query with its bound values, and executes the statement once per row. */
void cop_transfer_rows(struct transfer *t);
int cop_transfer_finish(struct transfer *t);

#endif
