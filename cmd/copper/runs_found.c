/* SPDX-License-Identifier: BSD-3-Clause */
/* Creates a run's record from the directory of a job that did not record one. */
#include <inttypes.h>
#include <math.h>
#include <time.h>

#include "job/dir/dir.h"
#include "report/jobdata/jobdata.h"
#include "runs.h"

/* The time of the first line of a log, "2026-11-26 16-02-47" in local time; 0: unknown. */
static double began(const struct cop_jobdata *j)
{
	struct tm tm = {.tm_isdst = -1};

	return j->began && strptime(j->began, "%Y-%m-%d %H-%M-%S", &tm) ? (double)mktime(&tm) : 0;
}

/* The job's identifier if it was recorded elsewhere; otherwise one derived from the directory. */
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

/* "fabric_bytes_in" is fabric.bytes_in. */
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

/* A run has finished if it stopped and all of its commands are known to have exited with 0. */
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

int cop_cmd_runs_found(const char *job_dir, struct cop_runrec *r, struct cop_err *err)
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
