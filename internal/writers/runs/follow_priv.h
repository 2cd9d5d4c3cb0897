/* SPDX-License-Identifier: BSD-3-Clause */
/* follow.c implements the main thread's side and the requests to the tree; follower.c is the
 * follower's thread. follower.c requests numbers from follow.c, which passes it the answers.
 *
 * Each lock guards the fields below it; no blocking call is made under a lock, and no two are held
 * together. A detached follower does not access struct cop_follow. */
#ifndef COP_WRITERS_RUNS_FOLLOW_PRIV_H
#define COP_WRITERS_RUNS_FOLLOW_PRIV_H

#include "writers/runs/runs.h"

/* The time limit of a write; also of the last one, which may have to wait for another. */
#define WRITE_MS 8000
#define END_MS 10000
#define FIRST_MS 200

struct follower {
	const struct cop_follower_ops *ops;
	void *ctx;
	struct cop_follow *all;
	uint32_t interval_ms;
	uint64_t seen; /* the last answer it received; guarded by the lock of struct cop_follow */
	pthread_t thread;
	bool started;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool asking, ending, begun, over; /* begun: successfully or not */
	bool left;                        /* detached: the thread frees everything */
	bool has_news;                    /* latest has not been passed on yet */
	struct cop_follow_numbers news;
	struct cop_err first; /* of begin */
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
	uint64_t answers;                         /* so far */
	struct follower *waiting[COP_FOLLOW_MAX]; /* for the answer in flight */
	unsigned waiting_n;
};

/* ---- follow.c ---- */
/* Called on a follower's thread. The answer arrives by cop_follower_news, perhaps within this
 * call. */
void cop_follow_ask(struct cop_follow *f, struct follower *who);

/* ---- follower.c ---- */
/* NULL: out of memory. */
struct follower *cop_follower_new(
	struct cop_follow *all, const struct cop_follower_ops *ops, void *ctx);
/* Any thread: the requested numbers; NULL: no answer. */
void cop_follower_news(struct follower *w, const struct cop_follow_numbers *n);
/* Main thread. */
int cop_follower_start(struct follower *w);
void cop_follower_await_first(struct follower *w, uint64_t until_ns, struct cop_err *err);
void cop_follower_end(struct follower *w);
void cop_follower_await_end(struct follower *w, uint64_t until_ns);
void cop_follower_leave(struct follower *w);

#endif
