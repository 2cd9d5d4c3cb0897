/* SPDX-License-Identifier: BSD-3-Clause */
/* part: what this node itself does when it is asked through the tree (tree/op) or on its control
 * socket (command): it reports its state, forgets a path, writes its reports, and adds its counts
 * to the sums of a stop. It creates the treeop. It does not know who asks. */
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
	/* what is known at the start; this module fills in ready, rpc and the fields after it */
	struct cop_status status;
	const struct cop_record *record;
	struct cop_stats *stats; /* the same as in status: gets what commands report */
	int user_ns;             /* of this node's views; -1: views need none */
	struct cop_rpc **rpc; /* the caller's variable for rpc, filled before the first request */
	struct cop_programs *programs;
	const char *job_dir;               /* absolute, or "" */
	const struct cop_buf *environment; /* what commands get beside it, as lines; filled before
					      the tree is ready */
	struct cop_follow **follow; /* the caller's variable for follow, filled before a stop */
	const struct cop_prefetch_manifest *manifest; /* NULL: another node has it */
	struct cop_tally *tally;
	struct cop_telemetry
		*telemetry;          /* what this node does and when; NULL: it is not recorded */
	struct cop_machine *machine; /* how busy this host is; NULL: it is not sampled */
	struct cop_start *join;
	struct cop_gate *gate;
	struct cop_defer *deferred;
	struct cop_waker *waker; /* told when this node must end */
};

struct cop_part;

/* Copies conf; what it points to must outlive the object. NULL: out of memory. */
struct cop_part *cop_part_new(const struct cop_part_conf *conf);
/* Call it when the gate has been drained and rpc is closed. NULL is fine. */
void cop_part_free(struct cop_part *p);

struct cop_op *cop_part_treeop(struct cop_part *p);
/* Main thread, while the node runs: writes the reports of --profile-interval, records the
 * counters in the telemetry and samples the machine, each when it is due. Returns for how many ms
 * nothing will be due; -1: nothing ever will. The first call starts the interval of the reports. */
int cop_part_tend(struct cop_part *p);
/* Main thread. Passes to follow the totals of a node that is alone, was unmounted, and so has had
 * no request to stop. */
void cop_part_own_totals(struct cop_part *p);
/* For struct cop_follow_conf, with the part as ctx. */
bool cop_part_ask_telemetry(void *ctx, cop_op_done *done, void *arg);
bool cop_part_is_ending(void *ctx);
/* For struct cop_command_conf, with the part as ctx. */
extern const struct cop_command_ops cop_part_commands;

/* Main thread, once each, as soon as the object exists: requests may have come before. */
void cop_part_use_fetch(struct cop_part *p, struct cop_fetch *fetch);
void cop_part_use_mount(struct cop_part *p, struct cop_fuse *fs);
void cop_part_use_prefetch(struct cop_part *p, struct cop_prefetch *prefetch);

/* For struct cop_fetch_conf, with the part as ctx. */
int cop_part_forget_names(void *ctx, const char *dir, void (*then)(void *arg), void *arg);
int cop_part_manifest_piece(void *ctx, uint64_t index, void **data, size_t *len);

#endif
