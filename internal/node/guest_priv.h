/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of a guest share: guest.c asks, guest_join.c finds the way in. */
#ifndef COP_NODE_GUEST_PRIV_H
#define COP_NODE_GUEST_PRIV_H

#include "node/node_priv.h"

#include <pthread.h>

/* What is known of a rank. */
enum {
	NODE_FINE,   /* nobody missed it */
	NODE_SILENT, /* it did not answer whoever asked it */
	NODE_LATE,   /* but then the one who asks here */
	NODE_GONE,   /* and does not run */
};

struct guest {
	struct cop_node *node;
	struct cop_conf conf;
	struct cop_job_tree tree;
	uint64_t deadline_ms;
	_Atomic bool *looked; /* by rank: it was asked from here */
	uint8_t *state;
	pthread_mutex_t lock; /* over come */
	pthread_cond_t wake;
	bool come; /* the answer to what is asked at this moment */
	struct cop_treeop_sum got;
	_Atomic uint32_t pending;
	uint32_t late;              /* nodes that answered when they were asked once more, */
	struct cop_treeop_sum more; /* and what they counted */
};

/* ---- guest_join.c ---- */
/* The job's secret, as its nodes took it. -EACCES with a sentence. */
int cop_node_guest_secret(
	struct guest *g, const struct cop_node_stop_job *what, struct cop_err *err);
/* What knows where the nodes are, as the tree in the job directory says. */
int cop_node_guest_reach(struct guest *g, struct cop_err *err);
/* Its end of the network and of treeop: 0 or -errno with a sentence. */
int cop_node_guest_join(struct guest *g, const struct cop_node_stop_job *what, struct cop_err *err);

#endif
