/* SPDX-License-Identifier: BSD-3-Clause */
/* Stores Slurm's accounting data of a run's job as tags of the run. */
#include "base/log/log.h"
#include "cmd.h"
#include "job/scheduler/scheduler.h"
#include "runs.h"

#define STORE_MS 5000

static const char *resource_of(const struct cop_runrec *r, const char *key)
{
	const char *value = cop_runrec_value(r, COP_RUNREC_RESOURCE, key);

	return value ? value : "";
}

static void put_number(struct cop_runrec *r, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cop_runrec_pair(r, COP_RUNREC_TAG, key, text);
}

static void put_tags(const struct cop_slurm_account *a, struct cop_runrec *r)
{
	cop_runrec_pair(r, COP_RUNREC_TAG, "sacct.state", a->state);
	put_number(r, "sacct.elapsed", a->elapsed_s);
	if (a->max_rss_bytes)
		put_number(r, "sacct.max_rss", a->max_rss_bytes);
	if (*a->tres)
		cop_runrec_pair(r, COP_RUNREC_TAG, "sacct.tres_usage", a->tres);
}

static int say_failure(int rc, const char *job, struct cop_err *err)
{
	const char *why = rc == -ENOENT      ? "has no record of it at the time of the run"
			  : rc == -ETIMEDOUT ? "does not answer"
			  : rc == -EBADMSG   ? "answers what it never prints"
			  : rc == -EIO       ? "fails"
					     : strerror(-rc);

	return cop_err_set(err, -rc, "job %s: sacct %s", job, why);
}

static bool has_command(void)
{
	char *argv[] = {"sacct", "--version", NULL};
	struct cop_buf out = {0};
	int rc = cop_slurm_command(argv, 1000, &out);

	cop_buf_free(&out);
	return rc != -ENOENT;
}

/* Once a job has ended, its accounting data is final. */
int cop_cmd_runs_account(
	const char *store, struct cop_runrec *r, uint32_t timeout_ms, struct cop_err *err)
{
	struct cop_slurm_account a;
	const char *job = resource_of(r, "slurm.job_id");
	struct cop_runrec found = {0};
	int rc = cop_slurm_account(
		job, resource_of(r, "slurm.cluster_name"), r->start_s, timeout_ms, &a);

	if (rc == -ENOENT && !has_command())
		return cop_err_set(err, ENOENT,
			"there is no sacct here: ask on a machine that has Slurm's commands");
	if (rc)
		return say_failure(rc, job, err);
	put_tags(&a, r);
	put_tags(&a, &found);
	if (a.ended)
		rc = cop_store_put_tags(
			store, r->id, &found.list[COP_RUNREC_TAG], cop_now_ms() + STORE_MS, err);
	cop_runrec_free(&found);
	return rc;
}

void cop_cmd_runs_try_account(const char *store, struct cop_runrec *r, uint32_t timeout_ms)
{
	struct cop_err err = {0};

	if (!*resource_of(r, "slurm.job_id") || cop_runrec_value(r, COP_RUNREC_TAG, "sacct.state"))
		return;
	if (cop_cmd_runs_account(store, r, timeout_ms, &err))
		cop_log_debug("no accounting run=%.8s why=\"%s\"", r->id, err.text);
}
