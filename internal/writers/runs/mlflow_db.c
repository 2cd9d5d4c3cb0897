/* SPDX-License-Identifier: BSD-3-Clause */
/* MLflow's SQLite schema. MLflow migrates it with Alembic, which stores the revision in its own
 * table. The tables for runs have not changed since MLflow 2.0; later revisions add tables, and
 * columns that an export leaves at their defaults. */
#include "writers/runs/mlflow_priv.h"

#include <fcntl.h>
#include <math.h>

/* In migration order. The first is that of MLflow 2.0, which this module creates. */
static const char *const revisions[] = {"97727af70f4d", "3500859a5d39", "7f2a7d5fae7d",
	"2d6e25af4d3e", "acf3f17fdcc7", "867495a8f9d4", "5b0e9adcef9c", "4465047574b1",
	"f5a4f2784254", "0584bdc529eb", "400f98739977", "6953534de441", "bda7b8c39065",
	"cbc13b556ace", "770bee3ae1dd", "a1b2c3d4e5f6", "de4033877273", "1a0cddfcaa16",
	"534353b11cbc", "71994744cf8e", "3da73c924c2f", "bf29a5ff90ea", "1bd49d398cd23",
	"b7c8d9e0f1a2", "5d2d30f0abce", "c9d4e5f6a7b8", "2c33131f4dae", "c8d9e0f1a2b3",
	"1b5f0d9ad7c1", "e1f2a3b4c5d6", "76601a5f987d", "c3d6457b6d8a", "a5b4c3d2e1f0",
	"ae8bbe7743c9", "7d34483879f0", "da6fb0208061", "89d3d66ed43f", "b7e4c1a90f23",
	"6f8d9c3b2a1e", "b7e2c1a4d9f3"};
#define OLDEST revisions[0]
#define NEWEST revisions[COP_ARRAY_SIZE(revisions) - 1]

/* The tables of MLflow 2.0. Later versions detect missing tables and migrate the database when they
 * first open it. Their migrations find constraints with a regular expression that expects each one
 * on its own line. */
static const char schema[] =
	"CREATE TABLE alembic_version (\n"
	" version_num VARCHAR(32) NOT NULL,\n"
	" CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)\n);"
	"CREATE TABLE experiments (\n"
	" experiment_id INTEGER NOT NULL,\n name VARCHAR(256) NOT NULL,\n"
	" artifact_location VARCHAR(256),\n lifecycle_stage VARCHAR(32),\n"
	" creation_time BIGINT,\n last_update_time BIGINT,\n"
	" CONSTRAINT experiment_pk PRIMARY KEY (experiment_id),\n UNIQUE (name),\n"
	" CONSTRAINT experiments_lifecycle_stage CHECK (lifecycle_stage IN ('active',"
	" 'deleted'))\n);"
	"CREATE TABLE experiment_tags (\n"
	" key VARCHAR(250) NOT NULL,\n value VARCHAR(5000),\n experiment_id INTEGER NOT NULL,\n"
	" CONSTRAINT experiment_tag_pk PRIMARY KEY (key, experiment_id),\n"
	" FOREIGN KEY (experiment_id) REFERENCES experiments (experiment_id)\n);"
	"CREATE TABLE runs (\n"
	" run_uuid VARCHAR(32) NOT NULL,\n name VARCHAR(250),\n source_type VARCHAR(20),\n"
	" source_name VARCHAR(500),\n entry_point_name VARCHAR(50),\n user_id VARCHAR(256),\n"
	" status VARCHAR(9),\n start_time BIGINT,\n end_time BIGINT,\n"
	" source_version VARCHAR(50),\n lifecycle_stage VARCHAR(20),\n"
	" artifact_uri VARCHAR(200),\n experiment_id INTEGER,\n deleted_time BIGINT,\n"
	" CONSTRAINT run_pk PRIMARY KEY (run_uuid),\n"
	" CONSTRAINT source_type CHECK (source_type IN ('NOTEBOOK', 'JOB', 'LOCAL',"
	" 'UNKNOWN', 'PROJECT')),\n"
	" CONSTRAINT runs_lifecycle_stage CHECK (lifecycle_stage IN ('active', 'deleted')),\n"
	" FOREIGN KEY (experiment_id) REFERENCES experiments (experiment_id),\n"
	" CHECK (status IN ('SCHEDULED', 'FAILED', 'FINISHED', 'RUNNING', 'KILLED'))\n);"
	"CREATE TABLE params (\n"
	" key VARCHAR(250) NOT NULL,\n value VARCHAR(500) NOT NULL,\n"
	" run_uuid VARCHAR(32) NOT NULL,\n CONSTRAINT param_pk PRIMARY KEY (key, run_uuid),\n"
	" FOREIGN KEY (run_uuid) REFERENCES runs (run_uuid)\n);"
	"CREATE TABLE tags (\n"
	" key VARCHAR(250) NOT NULL,\n value VARCHAR(5000),\n run_uuid VARCHAR(32) NOT NULL,\n"
	" CONSTRAINT tag_pk PRIMARY KEY (key, run_uuid),\n"
	" FOREIGN KEY (run_uuid) REFERENCES runs (run_uuid)\n);"
	"CREATE TABLE metrics (\n"
	" key VARCHAR(250) NOT NULL,\n value FLOAT NOT NULL,\n timestamp BIGINT NOT NULL,\n"
	" run_uuid VARCHAR(32) NOT NULL,\n step BIGINT DEFAULT '0' NOT NULL,\n"
	" is_nan BOOLEAN DEFAULT '0' NOT NULL,\n"
	" CONSTRAINT metric_pk PRIMARY KEY (key, timestamp, step, run_uuid, value, is_nan),\n"
	" FOREIGN KEY (run_uuid) REFERENCES runs (run_uuid),\n CHECK (is_nan IN (0, 1))\n);"
	"CREATE TABLE latest_metrics (\n"
	" key VARCHAR(250) NOT NULL,\n value FLOAT NOT NULL,\n timestamp BIGINT,\n"
	" step BIGINT NOT NULL,\n is_nan BOOLEAN NOT NULL,\n run_uuid VARCHAR(32) NOT NULL,\n"
	" CONSTRAINT latest_metric_pk PRIMARY KEY (key, run_uuid),\n"
	" FOREIGN KEY (run_uuid) REFERENCES runs (run_uuid),\n CHECK (is_nan IN (0, 1))\n);"
	"CREATE TABLE registered_models (\n"
	" name VARCHAR(256) NOT NULL,\n creation_time BIGINT,\n last_updated_time BIGINT,\n"
	" description VARCHAR(5000),\n CONSTRAINT registered_model_pk PRIMARY KEY (name),\n"
	" UNIQUE (name)\n);"
	"CREATE TABLE registered_model_tags (\n"
	" key VARCHAR(250) NOT NULL,\n value VARCHAR(5000),\n name VARCHAR(256) NOT NULL,\n"
	" CONSTRAINT registered_model_tag_pk PRIMARY KEY (key, name),\n"
	" FOREIGN KEY (name) REFERENCES registered_models (name) ON UPDATE CASCADE\n);"
	"CREATE TABLE model_versions (\n"
	" name VARCHAR(256) NOT NULL,\n version INTEGER NOT NULL,\n creation_time BIGINT,\n"
	" last_updated_time BIGINT,\n description VARCHAR(5000),\n user_id VARCHAR(256),\n"
	" current_stage VARCHAR(20),\n source VARCHAR(500),\n run_id VARCHAR(32),\n"
	" status VARCHAR(20),\n status_message VARCHAR(500),\n run_link VARCHAR(500),\n"
	" CONSTRAINT model_version_pk PRIMARY KEY (name, version),\n"
	" FOREIGN KEY (name) REFERENCES registered_models (name) ON UPDATE CASCADE\n);"
	"CREATE TABLE model_version_tags (\n"
	" key VARCHAR(250) NOT NULL,\n value VARCHAR(5000),\n name VARCHAR(256) NOT NULL,\n"
	" version INTEGER NOT NULL,\n"
	" CONSTRAINT model_version_tag_pk PRIMARY KEY (key, name, version),\n"
	" FOREIGN KEY (name, version) REFERENCES model_versions (name, version) ON UPDATE"
	" CASCADE\n);";
/* Created after the rows are inserted, which is faster. */
static const char indices[] =
	"CREATE INDEX index_params_run_uuid ON params (run_uuid);"
	"CREATE INDEX index_metrics_run_uuid ON metrics (run_uuid);"
	"CREATE INDEX index_latest_metrics_run_uuid ON latest_metrics (run_uuid);"
	"CREATE INDEX index_tags_run_uuid ON tags (run_uuid);";

/* Keeps MLflow's original columns, so that an export restores the same rows. */
static const struct {
	const char *name, *columns;
} side[] = {
	{"mlflow_experiment", "name TEXT PRIMARY KEY NOT NULL, experiment_id INTEGER,"
			      " artifact_location TEXT, lifecycle_stage TEXT,"
			      " creation_time INTEGER, last_update_time INTEGER"},
	{"mlflow_experiment_tag", "experiment TEXT NOT NULL, key TEXT NOT NULL, value TEXT,"
				  " PRIMARY KEY (experiment, key)"},
	{"mlflow_run",
		"run TEXT PRIMARY KEY NOT NULL, run_uuid TEXT NOT NULL, experiment TEXT, name TEXT,"
		" source_type TEXT, source_name TEXT, entry_point_name TEXT, user_id TEXT, status TEXT,"
		" start_time INTEGER, end_time INTEGER, source_version TEXT, lifecycle_stage TEXT,"
		" artifact_uri TEXT, deleted_time INTEGER, copper INTEGER NOT NULL"},
	{"mlflow_metric",
		"run TEXT NOT NULL, key TEXT NOT NULL, value REAL NOT NULL,"
		" timestamp INTEGER NOT NULL, step INTEGER NOT NULL,"
		" is_nan INTEGER NOT NULL, PRIMARY KEY (run, key, timestamp, step, value, is_nan)"},
};

static int count(void *arg, int n, char **value, char **name)
{
	(void)n;
	(void)name;
	*(int *)arg = value[0] ? atoi(value[0]) : 0;
	return 0;
}

static int count_tables(sqlite3 *db, const char *where, int *n)
{
	char sql[160];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM sqlite_master WHERE %s", where);
	return sqlite3_exec(db, sql, count, n, NULL);
}

int cop_mlflow_side_tables(sqlite3 *store, bool for_reading)
{
	int code = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(side) && !code; i++) {
		char sql[640], where[64];
		int has = 0;

		snprintf(where, sizeof(where), "name = '%s'", side[i].name);
		code = count_tables(store, where, &has);
		snprintf(sql, sizeof(sql), "CREATE %sTABLE %s (%s) WITHOUT ROWID",
			for_reading ? "TEMP " : "", side[i].name, side[i].columns);
		if (!code && !has)
			code = sqlite3_exec(store, sql, NULL, NULL, NULL);
	}
	return code;
}

/* ---- functions ---- */

static void put_id(sqlite3_context *ctx, int n, sqlite3_value **value)
{
	const char *uuid = (const char *)sqlite3_value_text(value[0]);
	char id[COP_RUNREC_ID_LEN + 1];

	(void)n;
	if (!uuid)
		return;
	if (strlen(uuid) == 2 * COP_RUNREC_ID_LEN &&
		strspn(uuid, "0123456789abcdef") == 2 * COP_RUNREC_ID_LEN)
		snprintf(id, sizeof(id), "%.*s", COP_RUNREC_ID_LEN, uuid);
	else
		snprintf(id, sizeof(id), "%016llx",
			(unsigned long long)cop_hash64(uuid, strlen(uuid), 0));
	sqlite3_result_text(ctx, id, COP_RUNREC_ID_LEN, SQLITE_TRANSIENT);
}

static void put_text(sqlite3_context *ctx, int n, sqlite3_value **value)
{
	char text[32];

	(void)n;
	snprintf(text, sizeof(text), "%.17g", sqlite3_value_double(value[0]));
	sqlite3_result_text(ctx, text, -1, SQLITE_TRANSIENT);
}

static void put_real(sqlite3_context *ctx, int n, sqlite3_value **value)
{
	const char *text = (const char *)sqlite3_value_text(value[0]);
	char *end;
	double v = text ? strtod(text, &end) : 0;

	(void)n;
	if (text && *text && !*end && isfinite(v))
		sqlite3_result_double(ctx, v);
}

int cop_mlflow_functions(sqlite3 *db)
{
	static const struct {
		const char *name;
		void (*call)(sqlite3_context *ctx, int n, sqlite3_value **value);
	} functions[] = {
		{"copper_id", put_id}, {"copper_text", put_text}, {"copper_real", put_real}};
	int code = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(functions) && !code; i++)
		code = sqlite3_create_function(db, functions[i].name, 1,
			SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, functions[i].call, NULL, NULL);
	return code;
}

/* ---- copying rows between connections ---- */

struct transfer cop_transfer_prepare(
	sqlite3 *from_db, const char *query, sqlite3 *to_db, const char *to)
{
	struct transfer t = {.from_db = from_db, .to_db = to_db};

	t.code = sqlite3_prepare_v2(from_db, query, -1, &t.from, NULL);
	t.from_failed = t.code != 0;
	if (!t.code)
		t.code = sqlite3_prepare_v2(to_db, to, -1, &t.to, NULL);
	return t;
}

void cop_transfer_text(struct transfer *t, int at, const char *value)
{
	if (!t->code && at <= sqlite3_bind_parameter_count(t->from))
		t->code = sqlite3_bind_text(t->from, at, value, -1, SQLITE_STATIC);
}

void cop_transfer_integer(struct transfer *t, int at, int64_t value)
{
	if (!t->code && at <= sqlite3_bind_parameter_count(t->from))
		t->code = sqlite3_bind_int64(t->from, at, value);
}

static int put_row(struct transfer *t)
{
	int n = sqlite3_column_count(t->from), code = 0;

	for (int i = 0; i < n && !code; i++)
		code = sqlite3_bind_value(t->to, i + 1, sqlite3_column_value(t->from, i));
	if (!code) {
		code = sqlite3_step(t->to);
		code = code == SQLITE_DONE ? 0 : code ? code : SQLITE_MISUSE;
	}
	sqlite3_reset(t->to);
	return code;
}

void cop_transfer_rows(struct transfer *t)
{
	while (!t->code) {
		int code = sqlite3_step(t->from);

		if (code == SQLITE_DONE)
			break;
		t->from_failed = code != SQLITE_ROW;
		t->code = t->from_failed ? code : put_row(t);
	}
	if (t->from)
		sqlite3_reset(t->from);
}

int cop_transfer_finish(struct transfer *t)
{
	sqlite3_finalize(t->from);
	sqlite3_finalize(t->to);
	return t->code;
}

/* ---- a file ---- */

static int refuse(const struct mlflow *m, const char *revision, struct cop_err *err)
{
	return cop_err_set(err, EPROTO,
		"%s: is an MLflow database of schema %s, and this version of Copper knows those from %s (MLflow 2.0) to %s: an older one needs mlflow db upgrade, a newer one a newer copper",
		m->name, revision, OLDEST, NEWEST);
}

static int is_foreign(const struct mlflow *m, const char *what, struct cop_err *err)
{
	return cop_err_set(
		err, EMEDIUMTYPE, "%s: %s, not MLflow's: name another file", m->name, what);
}

static int keep_text(void *arg, int n, char **value, char **name)
{
	(void)n;
	(void)name;
	snprintf(arg, 64, "%s", value[0] ? value[0] : "");
	return 0;
}

/* In all of these revisions, the tables that this module uses are the same. */
static int check_revision(struct mlflow *m, struct cop_err *err)
{
	char revision[64] = "";
	int code = sqlite3_exec(
		m->db, "SELECT version_num FROM alembic_version", keep_text, revision, NULL);
	int workspaces = 0;

	if (!code)
		code = sqlite3_exec(m->db,
			"SELECT count(*) FROM pragma_table_info('experiments') WHERE name = 'workspace'",
			count, &workspaces, NULL);
	if (code)
		return cop_store_fail(m->db, m->name, code, err);
	m->workspaces = workspaces != 0;
	for (size_t i = 0; i < COP_ARRAY_SIZE(revisions); i++)
		if (strcmp(revision, revisions[i]) == 0)
			return 0;
	return refuse(m, *revision ? revision : "without a number", err);
}

static int make_tables(struct mlflow *m, struct cop_err *err)
{
	char sql[128];
	int code = sqlite3_exec(m->db, schema, NULL, NULL, NULL);

	snprintf(sql, sizeof(sql), "INSERT INTO alembic_version VALUES ('%s')", OLDEST);
	if (!code)
		code = sqlite3_exec(m->db, sql, NULL, NULL, NULL);
	return code ? cop_store_fail(m->db, m->name, code, err) : 0;
}

int cop_mlflow_index(struct mlflow *m)
{
	return sqlite3_exec(m->db, indices, NULL, NULL, NULL);
}

static int check_tables(struct mlflow *m, bool write, struct cop_err *err)
{
	int tables = 0, versions = 0, application = 0;
	int code = sqlite3_exec(m->db, "PRAGMA application_id", count, &application, NULL);

	if (!code)
		code = count_tables(m->db, "type = 'table'", &tables);
	if (!code)
		code = count_tables(
			m->db, "name IN ('alembic_version', 'runs', 'latest_metrics')", &versions);
	if ((code & 0xff) == SQLITE_NOTADB)
		return is_foreign(m, "is no SQLite database", err);
	if (code)
		return cop_store_fail(m->db, m->name, code, err);
	if (application == STORE_APPLICATION)
		return is_foreign(m, "is a run store of Copper", err);
	if (versions == 3)
		return check_revision(m, err);
	if (!tables && write) {
		m->made = true;
		return make_tables(m, err);
	}
	return is_foreign(m, tables ? "is a database of another program" : "is an empty file", err);
}

/* Begins a transaction, so that concurrent readers do not see a partial export. */
static int begin(struct mlflow *m, bool write, struct cop_err *err)
{
	int code = cop_mlflow_functions(m->db);

	/* A larger cache, because keys do not arrive in index order. */
	if (!code)
		code = sqlite3_exec(m->db, "PRAGMA cache_size = -65536", NULL, NULL, NULL);
	if (!code)
		code = sqlite3_exec(m->db, write ? "BEGIN IMMEDIATE" : "BEGIN", NULL, NULL, NULL);
	if ((code & 0xff) == SQLITE_NOTADB)
		return is_foreign(m, "is no SQLite database", err);
	return code ? cop_store_fail(m->db, m->name, code, err) : check_tables(m, write, err);
}

int cop_mlflow_open(
	struct mlflow *m, const char *file, bool write, uint64_t deadline_ms, struct cop_err *err)
{
	int fd = write ? open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666) : -1;
	int flags = write ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;
	uint64_t size;
	int rc;

	*m = (struct mlflow){.name = file, .created = fd >= 0};
	if (fd < 0)
		fd = cop_open_regular(AT_FDCWD, file, &size);
	if (fd < 0)
		return cop_err_set(err, -fd, "%s: %s", file,
			fd == -ENOENT ? "there is no such database" : strerror(-fd));
	close(fd);
	rc = cop_store_db_open(file, flags, NULL, deadline_ms, &m->db, err);
	return rc ? rc : begin(m, write, err);
}

int cop_mlflow_close(struct mlflow *m, int rc, struct cop_err *err)
{
	int code = m->db && !rc ? sqlite3_exec(m->db, "COMMIT", NULL, NULL, NULL) : 0;

	if (code)
		rc = cop_store_fail(m->db, m->name, code, err);
	if (m->db && rc)
		sqlite3_exec(m->db, "ROLLBACK", NULL, NULL, NULL);
	sqlite3_close(m->db);
	if (m->created && rc)
		unlink(m->name);
	*m = (struct mlflow){0};
	return rc;
}
