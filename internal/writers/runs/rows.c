/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/take_priv.h"

#include <math.h>

#include "job/conf/conf.h"

/* In seconds. A program's run is LOST after four times this long without a sign of life. */
#define BEAT "900"

static const char *const sql[ROWS_STATEMENTS] = {
	[ROWS_RUN] =
		"INSERT INTO run VALUES (?1, 'run', '', 'RUNNING', ?2, NULL, 1, '', '', ?2, " BEAT
		") ON CONFLICT (id) DO UPDATE SET start = min(start, ?2) WHERE version = ''",
	[ROWS_SEEN] = "UPDATE run SET seen = max(seen, ?2) WHERE id = ?1 AND version = ''",
	[ROWS_NAME] = "UPDATE run SET name = ?2 WHERE id = ?1 AND version = '' AND name = 'run'",
	[ROWS_RENAME] = "UPDATE run SET name = ?2 WHERE id = ?1 AND version = ''",
	[ROWS_REGROUP] = "UPDATE run SET \"group\" = ?2 WHERE id = ?1 AND version = ''",
	[ROWS_PARAM] =
		"INSERT INTO param VALUES (?1, ?2, ?3) ON CONFLICT (run, key) DO UPDATE SET value = ?3",
	[ROWS_TAG] =
		"INSERT INTO tag VALUES (?1, ?2, ?3) ON CONFLICT (run, key) DO UPDATE SET value = ?3",
	[ROWS_RESOURCE] = "INSERT OR IGNORE INTO resource VALUES (?1, ?2, ?3)",
	[ROWS_POINT] = "INSERT INTO metric VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT (run, key, step)"
		       " DO UPDATE SET value = ?3, time = ?5 WHERE ?5 >= time",
	[ROWS_NAN] = "INSERT OR IGNORE INTO tag VALUES (?1, 'nan.' || ?2, 'step ' || ?3)",
	[ROWS_RUNNING] =
		"UPDATE run SET status = 'RUNNING', exit_reason = '', \"end\" = NULL WHERE id = ?1"
		" AND version = ''",
	[ROWS_FINISHED] = "UPDATE run SET status = 'FINISHED', exit_reason = ?2, \"end\" = ?3"
			  " WHERE id = ?1 AND version = '' AND status = 'RUNNING'",
	[ROWS_FAILED] = "UPDATE run SET status = 'FAILED', exit_reason = ?2, \"end\" = ?3"
			" WHERE id = ?1 AND version = '' AND status <> 'FAILED'",
	[ROWS_JOB_FAILED] = "UPDATE run SET status = 'FAILED', exit_reason = ?2"
			    " WHERE id = ?1 AND status = 'FINISHED'",
};

void cop_rows_open(struct rows *r, sqlite3 *db)
{
	r->code = 0;
	for (unsigned i = 0; i < ROWS_STATEMENTS; i++) {
		r->step[i] = cop_step_prepare(db, sql[i]);
		r->code = r->code ? r->code : r->step[i].code;
	}
}

int cop_rows_close(struct rows *r)
{
	for (unsigned i = 0; i < ROWS_STATEMENTS; i++) {
		int code = cop_step_finish(&r->step[i]);

		r->code = r->code ? r->code : code;
	}
	return r->code;
}

/* Executes the statement with the bound values. */
static void put_row(struct rows *r, struct step *s)
{
	if (!r->code)
		cop_step_row(s);
	r->code = r->code ? r->code : s->code;
}

void cop_rows_text(struct rows *r, enum rows_statement which, const char *id, const char *value)
{
	struct step *s = &r->step[which];

	cop_step_text(s, 1, id);
	cop_step_text(s, 2, value);
	put_row(r, s);
}

void cop_rows_time(struct rows *r, enum rows_statement which, const char *id, double time_s)
{
	struct step *s = &r->step[which];

	cop_step_text(s, 1, id);
	cop_step_real(s, 2, time_s);
	put_row(r, s);
}

void cop_rows_status(struct rows *r, const char *id, enum cop_runrec_status status,
	const char *reason, double time_s)
{
	bool failed = status == COP_RUNREC_FAILED;
	struct step *s = &r->step[failed ? ROWS_FAILED : ROWS_FINISHED];

	if (status == COP_RUNREC_RUNNING) {
		s = &r->step[ROWS_RUNNING];
		cop_step_text(s, 1, id);
		put_row(r, s);
		return;
	}
	cop_step_text(s, 1, id);
	cop_step_text(s, 2, reason);
	cop_step_real(s, 3, time_s);
	put_row(r, s);
	if (failed)
		cop_rows_text(r, ROWS_JOB_FAILED, id, *reason ? reason : "the program failed");
}

/* ---- pairs and points ---- */

static bool is_option(const char *key)
{
	static const char *const more[] = {"source", "mountpoint", "job-dir"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(more); i++)
		if (strcmp(key, more[i]) == 0)
			return true;
	for (size_t i = 0; i < cop_conf_mount_table.rows; i++)
		if (cop_conf_mount_table.row[i].name &&
			strcmp(key, cop_conf_mount_table.row[i].name) == 0)
			return true;
	return false;
}

static const char *own_key(bool taken, const char *key, char out[COP_RUNREC_KEY_MAX + 16])
{
	snprintf(out, COP_RUNREC_KEY_MAX + 16, "program.%s", key);
	out[COP_RUNREC_KEY_MAX] = '\0';
	return taken ? out : key;
}

void cop_rows_pair(
	struct rows *r, const char *id, enum cop_runrec_list l, const char *key, const char *value)
{
	static const enum rows_statement which[] = {ROWS_PARAM, ROWS_TAG, ROWS_RESOURCE};
	struct step *s = &r->step[which[l]];
	char own[COP_RUNREC_KEY_MAX + 16];

	cop_step_text(s, 1, id);
	cop_step_text(s, 2, own_key(l == COP_RUNREC_PARAM && is_option(key), key, own));
	cop_step_text(s, 3, value);
	put_row(r, s);
	if (l == COP_RUNREC_TAG && strcmp(key, "name") == 0 && *value)
		cop_rows_text(r, ROWS_RENAME, id, value);
	if (l == COP_RUNREC_TAG && strcmp(key, "group") == 0)
		cop_rows_text(r, ROWS_REGROUP, id, value);
}

void cop_rows_point(
	struct rows *r, const char *id, const char *key, uint64_t step, double time_s, double value)
{
	bool number = !isnan(value);
	struct step *s = &r->step[number ? ROWS_POINT : ROWS_NAN];
	char own[COP_RUNREC_KEY_MAX + 16];

	cop_step_text(s, 1, id);
	cop_step_text(s, 2, own_key(cop_runrec_is_own_metric(key), key, own));
	if (number) {
		cop_step_real(s, 3, value);
		cop_step_integer(s, 4, step);
		cop_step_real(s, 5, time_s);
	} else {
		cop_step_integer(s, 3, step);
	}
	put_row(r, s);
}
