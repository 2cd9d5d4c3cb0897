/* SPDX-License-Identifier: BSD-3-Clause */
#include "secret.h"

#include <sys/stat.h>

#include "job/startnote/startnote.h"

void cop_secret_init(
	struct cop_secret *s, const struct cop_conf *conf, uint32_t rank, uint32_t nodes)
{
	s->conf = conf;
	s->rank = rank;
	s->nodes = nodes;
	s->dir = nodes > 1 && !conf->job_dir ? conf->secret_dir : NULL;
}

/* After waiting this long for rank 0, the other ranks leave a message that they are waiting. */
#define COME_MS 3000u
/* How long rank 0 may take to start another tree of the step before this node gives up. */
#define OTHER_MS 20000u
static const char elsewhere[] =
	"the first host of this step waits for the nodes of another tree, and this host for the "
	"first: on all hosts, the calls of copper run --source must come in the same order, with "
	"the same source and options; or start the nodes with copper mount before the step";

static int make_dir(const char *dir, struct cop_err *err)
{
	int rc = dir ? cop_make_dirs(dir, 0700) : 0;

	return rc ? cop_err_set(err, -rc,
			    "cannot create %s for the secret that several nodes need: %s; give a job directory that all of them see (-d DIR)",
			    dir, strerror(-rc))
		  : 0;
}

/* ---- waiting for rank 0 ---- */

struct waiting {
	struct cop_secret *s;
	const char *dir;
	uint64_t come_at;  /* when to leave that message */
	uint64_t other_at; /* when to give up if rank 0 waits for another tree */
	bool (*in_vain)(void *ctx, struct cop_err *err);
	void *ctx;
};

static bool is_in_vain(void *ctx, struct cop_err *err)
{
	struct waiting *w = ctx;

	if (w->dir && !w->s->come && cop_now_ms() >= w->come_at) {
		cop_startnote_come(w->dir, w->s->rank);
		w->s->come = true;
	}
	if (w->s->dir && w->s->come && cop_now_ms() >= w->other_at &&
		cop_startnote_is_elsewhere(w->s->conf->step_dir, w->s->dir))
		return cop_err_set(err, EDEADLK, "%s", elsewhere) != 0;
	return w->in_vain && w->in_vain(w->ctx, err);
}

/* Explains a timeout: the machine of rank 0 may have no task that starts a node. */
static int explain_absence(const struct waiting *w, int rc, struct cop_err *err)
{
	struct cop_buf came = {0};
	struct cop_err why = *err;

	if (rc != -ETIMEDOUT || !w->s->come)
		return rc;
	cop_startnote_came(w->dir, &came);
	if (came.len && w->s->conf->of_step)
		cop_err_set(err, ETIMEDOUT,
			"no task of the first of these %u hosts (rank 0) ran copper run in %u s; those of these hosts did: %s. In a step of mixed programs, a task of each host must run it with --source; or start the nodes with copper mount before the step",
			w->s->nodes, w->s->conf->ready_timeout_ms / 1000, came.data);
	else if (came.len)
		cop_err_set(err, ETIMEDOUT, "%s (hosts that wait: %s)", why.text, came.data);
	cop_buf_free(&came);
	return rc;
}

static void stop_waiting(const struct waiting *w)
{
	if (w->s->come)
		cop_startnote_uncome(w->dir, w->s->rank);
	w->s->come = false;
}

int cop_secret_find(struct cop_secret *s, bool (*in_vain)(void *ctx, struct cop_err *err),
	void *ctx, struct cop_err *err)
{
	const struct cop_conf *c = s->conf;
	struct waiting w = {.s = s,
		.dir = s->rank ? c->job_dir ? c->job_dir : c->secret_dir : NULL,
		.come_at = cop_now_ms() + COP_MIN(COME_MS, c->ready_timeout_ms / 2),
		.other_at = cop_now_ms() + COP_MIN(OTHER_MS, c->ready_timeout_ms / 2),
		.in_vain = in_vain,
		.ctx = ctx};
	struct cop_job_secret_from from = {c->secret_file, c->job_dir ? c->job_dir : c->secret_dir,
		s->rank, c->ready_timeout_ms, is_in_vain, &w};
	int rc;

	if (s->nodes == 1 || c->insecure)
		return 0;
	rc = s->rank == 0 ? make_dir(s->dir, err) : 0;
	if (rc)
		return rc;
	rc = explain_absence(&w, cop_job_secret(&from, &s->job, err), err);
	/* After a failure the message stays, because other ranks may be about to list the hosts
	 * that wait. */
	if (!rc || !s->dir)
		stop_waiting(&w);
	if (rc)
		return rc;
	if (!s->job.data && c->of_step && !getenv("HOME"))
		return cop_err_set(err, EINVAL,
			"several nodes need a secret that they share, and HOME, below which the nodes of a Slurm step keep one, is not set (srun --export=NONE removes it): give srun --export=ALL or --export=HOME, or a job directory (-d DIR)");
	if (!s->job.data)
		return cop_err_set(err, EINVAL,
			"several nodes need a secret that they share: give --secret-file FILE, or $COPPER_SECRET, or a job directory (-d DIR) in which the nodes keep one; --insecure does without");
	if (cop_wire_secret_from(s->job.data, s->job.len, &s->wire))
		return cop_err_set(err, EINVAL,
			"the job's secret is shorter than 16 bytes; make one with 'head -c 32 /dev/urandom | base64'");
	return 0;
}

static void drop_dir(struct cop_secret *s, bool wait)
{
	const char *step = s->conf ? s->conf->step_dir : NULL;
	bool waits_here = s->dir && access(s->dir, F_OK) == 0;
	enum cop_startnote_stay stay = !wait                 ? COP_STARTNOTE_STAY_NOT
				       : s->others_may_begin ? COP_STARTNOTE_STAY_LATE
							     : COP_STARTNOTE_STAY;

	if (s->dir && s->rank == 0)
		cop_startnote_remove(s->dir, stay);
	else if (s->dir && wait)
		cop_startnote_withdraw(s->dir, s->rank, true);
	if (s->dir && step && wait && s->rank == 0)
		cop_startnote_remove(step, waits_here ? COP_STARTNOTE_STAY_NOT : stay);
	else if (s->dir && step && wait)
		cop_startnote_withdraw(step, s->rank, !waits_here);
	else if (s->dir && step && s->rank == 0)
		cop_startnote_remove_empty(step);
	s->dir = NULL;
}

void cop_secret_shared(struct cop_secret *s)
{
	drop_dir(s, false);
}

void cop_secret_fini(struct cop_secret *s)
{
	drop_dir(s, true);
	cop_job_secret_free(&s->job);
}
