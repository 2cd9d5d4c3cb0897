/* SPDX-License-Identifier: BSD-3-Clause */
/* struct cop_follow sends requests to the tree and passes the answers on; each follower's thread
 * asks it for them. Each lock guards the fields below it. No thread holds two locks, or makes a
 * blocking call while holding one. A detached follower does not access struct cop_follow. */
#include "base/log/log.h"
#include "writers/runs/runs.h"

/* Time limits: for a write; for the end, whose write may have to wait for another; for the
 * start. */
#define WRITE_MS 8000
#define END_MS 10000
#define FIRST_MS 200

struct follower {
	const struct cop_follower_ops *ops;
	void *ctx;
	struct cop_follow *all;
	uint32_t interval_ms;
	uint64_t seen; /* number of the last answer it received; guarded by cop_follow.lock */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asking, ending, begun, over; /* begun: even if it failed */
	bool left;                        /* detached: the thread frees everything */
	bool has_news;                    /* news has not been passed on yet */
	struct cop_follow_numbers news;
	struct cop_err first; /* error from begin */
	uint64_t end_by_ms;   /* deadline of the last write */
};

struct cop_follow {
	struct cop_follow_conf conf;
	struct follower *follower[COP_FOLLOW_MAX];
	unsigned n;

	pthread_mutex_t lock;
	bool asking, has_latest, has_totals;
	struct cop_follow_numbers latest; /* the last answer, and its time */
	uint64_t latest_ns;
	uint64_t answers;                         /* number of answers so far */
	struct follower *waiting[COP_FOLLOW_MAX]; /* for the answer in flight */
	unsigned waiting_n;
};

/* Called on a follower's thread. follower_news delivers the answer, perhaps during this call. */
static void ask_numbers(struct cop_follow *f, struct follower *who);

/* ---- the thread ---- */

static void free_follower(struct follower *w)
{
	w->ops->free(w->ctx);
	pthread_cond_destroy(&w->changed);
	pthread_mutex_destroy(&w->lock);
	free(w);
}

/* Any thread. Delivers the requested numbers; n is NULL if there is no answer. */
static void follower_news(struct follower *w, const struct cop_follow_numbers *n)
{
	pthread_mutex_lock(&w->lock);
	if (n)
		w->news = *n;
	w->has_news |= n != NULL;
	w->asking = false;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
}

/* Asks less often if the tree is slow to answer. */
static void ask_tree(struct follower *w)
{
	bool free_to_ask;

	pthread_mutex_lock(&w->lock);
	free_to_ask = !w->asking && !w->ending;
	w->asking |= free_to_ask;
	pthread_mutex_unlock(&w->lock);
	if (free_to_ask)
		ask_numbers(w->all, w);
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

/* NULL: out of memory. */
static struct follower *follower_new(
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

/* Main thread. */
static int follower_start(struct follower *w)
{
	int rc = w->started ? 0 : cop_thread_start(&w->thread, w->ops->thread, run_follower, w);

	w->started |= rc == 0;
	if (rc)
		cop_log_warn("this job is not recorded by=%s error=\"%s\"", w->ops->thread,
			strerror(-rc));
	return rc;
}

static void follower_await_first(struct follower *w, uint64_t until_ns, struct cop_err *err)
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

static void follower_end(struct follower *w)
{
	pthread_mutex_lock(&w->lock);
	/* If another write is still in progress, it uses up part of this one's time. */
	w->end_by_ms = cop_now_ms() + WRITE_MS;
	w->ending = true;
	pthread_cond_broadcast(&w->changed);
	pthread_mutex_unlock(&w->lock);
	(void)follower_start(w);
}

static void follower_await_end(struct follower *w, uint64_t until_ns)
{
	struct timespec until = cop_moment(until_ns);
	int rc = w->started ? 0 : -1;

	pthread_mutex_lock(&w->lock);
	while (!w->over && !rc)
		rc = pthread_cond_timedwait(&w->changed, &w->lock, &until);
	pthread_mutex_unlock(&w->lock);
}

static void follower_leave(struct follower *w)
{
	pthread_t thread = w->thread;
	bool over;

	pthread_mutex_lock(&w->lock);
	over = w->over || !w->started;
	w->left = !over;
	pthread_mutex_unlock(&w->lock);
	if (!over) {
		/* The thread is blocked in a file system, or about to finish. */
		pthread_detach(thread);
		cop_thread_left();
		return;
	}
	if (w->started)
		pthread_join(thread, NULL);
	free_follower(w);
}

/* ---- one request for all followers ---- */

void cop_follow_numbers_of(const struct cop_op_sum *sum, struct cop_follow_numbers *out)
{
	*out = (struct cop_follow_numbers){.wall_ns = cop_wall_ns(),
		.nodes = sum->nodes,
		.missing = sum->missing,
		.usage = sum->usage,
		.machine = sum->machine,
		.hosts = sum->hosts};
	cop_stats_sum(&out->stats, &sum->stats);
}

/* Ends the request, and returns the followers that were waiting for its answer. */
static unsigned take_waiting(struct cop_follow *f, struct follower *out[COP_FOLLOW_MAX])
{
	unsigned n = f->waiting_n;

	memcpy(out, f->waiting, n * sizeof(*out));
	f->waiting_n = 0;
	f->asking = false;
	return n;
}

/* Any thread. */
static void sum_arrived(void *arg, struct cop_op_sum *sum)
{
	struct cop_follow *f = arg;
	struct follower *waiting[COP_FOLLOW_MAX];
	struct cop_follow_numbers now;
	bool known;
	unsigned n;

	bool ending = f->conf.is_ending && f->conf.is_ending(f->conf.ctx);

	cop_follow_numbers_of(sum, &now);
	pthread_mutex_lock(&f->lock);
	n = take_waiting(f, waiting);
	/* Drop the answer if no node answered, memory ran out, or it may be newer than the totals,
	 * which are final. */
	known = now.nodes && !ending && !f->has_totals;
	if (known) {
		f->latest = now;
		f->latest_ns = cop_now_ns();
		f->has_latest = true;
		f->answers++;
	}
	for (unsigned i = 0; i < n; i++)
		waiting[i]->seen = f->answers;
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < n; i++)
		follower_news(waiting[i], known ? &now : NULL);
}

/* Whether the latest answer will do for this follower. Two followers with equal intervals are at
 * most half an interval apart. A late answer is not delivered twice. */
static bool is_fresh(const struct cop_follow *f, const struct follower *who)
{
	return f->has_latest && who->seen < f->answers &&
	       cop_now_ns() - f->latest_ns < f->conf.interval_ms * COP_NS_PER_MS / 2;
}

static void note_refusal(struct cop_follow *f)
{
	struct follower *waiting[COP_FOLLOW_MAX];
	unsigned n;

	pthread_mutex_lock(&f->lock);
	n = take_waiting(f, waiting);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < n; i++)
		follower_news(waiting[i], NULL);
}

static void ask_numbers(struct cop_follow *f, struct follower *who)
{
	struct cop_follow_numbers latest;
	bool fresh, first = false;

	pthread_mutex_lock(&f->lock);
	fresh = is_fresh(f, who);
	if (fresh) {
		latest = f->latest;
		who->seen = f->answers;
	} else {
		/* A follower has at most one request pending. */
		f->waiting[f->waiting_n++] = who;
		first = !f->asking;
		f->asking = true;
	}
	pthread_mutex_unlock(&f->lock);
	if (fresh)
		follower_news(who, &latest);
	else if (first && !f->conf.ask(f->conf.ctx, sum_arrived, f))
		note_refusal(f);
}

/* ---- the main thread ---- */

struct cop_follow *cop_follow_new(const struct cop_follow_conf *conf)
{
	struct cop_follow *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->conf = *conf;
	pthread_mutex_init(&f->lock, NULL);
	return f;
}

int cop_follow_add(struct cop_follow *f, const struct cop_follower_ops *ops, void *ctx)
{
	struct follower *w = f && f->n < COP_FOLLOW_MAX ? follower_new(f, ops, ctx) : NULL;

	if (!w) {
		ops->free(ctx);
		return f && f->n == COP_FOLLOW_MAX ? -ENOSPC : -ENOMEM;
	}
	f->follower[f->n++] = w;
	return 0;
}

bool cop_follow_is_good(struct cop_follow *f, struct cop_err *err)
{
	uint64_t until_ns = cop_now_ns() + FIRST_MS * COP_NS_PER_MS;

	*err = (struct cop_err){0};
	for (unsigned i = 0; f && i < f->n; i++)
		(void)follower_start(f->follower[i]);
	for (unsigned i = 0; f && i < f->n && !err->code; i++)
		follower_await_first(f->follower[i], until_ns, err);
	return err->code == 0;
}

void cop_follow_totals(struct cop_follow *f, const struct cop_op_sum *sum)
{
	bool again;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	again = f->has_totals;
	f->has_totals = true;
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->n && !again; i++)
		f->follower[i]->ops->totals(f->follower[i]->ctx, sum);
}

void cop_follow_end(struct cop_follow *f, const struct cop_follow_end *end)
{
	uint64_t until_ns = cop_now_ns() + END_MS * COP_NS_PER_MS;

	if (!f)
		return;
	for (unsigned i = 0; i < f->n; i++) {
		f->follower[i]->ops->ending(f->follower[i]->ctx, end);
		follower_end(f->follower[i]);
	}
	for (unsigned i = 0; i < f->n; i++)
		follower_await_end(f->follower[i], until_ns);
}

void cop_follow_free(struct cop_follow *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < f->n; i++)
		follower_leave(f->follower[i]);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
