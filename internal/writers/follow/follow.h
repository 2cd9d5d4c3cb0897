/* SPDX-License-Identifier: BSD-3-Clause */
/* follow: runs the followers, which record a job on rank 0 while it runs: the run store, the files
 * for OpenTelemetry. It asks all nodes at intervals, once for all followers, passes each of them
 * the answers and the end, and never disturbs the job: a follower works on a thread of its own with
 * deadlines, at most one request to the tree is under way, and a thread that hangs in a file system
 * is left behind. It does not know what they write. */
#ifndef COP_WRITERS_FOLLOW_H
#define COP_WRITERS_FOLLOW_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "prof/stats/stats.h"
#include "tree/op/op.h"

#define COP_FOLLOW_MAX 4

/* Counters and resource use of all nodes that answered, at a moment of the wall clock. */
struct cop_follow_numbers {
	int64_t wall_ns;
	uint32_t nodes, missing;
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_op_machine machine;
};

void cop_follow_numbers_of(const struct cop_op_sum *sum, struct cop_follow_numbers *out);

/* How the job ended. */
struct cop_follow_end {
	bool failed;
	const char *reason; /* a sentence, or a few words */
	int64_t stop_ns;    /* wall clock: when it began to stop; 0: it had never started */
};

struct cop_follower_ops {
	const char *thread; /* its name */
	unsigned beats;     /* intervals between two calls of beat; 0: none */
	/* On the thread, one at a time. begin comes first, unless the job is over by then; it sets
	 * err if the files that the user asked for cannot be written. round: an answer has come;
	 * beat: time has passed; end comes last. Deadlines are those of cop_now_ms. */
	void (*begin)(void *ctx, uint64_t deadline_ms, struct cop_err *err);
	void (*round)(void *ctx, const struct cop_follow_numbers *n);
	void (*beat)(void *ctx, uint64_t deadline_ms);
	void (*end)(void *ctx, uint64_t deadline_ms);
	/* Main thread, before end: the sums of all nodes that have stopped, once at most, and then
	 * how the job ended. The thread uses what they set only after the second call. */
	void (*totals)(void *ctx, const struct cop_op_sum *sum);
	void (*ending)(void *ctx, const struct cop_follow_end *end);
	/* Any thread, the last call. */
	void (*free)(void *ctx);
};

struct cop_follow_conf {
	uint32_t interval_ms;
	/* Called on threads of this module. Asks all nodes for telemetry; done is called once, on
	 * any thread. False: not now, and done is not called. */
	bool (*ask)(void *ctx, cop_op_done *done, void *arg);
	/* Any thread. Whether a node may have counted for the totals by now: they are the last of
	 * the numbers, so what is answered from then on is no round. NULL: not before the totals
	 * are here. */
	bool (*is_ending)(void *ctx);
	void *ctx;
};

struct cop_follow;

/* NULL: out of memory. All of this is the main thread's, and NULL is fine everywhere. */
struct cop_follow *cop_follow_new(const struct cop_follow_conf *conf);
/* Adds a follower; ops stays where it is, and ctx is freed with it. 0; -ENOMEM, -ENOSPC: ctx has
 * been freed. */
int cop_follow_add(struct cop_follow *f, const struct cop_follower_ops *ops, void *ctx);
/* Starts them, and waits a fifth of a second at most for their first writes. False, with a
 * sentence, if something cannot be written. */
bool cop_follow_is_good(struct cop_follow *f, struct cop_err *err);
void cop_follow_totals(struct cop_follow *f, const struct cop_op_sum *sum);
/* Called once. The followers write the end, also of a job that never started. Waits for that at
 * most ten seconds. */
void cop_follow_end(struct cop_follow *f, const struct cop_follow_end *end);
/* After the end, when no question to the tree is under way. */
void cop_follow_free(struct cop_follow *f);

#endif
