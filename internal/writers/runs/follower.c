/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/follow_priv.h"

#include "base/log/log.h"

/* ---- the thread ---- */

static void free_follower(struct follower *w)
{
	w->ops->free(w->ctx);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

void cop_follower_news(struct follower *w, const struct cop_follow_numbers *n)
{
	pthread_mutex_lock(&w->lock);
	if (n)
		w->news = *n;
	w->has_news |= n != NULL;
	w->asking = false;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Requests less often if the tree is slow to answer. */
static void ask_tree(struct follower *w)
{
	bool free_to_ask;

	pthread_mutex_lock(&w->lock);
	free_to_ask = !w->asking && !w->ending;
	w->asking |= free_to_ask;
	pthread_mutex_unlock(&w->lock);
	if (free_to_ask)
		cop_follow_ask(w->all, w);
}

/* Returns when the job ends (true), an answer arrives, or the deadline passes. */
static bool wait_until(
	struct follower *w, uint64_t until_ns, bool *has_news, struct cop_follow_numbers *news)
{
	struct timespec until = cop_moment(until_ns);
	bool ending;
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->ending && !w->has_news && !rc)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	*has_news = w->has_news;
	*news = w->news;
	w->has_news = false;
	ending = w->ending;
	pthread_mutex_unlock(&w->lock);
	return ending;
}

static void begin_follower(struct follower *w)
{
	struct cop_err err = {0};

	w->ops->begin(w->ctx, cop_now_ms() + WRITE_MS, &err);
	pthread_mutex_lock(&w->lock);
	w->first = err;
	w->begun = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Returns when the next beat is due. */
static uint64_t beat_once(struct follower *w, uint64_t now_ns, uint64_t due_ns)
{
	if (now_ns < due_ns)
		return due_ns;
	w->ops->beat(w->ctx, cop_now_ms() + WRITE_MS);
	return cop_now_ns() + w->ops->beats * w->interval_ms * COP_NS_PER_MS;
}

/* Runs until the job ends. */
static void follow_totals(struct follower *w)
{
	uint64_t interval_ns = w->interval_ms * COP_NS_PER_MS, ask_ns = cop_now_ns();
	uint64_t beat_ns = w->ops->beats ? ask_ns + w->ops->beats * interval_ns : UINT64_MAX;
	struct cop_follow_numbers news;
	bool has_news = false, ending = false;

	begin_follower(w);
	while (!ending) {
		uint64_t now_ns = cop_now_ns();

		if (now_ns >= ask_ns) {
			ask_tree(w);
			ask_ns = now_ns + interval_ns;
		}
		beat_ns = beat_once(w, now_ns, beat_ns);
		ending = wait_until(w, COP_MIN(ask_ns, beat_ns), &has_news, &news);
		if (has_news)
			w->ops->round(w->ctx, &news);
	}
}

static bool is_ending(struct follower *w)
{
	bool ending;

	pthread_mutex_lock(&w->lock);
	ending = w->ending;
	pthread_mutex_unlock(&w->lock);
	return ending;
}

static void *run_follower(void *arg)
{
	struct follower *w = arg;
	bool left;

	/* A failed start is recorded immediately. */
	if (!is_ending(w))
		follow_totals(w);
	w->ops->end(w->ctx, w->end_by_ms);
	pthread_mutex_lock(&w->lock);
	w->over = true;
	left = w->left;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (left)
		free_follower(w);
	return NULL;
}

/* ---- the main thread ---- */

struct follower *cop_follower_new(
	struct cop_follow *all, const struct cop_follower_ops *ops, void *ctx)
{
	struct follower *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->all = all;
	w->ops = ops;
	w->ctx = ctx;
	w->interval_ms = all->conf.interval_ms;
	pthread_mutex_init(&w->lock, NULL);
	cop_cond_init(&w->changed);
	return w;
}

int cop_follower_start(struct follower *w)
{
	int rc = w->started ? 0 : cop_thread_start(&w->thread, w->ops->thread, run_follower, w);

	w->started |= rc == 0;
	if (rc)
		cop_log_warn("this job is not recorded by=%s error=\"%s\"", w->ops->thread,
			strerror(-rc));
	return rc;
}

void cop_follower_await_first(struct follower *w, uint64_t until_ns, struct cop_err *err)
{
	struct timespec until = cop_moment(until_ns);
	int rc = w->started ? 0 : -1;

	pthread_mutex_lock(&w->lock);
	while (!w->begun && !rc)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	if (w->begun)
		*err = w->first;
	pthread_mutex_unlock(&w->lock);
}

void cop_follower_end(struct follower *w)
{
	pthread_mutex_lock(&w->lock);
	/* If another write is in progress, this one has only its remaining time. */
	w->end_by_ms = cop_now_ms() + WRITE_MS;
	w->ending = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	(void)cop_follower_start(w);
}

void cop_follower_await_end(struct follower *w, uint64_t until_ns)
{
	struct timespec until = cop_moment(until_ns);
	int rc = w->started ? 0 : -1;

	pthread_mutex_lock(&w->lock);
	while (!w->over && !rc)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	pthread_mutex_unlock(&w->lock);
}

void cop_follower_leave(struct follower *w)
{
	pthread_t thread = w->thread;
	bool over;

	pthread_mutex_lock(&w->lock);
	over = w->over || !w->started;
	w->left = !over;
	pthread_mutex_unlock(&w->lock);
	if (!over) {
		/* It is blocked in a file system, or about to finish. */
		pthread_detach(thread);
		cop_thread_left();
		return;
	}
	if (w->started)
		pthread_join(thread, NULL);
	free_follower(w);
}
