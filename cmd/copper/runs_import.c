/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <limits.h>

#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"

#define WAIT_MS 60000

struct args {
	struct runs_common common; /* first */
	const char *mlflow, *sacct;
	struct cop_opt_many dirs;
};

static int check(void *into, struct cop_err *err)
{
	const struct args *a = into;

	if (!a->dirs.n && !a->mlflow && !a->sacct)
		return cop_err_set(err, EINVAL,
			"what to import is not said: give job directories, --mlflow FILE.db or --sacct JOBID");
	if (a->sacct && (!*a->sacct || a->sacct[strspn(a->sacct, "0123456789")]))
		return cop_err_set(
			err, EINVAL, "--sacct: '%s' is not the number of a job", a->sacct);
	return cop_cmd_runs_check(into, err);
}

static const struct cop_opt rows[] = {
	COP_OPT(STRING, "mlflow", struct args, mlflow, "all runs of this MLflow database in SQLite",
		.arg = "FILE.db"),
	COP_OPT(STRING, "sacct", struct args, sacct,
		"add Slurm's accounting data to the runs of this job", .arg = "JOBID"),
	RUNS_ROWS,
};
static const struct cop_opt_operand operands[] = {
	{.name = "JOBDIR", .offset = offsetof(struct args, dirs), .many = true}};
const struct cop_opt_table cop_cmd_runs_import_options = {.command = "copper runs import",
	.summary = "add runs from job directories, MLflow or Slurm",
	COP_OPT_ROWS(rows),
	COP_OPT_OPERANDS(operands),
	.check = check};
static const struct cop_opt_table *const table = &cop_cmd_runs_import_options;

struct import {
	const char *store;
	const char *folder;    /* with a job's records and its programs' logs */
	struct cop_json *json; /* NULL: one line per run */
	unsigned taken, refused;
};

static void say_what_was_done(const struct import *i, const struct cop_runrec *r, const char *file)
{
	if (!i->json) {
		printf("%.8s %s (%s)\n", r->id, cop_runrec_status_name(r->status), file);
		return;
	}
	cop_json_object(i->json, NULL);
	cop_json_str(i->json, "id", r->id);
	cop_json_str(i->json, "file", file);
	cop_json_end(i->json);
}

/* The programs' records of this run. */
static int take_logs(const struct import *i, const char *id, struct cop_err *err)
{
	struct cop_take *t = cop_take_new();
	struct cop_buf notes = {0};
	int rc = t ? cop_take_logs(t, i->folder, id, i->store, cop_now_ms() + WAIT_MS, &notes, err)
		   : cop_err_set(err, ENOMEM, "out of memory");

	if (notes.data)
		fputs(notes.data, stderr);
	cop_buf_free(&notes);
	cop_take_free(t);
	return rc;
}

/* rc: the result of reading the record. Frees it. */
static void import_record(
	struct import *i, struct cop_runrec *r, const char *from, int rc, struct cop_err *err)
{
	if (!rc)
		rc = cop_store_put(i->store, r, 0, cop_now_ms() + WAIT_MS, err);
	if (!rc)
		rc = take_logs(i, r->id, err);
	if (rc) {
		cop_cmd_runs_fail(table, err);
		i->refused++;
	} else {
		say_what_was_done(i, r, from);
		i->taken++;
	}
	cop_runrec_free(r);
}

static void import_file(struct import *i, const char *file)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	int rc = cop_store_read_record(file, &r, &err);

	import_record(i, &r, file, rc, &err);
}

/* A job without a record still has its files, which contain less. */
static void import_files(struct import *i, const char *job_dir)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	int rc = cop_cmd_runs_found(job_dir, &r, &err);

	import_record(i, &r, job_dir, rc, &err);
}

static bool is_record(const struct dirent *e)
{
	size_t len = strlen(e->d_name), end = strlen(COP_RUNREC_SUFFIX);

	return e->d_name[0] != '.' && len > end &&
	       strcmp(e->d_name + len - end, COP_RUNREC_SUFFIX) == 0;
}

/* Records are in JOBDIR/runs; that folder itself is accepted, too. */
static DIR *open_folder(const char *job_dir, char path[PATH_MAX])
{
	DIR *d;

	snprintf(path, PATH_MAX, "%.*s/runs", PATH_MAX - 8, job_dir);
	d = opendir(path);
	if (d || errno != ENOENT)
		return d;
	snprintf(path, PATH_MAX, "%.*s", PATH_MAX - 8, job_dir);
	return opendir(path);
}

static void take_all(struct import *i, const char *job_dir)
{
	char path[PATH_MAX], file[PATH_MAX + NAME_MAX + 2];
	unsigned before = i->taken + i->refused;
	DIR *d = open_folder(job_dir, path);
	struct cop_err err = {0};
	struct dirent *e;

	if (!d)
		cop_err_set(&err, errno, "%s: %s", path, strerror(errno));
	i->folder = path;
	while (d && (e = readdir(d))) {
		if (!is_record(e))
			continue;
		snprintf(file, sizeof(file), "%s/%s", path, e->d_name);
		import_file(i, file);
	}
	if (d)
		closedir(d);
	if (d && before == i->taken + i->refused)
		import_files(i, job_dir);
	if (!err.code)
		return;
	cop_cmd_runs_fail(table, &err);
	i->refused++;
}

/* ---- MLflow ---- */

static void say_run(void *arg, const struct cop_mlflow_run *r)
{
	struct import *i = arg;

	i->taken++;
	if (i->json)
		cop_cmd_runs_json_mlflow(i->json, r);
	else
		printf("%.8s %s (run %s of experiment %s)\n", r->id, r->status, r->uuid,
			r->experiment);
}

static void take_mlflow(struct import *i, const char *file)
{
	struct cop_err err = {0};

	if (cop_store_import_mlflow(i->store, file, cop_now_ms() + WAIT_MS, say_run, i, &err)) {
		cop_cmd_runs_fail(table, &err);
		i->refused++;
	}
}

/* ---- Slurm ---- */

static void say_account(const struct import *i, const struct cop_runrec *r, const char *job)
{
	const char *state = cop_runrec_value(r, COP_RUNREC_TAG, "sacct.state");

	if (i->json) {
		cop_json_object(i->json, NULL);
		cop_json_str(i->json, "id", r->id);
		cop_json_str(i->json, "job", job);
		cop_json_str(i->json, "state", state);
		cop_json_end(i->json);
	} else {
		printf("%.8s %s (job %s)\n", r->id, state, job);
	}
}

static void ask_account(struct import *i, struct cop_store *store, const char *id, const char *job)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	int rc = cop_store_load(store, id, &r, &err);

	rc = rc ? rc : cop_cmd_runs_account(i->store, &r, WAIT_MS / 2, &err);
	if (rc) {
		cop_cmd_runs_fail(table, &err);
		i->refused++;
	} else {
		say_account(i, &r, job);
		i->taken++;
	}
	cop_runrec_free(&r);
}

static int find_runs(struct import *i, const char *job, struct cop_store **store,
	struct cop_store_runs *runs, struct cop_err *err)
{
	char term[64];
	const char *where = term;
	struct cop_store_filter filter = {.where = &where, .wheres = 1};
	int rc = cop_store_open(i->store, store, NULL, err);

	snprintf(term, sizeof(term), "resource.slurm.job_id = %.32s", job);
	rc = rc ? rc : cop_store_runs(*store, &filter, runs, err);
	if (!rc && !runs->n)
		rc = cop_err_set(err, ENOENT, "no run in %s is of Slurm's job %s", i->store, job);
	return rc;
}

static void take_account(struct import *i, const char *job)
{
	struct cop_store_runs runs = {0};
	struct cop_store *store = NULL;
	struct cop_err err = {0};

	if (find_runs(i, job, &store, &runs, &err)) {
		cop_cmd_runs_fail(table, &err);
		i->refused++;
	}
	for (size_t k = 0; k < runs.n; k++)
		ask_account(i, store, runs.at[k].id, job);
	cop_store_runs_free(&runs);
	cop_store_close(store);
}

int cop_cmd_runs_import(int argc, char **argv)
{
	struct cop_buf out = {0};
	struct cop_json json = cop_json_to(&out);
	struct import i = {0};
	struct args a = {0};
	int code;

	if (!cop_opt_start(table, argc, argv, &a, &code))
		return code;
	i.store = a.common.store;
	i.json = a.common.json ? &json : NULL;
	if (i.json)
		cop_json_array(&json, NULL);
	if (a.mlflow)
		take_mlflow(&i, a.mlflow);
	if (a.sacct)
		take_account(&i, a.sacct);
	for (size_t k = 0; k < a.dirs.n; k++)
		take_all(&i, a.dirs.at[k]);
	if (i.json) {
		cop_json_end(&json);
		cop_buf_str(&out, "\n");
	}
	code = cop_cmd_print(table->command, &out, NULL);
	cop_buf_free(&out);
	return code || i.refused ? 1 : 0;
}
