/* SPDX-License-Identifier: BSD-3-Clause */
#include "runlog/runlog_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"

#define FIRST_MS 200
/* A little more than a write may take. */
#define END_MS 10000

const char *cop_runlog_store(const struct cop_conf *conf)
{
	const char *store = conf->store ? conf->store : getenv("COPPER_STORE");

	return store && *store ? store : NULL;
}

/* ---- the thread ---- */

static void destroy(struct cop_runlog *r)
{
	cop_runrec_free(&r->record);
	cop_runrec_free(&r->totals);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

/* Any thread. */
static void answered(void *arg, struct cop_treeop_sum *sum)
{
	struct cop_runlog *r = arg;
	double now_s = (double)cop_wall_ns() / 1e9;

	pthread_mutex_lock(&r->lock);
	/* Nobody answered, or memory was short. */
	if (sum->nodes)
		r->news = cop_runlog_numbers(sum, now_s);
	r->asking = false;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* A tree that is slow to answer is asked less often. */
static void ask(struct cop_runlog *r)
{
	bool free_to_ask;

	pthread_mutex_lock(&r->lock);
	free_to_ask = !r->asking && !r->ending;
	r->asking |= free_to_ask;
	pthread_mutex_unlock(&r->lock);
	if (!free_to_ask || r->ask(r->ctx, answered, r))
		return;
	pthread_mutex_lock(&r->lock);
	r->asking = false;
	pthread_mutex_unlock(&r->lock);
}

/* Returns when the run ends (true), an answer has come, or this moment is reached. */
static bool wait_until(struct cop_runlog *r, uint64_t until_ns, struct numbers *news)
{
	struct timespec until = cop_moment(until_ns);
	bool ending;
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->ending && !r->news.has && !rc)
		rc = pthread_cond_timedwait(&r->changed, &r->lock, &until);
	*news = r->news;
	r->news.has = false;
	ending = r->ending;
	pthread_mutex_unlock(&r->lock);
	return ending;
}

static void record_round(struct cop_runlog *r, const struct numbers *news)
{
	if (cop_runrec_next(&r->record))
		cop_runlog_add_round(&r->record, news);
}

static void write_by(struct cop_runlog *r, uint64_t deadline_ms)
{
	struct cop_err err = {0};

	cop_runlog_keep(r, deadline_ms, &err);
	pthread_mutex_lock(&r->lock);
	if (!r->written)
		r->first = err;
	r->written = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

/* Until the run ends. */
static void follow(struct cop_runlog *r)
{
	uint64_t interval_ns = r->interval_ms * COP_NS_PER_MS;
	uint64_t ask_ns = cop_now_ns(), write_ns = ask_ns + BEAT_ROUNDS * interval_ns;
	struct numbers news;

	write_by(r, cop_now_ms() + WRITE_MS);
	for (;;) {
		uint64_t now_ns = cop_now_ns();

		if (now_ns >= ask_ns) {
			ask(r);
			ask_ns = now_ns + interval_ns;
		}
		if (now_ns >= write_ns) {
			write_by(r, cop_now_ms() + WRITE_MS);
			write_ns = cop_now_ns() + BEAT_ROUNDS * interval_ns;
		}
		if (wait_until(r, COP_MIN(ask_ns, write_ns), &news))
			break;
		if (news.has)
			record_round(r, &news);
	}
	if (news.has)
		record_round(r, &news);
}

/* The totals are one step more of the record. */
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

static bool is_ending(struct cop_runlog *r)
{
	bool ending;

	pthread_mutex_lock(&r->lock);
	ending = r->ending;
	pthread_mutex_unlock(&r->lock);
	return ending;
}

static void *live(void *arg)
{
	struct cop_runlog *r = arg;
	bool left;

	/* A start that failed is recorded at once. */
	if (!is_ending(r))
		follow(r);
	take_end(r);
	write_by(r, r->end_by_ms);
	pthread_mutex_lock(&r->lock);
	r->over = true;
	left = r->left;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (left)
		destroy(r);
	return NULL;
}

/* ---- the main thread ---- */

static int absolute(const char *path, char out[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	int len;

	if (*path != '/' && !getcwd(cwd, sizeof(cwd)))
		return -errno;
	len = snprintf(out, PATH_MAX, "%s%s%s", cwd, *cwd ? "/" : "", path);
	return len < PATH_MAX ? 0 : -ENAMETOOLONG;
}

struct cop_runlog *cop_runlog_start(const struct cop_runlog_conf *conf)
{
	const char *store = cop_runlog_store(conf->conf);
	struct cop_runlog *r = store ? calloc(1, sizeof(*r)) : NULL;
	int rc;

	if (!r)
		return NULL;
	pthread_mutex_init(&r->lock, NULL);
	cop_cond_init(&r->changed);
	r->interval_ms = conf->conf->store_interval_ms;
	r->ask = conf->ask;
	r->ctx = conf->ctx;
	snprintf(r->job_dir, sizeof(r->job_dir), "%s", conf->job_dir);
	rc = absolute(store, r->store);
	if (!rc)
		rc = cop_runrec_new_id(r->record.id);
	cop_runlog_describe(r, conf);
	if (!rc)
		rc = r->record.failed ? -ENOMEM : 0;
	if (rc) {
		cop_log_warn("this run is not recorded error=\"%s\"", strerror(-rc));
		destroy(r);
		return NULL;
	}
	return r;
}

static int start_thread(struct cop_runlog *r)
{
	int rc = r->started ? 0 : cop_thread_start(&r->thread, "runlog", live, r);

	r->started |= rc == 0;
	if (rc)
		cop_log_warn("this run is not recorded error=\"%s\"", strerror(-rc));
	return rc;
}

bool cop_runlog_is_good(struct cop_runlog *r, struct cop_err *err)
{
	struct timespec until;
	int rc = 0;

	if (!r || start_thread(r))
		return true;
	until = cop_moment(cop_now_ns() + FIRST_MS * COP_NS_PER_MS);
	pthread_mutex_lock(&r->lock);
	while (!r->written && !rc)
		rc = pthread_cond_timedwait(&r->changed, &r->lock, &until);
	if (r->written)
		*err = r->first;
	pthread_mutex_unlock(&r->lock);
	return err->code == 0;
}

void cop_runlog_totals(struct cop_runlog *r, const struct cop_treeop_sum *sum)
{
	if (!r || r->totals.series_n)
		return;
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

void cop_runlog_end(struct cop_runlog *r, enum cop_runrec_status status, const char *reason)
{
	struct timespec until = cop_moment(cop_now_ns() + END_MS * COP_NS_PER_MS);
	int rc = 0;

	if (!r)
		return;
	set_reason(r, reason);
	pthread_mutex_lock(&r->lock);
	r->status = status;
	/* If another write is under way, this one has only what that one leaves of its time, and is
	 * kept elsewhere before nobody waits any more. */
	r->end_by_ms = cop_now_ms() + WRITE_MS;
	r->ending = true;
	pthread_cond_broadcast(&r->changed);
	pthread_mutex_unlock(&r->lock);
	if (start_thread(r))
		return;
	pthread_mutex_lock(&r->lock);
	while (!r->over && !rc)
		rc = pthread_cond_timedwait(&r->changed, &r->lock, &until);
	pthread_mutex_unlock(&r->lock);
}

void cop_runlog_free(struct cop_runlog *r)
{
	pthread_t thread;
	bool over;

	if (!r)
		return;
	thread = r->thread;
	pthread_mutex_lock(&r->lock);
	over = r->over || !r->started;
	r->left = !over;
	pthread_mutex_unlock(&r->lock);
	if (!over) {
		/* It hangs in a file system, or will be done in a moment. */
		pthread_detach(thread);
		return;
	}
	if (r->started)
		pthread_join(r->thread, NULL);
	destroy(r);
}
