/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <limits.h>
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "base/base/json.h"
#include "cmd.h"
#include "runs.h"
#include "job/dir/dir.h"
#include "report/jobdata/jobdata.h"

/* Creates a run's record from the directory of a job that did not record one. */

/* The time in the first line of a log, "2026-11-26 16-02-47" in local time; 0: unknown. */
static double began(const struct cop_jobdata *j)
{
	struct tm tm = {.tm_isdst = -1};

	return j->began && strptime(j->began, "%Y-%m-%d %H-%M-%S", &tm) ? (double)mktime(&tm) : 0;
}

/* Finds the job's identifier if it was recorded elsewhere; otherwise derives one from the
 * directory. */
static void find_id(const struct cop_jobdata *j, char id[COP_RUNREC_ID_LEN + 1])
{
	static const char key[] = "COPPER_RUN_ID=";
	char *path = NULL, *text = NULL, *at = NULL;
	size_t len;

	if (asprintf(&path, "%s/" COP_JOB_ENVIRONMENT, j->dir) >= 0 &&
		cop_read_file(path, COP_MIB, &text, &len) == 0)
		at = strstr(text, key);
	if (at && strspn(at + strlen(key), "0123456789abcdef") == COP_RUNREC_ID_LEN)
		snprintf(id, COP_RUNREC_ID_LEN + 1, "%s", at + strlen(key));
	else
		snprintf(id, COP_RUNREC_ID_LEN + 1, "%016llx",
			(unsigned long long)cop_hash64(j->dir, strlen(j->dir),
				j->began ? cop_hash64(j->began, strlen(j->began), 0) : 0));
	free(text);
	free(path);
}

static void put_params(const struct cop_jobdata *j, struct cop_runrec *r)
{
	const struct {
		const char *key, *value;
	} param[] = {{"source", j->source}, {"job-dir", j->dir}, {"net-type", j->net_type},
		{"profile", j->profile ? "true" : NULL},
		{"profile-paths-full", j->paths_full ? "true" : NULL}};
	char number[16];

	for (size_t i = 0; i < COP_ARRAY_SIZE(param); i++)
		if (param[i].value)
			cop_runrec_pair(r, COP_RUNREC_PARAM, param[i].key, param[i].value);
	snprintf(number, sizeof(number), "%u", j->top_n);
	if (j->top_n)
		cop_runrec_pair(r, COP_RUNREC_PARAM, "profile-top-n", number);
	if (j->first_host)
		cop_runrec_pair(r, COP_RUNREC_RESOURCE, "host.name", j->first_host);
}

static void put_point(struct cop_runrec *r, const char *group, const char *name, double value)
{
	char key[COP_RUNREC_KEY_MAX + 1];

	snprintf(key, sizeof(key), "%s.%s", group, name);
	cop_runrec_point(r, key, r->end_s, value);
}

/* The counter "fabric_bytes_in" becomes the metric fabric.bytes_in. */
static void put_counter(struct cop_runrec *r, const struct cop_jobdata_value *v)
{
	const char *name = strchr(v->name, '_');
	char group[32];

	if (!name || name - v->name >= (ptrdiff_t)sizeof(group))
		return;
	snprintf(group, sizeof(group), "%.*s", (int)(name - v->name), v->name);
	put_point(r, group, name + 1, v->value);
}

static void put_metrics(const struct cop_jobdata *j, struct cop_runrec *r)
{
	r->step = 1;
	for (size_t i = 0; i < j->metrics.n; i++)
		if (strcmp(j->metrics.at[i].name, "ranks_with_aggregate_files") != 0)
			put_point(r, "profile", j->metrics.at[i].name, j->metrics.at[i].value);
	for (size_t i = 0; i < j->fabric.n; i++)
		put_counter(r, &j->fabric.at[i]);
	for (size_t i = 0; i < j->ops; i++) {
		const struct cop_jobdata_op *op = &j->op[i];
		char group[216];

		snprintf(group, sizeof(group), "operation.%.200s", op->name);
		put_point(r, group, "calls", (double)op->calls);
		put_point(r, group, "hits", (double)op->hits);
		put_point(r, group, "misses", (double)op->misses);
		put_point(r, group, "negatives", (double)op->negatives);
		put_point(r, group, "seconds", op->latency_s);
	}
}

/* A run has finished if it stopped and all of its commands are known to have exited with status
 * 0. */
static void put_end(const struct cop_jobdata *j, struct cop_runrec *r)
{
	bool stopped = j->state && strcmp(j->state, "stopped") == 0;
	char why[96] = "stopped; how its commands ended is not known";

	r->status = j->runs ? COP_RUNREC_RUNNING : COP_RUNREC_FAILED;
	if (!stopped)
		snprintf(why, sizeof(why), "ended; how is not known");
	else if (j->has_ends && j->good == j->commands)
		r->status = COP_RUNREC_FINISHED;
	else if (j->has_ends)
		snprintf(why, sizeof(why),
			"stopped; known to have ended with 0: %" PRIu32 " of %" PRIu32 " commands",
			j->good, j->commands);
	cop_runrec_put(r, COP_RUNREC_REASON,
		j->state && (!stopped || r->status == COP_RUNREC_FINISHED) ? j->state : why);
}

/* Fills r, which must be empty and which the caller frees in any case, from the directory of a
 * job without a recorded run (runs_found.c). */
static int find_unrecorded(const char *job_dir, struct cop_runrec *r, struct cop_err *err)
{
	struct cop_jobdata j = {0};
	const char *slash;
	int rc = cop_jobdata_read(job_dir, &j, err);

	if (!rc) {
		slash = strrchr(j.dir, '/');
		find_id(&j, r->id);
		r->start_s = began(&j);
		r->end_s = fmax(j.folder_unix_s, r->start_s);
		r->start_s = r->start_s > 0 ? r->start_s : r->end_s;
		r->seen_s = r->end_s;
		r->beat_s = 5;
		r->nodes = j.nodes ? j.nodes : (uint32_t)j.ranks;
		cop_runrec_put(r, COP_RUNREC_NAME, slash && slash[1] ? slash + 1 : j.dir);
		cop_runrec_put(r, COP_RUNREC_VERSION, j.version ? j.version : "");
		put_end(&j, r);
		put_params(&j, r);
		put_metrics(&j, r);
		if (r->status == COP_RUNREC_RUNNING)
			r->end_s = 0;
		rc = r->failed ? cop_err_set(err, ENOMEM, "no memory to read %s", job_dir) : 0;
	}
	cop_jobdata_free(&j);
	return rc;
}

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
			"nothing to import: give job directories, --mlflow FILE.db or --sacct JOBID");
	if (a->sacct && (!*a->sacct || a->sacct[strspn(a->sacct, "0123456789")]))
		return cop_err_set(err, EINVAL, "--sacct: '%s' is not a job number", a->sacct);
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
	const char *folder;    /* directory with a job's records and its programs' logs */
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

/* Imports what the programs recorded for this run. */
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

/* Imports a record and frees it. rc: the result of reading it. */
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

/* Imports a job without a record from its files, which contain less. */
static void import_files(struct import *i, const char *job_dir)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	int rc = find_unrecorded(job_dir, &r, &err);

	import_record(i, &r, job_dir, rc, &err);
}

static bool is_record(const struct dirent *e)
{
	size_t len = strlen(e->d_name), end = strlen(COP_RUNREC_SUFFIX);

	return e->d_name[0] != '.' && len > end &&
	       strcmp(e->d_name + len - end, COP_RUNREC_SUFFIX) == 0;
}

/* Opens JOBDIR/runs, where the records are; job_dir may also be that directory itself. */
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
