/* SPDX-License-Identifier: BSD-3-Clause */
/* status: what a node reports about itself and the tree: the JSON object and the tables of
 * cache-stats. It only reads what it is given, keeps nothing, and does not know how the report was
 * requested. copper-cache-stats(1) documents the output, which scripts read. */
#ifndef COP_NODE_STATUS_H
#define COP_NODE_STATUS_H

#include "base/base/base.h"
#include "cache/cache/cache.h"
#include "tree/fetch/fetch.h"
#include "mount/fuse/fuse.h"
#include "storage/origin/origin.h"
#include "tree/prefetch/prefetch.h"
#include "fabric/rpc/rpc.h"
#include "prof/stats/stats.h"
#include "tree/op/op.h"

/* A node at one moment; the caller owns everything in it. */
struct cop_status {
	uint32_t rank, nodes;
	bool ready;      /* whether the tree is ready */
	bool prefetches; /* whether the user asked for a prefetch */
	const char *host, *mountpoint, *source;
	uint64_t started_ns; /* by cop_now_ns */
	const struct cop_stats *stats;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;           /* NULL: the tree is this node alone */
	struct cop_fetch *coop;        /* NULL: it does not exist yet; also for the next two */
	struct cop_fuse *fs;           /* also NULL for a node without a mount */
	struct cop_prefetch *prefetch; /* also NULL for a node that does not prefetch */
};

/* All of these run on any thread and append to out, whose `failed` says that memory was short. */

/* ---- one node ---- */

/* One JSON object, without a newline. */
void cop_status_json(const struct cop_status *s, struct cop_buf *out);
/* Several lines for people: a heading, and a line for each counter that is not zero. */
void cop_status_table(const struct cop_status *s, struct cop_buf *out);
void cop_status_table_head(const struct cop_status *s, struct cop_buf *out);

/* ---- all nodes ---- */

/* {"nodes":[...],"total":{...}}: the nodes' objects and the sums, without a newline. */
void cop_status_all_json(const struct cop_op_sum *all, struct cop_buf *out);
/* This node's line (nodeline), without its newline. */
void cop_status_line(const struct cop_status *s, struct cop_buf *out);
/* The table: a heading, the lines of the nodes in order of rank, and the sums. Cuts all->text,
 * which has one nodeline per node, at the newlines. */
void cop_status_all_table(struct cop_op_sum *all, struct cop_buf *out);

/* ---- again and again ---- */

struct cop_status_watch {
	const struct cop_stats *now,
		*before;     /* before: the counters of the round before; NULL in the first round */
	uint64_t elapsed_ms; /* the time between the two */
};
/* Printed below the heading of one node: its counters, and by how much each grew per second. */
void cop_status_table_watched(const struct cop_status_watch *w, struct cop_buf *out);
/* Printed below the table of all nodes: a line with the growth of the sums per second; nothing in
 * the first round. */
void cop_status_all_watched(const struct cop_status_watch *w, struct cop_buf *out);

#endif
