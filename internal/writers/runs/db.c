/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/store_priv.h"

#include <time.h>

#define TEXT_OF(x) #x
#define NUMBER_TEXT(x) TEXT_OF(x)

/* copper-formats(5) documents these tables. Increment COP_STORE_FORM with every change to them. */
static const char schema[] =
	"CREATE TABLE run (id TEXT PRIMARY KEY NOT NULL, name TEXT NOT NULL, \"group\" TEXT NOT NULL,"
	" status TEXT NOT NULL CHECK (status IN ('RUNNING', 'FINISHED', 'FAILED')),"
	" start REAL NOT NULL, \"end\" REAL, nodes INTEGER NOT NULL, version TEXT NOT NULL,"
	" exit_reason TEXT NOT NULL, seen REAL NOT NULL, beat REAL NOT NULL);"
	"CREATE INDEX run_start ON run (start);"
	"CREATE TABLE param (run TEXT NOT NULL REFERENCES run (id), key TEXT NOT NULL,"
	" value TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID;"
	"CREATE TABLE tag (run TEXT NOT NULL REFERENCES run (id), key TEXT NOT NULL,"
	" value TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID;"
	"CREATE TABLE resource (run TEXT NOT NULL REFERENCES run (id), key TEXT NOT NULL,"
	" value TEXT NOT NULL, PRIMARY KEY (run, key)) WITHOUT ROWID;"
	"CREATE TABLE metric (run TEXT NOT NULL REFERENCES run (id), key TEXT NOT NULL,"
	" value REAL NOT NULL, step INTEGER NOT NULL, time REAL NOT NULL,"
	" PRIMARY KEY (run, key, step)) WITHOUT ROWID;"
	"CREATE VIEW run_now AS SELECT id, name, \"group\","
	" CASE WHEN status = 'RUNNING' AND (julianday('now') - 2440587.5) * 86400 > seen + 4 * beat"
	" THEN 'LOST' ELSE status END AS status, start, \"end\", nodes, version, exit_reason, seen, beat,"
	" coalesce(\"end\", seen) - start AS seconds,"
	" datetime(start, 'unixepoch') AS start_utc, datetime(\"end\", 'unixepoch') AS end_utc FROM run;"
	"CREATE VIEW metric_last AS SELECT run, key, value, step, time FROM metric AS m"
	" WHERE step = (SELECT max(step) FROM metric WHERE run = m.run AND key = m.key);";

/* Maps an SQLite result code to -errno. */
static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_DONE:
	case SQLITE_ROW:
		return 0;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
	case SQLITE_PROTOCOL:
		return -EBUSY;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
	case SQLITE_CANTOPEN:
		return -EACCES;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return -EMEDIUMTYPE;
	default:
		return -EIO;
	}
}

static const char *sentence_for(int rc, const char *said)
{
	switch (-rc) {
	case EBUSY:
		return "is locked by another process, which does not let go of it";
	case ENOSPC:
		return "its file system is full, or a limit on file sizes is reached";
	case EROFS:
		return "cannot be changed: it is read-only";
	case EACCES:
		return "cannot be opened or changed: its directory must be writable, for SQLite's journal";
	case EMEDIUMTYPE:
		return "is damaged; what is whole in it can be had with sqlite3's .recover";
	default:
		return said;
	}
}

int cop_store_fail(sqlite3 *db, const char *name, int code, struct cop_err *err)
{
	int rc = errno_of(code);

	/* SQLite reports a full disk as an I/O error while writing its journal. */
	if (rc == -EIO && db && sqlite3_system_errno(db) == ENOSPC)
		rc = -ENOSPC;
	if (rc == -EIO && db && sqlite3_system_errno(db) == ENOLCK)
		rc = -ENOLCK;
	return cop_err_set(err, -rc, "%s: %s", name,
		sentence_for(rc, db ? sqlite3_errmsg(db) : sqlite3_errstr(code)));
}

/* SQLite's busy handler: sleeps briefly, and gives up at the connection's deadline. */
static int wait_for_lock(void *arg, int tries)
{
	uint64_t deadline_ms = (uintptr_t)arg, now_ms = cop_now_ms();
	struct timespec nap = {.tv_nsec = (tries < 5 ? 5 : tries < 20 ? 20 : 50) * 1000000L};

	if (now_ms >= deadline_ms)
		return 0;
	nanosleep(&nap, NULL);
	return 1;
}

int cop_store_db_open(const char *path, int flags, const char *vfs, uint64_t deadline_ms,
	sqlite3 **db, struct cop_err *err)
{
	int code = sqlite3_open_v2(path, db, flags | SQLITE_OPEN_NOMUTEX, vfs);

	if (code)
		return cop_store_fail(*db, path, code, err);
	sqlite3_busy_handler(*db, wait_for_lock, (void *)(uintptr_t)deadline_ms);
#ifdef SQLITE_DBCONFIG_TRUSTED_SCHEMA
	/* Restrict views and triggers in other users' files to plain SQL. */
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
#endif
	return 0;
}

static int form_of(void *arg, int n, char **value, char **name)
{
	(void)n;
	(void)name;
	snprintf(arg, 16, "%s", value[0] ? value[0] : "");
	return 0;
}

int cop_store_db_tables(sqlite3 *db, const char *name, struct cop_err *err)
{
	char form[16] = "";
	int code = sqlite3_exec(db, "PRAGMA user_version", form_of, form, NULL);

	if (!code && strcmp(form, NUMBER_TEXT(COP_STORE_FORM)) == 0)
		return 0;
	if (!code && strcmp(form, "0") != 0)
		return cop_err_set(err, EPROTO,
			"%s: is a run store of format %s, and this version knows format %d", name,
			form, COP_STORE_FORM);
	if (!code)
		code = sqlite3_exec(db, schema, NULL, NULL, NULL);
	if (!code) {
		char pragma[96];

		snprintf(pragma, sizeof(pragma),
			"PRAGMA application_id = %d; PRAGMA user_version = %d", STORE_APPLICATION,
			COP_STORE_FORM);
		code = sqlite3_exec(db, pragma, NULL, NULL, NULL);
	}
	return code ? cop_store_fail(db, name, code, err) : 0;
}

int cop_store_db_change(const char *path, uint64_t deadline_ms, sqlite3 **db, struct cop_err *err)
{
	int rc = cop_store_look(path, err);

	rc = rc < 0 ? rc : cop_store_try_lock(path, true, err);
	return rc ? rc : cop_store_db_open(path, SQLITE_OPEN_READWRITE, NULL, deadline_ms, db, err);
}

int cop_store_db_transact(sqlite3 *db, const char *name,
	int (*work)(void *arg, sqlite3 *db, struct cop_err *err), void *arg, struct cop_err *err)
{
	int code = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	int rc = code ? cop_store_fail(db, name, code, err) : cop_store_db_tables(db, name, err);

	if (!rc)
		rc = work(arg, db, err);
	if (!rc) {
		code = sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
		rc = code ? cop_store_fail(db, name, code, err) : 0;
	}
	if (rc)
		sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}

/* ---- statements ---- */

const char *cop_step_column(sqlite3_stmt *q, int col)
{
	const char *t = (const char *)sqlite3_column_text(q, col);

	return t ? t : "";
}

struct step cop_step_prepare(sqlite3 *db, const char *sql)
{
	struct step s = {.db = db};

	s.code = sqlite3_prepare_v2(db, sql, -1, &s.stmt, NULL);
	return s;
}

void cop_step_text(struct step *s, int at, const char *value)
{
	if (!s->code)
		s->code = sqlite3_bind_text(s->stmt, at, value, -1, SQLITE_STATIC);
}

void cop_step_real(struct step *s, int at, double value)
{
	if (!s->code)
		s->code = sqlite3_bind_double(s->stmt, at, value);
}

void cop_step_integer(struct step *s, int at, uint64_t value)
{
	if (!s->code)
		s->code = sqlite3_bind_int64(s->stmt, at, (sqlite3_int64)value);
}

void cop_step_row(struct step *s)
{
	if (s->code)
		return;
	s->code = sqlite3_step(s->stmt);
	if (s->code == SQLITE_DONE)
		s->code = sqlite3_reset(s->stmt);
}

int cop_step_finish(struct step *s)
{
	sqlite3_finalize(s->stmt);
	return s->code;
}

const char *cop_store_library(void)
{
	return sqlite3_libversion();
}
