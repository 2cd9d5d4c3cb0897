/* SPDX-License-Identifier: BSD-3-Clause */
/* node: one Copper process: starts all parts in order, waits, and stops them in reverse order. join
 * handles what ranks do together while the tree starts, treeop operations on all of them. */
#ifndef COP_NODE_H
#define COP_NODE_H

#include "base/base.h"
#include "conf/conf.h"
#include "place/place.h"

/* One node from start to stop, on this thread. */
struct cop_node_run {
	const struct cop_conf *conf;
	struct cop_place *place; /* where it mounts; nowhere for a node without a mount */
	pid_t last_pid;          /* the last process of this node to end */
	/* The start is given up when nobody reads from it any more, because then nobody waits for
	 * the start; -1: nobody is expected to wait. */
	int report_fd;
	const char *note; /* printed by rank 0 of several nodes when it is ready; may be NULL */
	/* Called once: the node is ready, or (failure) it will not be, with a sentence. */
	void (*started)(void *arg, const struct cop_err *failure);
	void *arg;
};
/* Returns when the node has stopped: 0, or -errno with the sentence if it did not start. left_dead:
 * its mount still exists, and nobody serves it. */
int cop_node_run(const struct cop_node_run *how, bool *left_dead, struct cop_err *err);

#endif
