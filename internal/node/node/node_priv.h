/* SPDX-License-Identifier: BSD-3-Clause */
/* run.c calls start.c, end.c and follow.c; they never call back.
 *
 * Threads: the main thread starts and stops everything and sleeps in between. No other thread uses
 * struct cop_node. Data shared between threads belongs to the modules, which receive their
 * dependencies through their own configurations. */
#ifndef COP_NODE_PRIV_H
#define COP_NODE_PRIV_H

#include "barrier.h"
#include "cache/cache/cache.h"
#include "node/ctl/ctl.h"
#include "tree/fetch/fetch.h"
#include "base/loop/loop.h"
#include "mount/fuse/fuse.h"
#include "job/hosts/hosts.h"
#include "joblog.h"
#include "base/log/log.h"
#include "net.h"
#include "node/node/node.h"
#include "storage/origin/origin.h"
#include "storage/spill/spill.h"
#include "part.h"
#include "programs.h"
#include "node/bypass/bypass.h"
#include "mount/kernelahead/kernelahead.h"
#include "tree/prefetch/prefetch.h"
#include "fabric/reach/reach.h"
#include "record.h"
#include "writers/otel/otel.h"
#include "writers/runs/runs.h"
#include "node/sampler/sampler.h"
#include "secret.h"
#include "prof/stats/stats.h"
#include "writers/rank/rank.h"
#include "prof/machine/machine.h"
#include "prof/telemetry/telemetry.h"
#include "job/topo/topo.h"

/* A NULL member has not been started. */
struct cop_node {
	const struct cop_node_run *how;
	const struct cop_conf *conf;
	uint64_t started_ns;
	/* its identity */
	struct cop_job_hosts hosts;
	uint32_t rank;
	struct cop_topo topo;
	char source[4096]; /* absolute */
	struct cop_joblog log;
	struct cop_secret secret;
	/* services for its main thread */
	struct cop_waker waker;
	struct cop_gate gate;
	struct cop_defer deferred;
	/* its modules, in start order */
	struct cop_stats stats;
	struct cop_barrier *barrier;
	int view_ns; /* the user namespace of this node's views; -1: views need none */
	struct cop_sampler *sampler;
	struct cop_prefetch_manifest *manifest; /* for rank 0 with prefetch; else NULL */
	struct cop_tally *tally;
	struct cop_telemetry *telemetry; /* NULL: no job directory */
	struct cop_machine *machine;     /* NULL: no run store, or --telemetry 0 */
	struct cop_cache *cache;
	char cache_note[COP_CACHE_NOTE_SIZE]; /* message for the user, or "" */
	struct cop_spill *spill;              /* NULL: none */
	char spill_note[COP_SPILL_NOTE_SIZE]; /* message for the user, or "" */
	struct cop_origin *origin;
	struct cop_record record;
	struct cop_part *part;
	struct cop_net *net; /* NULL: the node is alone */
	struct cop_rpc *rpc;
	struct cop_fetch *fetch;
	char tree[COP_REACH_TREE_SIZE]; /* the tree's name for commands; "-": the node is alone */
	struct cop_command *commands;
	struct cop_fuse *fs;
	struct cop_kernelahead *ahead; /* NULL: no pages are pushed into the kernel */
	struct cop_prefetch *_Atomic prefetch;
	struct cop_prefetch_pack
		*pack;             /* writes the pack for the next job; NULL: no pack is kept */
	struct cop_bypass *past;   /* NULL: bypassing programs are not detected */
	struct cop_follow *follow; /* NULL: the run is not recorded */
	const char *ended_by;      /* why the node ended; NULL: a stop */
	int64_t stop_ns;           /* wall clock: when the stop began */
	char run_id[COP_RUNREC_ID_LEN + 1]; /* "": not recorded, or recorded by another rank */
	struct cop_otel_trace *trace;       /* NULL: no spans are written */
	struct cop_buf environment;         /* for the job's commands */
	struct cop_programs *programs;
};

/* ---- follow.c: records of the job ---- */
/* Main thread, when the tree is ready or the start has failed. Does nothing unless this is rank
 * 0. */
void cop_node_follow(struct cop_node *n);
/* Main thread, after the tree has stopped. failure NULL: the start had succeeded. */
void cop_node_follow_end(struct cop_node *n, bool left_dead, const struct cop_err *failure);

/* ---- run_env.c ---- */
/* Call it on rank 0, before the tree is ready. Always returns 0. */
int cop_node_choose_run(struct cop_node *n, struct cop_err *err);

/* ---- start.c ---- */
int cop_node_start(struct cop_node *n, struct cop_err *err);

/* ---- end.c ---- */
/* Stops all started modules and frees the node, unless a thread that hangs in the storage still
 * uses it. */
void cop_node_stop(struct cop_node *n);

#endif
