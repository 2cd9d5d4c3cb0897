/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "writers/runs/mlflow_priv.h"

static char dir[64], store[96], file[96];

static int make_dir(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/mlflow_test.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(store, sizeof(store), "%s/runs.db", dir);
	snprintf(file, sizeof(file), "%s/mlflow.db", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	return system(command);
}

static void count_run(void *arg, const struct cop_mlflow_run *r)
{
	assert_int_equal(strlen(r->id), COP_RUNREC_ID_LEN);
	++*(unsigned *)arg;
}

static void put_run(const char *id)
{
	struct cop_runrec r = {.start_s = 1000.25, .seen_s = 1002, .end_s = 1002, .nodes = 2};
	struct cop_err err = {0};

	snprintf(r.id, sizeof(r.id), "%s", id);
	r.status = COP_RUNREC_FINISHED;
	cop_runrec_put(&r, COP_RUNREC_NAME, "name");
	cop_runrec_pair(&r, COP_RUNREC_PARAM, "chunk", "64");
	cop_runrec_next(&r);
	cop_runrec_point(&r, "x", 1001, 0.1);
	if (cop_store_put(store, &r, 0, cop_now_ms() + 60000, &err))
		fail_msg("%s", err.text);
	cop_runrec_free(&r);
}

static int export_all(uint64_t timeout_ms, unsigned *runs, struct cop_err *err)
{
	struct cop_mlflow_export what = {.file = file, .deadline_ms = cop_now_ms() + timeout_ms};
	struct cop_store *s = NULL;
	int rc = cop_store_open(store, &s, NULL, err);

	*runs = 0;
	rc = rc ? rc : cop_store_export_mlflow(s, &what, count_run, runs, err);
	cop_store_close(s);
	return rc;
}

static int import_all(unsigned *runs, struct cop_err *err)
{
	*runs = 0;
	return cop_store_import_mlflow(store, file, cop_now_ms() + 60000, count_run, runs, err);
}

static void change(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	char *why = NULL;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, &why))
		fail_msg("%s", why);
	sqlite3_close(db);
}

static void runs_come_back_into_an_empty_store(void **state)
{
	struct cop_store *s = NULL;
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	unsigned runs;

	(void)state;
	put_run("0123456789abcdef");
	put_run("fedcba9876543210");
	assert_int_equal(export_all(60000, &runs, &err), 0);
	assert_int_equal(runs, 2);
	assert_int_equal(unlink(store), 0);
	assert_int_equal(import_all(&runs, &err), 0);
	assert_int_equal(runs, 2);
	assert_int_equal(cop_store_open(store, &s, NULL, &err), 0);
	assert_int_equal(cop_store_load(s, "0123456789abcdef", &r, &err), 0);
	assert_int_equal(r.status, COP_RUNREC_FINISHED);
	assert_int_equal(r.nodes, 2);
	assert_true(r.start_s == 1000.25 && r.end_s == 1002 && r.series[0].point[0].value == 0.1);
	assert_string_equal(cop_runrec_value(&r, COP_RUNREC_PARAM, "chunk"), "64");
	assert_int_equal(r.list[COP_RUNREC_TAG].n, 0);
	cop_runrec_free(&r);
	cop_store_close(s);
}

static void rows_that_no_mlflow_writes_are_taken_as_far_as_they_go(void **state)
{
	struct cop_store *s = NULL;
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	unsigned runs;

	(void)state;
	put_run("0123456789abcdef");
	assert_int_equal(export_all(60000, &runs, &err), 0);
	change(file,
		"INSERT INTO runs (run_uuid) VALUES ('x'), (zeroblob(7));"
		"INSERT INTO params VALUES ('lr', x'ff00ff', 'x'), ('', '', 'nobody');"
		"INSERT INTO tags VALUES ('copper.run', NULL, 'x'), ('copper.start', '1e999', 'x'),"
		" ('copper.nodes', 'many', 'x'), ('copper.derived', NULL, 'x'), ('t', NULL, 'x');"
		"INSERT INTO metrics VALUES ('a', 'text', 'then', 'x', 'step', 0),"
		" ('b', 1, 9223372036854775807, 'x', 9223372036854775807, 0),"
		" ('c', x'01', -1, 'x', -9223372036854775807, 1)");
	assert_int_equal(import_all(&runs, &err), 0);
	assert_int_equal(runs, 3);
	assert_int_equal(cop_store_open(store, &s, NULL, &err), 0);
	assert_int_equal(cop_store_load(s, "0123456789abcdef", &r, &err), 0);
	assert_int_equal(r.series_n, 1);
	cop_runrec_free(&r);
	cop_store_close(s);
	assert_int_equal(export_all(60000, &runs, &err), 0);
	assert_int_equal(runs, 3);
}

static void two_runs_never_become_one(void **state)
{
	struct cop_err err = {0};
	unsigned runs;

	(void)state;
	put_run("0123456789abcdef");
	assert_int_equal(export_all(60000, &runs, &err), 0);
	change(file, "INSERT INTO runs (run_uuid) VALUES ('0123456789abcdef0000000000000000')");
	assert_int_equal(unlink(store), 0);
	assert_int_equal(import_all(&runs, &err), -EEXIST);
	assert_non_null(strstr(err.text, "would have the same ID"));
	assert_int_equal(runs, 0);
	assert_int_not_equal(access(store, F_OK), 0);
}

static void a_database_in_use_is_waited_for_and_left_alone(void **state)
{
	struct cop_err err = {0};
	sqlite3 *db = NULL;
	unsigned runs;

	(void)state;
	put_run("0123456789abcdef");
	assert_int_equal(export_all(60000, &runs, &err), 0);
	assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(export_all(20, &runs, &err), -EBUSY);
	assert_non_null(strstr(err.text, file));
	sqlite3_close(db);
	assert_int_equal(access(file, F_OK), 0);
	assert_int_equal(export_all(60000, &runs, &err), 0);
}

static void a_schema_without_the_columns_of_its_version_changes_nothing(void **state)
{
	struct cop_err err = {0};
	unsigned runs;

	(void)state;
	put_run("0123456789abcdef");
	change(file,
		"CREATE TABLE alembic_version (version_num); CREATE TABLE runs (x);"
		"CREATE TABLE latest_metrics (x); INSERT INTO alembic_version VALUES ('97727af70f4d')");
	assert_true(export_all(60000, &runs, &err) < 0);
	assert_non_null(strstr(err.text, file));
	assert_true(import_all(&runs, &err) < 0);
	change(file, "UPDATE alembic_version SET version_num = NULL");
	assert_int_equal(export_all(60000, &runs, &err), -EPROTO);
	change(file, "DELETE FROM alembic_version");
	assert_int_equal(import_all(&runs, &err), -EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			runs_come_back_into_an_empty_store, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			rows_that_no_mlflow_writes_are_taken_as_far_as_they_go, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(two_runs_never_become_one, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_database_in_use_is_waited_for_and_left_alone, make_dir, remove_dir),
		cmocka_unit_test_setup_teardown(
			a_schema_without_the_columns_of_its_version_changes_nothing, make_dir,
			remove_dir),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
