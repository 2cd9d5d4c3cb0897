/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier: the main thread's side of the start barrier. It owns the join of a node, waits until the
 * barrier has ended, and meanwhile runs the work that other threads have deferred to the main
 * thread. Then it waits until the ranks below know the result. The messages between ranks are
 * join's. */
#ifndef COP_NODE_BARRIER_H
#define COP_NODE_BARRIER_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "base/loop/loop.h"
#include "job/hosts/hosts.h"
#include "tree/start/start.h"
#include "net.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"

/* The caller owns what it points to and keeps it as long as the object lives. */
struct cop_barrier_conf {
	const struct cop_conf *conf;
	uint32_t rank;
	struct cop_topo topo;
	const struct cop_job_hosts *hosts;
	uint64_t started_ns; /* as join has it */
	struct cop_waker *waker;
	struct cop_defer *deferred;
};

struct cop_barrier;

/* Copies conf. NULL: out of memory. */
struct cop_barrier *cop_barrier_new(const struct cop_barrier_conf *conf);
/* Call it after rpc is closed. NULL is fine. */
void cop_barrier_free(struct cop_barrier *b);
/* Returns NULL for NULL. */
struct cop_start *cop_barrier_join(struct cop_barrier *b);
/* Call it before net is opened, because net is told when the barrier ends. The caller keeps net
 * until rpc is closed. */
void cop_barrier_use_net(struct cop_barrier *b, struct cop_net *net);

/* Main thread. This node is ready. Returns when the barrier has ended: 0 if the tree is ready, else
 * -EINTR or -ETIMEDOUT with a sentence. A stop that tree/op has received does not count as a
 * failure of other ranks. */
int cop_barrier_wait(struct cop_barrier *b, struct cop_op *treeop, struct cop_err *err);
/* Main thread, afterwards. Returns when each rank below that took part knows the end, has died, or
 * has not confirmed in time. */
void cop_barrier_tell_below(struct cop_barrier *b);
/* For waits of the main thread before cop_barrier_wait. Returns true if waiting is useless because
 * something has interrupted this start or another rank has failed; err then has the sentence. */
bool cop_barrier_is_in_vain(void *barrier, struct cop_err *err);

#endif
