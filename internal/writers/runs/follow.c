/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/runs/follow_priv.h"

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

/* Ends the request and returns the followers waiting for its answer. */
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
	/* Otherwise no node answered, memory ran out, or the answer may be later than the totals,
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
		cop_follower_news(waiting[i], known ? &now : NULL);
}

/* Half an interval is the maximum distance of two followers with equal intervals. A late answer is
 * not reported twice. */
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
		cop_follower_news(waiting[i], NULL);
}

void cop_follow_ask(struct cop_follow *f, struct follower *who)
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
		cop_follower_news(who, &latest);
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
	struct follower *w = f && f->n < COP_FOLLOW_MAX ? cop_follower_new(f, ops, ctx) : NULL;

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
		(void)cop_follower_start(f->follower[i]);
	for (unsigned i = 0; f && i < f->n && !err->code; i++)
		cop_follower_await_first(f->follower[i], until_ns, err);
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
		cop_follower_end(f->follower[i]);
	}
	for (unsigned i = 0; i < f->n; i++)
		cop_follower_await_end(f->follower[i], until_ns);
}

void cop_follow_free(struct cop_follow *f)
{
	if (!f)
		return;
	for (unsigned i = 0; i < f->n; i++)
		cop_follower_leave(f->follower[i]);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
