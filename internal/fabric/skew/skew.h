/* SPDX-License-Identifier: BSD-3-Clause */
/* skew: how far this node's clock is ahead of rank 0's, so that traces of several nodes can be laid
 * over each other. A node asks its parent in the first tree for the time a few times and takes the
 * quickest round trip. It assumes that the answer was made halfway through (Cristian, Distributed
 * Computing 3, 1989), so the error is at most half the round trip. The parent adds its own offset,
 * so that only rank 0's children ask rank 0. A parent that does not know this question, or has no
 * offset of its own, is skipped.
 *
 * It sets no clock, and only the trace depends on its result. */
#ifndef COP_SKEW_H
#define COP_SKEW_H

#include "base/base/base.h"
#include "fabric/rpc/rpc.h"
#include "job/topo/topo.h"

/* The operation, by its number in rpc. */
#define COP_SKEW_OP 44

#define COP_SKEW_SAMPLES 8u
#define COP_SKEW_EVERY_MS 60000u

struct cop_skew;

struct cop_skew_conf {
	struct cop_topo topo;
	uint32_t rank;
	bool asks; /* it will be ticked; otherwise only rank 0 has answers */
	/* The clock, in microseconds since 1970. Any thread. */
	int64_t (*now_us)(void *ctx);
	/* Progress thread. Called when a measurement has ended. */
	void (*measured)(void *ctx, int64_t offset_us, int64_t rtt_us);
	void *ctx;
};

/* NULL: out of memory. */
struct cop_skew *cop_skew_new(const struct cop_skew_conf *conf);
/* No call may be outstanding. NULL is fine. */
void cop_skew_free(struct cop_skew *s);
/* One thread at a time, about every second: begins a measurement when one is due. rpc NULL: the
 * node is alone. */
void cop_skew_tick(struct cop_skew *s, struct cop_rpc *rpc, uint64_t now_ms);
/* Answers another node's request for the time. */
void cop_skew_serve(struct cop_skew *s, struct cop_rpc_req *req);

/* ---- the arithmetic ---- */

struct cop_skew_sample {
	int64_t left_us, came_us; /* by the clock of the asking node */
	int64_t there_us;         /* by the clock of the other node, in between */
	int64_t there_offset_us;  /* how far the other node's clock is ahead of rank 0's */
};
/* False: no clock shows such times. */
bool cop_skew_is_valid(const struct cop_skew_sample *s);
int64_t cop_skew_rtt_us(const struct cop_skew_sample *s);
/* How far the asking node's clock is ahead of rank 0's; for valid samples only. */
int64_t cop_skew_offset_us(const struct cop_skew_sample *s);

#endif
