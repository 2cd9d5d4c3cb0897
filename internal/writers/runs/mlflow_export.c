/* SPDX-License-Identifier: BSD-3-Clause */
/* Exports runs of a store to MLflow. A run imported from MLflow gets its original rows back. For
 * Copper's own runs, fields without an MLflow column become tags, from which an import restores
 * them. */
#include "writers/runs/mlflow_priv.h"

#define DEFAULT_EXPERIMENT "copper"
#define UUID_MAX 64

/* MLflow stores times as integral milliseconds. */
#define MS(column) "CAST(round(" column " * 1000) AS INTEGER)"

/* Both connections have the runs in a temporary table, so that each query covers all runs and
 * returns rows in the index order of the target table. */
static const char chosen[] =
	"CREATE TEMP TABLE chosen (run TEXT PRIMARY KEY, uuid TEXT NOT NULL, own INTEGER NOT NULL)"
	" WITHOUT ROWID";
static const char choose[] = "INSERT OR IGNORE INTO chosen VALUES (?1, ?2, ?3)";
#define FROM(table, t) " FROM chosen AS c CROSS JOIN " table " AS " t " ON " t ".run = c.run"

/* Tags that record NaN values; in MLflow, those are points. */
#define IS_NAN_TAG                                                                                 \
	"(t.key GLOB 'nan.?*' AND t.value GLOB 'step [0-9]*' AND (c.own OR EXISTS (SELECT 1"       \
	" FROM mlflow_metric WHERE run = c.run AND key = substr(t.key, 5) AND is_nan)))"
#define NAN_STEP "CAST(substr(t.value, 6) AS INTEGER)"

/* Tags that MLflow's UI shows, unless the program set them itself. */
#define DERIVED                                                                                    \
	"(SELECT c.run, c.uuid, k.key, CASE k.key WHEN 'mlflow.runName' THEN r.name"               \
	" WHEN 'mlflow.source.name' THEN coalesce((SELECT value FROM param WHERE run = c.run"      \
	" AND key = 'source'), 'copper') ELSE 'JOB' END AS value FROM chosen AS c"                 \
	" CROSS JOIN run AS r ON r.id = c.run CROSS JOIN (SELECT 'mlflow.runName' AS key"          \
	" UNION ALL VALUES ('mlflow.source.name'), ('mlflow.source.type')) AS k WHERE c.own"       \
	" AND NOT EXISTS (SELECT 1 FROM tag WHERE run = c.run AND key = k.key))"

#define TO_METRICS                                                                                 \
	"INSERT OR IGNORE INTO metrics (key, value, timestamp, step, is_nan, run_uuid)"            \
	" VALUES (?1, ?2, ?3, ?4, ?5, ?6)"
#define TO_TAGS "INSERT OR REPLACE INTO tags (key, value, run_uuid) VALUES (?1, ?2, ?3)"

static const struct {
	const char *query, *to;
} rows[] = {
	{"SELECT p.key, p.value, c.uuid" FROM("param", "p") " ORDER BY p.key",
		"INSERT OR REPLACE INTO params (key, value, run_uuid) VALUES (?1, ?2, ?3)"},
	{"SELECT t.key, t.value, c.uuid" FROM("tag", "t") " WHERE NOT " IS_NAN_TAG
							  " ORDER BY t.key",
		TO_TAGS},
	{"SELECT '" MLFLOW_RESOURCE
	 "' || s.key, s.value, c.uuid" FROM("resource", "s") " ORDER BY s.key",
		TO_TAGS},
	{"SELECT key, value, uuid FROM " DERIVED " ORDER BY key", TO_TAGS},
	{"SELECT '" MLFLOW_OWN "derived', group_concat(key, ' '), uuid FROM " DERIVED
	 " GROUP BY run",
		TO_TAGS},
	{"SELECT '" MLFLOW_OWN "' || key, value, uuid FROM (SELECT c.uuid, k.key, CASE k.key"
	 " WHEN 'run' THEN r.id WHEN 'status' THEN r.status WHEN 'group' THEN r.\"group\""
	 " WHEN 'start' THEN copper_text(r.start) WHEN 'end' THEN copper_text(r.\"end\")"
	 " WHEN 'nodes' THEN r.nodes WHEN 'version' THEN r.version WHEN 'exit_reason'"
	 " THEN r.exit_reason WHEN 'seen' THEN copper_text(r.seen) ELSE copper_text(r.beat) END"
	 " AS value FROM (SELECT 'run' AS key UNION ALL VALUES ('status'), ('group'), ('start'),"
	 " ('end'), ('nodes'), ('version'), ('exit_reason'), ('seen'), ('beat')) AS k"
	 " CROSS JOIN chosen AS c CROSS JOIN run_now AS r ON r.id = c.run WHERE c.own)"
	 " WHERE value IS NOT NULL",
		TO_TAGS},
	{"SELECT p.key, max(min(p.value, " MLFLOW_INFINITY "), -" MLFLOW_INFINITY
	 "), " MS("p.time") ", p.step, 0, c.uuid" FROM("metric", "p") " ORDER BY p.key, p.time",
		TO_METRICS},
	{"SELECT p.key, p.value, p.timestamp, p.step, p.is_nan, c.uuid" FROM("mlflow_metric", "p"),
		TO_METRICS},
	{"SELECT substr(t.key, 5), 0, " MS(
		 "coalesce((SELECT time FROM metric WHERE run = c.run"
		 " AND key = substr(t.key, 5) AND step <= " NAN_STEP " ORDER BY step DESC LIMIT 1),"
		 " (SELECT start FROM run WHERE id = c.run))") ", " NAN_STEP ", 1, c.uuid" FROM("tag",
		 "t") " WHERE c.own AND " IS_NAN_TAG " AND NOT EXISTS (SELECT 1 FROM mlflow_metric"
		      " WHERE run = c.run AND key = substr(t.key, 5) AND is_nan)",
		TO_METRICS},
};

static const char own_query[] =
	"SELECT ?2, r.name, coalesce(m.source_type, 'UNKNOWN'), coalesce(m.source_name, ''),"
	" coalesce(m.entry_point_name, ''), coalesce(m.user_id, ''),"
	" CASE r.status WHEN 'LOST' THEN 'KILLED' ELSE r.status END, " MS(
		"r.start") ","
			   " CASE r.status WHEN 'LOST' THEN " MS("r.seen") " ELSE " MS(
				   "r.\"end\"") " END,"
						" coalesce(m.source_version, ''), coalesce(m.lifecycle_stage, 'active'),"
						" coalesce(m.artifact_uri, ?5 || '/' || ?2 || '/artifacts'), ?4, m.deleted_time"
						" FROM run_now AS r LEFT JOIN mlflow_run AS m ON m.run = r.id WHERE r.id = ?1";
/* Keeps MLflow's status unless the store's has changed since the import. */
#define IS_SAME_STATUS                                                                             \
	"(r.status = CASE m.status WHEN 'FINISHED' THEN 'FINISHED' WHEN 'FAILED' THEN 'FAILED'"    \
	" WHEN 'KILLED' THEN 'FAILED' ELSE 'RUNNING' END)"
#define NAME_BY_TAG                                                                                \
	"coalesce((SELECT value FROM tag WHERE run = ?1 AND key = 'mlflow.runName'), 'run')"
static const char foreign_query[] =
	"SELECT ?2, CASE WHEN coalesce(m.name, '') = '' AND r.name = " NAME_BY_TAG " THEN m.name"
	" ELSE r.name END, m.source_type, m.source_name, m.entry_point_name, m.user_id,"
	" CASE WHEN " IS_SAME_STATUS " THEN m.status ELSE r.status END, m.start_time,"
	" CASE WHEN " IS_SAME_STATUS " THEN m.end_time ELSE " MS(
		"r.\"end\"") " END,"
			     " m.source_version, m.lifecycle_stage, m.artifact_uri, ?4, m.deleted_time"
			     " FROM run AS r JOIN mlflow_run AS m ON m.run = r.id WHERE r.id = ?1";
/* Keeps users' changes in MLflow. */
static const char run_to[] =
	"INSERT INTO runs (run_uuid, name, source_type, source_name, entry_point_name, user_id,"
	" status, start_time, end_time, source_version, lifecycle_stage, artifact_uri, experiment_id,"
	" deleted_time) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)"
	" ON CONFLICT (run_uuid) DO UPDATE SET name = ?2, status = ?7, end_time = ?9";
static const char latest[] =
	"INSERT OR REPLACE INTO latest_metrics (key, value, timestamp, step, is_nan, run_uuid)"
	" SELECT key, value, timestamp, step, is_nan, run_uuid FROM (SELECT *, row_number() OVER"
	" (PARTITION BY key, run_uuid ORDER BY step DESC, timestamp DESC, value DESC) AS place"
	" FROM metrics WHERE run_uuid IN (SELECT uuid FROM chosen)) WHERE place = 1";

struct writing {
	struct cop_store *store;
	struct mlflow m;
	const struct cop_mlflow_export *what;
	cop_mlflow_each *each;
	void *arg;
	struct transfer own, foreign; /* copy the row of one run */
	struct step choose[2];
	sqlite3_stmt *look; /* finds a run in the store */
	int64_t experiment; /* the last experiment: its number, name and artifact directory */
	char experiment_name[512], artifacts[1024];
};

static int fail_here(struct writing *e, int code, struct cop_err *err)
{
	return code ? cop_store_fail(e->m.db, e->m.name, code, err) : 0;
}

static int fail_of(struct writing *e, const struct transfer *t, struct cop_err *err)
{
	return t->from_failed && t->code
		       ? cop_store_fail(e->store->db, e->store->name, t->code, err)
		       : fail_here(e, t->code, err);
}

/* ---- experiments ---- */

static int64_t now_ms(void)
{
	return (int64_t)(cop_wall_ns() / 1000000);
}

/* Looks up the experiment; code is SQLITE_ROW if it exists. */
static int look_for_experiment(struct writing *e, const char *name)
{
	struct step s = cop_step_prepare(e->m.db,
		e->m.workspaces
			? "SELECT experiment_id, artifact_location FROM experiments"
			  " WHERE name = ?1 AND workspace = 'default'"
			: "SELECT experiment_id, artifact_location FROM experiments WHERE name = ?1");
	const char *at;

	cop_step_text(&s, 1, name);
	if (!s.code)
		s.code = sqlite3_step(s.stmt);
	if (s.code == SQLITE_ROW) {
		at = (const char *)sqlite3_column_text(s.stmt, 1);
		e->experiment = sqlite3_column_int64(s.stmt, 0);
		snprintf(e->experiment_name, sizeof(e->experiment_name), "%s", name);
		snprintf(e->artifacts, sizeof(e->artifacts), "%s", at ? at : "");
	}
	return cop_step_finish(&s);
}

/* Creates an experiment, with its artifacts next to those of MLflow's first one. */
static int make_experiment(struct writing *e, const char *name)
{
	struct step s = cop_step_prepare(e->m.db,
		"INSERT INTO experiments (experiment_id, name, artifact_location, lifecycle_stage,"
		" creation_time, last_update_time) SELECT n.id, ?1, coalesce((SELECT substr("
		"artifact_location, 1, length(artifact_location) - 1) FROM experiments"
		" WHERE experiment_id = 0 AND artifact_location LIKE '%/0'), './mlruns/') || n.id,"
		" 'active', ?2, ?2 FROM (SELECT coalesce(max(experiment_id) + 1, 0) AS id"
		" FROM experiments) AS n");

	cop_step_text(&s, 1, name);
	cop_step_integer(&s, 2, (uint64_t)now_ms());
	cop_step_row(&s);
	return cop_step_finish(&s);
}

/* Restores the number of an imported experiment if that is free. name "": all experiments. */
static int restore_experiments(struct writing *e, const char *name)
{
	struct transfer t = cop_transfer_prepare(e->store->db,
		"SELECT experiment_id, name, artifact_location, lifecycle_stage, creation_time,"
		" last_update_time FROM mlflow_experiment WHERE ?1 IN ('', name)",
		e->m.db,
		"INSERT OR IGNORE INTO experiments (experiment_id, name, artifact_location,"
		" lifecycle_stage, creation_time, last_update_time) VALUES (?1, ?2, ?3, ?4, ?5, ?6)");
	int code;

	cop_transfer_text(&t, 1, name);
	cop_transfer_rows(&t);
	code = cop_transfer_finish(&t);
	if (code)
		return code;
	t = cop_transfer_prepare(e->store->db,
		"SELECT key, value, experiment FROM mlflow_experiment_tag"
		" WHERE ?1 IN ('', experiment)",
		e->m.db,
		"INSERT OR IGNORE INTO experiment_tags (key, value, experiment_id)"
		" SELECT ?1, ?2, experiment_id FROM experiments WHERE name = ?3");
	cop_transfer_text(&t, 1, name);
	cop_transfer_rows(&t);
	return cop_transfer_finish(&t);
}

/* MLflow requires an experiment number 0. */
static int make_default(struct writing *e)
{
	struct step s = cop_step_prepare(e->m.db,
		"INSERT OR IGNORE INTO experiments (experiment_id, name, artifact_location,"
		" lifecycle_stage, creation_time, last_update_time)"
		" VALUES (0, 'Default', './mlruns/0', 'active', ?1, ?1)");

	cop_step_integer(&s, 1, (uint64_t)now_ms());
	cop_step_row(&s);
	return cop_step_finish(&s);
}

static int find_experiment(struct writing *e, const char *name)
{
	int code = SQLITE_ROW;

	if (e->experiment < 0 || strcmp(name, e->experiment_name) != 0)
		code = look_for_experiment(e, name);
	if (code == SQLITE_DONE) {
		code = restore_experiments(e, name);
		code = code ? code : look_for_experiment(e, name);
	}
	if (code == SQLITE_DONE) {
		code = make_experiment(e, name);
		code = code ? code : look_for_experiment(e, name);
	}
	return code == SQLITE_ROW ? 0 : code ? code : SQLITE_INTERNAL;
}

/* ---- one run ---- */

struct run {
	const char *id;
	char uuid[UUID_MAX], experiment[512], status[16];
	bool own;
};

/* Looks up the run. A Copper run's MLflow ID is its own ID twice, because MLflow's are twice as
 * long. */
static int look_at_run(struct writing *e, struct run *r)
{
	int code = sqlite3_bind_text(e->look, 1, r->id, -1, SQLITE_STATIC);
	const char *group;

	if (!code)
		code = sqlite3_step(e->look);
	if (code == SQLITE_ROW) {
		snprintf(r->status, sizeof(r->status), "%s", cop_step_column(e->look, 0));
		group = cop_step_column(e->look, 1);
		snprintf(r->experiment, sizeof(r->experiment), "%s",
			e->what->experiment ? e->what->experiment
			: *group            ? group
					    : DEFAULT_EXPERIMENT);
		if (sqlite3_column_type(e->look, 2) == SQLITE_NULL)
			snprintf(r->uuid, sizeof(r->uuid), "%.16s%.16s", r->id, r->id);
		else
			snprintf(r->uuid, sizeof(r->uuid), "%s", cop_step_column(e->look, 2));
		r->own = sqlite3_column_int(e->look, 3) != 0;
		code = 0;
	}
	sqlite3_reset(e->look);
	return code;
}

static int choose_run(struct writing *e, const struct run *r, struct cop_err *err)
{
	for (unsigned i = 0; i < 2; i++) {
		struct step *s = &e->choose[i];

		cop_step_text(s, 1, r->id);
		cop_step_text(s, 2, r->uuid);
		cop_step_integer(s, 3, r->own);
		cop_step_row(s);
		if (s->code)
			return cop_store_fail(s->db, e->m.name, s->code, err);
	}
	return 0;
}

static int put_run(struct writing *e, const char *id, struct cop_err *err)
{
	struct run r = {.id = id};
	struct transfer *t;
	int code = look_at_run(e, &r), rc;

	if (code)
		return cop_store_fail(e->store->db, e->store->name, code, err);
	rc = fail_here(e, find_experiment(e, r.experiment), err);
	rc = rc ? rc : choose_run(e, &r, err);
	if (rc)
		return rc;
	t = r.own ? &e->own : &e->foreign;
	cop_transfer_text(t, 1, r.id);
	cop_transfer_text(t, 2, r.uuid);
	cop_transfer_integer(t, 4, e->experiment);
	cop_transfer_text(t, 5, e->artifacts);
	cop_transfer_rows(t);
	e->each(e->arg, &(struct cop_mlflow_run){id, r.uuid, r.experiment, r.status});
	return fail_of(e, t, err);
}

/* Writes the rows of the selected runs. */
static int put_rows(struct writing *e, struct cop_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(rows) && !rc; i++) {
		struct transfer t =
			cop_transfer_prepare(e->store->db, rows[i].query, e->m.db, rows[i].to);

		cop_transfer_rows(&t);
		rc = fail_of(e, &t, err);
		cop_transfer_finish(&t);
	}
	return rc ? rc : fail_here(e, sqlite3_exec(e->m.db, latest, NULL, NULL, NULL), err);
}

/* ---- all runs ---- */

static int put_named(struct writing *e, struct cop_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < e->what->n && !rc; i++)
		rc = put_run(e, e->what->id[i], err);
	return rc;
}

static int put_all(struct writing *e, struct cop_err *err)
{
	sqlite3_stmt *q = NULL;
	int code = sqlite3_prepare_v2(
		e->store->db, "SELECT id FROM run ORDER BY start, id", -1, &q, NULL);
	int rc = 0;

	while (!code && !rc && (code = sqlite3_step(q)) == SQLITE_ROW) {
		char id[COP_RUNREC_ID_LEN + 1];

		snprintf(id, sizeof(id), "%s", cop_step_column(q, 0));
		rc = put_run(e, id, err);
		code = 0;
	}
	sqlite3_finalize(q);
	if (!rc && code != SQLITE_DONE)
		rc = cop_store_fail(e->store->db, e->store->name, code, err);
	return rc;
}

static int prepare(struct writing *e, struct cop_err *err)
{
	sqlite3 *from = e->store->db;
	int code = cop_mlflow_side_tables(from, true);

	if (!code)
		code = cop_mlflow_functions(from);
	if (!code)
		code = sqlite3_prepare_v2(from,
			"SELECT r.status, r.\"group\", m.run_uuid, coalesce(m.copper, 1)"
			" FROM run_now AS r LEFT JOIN mlflow_run AS m ON m.run = r.id WHERE r.id = ?1",
			-1, &e->look, NULL);
	if (!code)
		code = sqlite3_exec(from, chosen, NULL, NULL, NULL);
	if (!code)
		code = sqlite3_exec(e->m.db, chosen, NULL, NULL, NULL);
	if (code)
		return cop_store_fail(from, e->store->name, code, err);
	e->own = cop_transfer_prepare(from, own_query, e->m.db, run_to);
	e->foreign = cop_transfer_prepare(from, foreign_query, e->m.db, run_to);
	e->choose[0] = cop_step_prepare(from, choose);
	e->choose[1] = cop_step_prepare(e->m.db, choose);
	return 0;
}

static int put_runs(struct writing *e, struct cop_err *err)
{
	int rc = prepare(e, err);

	if (!rc && !e->what->n)
		rc = fail_here(e, restore_experiments(e, ""), err);
	if (!rc && e->m.made)
		rc = fail_here(e, make_default(e), err);
	if (!rc)
		rc = e->what->n ? put_named(e, err) : put_all(e, err);
	rc = rc ? rc : put_rows(e, err);
	if (!rc && e->m.made)
		rc = fail_here(e, cop_mlflow_index(&e->m), err);
	cop_transfer_finish(&e->own);
	cop_transfer_finish(&e->foreign);
	cop_step_finish(&e->choose[0]);
	cop_step_finish(&e->choose[1]);
	sqlite3_finalize(e->look);
	sqlite3_exec(e->store->db, "DROP TABLE IF EXISTS temp.chosen", NULL, NULL, NULL);
	return rc;
}

int cop_store_export_mlflow(struct cop_store *s, const struct cop_mlflow_export *what,
	cop_mlflow_each *each, void *arg, struct cop_err *err)
{
	struct writing e = {.store = s, .what = what, .each = each, .arg = arg, .experiment = -1};
	int rc = cop_mlflow_open(&e.m, what->file, true, what->deadline_ms, err);

	if (!rc)
		rc = put_runs(&e, err);
	return cop_mlflow_close(&e.m, rc, err);
}
