/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/runlog_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log/log.h"

static void destroy(void *ctx)
{
	struct cop_runlog *r = ctx;

	cop_runrec_free(&r->record);
	cop_runrec_free(&r->totals);
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
}

/* The totals are one more step of the record. */
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
	take_end(ctx);
	beat(ctx, deadline_ms);
}

/* ---- the main thread ---- */

static void take_totals(void *ctx, const struct cop_op_sum *sum)
{
	struct cop_runlog *r = ctx;

	r->totals.step = 1;
	cop_runlog_add_totals(&r->totals, sum, (double)cop_wall_ns() / 1e9);
}

static void set_reason(struct cop_runlog *r, const char *reason)
{
	const struct cop_runrec_series *missing = cop_runrec_find(&r->totals, "nodes.missing");
	struct cop_buf text = {0};

	cop_buf_str(&text, reason);
	if (missing && missing->point[0].value > 0)
		cop_buf_printf(&text, "; %.0f of %" PRIu32 " nodes did not answer",
			missing->point[0].value, r->record.nodes);
	cop_runrec_put(&r->totals, COP_RUNREC_REASON, text.failed ? reason : text.data);
	cop_buf_free(&text);
}

static void ending(void *ctx, const struct cop_follow_end *how)
{
	struct cop_runlog *r = ctx;

	r->status = how->failed ? COP_RUNREC_FAILED : COP_RUNREC_FINISHED;
	set_reason(r, how->reason);
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

	r->interval_ms = conf->conf->store_interval_ms;
	snprintf(r->job_dir, sizeof(r->job_dir), "%s", conf->job_dir);
	if (!rc)
		rc = cop_runrec_new_id(r->record.id);
	cop_runlog_describe(r, conf);
	return rc || !r->record.failed ? rc : -ENOMEM;
}

void cop_runlog_follow(struct cop_follow *f, const struct cop_runlog_conf *conf)
{
	struct cop_runlog *r;
	int rc;

	if (!store_of(conf->conf))
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
