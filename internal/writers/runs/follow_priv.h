/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.c is the main thread's side and the request to the tree; follower.c is a thread.
 * follower.c calls follow.c to ask, and follow.c passes it the answers.
 *
 * Each lock guards the fields below it, and nothing is called under one that may wait; no two are
 * held together. A follower that was left behind does not touch struct cop_follow any more. */
#ifndef COP_WRITERS_RUNS_FOLLOW_PRIV_H
#define COP_WRITERS_RUNS_FOLLOW_PRIV_H

#include "writers/runs/runs.h"

/* How long one write may take, and the last of all, which may have to wait for another. */
#define WRITE_MS 8000
#define END_MS 10000
#define FIRST_MS 200

struct follower {
	const struct cop_follower_ops *ops;
	void *ctx;
	struct cop_follow *all;
	uint32_t interval_ms;
	uint64_t seen; /* which answer it was told last; guarded by the lock of all */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asking, ending, begun, over; /* begun: whatever came of it */
	bool left;     /* the main thread waits no longer: the thread frees all of it */
	bool has_news; /* of the latest answer, not yet told */
	struct cop_follow_numbers news;
	struct cop_err first; /* of the beginning */
	uint64_t end_by_ms;   /* when the last write gives up */
};

struct cop_follow {
	struct cop_follow_conf conf;
	struct follower *follower[COP_FOLLOW_MAX];
	unsigned n;

	pthread_mutex_t lock;
	bool asking, has_latest, has_totals;
	struct cop_follow_numbers latest; /* the answer that came last, at this moment */
	uint64_t latest_ns;
	uint64_t answers;                         /* so far */
	struct follower *waiting[COP_FOLLOW_MAX]; /* for the answer that is under way */
	unsigned waiting_n;
};

/* ---- follow.c ---- */
/* A follower's thread. The answer comes by cop_follower_news, perhaps within this call. */
void cop_follow_ask(struct cop_follow *f, struct follower *who);

/* ---- follower.c ---- */
/* NULL: out of memory. */
struct follower *cop_follower_new(
	struct cop_follow *all, const struct cop_follower_ops *ops, void *ctx);
/* Any thread: what it had asked for; NULL: nobody answered. */
void cop_follower_news(struct follower *w, const struct cop_follow_numbers *n);
/* The main thread's. */
int cop_follower_start(struct follower *w);
void cop_follower_await_first(struct follower *w, uint64_t until_ns, struct cop_err *err);
void cop_follower_end(struct follower *w);
void cop_follower_await_end(struct follower *w, uint64_t until_ns);
void cop_follower_leave(struct follower *w);

#endif
