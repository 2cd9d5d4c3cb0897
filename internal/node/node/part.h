/* SPDX-License-Identifier: BSD-3-Clause */
/* part: this node's share of tree operations (tree/op) and of commands on its control socket
 * (command): it reports its state, forgets a path, writes its reports, and adds its counts to the
 * sums of a stop. It creates the treeop. */
#ifndef COP_NODE_PART_H
#define COP_NODE_PART_H

#include "base/base/base.h"
#include "node/ctl/ctl.h"
#include "job/conf/conf.h"
#include "base/loop/loop.h"
#include "tree/start/start.h"
#include "record.h"
#include "writers/runs/runs.h"
#include "writers/rank/rank.h"
#include "prof/machine/machine.h"
#include "prof/telemetry/telemetry.h"
#include "tree/op/op.h"

struct cop_programs;
struct cop_part_conf {
	/* the caller fills in what is known at the start; this module sets ready, rpc and the
	 * fields after rpc */
	struct cop_status status;
	const struct cop_record *record;
	struct cop_stats *stats; /* the same object as in status; counts that commands report are
				    added to it */
	int user_ns;             /* of this node's views; -1: views need none */
	struct cop_rpc **rpc;    /* the caller's variable for rpc, set before the first request */
	struct cop_programs *programs;
	const char *job_dir;               /* absolute, or "" */
	const struct cop_buf *environment; /* extra environment of commands, as lines; filled before
					      the tree is ready */
	struct cop_follow **follow;        /* the caller's variable for follow, set before a stop */
	const struct cop_prefetch_manifest *manifest; /* NULL: another node has it */
	struct cop_tally *tally;
	struct cop_telemetry *telemetry; /* this node's activity over time; NULL: not recorded */
	struct cop_machine *machine;     /* load of this host; NULL: not sampled */
	struct cop_start *join;
	struct cop_gate *gate;
	struct cop_defer *deferred;
	struct cop_waker *waker; /* signalled when this node must end */
};

struct cop_part;

/* Copies conf; the objects it points to must outlive the part. NULL: out of memory. */
struct cop_part *cop_part_new(const struct cop_part_conf *conf);
/* Call it after the gate has been drained and rpc is closed. NULL is fine. */
void cop_part_free(struct cop_part *p);

struct cop_op *cop_part_treeop(struct cop_part *p);
/* Main thread, while the node runs. When each is due, writes the reports of --profile-interval,
 * records the counters in the telemetry, and samples the machine. Returns the milliseconds until
 * the next is due; -1: never. The first call starts the report interval. */
int cop_part_tend(struct cop_part *p);
/* Main thread. Passes the totals to follow if a lone node was unmounted and so received no stop
 * request. */
void cop_part_own_totals(struct cop_part *p);
/* For struct cop_follow_conf, with the part as ctx. */
bool cop_part_ask_telemetry(void *ctx, cop_op_done *done, void *arg);
bool cop_part_is_ending(void *ctx);
/* For struct cop_command_conf, with the part as ctx. */
extern const struct cop_command_ops cop_part_commands;

/* Main thread. Call each once, as soon as the object exists; requests may arrive before that. */
void cop_part_use_fetch(struct cop_part *p, struct cop_fetch *fetch);
void cop_part_use_mount(struct cop_part *p, struct cop_fuse *fs);
void cop_part_use_prefetch(struct cop_part *p, struct cop_prefetch *prefetch);

/* For struct cop_fetch_conf, with the part as ctx. */
int cop_part_forget_names(void *ctx, const char *dir, void (*then)(void *arg), void *arg);
int cop_part_manifest_piece(void *ctx, uint64_t index, void **data, size_t *len);

#endif
