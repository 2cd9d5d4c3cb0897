/* SPDX-License-Identifier: BSD-3-Clause */
/* remotestop.c sends requests and evaluates the replies; enter.c joins the tree; gone.c examines
 * silent nodes. Each file calls only files that come later in this list.
 *
 * Threads: the command's own, which waits, and rpc's progress thread, which receives the replies.
 * `lock` protects `come`; the other fields that a reply sets are read only after it has arrived. */
#ifndef COP_NODE_REMOTESTOP_PRIV_H
#define COP_NODE_REMOTESTOP_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/loop/loop.h"
#include "node/remotestop/remotestop.h"
#include "job/dir/dir.h"
#include "job/hosts/hosts.h"
#include "fabric/reach/reach.h"
#include "fabric/rpc/rpc.h"
#include "prof/stats/stats.h"
#include "job/topo/topo.h"
#include "tree/op/op.h"
#include "fabric/wire/wire.h"

/* State of a rank as the requester sees it. */
enum {
	NODE_FINE,   /* it replied, or was not reported missing */
	NODE_SILENT, /* it did not reply to the requesting node */
	NODE_LATE,   /* it replied only to this process */
	NODE_GONE,   /* it is not running */
};

struct client {
	char job_dir[4096]; /* absolute */
	struct cop_job_tree tree;
	uint64_t deadline_ms;
	uint32_t rank; /* follows the node ranks */
	struct cop_topo topo;
	struct cop_job_hosts hosts;
	struct cop_job_secret secret;
	struct cop_wire_secret wire_secret;
	struct cop_stats stats;
	struct cop_reach *reach;
	struct cop_rpc *rpc;
	struct cop_gate gate; /* only requests of tree/op pass it */
	struct cop_op *treeop;
	_Atomic bool *looked; /* by rank: this process has asked it */
	uint8_t *state;
	pthread_mutex_t lock; /* for come */
	pthread_cond_t wake;
	bool come; /* the outstanding request has been answered */
	struct cop_op_sum got;
	_Atomic uint32_t pending;
	uint32_t late;          /* nodes that replied to the repeated request */
	struct cop_op_sum more; /* their counts */
};

static inline const char *host_of(const struct client *g, uint32_t rank)
{
	return cop_job_host_name(&g->hosts, rank);
}

/* ---- enter.c ---- */
/* Finds the job's secret where its nodes found it. -EACCES with a sentence. */
int cop_remotestop_secret(
	struct client *g, const struct cop_remotestop_stop *what, struct cop_err *err);
/* Finds the addresses of the nodes in the job directory's tree record. */
int cop_remotestop_reach(struct client *g, struct cop_err *err);
/* Opens this end of the network and tree/op: 0 or -errno with a sentence. */
int cop_remotestop_enter(
	struct client *g, const struct cop_remotestop_stop *what, struct cop_err *err);
/* Cancels outstanding requests and frees everything that the two functions above allocated. */
void cop_remotestop_leave(struct client *g);

/* ---- gone.c ---- */
#define COP_REMOTESTOP_GONE_WHY 200
/* Whether the rank is certainly not running; why receives the reason either way. Waits a second at
 * most. others: this stop or the last one has reached nodes of the tree. */
bool cop_remotestop_is_gone(
	const struct client *g, uint32_t rank, bool others, char why[COP_REMOTESTOP_GONE_WHY]);

#endif
