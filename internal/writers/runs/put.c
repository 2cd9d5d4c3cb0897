/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/store_priv.h"

/* ---- one record ---- */

static int put_run(sqlite3 *db, const struct cop_runrec *r)
{
	struct step s = cop_step_prepare(db,
		"INSERT INTO run VALUES (?1, ?2, ?3, ?4, ?5, nullif(?6, 0), ?7, ?8, ?9, ?10, ?11)"
		" ON CONFLICT (id) DO UPDATE SET name = ?2, \"group\" = ?3, status = ?4, start = ?5,"
		" \"end\" = nullif(?6, 0), nodes = ?7, version = ?8, exit_reason = ?9, seen = ?10, beat = ?11");

	cop_step_text(&s, 1, r->id);
	cop_step_text(&s, 2, cop_runrec_get(r, COP_RUNREC_NAME));
	cop_step_text(&s, 3, cop_runrec_get(r, COP_RUNREC_GROUP));
	cop_step_text(&s, 4, cop_runrec_status_name(r->status));
	cop_step_real(&s, 5, r->start_s);
	cop_step_real(&s, 6, r->end_s);
	cop_step_integer(&s, 7, r->nodes);
	cop_step_text(&s, 8, cop_runrec_get(r, COP_RUNREC_VERSION));
	cop_step_text(&s, 9, cop_runrec_get(r, COP_RUNREC_REASON));
	cop_step_real(&s, 10, r->seen_s);
	cop_step_real(&s, 11, r->beat_s);
	cop_step_row(&s);
	return cop_step_finish(&s);
}

/* Keeps the pairs that programs wrote for the same run. */
static int put_list(sqlite3 *db, const struct cop_runrec *r, enum cop_runrec_list l)
{
	char sql[160];
	struct step s;

	snprintf(sql, sizeof(sql),
		"INSERT INTO %s VALUES (?1, ?2, ?3) ON CONFLICT (run, key) DO UPDATE SET value = ?3",
		cop_runrec_list_name(l));
	s = cop_step_prepare(db, sql);
	cop_step_text(&s, 1, r->id);
	for (size_t i = 0; i < r->list[l].n; i++) {
		cop_step_text(&s, 2, r->list[l].at[i].key);
		cop_step_text(&s, 3, r->list[l].at[i].value);
		cop_step_row(&s);
	}
	return cop_step_finish(&s);
}

/* Removes points that will be written again, and points that have been thinned out. Keeps series
 * that are not in the record, which belong to programs. */
static int drop_points(sqlite3 *db, const struct cop_runrec *r, uint64_t from_step)
{
	struct step s = cop_step_prepare(db,
		"DELETE FROM metric WHERE run = ?1 AND key = ?4 AND (step >= ?2 OR step % ?3 <> 0)");

	cop_step_text(&s, 1, r->id);
	cop_step_integer(&s, 2, from_step);
	cop_step_integer(&s, 3, r->stride ? r->stride : 1);
	for (size_t i = 0; i < r->series_n; i++) {
		cop_step_text(&s, 4, r->series[i].key);
		cop_step_row(&s);
	}
	return cop_step_finish(&s);
}

static int put_points(sqlite3 *db, const struct cop_runrec *r, uint64_t from_step)
{
	struct step s = cop_step_prepare(db, "INSERT INTO metric VALUES (?1, ?2, ?3, ?4, ?5)");

	cop_step_text(&s, 1, r->id);
	for (size_t i = 0; i < r->series_n; i++)
		for (size_t k = 0; k < r->series[i].n; k++) {
			const struct cop_runrec_point *p = &r->series[i].point[k];

			if (p->step < from_step)
				continue;
			cop_step_text(&s, 2, r->series[i].key);
			cop_step_real(&s, 3, p->value);
			cop_step_integer(&s, 4, p->step);
			cop_step_real(&s, 5, p->time_s);
			cop_step_row(&s);
		}
	return cop_step_finish(&s);
}

/* When Slurm restarts a job, that is a new run, with a reference to the previous one. */
static int put_restart(sqlite3 *db, const char *id)
{
	struct step s = cop_step_prepare(db,
		"INSERT OR IGNORE INTO tag SELECT ?1, 'restart_of', other.run FROM resource AS count"
		" JOIN resource AS job ON job.run = ?1 AND job.key = 'slurm.job_id'"
		" JOIN resource AS other ON other.key = job.key AND other.value = job.value"
		" JOIN run ON run.id = other.run"
		" LEFT JOIN resource AS before ON before.run = other.run AND before.key = count.key"
		" WHERE count.run = ?1 AND count.key = 'slurm.restart_count'"
		" AND CAST(coalesce(before.value, 0) AS INT) < CAST(count.value AS INT)"
		" ORDER BY run.start DESC LIMIT 1");

	cop_step_text(&s, 1, id);
	cop_step_row(&s);
	return cop_step_finish(&s);
}

/* Looks up whether the store has this run, and when it was last seen. */
static int look_for(sqlite3 *db, const struct cop_runrec *r, bool *has, double *seen_s)
{
	struct step s = cop_step_prepare(db, "SELECT seen FROM run WHERE id = ?1");

	cop_step_text(&s, 1, r->id);
	if (!s.code)
		s.code = sqlite3_step(s.stmt);
	*has = s.code == SQLITE_ROW;
	*seen_s = *has ? sqlite3_column_double(s.stmt, 0) : 0;
	if (s.code == SQLITE_ROW || s.code == SQLITE_DONE)
		s.code = SQLITE_OK;
	return cop_step_finish(&s);
}

int cop_store_put_record(sqlite3 *db, const char *name, const struct cop_runrec *r,
	uint64_t from_step, struct cop_err *err)
{
	bool has = false;
	double seen_s = 0;
	int code = look_for(db, r, &has, &seen_s);

	/* The record was saved while the store was unavailable, and is out of date. */
	if (!code && has && seen_s > r->seen_s)
		return 0;
	if (!has)
		from_step = 0;
	if (!code)
		code = put_run(db, r);
	for (unsigned l = 0; l < COP_RUNREC_LISTS && !code && !from_step; l++)
		code = put_list(db, r, l);
	if (!code && !has && cop_runrec_value(r, COP_RUNREC_RESOURCE, "slurm.restart_count"))
		code = put_restart(db, r->id);
	if (!code)
		code = drop_points(db, r, from_step);
	if (!code)
		code = put_points(db, r, from_step);
	return code ? cop_store_fail(db, name, code, err) : 0;
}

/* ---- the transaction ---- */

struct work {
	const char *path;
	const struct cop_runrec *record; /* NULL: write only tags */
	uint64_t from_step;
	const char *id;
	const struct cop_runrec_pairs *tags;
};

/* Writes tags of a run that must be in the store. */
static int put_tags(sqlite3 *db, const struct work *w)
{
	struct step s =
		cop_step_prepare(db, "INSERT INTO tag SELECT id, ?2, ?3 FROM run WHERE id = ?1"
				     " ON CONFLICT (run, key) DO UPDATE SET value = ?3");

	cop_step_text(&s, 1, w->id);
	for (size_t i = 0; i < w->tags->n; i++) {
		cop_step_text(&s, 2, w->tags->at[i].key);
		cop_step_text(&s, 3, w->tags->at[i].value);
		cop_step_row(&s);
	}
	return cop_step_finish(&s);
}

static int put_work(void *arg, sqlite3 *db, struct cop_err *err)
{
	const struct work *w = arg;
	int code;

	if (w->record)
		return cop_store_put_record(db, w->path, w->record, w->from_step, err);
	code = put_tags(db, w);
	return code ? cop_store_fail(db, w->path, code, err) : 0;
}

static int put(struct work *w, uint64_t deadline_ms, struct cop_err *err)
{
	sqlite3 *db = NULL;
	int rc = cop_store_db_change(w->path, deadline_ms, &db, err);

	if (!rc)
		rc = cop_store_db_transact(db, w->path, put_work, w, err);
	sqlite3_close(db);
	return rc;
}

int cop_store_put(const char *path, const struct cop_runrec *r, uint64_t from_step,
	uint64_t deadline_ms, struct cop_err *err)
{
	return put(&(struct work){.path = path, .record = r, .from_step = from_step}, deadline_ms,
		err);
}

int cop_store_put_tags(const char *path, const char *id, const struct cop_runrec_pairs *tags,
	uint64_t deadline_ms, struct cop_err *err)
{
	return put(&(struct work){.path = path, .id = id, .tags = tags}, deadline_ms, err);
}
