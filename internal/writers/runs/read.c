/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/grow.h"
#include "writers/runs/store_priv.h"

#define RUN_COLUMNS                                                                                \
	"id, name, \"group\", version, exit_reason, status, start, coalesce(\"end\", 0), seen, beat, nodes"

/* Converts values of other types where possible, because users may have edited the rows. */
static void take_run(sqlite3_stmt *q, struct cop_runrec *r)
{
	static const enum cop_runrec_field fields[] = {
		COP_RUNREC_NAME, COP_RUNREC_GROUP, COP_RUNREC_VERSION, COP_RUNREC_REASON};

	snprintf(r->id, sizeof(r->id), "%s", cop_step_column(q, 0));
	for (unsigned f = 0; f < COP_ARRAY_SIZE(fields); f++)
		cop_runrec_put(r, fields[f], cop_step_column(q, (int)f + 1));
	if (cop_runrec_status_of(cop_step_column(q, 5), &r->status))
		r->status = COP_RUNREC_LOST;
	r->start_s = sqlite3_column_double(q, 6);
	r->end_s = sqlite3_column_double(q, 7);
	r->seen_s = sqlite3_column_double(q, 8);
	r->beat_s = sqlite3_column_double(q, 9);
	r->nodes = (uint32_t)sqlite3_column_int64(q, 10);
}

/* Ends a query. 0, or -errno with a message. */
static int finish_query(
	struct cop_store *s, sqlite3_stmt *q, int code, bool failed, struct cop_err *err)
{
	int rc = code == SQLITE_DONE || code == SQLITE_ROW
			 ? 0
			 : cop_store_fail(s->db, s->name, code, err);

	sqlite3_finalize(q);
	return !rc && failed ? cop_err_set(err, ENOMEM, "%s: no memory to read it", s->name) : rc;
}

/* ---- many runs ---- */

void cop_store_runs_free(struct cop_store_runs *runs)
{
	for (size_t i = 0; i < runs->n; i++)
		cop_runrec_free(&runs->at[i]);
	free(runs->at);
	*runs = (struct cop_store_runs){0};
}

static bool add_run(struct cop_store_runs *out, sqlite3_stmt *q)
{
	if (!COP_GROW_PLAIN(out->at, out->n))
		return false;
	out->at[out->n] = (struct cop_runrec){0};
	take_run(q, &out->at[out->n]);
	return !out->at[out->n++].failed;
}

/* Parameters 1 to 3 belong to the fixed part of the filter. Each term has three more, and the sort
 * order one. */
static int bind_terms(
	sqlite3_stmt *q, const struct store_where *where, size_t n, const struct store_key *sort)
{
	int at = 4, code = 0;

	for (size_t i = 0; i < n && !code; i++, at += 3) {
		/* A plain column has no key, so its parameter is unused. */
		if (*where[i].key.key)
			code = sqlite3_bind_text(q, at, where[i].key.key, -1, SQLITE_STATIC);
		if (!code &&
			(!where[i].is_number || where[i].op[0] == '=' || where[i].op[0] == '!'))
			code = sqlite3_bind_text(q, at + 1, where[i].value, -1, SQLITE_STATIC);
		if (!code && where[i].is_number)
			code = sqlite3_bind_double(q, at + 2, where[i].number);
	}
	if (!code && *sort->key)
		code = sqlite3_bind_text(q, at, sort->key, -1, SQLITE_TRANSIENT);
	return code;
}

static int prepare_runs(struct cop_store *s, const struct cop_store_filter *filter,
	const struct store_where *where, sqlite3_stmt **q, struct cop_err *err)
{
	struct store_key sort = {0};
	struct cop_buf sql = {0};
	unsigned at = 4;
	bool down;
	int code = 0;

	cop_buf_str(&sql, "SELECT " RUN_COLUMNS " FROM run_now"
			  " WHERE (?1 = '' OR status = ?1) AND start >= ?2"
			  " AND (?3 = '' OR 'name=' || name = ?3"
			  " OR 'group=' || \"group\" = ?3 OR EXISTS (SELECT 1 FROM tag"
			  " WHERE run = run_now.id AND key || '=' || value = ?3))");
	for (size_t i = 0; i < filter->wheres; i++, at += 3)
		cop_store_put_where(&sql, &where[i], at);
	cop_buf_str(&sql, " ORDER BY ");
	if (filter->sort && cop_store_parse_sort(filter->sort, &sort, &down, err) == 0)
		cop_store_put_sort(&sql, &sort, down, at);
	cop_buf_str(&sql, "start DESC, id");
	code = sql.failed ? SQLITE_NOMEM : sqlite3_prepare_v2(s->db, sql.data, -1, q, NULL);
	cop_buf_free(&sql);
	return code ? code : bind_terms(*q, where, filter->wheres, &sort);
}

int cop_store_runs(struct cop_store *s, const struct cop_store_filter *filter,
	struct cop_store_runs *out, struct cop_err *err)
{
	struct store_where *where = calloc(filter->wheres + 1, sizeof(*where));
	sqlite3_stmt *q = NULL;
	bool fits = where != NULL;
	int code = where ? 0 : SQLITE_NOMEM;

	for (size_t i = 0; i < filter->wheres && where; i++)
		if (cop_store_parse_where(filter->where[i], &where[i], err)) {
			free(where);
			return -EINVAL;
		}
	if (!code)
		code = prepare_runs(s, filter, where, &q, err);
	if (!code) {
		sqlite3_bind_text(q, 1,
			filter->by_status ? cop_runrec_status_name(filter->status) : "", -1,
			SQLITE_STATIC);
		sqlite3_bind_double(q, 2, filter->since_s);
		sqlite3_bind_text(q, 3, filter->tag ? filter->tag : "", -1, SQLITE_STATIC);
		while (fits && (code = sqlite3_step(q)) == SQLITE_ROW)
			fits = add_run(out, q);
	}
	code = finish_query(s, q, code, !fits, err);
	free(where);
	return code;
}

/* ---- one run ---- */

/* Parses "last" or "last~N". -ENOENT: ref is neither. */
static int parse_last(const char *ref, uint64_t *back)
{
	*back = 0;
	if (strncmp(ref, "last", 4) != 0)
		return -ENOENT;
	if (!ref[4])
		return 0;
	return ref[4] == '~' && cop_parse_u64(ref + 5, back) == 0 && *back < INT32_MAX ? 0
										       : -ENOENT;
}

static int prepare_find(struct cop_store *s, const char *ref, sqlite3_stmt **q)
{
	uint64_t back;
	bool last = parse_last(ref, &back) == 0;
	int code = sqlite3_prepare_v2(s->db,
		last ? "SELECT id FROM run ORDER BY start DESC, id LIMIT 1 OFFSET ?1"
		     : "SELECT id FROM run WHERE substr(id, 1, length(?1)) = lower(?1) LIMIT 2",
		-1, q, NULL);

	if (!code)
		code = last ? sqlite3_bind_int64(*q, 1, (sqlite3_int64)back)
			    : sqlite3_bind_text(*q, 1, ref, -1, SQLITE_STATIC);
	return code;
}

int cop_store_find(
	struct cop_store *s, const char *ref, char id[COP_RUNREC_ID_LEN + 1], struct cop_err *err)
{
	sqlite3_stmt *q = NULL;
	unsigned found = 0;
	int code = *ref ? prepare_find(s, ref, &q) : SQLITE_DONE;

	while (!code || code == SQLITE_ROW) {
		code = sqlite3_step(q);
		if (code == SQLITE_ROW && found++ == 0)
			snprintf(id, COP_RUNREC_ID_LEN + 1, "%s", cop_step_column(q, 0));
	}
	if (finish_query(s, q, code, false, err))
		return -EIO;
	if (found == 1)
		return 0;
	if (found)
		return cop_err_set(err, EINVAL,
			"several runs begin with '%s': give more of its characters", ref);
	return cop_err_set(err, ENOENT,
		"no run in %s is '%s': 'copper runs' lists them; the first characters of an ID are enough, and last and last~1 are the latest runs",
		s->name, ref);
}

static int load_run(struct cop_store *s, const char *id, struct cop_runrec *r, struct cop_err *err)
{
	sqlite3_stmt *q = NULL;
	int code = sqlite3_prepare_v2(
		s->db, "SELECT " RUN_COLUMNS " FROM run_now WHERE id = ?1", -1, &q, NULL);

	if (!code)
		code = sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
	if (!code)
		code = sqlite3_step(q);
	if (code == SQLITE_ROW)
		take_run(q, r);
	return finish_query(s, q, code, r->failed, err);
}

static int load_list(
	struct cop_store *s, struct cop_runrec *r, enum cop_runrec_list l, struct cop_err *err)
{
	sqlite3_stmt *q = NULL;
	char sql[96];
	int code;

	snprintf(sql, sizeof(sql), "SELECT key, value FROM %s WHERE run = ?1",
		cop_runrec_list_name(l));
	code = sqlite3_prepare_v2(s->db, sql, -1, &q, NULL);
	if (!code)
		code = sqlite3_bind_text(q, 1, r->id, -1, SQLITE_STATIC);
	while (!code || code == SQLITE_ROW) {
		code = sqlite3_step(q);
		if (code == SQLITE_ROW)
			cop_runrec_pair(r, l, cop_step_column(q, 0), cop_step_column(q, 1));
	}
	return finish_query(s, q, code, r->failed, err);
}

static int load_points(struct cop_store *s, struct cop_runrec *r, struct cop_err *err)
{
	sqlite3_stmt *q = NULL;
	int code = sqlite3_prepare_v2(s->db,
		"SELECT key, step, time, value FROM metric WHERE run = ?1 ORDER BY key, step", -1,
		&q, NULL);

	if (!code)
		code = sqlite3_bind_text(q, 1, r->id, -1, SQLITE_STATIC);
	while (!code || code == SQLITE_ROW) {
		code = sqlite3_step(q);
		if (code != SQLITE_ROW)
			break;
		r->step = (uint64_t)sqlite3_column_int64(q, 1);
		cop_runrec_point(r, cop_step_column(q, 0), sqlite3_column_double(q, 2),
			sqlite3_column_double(q, 3));
	}
	return finish_query(s, q, code, r->failed, err);
}

int cop_store_load(struct cop_store *s, const char *id, struct cop_runrec *r, struct cop_err *err)
{
	int rc = load_run(s, id, r, err);

	r->points_max = COP_RUNREC_LOADED_MAX;
	for (unsigned l = 0; l < COP_RUNREC_LISTS && !rc; l++)
		rc = load_list(s, r, l, err);
	return rc ? rc : load_points(s, r, err);
}

int cop_store_history(struct cop_store *s, const char *id, const char *metric,
	void (*fn)(void *arg, const struct cop_runrec_point *point), void *arg, struct cop_err *err)
{
	sqlite3_stmt *q = NULL;
	uint64_t found = 0;
	int rc, code = sqlite3_prepare_v2(s->db,
			"SELECT step, time, value FROM metric WHERE run = ?1 AND key = ?2 ORDER BY step",
			-1, &q, NULL);

	if (!code)
		code = sqlite3_bind_text(q, 1, id, -1, SQLITE_STATIC);
	if (!code)
		code = sqlite3_bind_text(q, 2, metric, -1, SQLITE_STATIC);
	while (!code || code == SQLITE_ROW) {
		code = sqlite3_step(q);
		if (code != SQLITE_ROW)
			break;
		found++;
		fn(arg, &(struct cop_runrec_point){(uint64_t)sqlite3_column_int64(q, 0),
				sqlite3_column_double(q, 1), sqlite3_column_double(q, 2)});
	}
	rc = finish_query(s, q, code, false, err);
	if (!rc && !found)
		rc = cop_err_set(err, ENOENT,
			"run %.8s has no metric '%s': copper runs show %.8s lists those that it has",
			id, metric, id);
	return rc;
}
