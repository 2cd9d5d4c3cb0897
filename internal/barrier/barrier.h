/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier: the main thread's side of the start barrier. It makes the join of a node, waits until
 * the barrier has ended, and runs meanwhile what other threads have left for the main thread; then
 * it waits until the ranks below know the end. What the ranks tell each other is join's. */
#ifndef COP_BARRIER_H
#define COP_BARRIER_H

#include "base/base.h"
#include "conf/conf.h"
#include "defer/defer.h"
#include "job/job.h"
#include "join/join.h"
#include "net/net.h"
#include "topo/topo.h"
#include "treeop/treeop.h"
#include "waker/waker.h"

/* What it points to is the caller's, while the object lives. */
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
/* When rpc is closed. NULL is fine. */
void cop_barrier_free(struct cop_barrier *b);
/* NULL of NULL. */
struct cop_join *cop_barrier_join(struct cop_barrier *b);
/* Before net is opened: it hears of the end of the barrier. The caller keeps it until rpc is
 * closed. */
void cop_barrier_use_net(struct cop_barrier *b, struct cop_net *net);

/* Main thread. This node is ready. Returns when the barrier has ended: 0 if the tree is ready,
 * -EINTR, or -ETIMEDOUT; both with a sentence. A stop that treeop has received is no failure of
 * other ranks. */
int cop_barrier_wait(struct cop_barrier *b, struct cop_treeop *treeop, struct cop_err *err);
/* Main thread, afterwards. Returns when each rank below that came knows the end, has died, or has
 * not confirmed in time. */
void cop_barrier_tell_below(struct cop_barrier *b);
/* For waits of the main thread before cop_barrier_wait: whether they are in vain, with a sentence,
 * because something has interrupted this start or another rank has failed. */
bool cop_barrier_is_in_vain(void *barrier, struct cop_err *err);

#endif
