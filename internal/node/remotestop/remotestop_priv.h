/* SPDX-License-Identifier: BSD-3-Clause */
/* remotestop.c sends requests and evaluates the answers; enter.c joins the tree; gone.c examines
 * the nodes that do not answer. Each file calls only those named after it.
 *
 * Threads: the command's own, which waits, and rpc's progress thread, on which answers come. `lock`
 * guards `come`; the other fields that an answer sets are read only after it has arrived. */
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

/* What the requester knows about a rank. */
enum {
	NODE_FINE,   /* it answered, or was not reported missing */
	NODE_SILENT, /* it did not answer the node that asked it */
	NODE_LATE,   /* it answered only this process */
	NODE_GONE,   /* it does not run */
};

struct client {
	char job_dir[4096]; /* absolute */
	struct cop_job_tree tree;
	uint64_t deadline_ms;
	uint32_t rank; /* after those of the nodes */
	struct cop_topo topo;
	struct cop_job_hosts hosts;
	struct cop_job_secret secret;
	struct cop_wire_secret wire_secret;
	struct cop_stats stats;
	struct cop_reach *reach;
	struct cop_rpc *rpc;
	struct cop_gate gate; /* only requests of tree/op enter it */
	struct cop_op *treeop;
	_Atomic bool *looked; /* by rank: this process has asked it */
	uint8_t *state;
	pthread_mutex_t lock; /* over come */
	pthread_cond_t wake;
	bool come; /* the outstanding request has been answered */
	struct cop_op_sum got;
	_Atomic uint32_t pending;
	uint32_t late;          /* nodes that answered when they were asked again, */
	struct cop_op_sum more; /* and what they counted */
};

static inline const char *host_of(const struct client *g, uint32_t rank)
{
	return cop_job_host_name(&g->hosts, rank);
}

/* ---- enter.c ---- */
/* The job's secret, as its nodes used it. -EACCES with a sentence. */
int cop_remotestop_secret(
	struct client *g, const struct cop_remotestop_stop *what, struct cop_err *err);
/* Finds where the nodes are, from the tree in the job directory. */
int cop_remotestop_reach(struct client *g, struct cop_err *err);
/* Opens this end of the network and tree/op: 0 or -errno with a sentence. */
int cop_remotestop_enter(
	struct client *g, const struct cop_remotestop_stop *what, struct cop_err *err);
/* Cancels outstanding requests, and frees what the two functions above have allocated. */
void cop_remotestop_leave(struct client *g);

/* ---- gone.c ---- */
#define COP_REMOTESTOP_GONE_WHY 200
/* Whether the rank is known not to run; why is set to the reason either way. Waits for a second at
 * most. others: nodes of the tree were reached, by this stop or the last one. */
bool cop_remotestop_is_gone(
	const struct client *g, uint32_t rank, bool others, char why[COP_REMOTESTOP_GONE_WHY]);

#endif
