/* SPDX-License-Identifier: BSD-3-Clause */
/* sampler: records node-wide data in a node's trace: its counters once a second and at the end, its
 * clock offset from rank 0, and the deaths of other nodes. It opens and closes the trace; the other
 * modules report single events to the tracer directly. Without --trace it only answers other nodes'
 * requests for the time. */
#ifndef COP_NODE_SAMPLER_H
#define COP_NODE_SAMPLER_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "base/loop/loop.h"
#include "fabric/rpc/rpc.h"
#include "fabric/reach/reach.h"
#include "prof/stats/stats.h"
#include "job/topo/topo.h"
#include "prof/tracer/tracer.h"

/* The operation served by cop_sampler_serve, by its number in rpc. */
#define COP_SAMPLER_OP COP_SKEW_OP

struct cop_sampler_conf {
	bool traces;
	uint64_t limit;      /* maximum size of the trace in bytes, at least COP_TRACER_LIMIT_MIN */
	const char *job_dir; /* absolute; directory of the trace */
	const char *host;    /* NULL: this machine's host name */
	const char *source;
	struct cop_topo topo;
	uint32_t rank;
	const struct cop_stats *stats; /* the caller owns these two; they must outlive the object */
	struct cop_gate *gate;         /* samples are taken inside the gate, once it is open */
};

struct cop_sampler;

/* 0, or -errno with a sentence. *out may be set even on error. */
int cop_sampler_start(
	const struct cop_sampler_conf *conf, struct cop_sampler **out, struct cop_err *err);
/* Call it when rpc is closed and the last event has been reported: writes the rest. NULL is
 * fine. */
void cop_sampler_stop(struct cop_sampler *s);
/* For events of other modules; NULL: no trace. */
struct cop_tracer *cop_sampler_tracer(struct cop_sampler *s);
/* Call it before the gate opens. Adds cache and rpc to the samples; rpc NULL: the node is alone.
 * The caller keeps rpc until the gate has been drained, and the cache until cop_sampler_stop. */
void cop_sampler_use(struct cop_sampler *s, struct cop_cache *cache, struct cop_rpc *rpc);
/* Any thread. A node has died or is connected again. */
void cop_sampler_peer(struct cop_sampler *s, uint32_t rank, bool lives);
/* Progress thread. Answers another node's request for the time. */
void cop_sampler_serve(struct cop_sampler *s, struct cop_rpc_req *req);

#endif
