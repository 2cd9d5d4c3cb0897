/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a store for reading, or as much of it as is readable. */
#include "writers/runs/take_priv.h"

#include <fcntl.h>
#include <limits.h>

#define LOCKED_MS 10000
#define TAKE_MS 5000

/* ---- STORE.d and logs ---- */

struct taking {
	const char *path;
	uint64_t deadline_ms;
	int rc; /* result for the store itself; after an error, the rest is skipped */
};

static int take_in(void *arg, const struct cop_runrec *r, struct cop_err *err)
{
	struct taking *t = arg;

	if (!t->rc)
		t->rc = cop_store_put(t->path, r, 0, t->deadline_ms, err);
	return t->rc;
}

/* ---- the store alone ---- */

/* A process killed during a transaction leaves a journal behind, which only a user with write
 * access can roll back. */
static int open_stored(const char *path, sqlite3 **db, struct cop_err *err)
{
	uint64_t deadline_ms = cop_now_ms() + LOCKED_MS;
	bool locks = cop_store_try_lock(path, false, NULL) != -ENOLCK;
	const char *vfs = locks ? NULL : "unix-none";
	int rc = cop_store_db_open(path, SQLITE_OPEN_READONLY, vfs, deadline_ms, db, err);
	int code;

	if (rc)
		return rc;
	code = sqlite3_exec(*db, "SELECT count(*) FROM run", NULL, NULL, NULL);
	if (!code)
		return 0;
	rc = cop_store_fail(*db, path, code, err);
	if (rc != -EROFS && rc != -EACCES)
		return rc;
	sqlite3_close(*db);
	*db = NULL;
	rc = cop_store_db_open(path, SQLITE_OPEN_READWRITE, vfs, deadline_ms, db, err);
	if (rc)
		return rc;
	code = sqlite3_exec(*db, "SELECT count(*) FROM run", NULL, NULL, NULL);
	return code ? cop_store_fail(*db, path, code, err) : 0;
}

/* ---- the store and STORE.d, in memory ---- */

static int copy_into(struct cop_store *s, sqlite3 *memory, struct cop_err *err)
{
	sqlite3_backup *b = sqlite3_backup_init(memory, "main", s->db, "main");
	int code = b ? sqlite3_backup_step(b, -1) : sqlite3_errcode(memory);

	if (b)
		sqlite3_backup_finish(b);
	return code == SQLITE_DONE ? 0 : cop_store_fail(memory, s->name, code, err);
}

static int add_record(void *arg, const struct cop_runrec *r, struct cop_err *err)
{
	struct cop_store *s = arg;

	return cop_store_put_record(s->db, s->name, r, 0, err);
}

/* Imports program logs, keeping files of running programs. Returns whether the store could not be
 * updated. */
static bool take_logs(const char *path, struct cop_buf *notes)
{
	struct cop_take *t = cop_take_new();
	char dir[PATH_MAX];
	struct cop_err ignored;
	bool left = false;

	if (t && snprintf(dir, sizeof(dir), "%s.d", path) < PATH_MAX) {
		left = cop_take_logs(t, dir, NULL, path, cop_now_ms() + TAKE_MS, notes, &ignored) !=
		       0;
		rmdir(dir);
	}
	cop_take_free(t);
	return left;
}

/* Reads the store and STORE.d into memory. The earlier notes already report what is unreadable. */
static int read_together(struct cop_store *s, const char *path, struct cop_err *err)
{
	sqlite3 *memory = NULL;
	char dir[PATH_MAX];
	int rc = cop_store_db_open(
		":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL, 0, &memory, err);

	if (!rc && s->db)
		rc = copy_into(s, memory, err);
	sqlite3_close(s->db);
	s->db = memory;
	if (!rc)
		rc = cop_store_db_tables(memory, s->name, err);
	if (!rc)
		cop_store_each_beside(path, add_record, s, true, NULL);
	if (!rc && snprintf(dir, sizeof(dir), "%s.d", path) < PATH_MAX)
		rc = cop_take_into(memory, dir, err);
	return rc;
}

/* ---- both ---- */

static int no_store(const char *path, struct cop_err *err)
{
	if (access(path, F_OK) == 0)
		return cop_err_set(err, ENOENT,
			"%s: is an empty file: no run has been recorded here yet", path);
	return cop_err_set(err, ENOENT,
		"%s: there is no run store; copper mount --store FILE records runs in one", path);
}

static int open_all(
	struct cop_store *s, const char *path, struct cop_buf *notes, struct cop_err *err)
{
	struct taking t = {.path = path, .deadline_ms = cop_now_ms() + TAKE_MS};
	int rc = cop_store_look(path, err);
	size_t left;

	if (rc < 0)
		return rc;
	left = cop_store_each_beside(path, take_in, &t, false, notes);
	left += take_logs(path, notes);
	rc = cop_store_look(path, err);
	if (rc < 0 || (rc == 1 && !left))
		return rc < 0 ? rc : no_store(path, err);
	rc = rc == 1 ? 0 : open_stored(path, &s->db, err);
	return !rc && left ? read_together(s, path, err) : rc;
}

int cop_store_open(
	const char *path, struct cop_store **out, struct cop_buf *notes, struct cop_err *err)
{
	struct cop_store *s = calloc(1, sizeof(*s));
	int rc = s ? 0 : cop_err_set(err, ENOMEM, "%s: no memory to read it", path);

	if (!rc) {
		s->name = path;
		rc = open_all(s, path, notes, err);
	}
	if (rc) {
		cop_store_close(s);
		s = NULL;
	}
	*out = s;
	return rc;
}

void cop_store_close(struct cop_store *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	free(s);
}
