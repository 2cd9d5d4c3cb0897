/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/runlog_priv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log/log.h"
#include "job/scheduler/scheduler.h"

/* Time limit for Slurm's answer. */
#define ASK_MS 2000

_Static_assert(COP_RUNLOG_STORE == PATH_MAX, "a store has an absolute name");

static void destroy(void *ctx)
{
	struct cop_runlog *r = ctx;

	cop_runrec_free(&r->record);
	cop_runrec_free(&r->totals);
	cop_take_free(r->take);
	free(r);
}

/* ---- the thread ---- */

static void begin(void *ctx, uint64_t deadline_ms, struct cop_err *err)
{
	struct cop_err why = {0};

	cop_runlog_keep(ctx, deadline_ms, &why);
	if (why.code)
		cop_err_set(err, why.code, "this run is not in its store: %.900s", why.text);
}

static void record_round(void *ctx, const struct cop_follow_numbers *n)
{
	struct cop_runlog *r = ctx;

	if (cop_runrec_next(&r->record))
		cop_runlog_add_round(&r->record, n);
}

static void beat(void *ctx, uint64_t deadline_ms)
{
	struct cop_err ignored = {0};

	cop_runlog_keep(ctx, deadline_ms, &ignored);
	cop_runlog_take(ctx, deadline_ms);
}

/* Asks Slurm why the job ends: a job ended by Slurm receives only a signal. */
static void ask_slurm(struct cop_runlog *r)
{
	bool by_signal = r->by_signal || (r->exits.failed && WIFSIGNALED(r->exits.worst));
	const char *why = by_signal ? cop_slurm_why(ASK_MS) : NULL;
	const char *known = cop_runrec_get(&r->totals, COP_RUNREC_REASON);
	struct cop_buf text = {0};

	if (!why)
		return;
	cop_buf_str(&text, why);
	if (strncmp(known, "signal; ", 8) == 0)
		known += 8;
	if (strcmp(known, "signal") != 0 && strncmp(known, why, strlen(why)) != 0)
		cop_buf_printf(&text, "; %s", known);
	r->status = COP_RUNREC_FAILED;
	cop_runrec_put(&r->totals, COP_RUNREC_REASON, text.failed ? why : text.data);
	cop_buf_free(&text);
}

/* The totals are one additional step. */
static void take_end(struct cop_runlog *r)
{
	struct cop_runrec *record = &r->record;

	record->status = r->status;
	record->end_s = (double)cop_wall_ns() / 1e9;
	cop_runrec_put(record, COP_RUNREC_REASON, cop_runrec_get(&r->totals, COP_RUNREC_REASON));
	cop_runrec_last(record);
	for (size_t i = 0; i < r->totals.series_n; i++) {
		const struct cop_runrec_series *s = &r->totals.series[i];

		cop_runrec_point(record, s->key, s->point[0].time_s, s->point[0].value);
	}
}

static void end(void *ctx, uint64_t deadline_ms)
{
	struct cop_runlog *r = ctx;

	ask_slurm(r);
	take_end(r);
	if (r->take)
		cop_take_quickly(r->take, false);
	beat(ctx, deadline_ms);
}

/* ---- the main thread ---- */

static void take_totals(void *ctx, const struct cop_op_sum *sum)
{
	struct cop_runlog *r = ctx;

	r->totals.step = 1;
	r->exits = sum->exits;
	r->missing = sum->missing;
	r->has_exits = true;
	cop_runlog_add_totals(&r->totals, sum, (double)cop_wall_ns() / 1e9);
}

static void ending(void *ctx, const struct cop_follow_end *how)
{
	struct cop_runlog *r = ctx;

	struct cop_buf reason = {0};

	r->by_signal = strcmp(how->reason, "signal") == 0;
	if (!r->has_exits)
		r->exits = how->exits;
	r->status = cop_judge_end(&(struct cop_judge){.failed = how->failed,
					  .reason = how->reason,
					  .exits = r->exits,
					  .nodes = r->record.nodes,
					  .missing = r->missing,
					  .all_asked = r->has_exits,
					  .kills = r->kills},
			    &reason)
			    ? COP_RUNREC_FAILED
			    : COP_RUNREC_FINISHED;
	cop_runrec_put(&r->totals, COP_RUNREC_REASON, reason.failed ? how->reason : reason.data);
	cop_buf_free(&reason);
}

static const struct cop_follower_ops ops = {.thread = "runlog",
	.beats = BEAT_ROUNDS,
	.begin = begin,
	.round = record_round,
	.beat = beat,
	.end = end,
	.totals = take_totals,
	.ending = ending,
	.free = destroy};

/* ---- the start ---- */

static const char *store_of(const struct cop_conf *conf)
{
	const char *store = conf->store ? conf->store : getenv("COPPER_STORE");

	return store && *store ? store : NULL;
}

bool cop_runlog_is_wanted(const struct cop_conf *conf)
{
	return store_of(conf) != NULL;
}

static int make_absolute(const char *path, char out[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	int len;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	len = snprintf(out, PATH_MAX, "%s%s%s", cwd, *cwd ? "/" : "", path);
	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

static int fill_runlog(struct cop_runlog *r, const struct cop_runlog_conf *conf)
{
	int rc = make_absolute(store_of(conf->conf), r->store);

	snprintf(r->record.id, sizeof(r->record.id), "%s", conf->id);

	r->take = cop_take_new();
	if (r->take)
		cop_take_quickly(r->take, true);
	r->kills = cop_memory_kills("");
	r->interval_ms = conf->conf->store_interval_ms;
	snprintf(r->job_dir, sizeof(r->job_dir), "%s", conf->job_dir);
	cop_runlog_describe(r, conf);
	return rc || !r->record.failed ? rc : -ENOMEM;
}

bool cop_runlog_new(
	const struct cop_conf *conf, char id[COP_RUNREC_ID_LEN + 1], char store[COP_RUNLOG_STORE])
{
	int rc;

	*id = '\0';
	if (!store_of(conf))
		return false;
	rc = make_absolute(store_of(conf), store);
	rc = rc ? rc : cop_runrec_new_id(id);
	if (rc)
		cop_log_warn("this run is not recorded error=\"%s\"", strerror(-rc));
	return !rc;
}

void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf)
{
	struct cop_runlog *r;
	int rc;

	if (!store_of(conf->conf) || !*conf->id)
		return;
	r = calloc(1, sizeof(*r));
	rc = r ? fill_runlog(r, conf) : -ENOMEM;
	if (!rc)
		rc = cop_follow_add(f, &ops, r);
	else if (r)
		destroy(r);
	if (rc)
		cop_log_warn("this run is not recorded error=\"%s\"", strerror(-rc));
}
