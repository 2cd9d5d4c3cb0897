/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts MLflow runs to runs of a store. Data that has a column in the store's tables goes there,
 * and the rest into mlflow_* tables, for a later export. */
#include "writers/runs/mlflow_priv.h"

#define TAG(key) "(SELECT value FROM tags WHERE run_uuid = r.run_uuid AND key = '" key "')"
/* Whether run r came from Copper. */
#define IS_OWN                                                                                     \
	"EXISTS (SELECT 1 FROM tags WHERE run_uuid = r.run_uuid AND key = '" MLFLOW_OWN "run')"
/* Copper's exact time, if MLflow's still equals it to the millisecond. */
#define TIME(key, column)                                                                          \
	"CASE WHEN CAST(round(copper_real(" TAG(key) ") * 1000) AS INTEGER) = " column             \
						     " THEN copper_real(" TAG(                     \
							     key) ") ELSE " column " / 1000.0 END"
#define WAS_LOST "(r.status = 'KILLED' AND coalesce(" TAG(MLFLOW_OWN "status") ", '') = 'LOST')"
#define LAST_POINT                                                                                 \
	"coalesce((SELECT max(timestamp) FROM latest_metrics WHERE run_uuid = r.run_uuid), 0)"

/* MLflow runs give no other sign of life. */
#define BEAT "900"

static const char runs_query[] = "SELECT copper_id(r.run_uuid), coalesce(nullif(r.name, ''), " TAG(
	"mlflow.runName") ", 'run'),"
			  " coalesce(" TAG(MLFLOW_OWN
				  "group") ", e.name, ''),"
					   " CASE WHEN " WAS_LOST
					   " THEN 'RUNNING' WHEN r.status = 'FINISHED' THEN 'FINISHED'"
					   " WHEN r.status IN ('FAILED', 'KILLED') THEN 'FAILED' ELSE 'RUNNING' END,"
					   " coalesce(" TIME(MLFLOW_OWN "start",
						   "r.start_time") ", 0),"
								   " CASE WHEN " WAS_LOST
								   " THEN NULL ELSE " TIME(
									   MLFLOW_OWN "end",
									   "r.end_time") " END,"
											 " coalesce(CAST(" TAG(
												 MLFLOW_OWN
												 "nodes") " AS INTEGER), 1),"
													  " coalesce(" TAG(
														  MLFLOW_OWN
														  "version") ", ''),"
															     " coalesce(" TAG(
																     MLFLOW_OWN
																     "exit_reason") ", CASE WHEN r.lifecycle_stage = 'deleted'"
																		    " THEN 'deleted in MLflow' WHEN r.status = 'KILLED' THEN 'killed' ELSE '' END),"
																		    " coalesce(copper_real(" TAG(
																			    MLFLOW_OWN
																			    "seen") "),"
																				    " max(coalesce(r.end_time, 0), coalesce(r.start_time, 0), " LAST_POINT
																				    ") / 1000.0),"
																				    " coalesce(copper_real(" TAG(
																					    MLFLOW_OWN
																					    "beat") "), " BEAT
																						    ") FROM runs AS r"
																						    " LEFT JOIN experiments AS e ON e.experiment_id = r.experiment_id";
/* Changes nothing if the store has newer data about the run. */
static const char runs_to[] =
	"INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)"
	" ON CONFLICT (id) DO UPDATE SET name = ?2, \"group\" = ?3, status = ?4, start = ?5,"
	" \"end\" = ?6, nodes = ?7, version = ?8, exit_reason = ?9, seen = ?10, beat = ?11"
	" WHERE ?10 >= seen";

/* Tags that hold columns of the store, and tags that an export added. */
#define IS_COPPERS                                                                                 \
	"(t.key IN ('" MLFLOW_OWN "run', '" MLFLOW_OWN "status', '" MLFLOW_OWN                     \
	"group', '" MLFLOW_OWN "start', '" MLFLOW_OWN "end', '" MLFLOW_OWN "nodes', '" MLFLOW_OWN  \
	"version', '" MLFLOW_OWN "exit_reason', '" MLFLOW_OWN "seen', '" MLFLOW_OWN                \
	"beat', '" MLFLOW_OWN "derived') OR instr(' ' || coalesce(" TAG(                           \
		MLFLOW_OWN "derived") ", '') || ' ', ' ' || t.key || ' '))"
#define EXPERIMENT_NAME "(SELECT name FROM experiments WHERE experiment_id = r.experiment_id)"

/* Copied in this order. */
static const struct {
	const char *query, *to;
} rows[] = {
	{"SELECT name, experiment_id, artifact_location, lifecycle_stage, creation_time,"
	 " last_update_time FROM experiments",
		"INSERT OR REPLACE INTO mlflow_experiment VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
	{"SELECT e.name, t.key, t.value FROM experiment_tags AS t JOIN experiments AS e"
	 " USING (experiment_id)",
		"INSERT OR REPLACE INTO mlflow_experiment_tag VALUES (?1, ?2, ?3)"},
	{runs_query, runs_to},
	{"SELECT copper_id(r.run_uuid), r.run_uuid, " EXPERIMENT_NAME ", r.name, r.source_type,"
	 " r.source_name, r.entry_point_name, r.user_id, r.status, r.start_time, r.end_time,"
	 " r.source_version, r.lifecycle_stage, r.artifact_uri, r.deleted_time, " IS_OWN
	 " FROM runs AS r",
		"INSERT OR REPLACE INTO mlflow_run VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10,"
		" ?11, ?12, ?13, ?14, ?15, ?16)"},
	{"SELECT copper_id(run_uuid), key, value FROM params",
		"INSERT INTO param VALUES (?1, ?2, ?3) ON CONFLICT (run, key) DO UPDATE"
		" SET value = ?3"},
	{"SELECT copper_id(t.run_uuid), t.key, coalesce(t.value, '') FROM tags AS t JOIN runs AS r"
	 " USING (run_uuid) WHERE t.key NOT GLOB '" MLFLOW_RESOURCE "?*'"
	 " AND NOT (" IS_OWN " AND " IS_COPPERS ")",
		"INSERT INTO tag VALUES (?1, ?2, ?3) ON CONFLICT (run, key) DO UPDATE SET value = ?3"},
	{"SELECT copper_id(run_uuid), substr(key, length('" MLFLOW_RESOURCE "') + 1),"
	 " coalesce(value, '') FROM tags WHERE key GLOB '" MLFLOW_RESOURCE "?*'",
		"INSERT INTO resource VALUES (?1, ?2, ?3) ON CONFLICT (run, key) DO UPDATE"
		" SET value = ?3"},
	/* The store keeps one point per step, the last one. */
	{"SELECT copper_id(run_uuid), key, CASE CAST(value AS REAL) WHEN " MLFLOW_INFINITY
	 " THEN 9e999 WHEN -" MLFLOW_INFINITY " THEN -9e999 ELSE CAST(value AS REAL) END, step,"
	 " timestamp / 1000.0 FROM (SELECT *, row_number() OVER (PARTITION BY run_uuid, key, step"
	 " ORDER BY timestamp DESC, value DESC) AS place FROM metrics WHERE NOT is_nan AND step >= 0)"
	 " WHERE place = 1",
		"INSERT INTO metric VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (run, key, step)"
		" DO UPDATE SET value = ?3, time = ?5 WHERE value <> ?3"
		" OR round(time * 1000) <> round(?5 * 1000)"},
	{"SELECT copper_id(run_uuid), key, CAST(value AS REAL), timestamp, step, is_nan FROM (SELECT *,"
	 " row_number() OVER (PARTITION BY run_uuid, key, step, is_nan ORDER BY timestamp DESC,"
	 " value DESC) AS place FROM metrics) WHERE is_nan OR step < 0 OR place > 1",
		"INSERT OR REPLACE INTO mlflow_metric VALUES (?1, ?2, ?3, ?4, ?5, ?6)"},
	{"SELECT copper_id(run_uuid), 'nan.' || key, 'step ' || min(step) FROM metrics WHERE is_nan"
	 " AND step >= 0 GROUP BY run_uuid, key",
		"INSERT OR IGNORE INTO tag VALUES (?1, ?2, ?3)"},
};

struct import {
	struct mlflow m;
	sqlite3 *db;
	const char *store;
	cop_mlflow_each *each;
	void *arg;
};

/* Rejects runs that would get the same ID in the store. */
static int check_ids(struct import *i, struct cop_err *err)
{
	struct step s = cop_step_prepare(i->m.db,
		"SELECT min(run_uuid), max(run_uuid) FROM runs GROUP BY copper_id(run_uuid)"
		" HAVING count(*) > 1 LIMIT 1");
	int rc = 0;

	if (!s.code)
		s.code = sqlite3_step(s.stmt);
	if (s.code == SQLITE_ROW)
		rc = cop_err_set(err, EEXIST,
			"%s: the runs %.40s and %.40s would have the same ID in a run store: delete one of them with mlflow gc",
			i->m.name, cop_step_column(s.stmt, 0), cop_step_column(s.stmt, 1));
	else if (s.code != SQLITE_DONE)
		rc = cop_store_fail(i->m.db, i->m.name, s.code, err);
	cop_step_finish(&s);
	return rc;
}

static int put_rows(struct import *i, struct cop_err *err)
{
	int rc = 0;

	for (size_t k = 0; k < COP_ARRAY_SIZE(rows) && !rc; k++) {
		struct transfer t = cop_transfer_prepare(i->m.db, rows[k].query, i->db, rows[k].to);

		cop_transfer_rows(&t);
		if (t.code)
			rc = t.from_failed ? cop_store_fail(i->m.db, i->m.name, t.code, err)
					   : cop_store_fail(i->db, i->store, t.code, err);
		cop_transfer_finish(&t);
	}
	return rc;
}

static int name_runs(struct import *i, struct cop_err *err)
{
	struct step s = cop_step_prepare(i->m.db,
		"SELECT copper_id(r.run_uuid), r.run_uuid, coalesce(e.name, ''), r.status FROM runs AS r"
		" LEFT JOIN experiments AS e USING (experiment_id) ORDER BY r.start_time, r.run_uuid");

	while (!s.code || s.code == SQLITE_ROW) {
		s.code = sqlite3_step(s.stmt);
		if (s.code == SQLITE_ROW)
			i->each(i->arg,
				&(struct cop_mlflow_run){cop_step_column(s.stmt, 0),
					cop_step_column(s.stmt, 1), cop_step_column(s.stmt, 2),
					cop_step_column(s.stmt, 3)});
	}
	if (s.code != SQLITE_DONE)
		return cop_store_fail(i->m.db, i->m.name, cop_step_finish(&s), err);
	cop_step_finish(&s);
	return 0;
}

static int put_all(void *arg, sqlite3 *db, struct cop_err *err)
{
	struct import *i = arg;
	int code = cop_mlflow_side_tables(db, false);

	return code ? cop_store_fail(db, i->store, code, err) : put_rows(i, err);
}

static int put_into_store(struct import *i, uint64_t deadline_ms, struct cop_err *err)
{
	int rc = cop_store_db_change(i->store, deadline_ms, &i->db, err);

	if (!rc)
		rc = cop_store_db_transact(i->db, i->store, put_all, i, err);
	sqlite3_close(i->db);
	return rc;
}

int cop_store_import_mlflow(const char *store, const char *file, uint64_t deadline_ms,
	cop_mlflow_each *each, void *arg, struct cop_err *err)
{
	struct import i = {.store = store, .each = each, .arg = arg};
	int rc = cop_mlflow_open(&i.m, file, false, deadline_ms, err);

	rc = rc ? rc : check_ids(&i, err);
	rc = rc ? rc : put_into_store(&i, deadline_ms, err);
	rc = rc ? rc : name_runs(&i, err);
	return cop_mlflow_close(&i.m, rc, err);
}
