/* SPDX-License-Identifier: BSD-3-Clause */
/* store: the run store, one SQLite database for the runs of many jobs, and the folder STORE.d
 * beside it for records that could not be written into it. No other module uses SQLite.
 * copper-formats(5) documents the tables; people bring their own SQL.
 *
 * A write is one transaction with a deadline. The journal is SQLite's rollback journal, because
 * parallel file systems have no shared memory for a write-ahead log. A file that is not a run store
 * is never changed. Sentences begin with the name of the file.
 *
 * Errors of all functions: -EBUSY (locked until the deadline), -ENOLCK (the file system refuses
 * locks), -EPROTO (the store of a later version), -EMEDIUMTYPE (the file is something else),
 * -ENOSPC, -EROFS, -EACCES, -ENOENT, -EISDIR, -ENOMEM, -EIO. */
#ifndef COP_WRITERS_STORE_H
#define COP_WRITERS_STORE_H

#include "base/base/base.h"
#include "writers/runrec/runrec.h"

#define COP_STORE_FORM 1 /* PRAGMA user_version */

/* ---- writing ---- */

/* Writes the record into the store, which is created if it does not exist. With from_step > 0
 * writes only the run itself and the points from that step on; otherwise all of it, in place of
 * what the store has of this run. A record that is older than what the store has changes nothing.
 * One thread at a time. */
int cop_store_put(const char *path, const struct cop_runrec *r, uint64_t from_step,
	uint64_t deadline_ms, struct cop_err *err);
/* Writes the record into STORE.d, whole or not at all; the next reader moves it into the store. */
int cop_store_put_beside(const char *path, const struct cop_runrec *r, struct cop_err *err);
/* Removes it again, unless a reader has already moved it. */
void cop_store_drop_beside(const char *path, const char *id);
/* Reads a file with one record into r, which must be empty and which the caller frees in any
 * case. */
int cop_store_read_record(const char *file, struct cop_runrec *r, struct cop_err *err);

/* ---- reading ---- */

struct cop_store;

/* Moves the records of STORE.d into the store, then opens the store for reading. If the store
 * cannot be changed, the records of STORE.d are read together with it and stay where they are.
 * Records that cannot be read stay, too; each has a line in notes. */
int cop_store_open(
	const char *path, struct cop_store **out, struct cop_buf *notes, struct cop_err *err);
void cop_store_close(struct cop_store *s);

struct cop_store_filter {
	bool by_status;
	enum cop_runrec_status status; /* may be LOST */
	double since_s;                /* only runs that started then or later; 0: all */
	const char *tag; /* KEY=VALUE; name= and group= mean those of the run; NULL: all */
};
struct cop_store_runs {
	struct cop_runrec *at; /* without lists and series; newest first */
	size_t n;
};
/* Lists runs. A run that has not reported for four of its beats is LOST. */
int cop_store_runs(struct cop_store *s, const struct cop_store_filter *filter,
	struct cop_store_runs *out, struct cop_err *err);
void cop_store_runs_free(struct cop_store_runs *runs);
/* Finds one run by the first characters of its identifier, or as "last", the newest, or "last~N",
 * the Nth before it. -ENOENT and -EINVAL (several match) with sentences. */
int cop_store_find(
	struct cop_store *s, const char *ref, char id[COP_RUNREC_ID_LEN + 1], struct cop_err *err);
/* Reads everything about one run into r, which must be empty and which the caller frees in any
 * case. */
int cop_store_load(struct cop_store *s, const char *id, struct cop_runrec *r, struct cop_err *err);

/* The version of SQLite. */
const char *cop_store_library(void);

#endif
