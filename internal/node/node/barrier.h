/* SPDX-License-Identifier: BSD-3-Clause */
/* barrier: the main thread's side of the start barrier. It owns the node's join and waits until the
 * barrier has ended, meanwhile running work deferred to the main thread. Then it waits until the
 * ranks below have received the result. join sends the messages between ranks. */
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

/* The caller owns the objects it points to, which must outlive the barrier. */
struct cop_barrier_conf {
	const struct cop_conf *conf;
	uint32_t rank;
	struct cop_topo topo;
	const struct cop_job_hosts *hosts;
	uint64_t started_ns; /* as in join */
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
/* Call it before opening net, which is told when the barrier has ended. The caller keeps net until
 * rpc is closed. */
void cop_barrier_use_net(struct cop_barrier *b, struct cop_net *net);

/* Main thread, when this node is ready. Returns when the barrier has ended: 0 if the tree is ready,
 * else -EINTR or -ETIMEDOUT with a sentence. A stop that arrives through tree/op does not count as
 * a failure of other ranks. */
int cop_barrier_wait(struct cop_barrier *b, struct cop_op *treeop, struct cop_err *err);
/* Main thread, after cop_barrier_wait. Returns when each participating rank below has confirmed the
 * result, has died, or has let the time for it run out. */
void cop_barrier_tell_below(struct cop_barrier *b);
/* For waits of the main thread before cop_barrier_wait. True if waiting is pointless because this
 * start was interrupted or another rank has failed; err has the sentence. */
bool cop_barrier_is_in_vain(void *barrier, struct cop_err *err);

#endif
