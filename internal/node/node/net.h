/* SPDX-License-Identifier: BSD-3-Clause */
/* net: a node's end of the network: opens it (reach) and passes requests of other nodes through the
 * gate to the responsible module: join, tree/op, sampler or fetch. It also decides which requests
 * are served in which state of the node. A node that is alone has no net. */
#ifndef COP_NODE_NET_H
#define COP_NODE_NET_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "tree/fetch/fetch.h"
#include "base/loop/loop.h"
#include "job/hosts/hosts.h"
#include "tree/start/start.h"
#include "fabric/reach/reach.h"
#include "fabric/rpc/rpc.h"
#include "node/sampler/sampler.h"
#include "prof/stats/stats.h"
#include "prof/telemetry/telemetry.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"
#include "fabric/wire/wire.h"

/* The caller owns the objects it points to, which must outlive the net. */
struct cop_net_conf {
	const struct cop_conf *conf;
	struct cop_topo topo;
	uint32_t rank;
	const struct cop_job_hosts *hosts;
	const char *job_dir;                  /* or "" */
	const struct cop_wire_secret *secret; /* zeros: insecure */
	uint64_t config_hash;
	struct cop_stats *stats;
	struct cop_rpc **rpc; /* rpc is stored here before the first request arrives */
	struct cop_gate *gate;
	struct cop_start *join;
	struct cop_op *treeop;
	struct cop_sampler *sampler;
	struct cop_telemetry *telemetry; /* receives the deaths of other nodes; may be NULL */
};

struct cop_net;

/* Copies conf. NULL: out of memory. */
struct cop_net *cop_net_new(const struct cop_net_conf *conf);
/* Main thread, in this order. The first opens rpc and passes it to join; the second starts sending
 * this node's address to other ranks. 0, or -errno with a sentence. */
int cop_net_open(struct cop_net *n, struct cop_err *err);
int cop_net_listen(struct cop_net *n, struct cop_err *err);
/* Call it before the gate opens. The caller keeps fetch until the gate has been drained. */
void cop_net_use_fetch(struct cop_net *n, struct cop_fetch *fetch);

/* Whether chunks are compressed, as --compress says; with auto, only if the network is slower than
 * compression. rpc NULL: the node is alone. */
bool cop_net_compresses(const struct cop_conf *conf, struct cop_rpc *rpc);

/* In the functions below, n may be NULL. */

/* Whether cop_net_listen failed because this rank is already running. */
bool cop_net_is_duplicate(const struct cop_net *n);
/* Any thread. See cop_reach_barrier_ended. */
void cop_net_barrier_ended(struct cop_net *n, bool ready);

/* ---- leaving, on the main thread, in this order ---- */

/* See cop_reach_close_door and cop_reach_cancel. */
void cop_net_close_door(struct cop_net *n);
void cop_net_cancel(struct cop_net *n);
/* Sends pending replies; waits a second at most. */
void cop_net_flush(struct cop_net *n);
/* Closes rpc; no requests arrive after that. */
void cop_net_close(struct cop_net *n);
void cop_net_free(struct cop_net *n);

#endif
