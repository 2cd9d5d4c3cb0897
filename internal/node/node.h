/* SPDX-License-Identifier: BSD-3-Clause */
/* node: one Copper process: an ordered start of everything, a wait, and the mirrored stop. What
 * ranks are to each other while the tree starts is join's, what is done on all of them treeop's. */
#ifndef COP_NODE_H
#define COP_NODE_H

#include "base/base.h"
#include "conf/conf.h"
#include "place/place.h"

/* One node from start to stop, on this thread. */
struct cop_node_run {
	const struct cop_conf *conf;
	struct cop_place *place; /* where it mounts; nowhere for a node that only serves */
	pid_t last_pid;          /* the process with whose end all of this node is gone */
	/* Once nobody listens there any more, nobody waits for the start, and it is given up; -1:
	 * nobody is meant to. */
	int report_fd;
	const char *note; /* what rank 0 of several nodes is to say when it is ready; may be NULL */
	/* Called once: the node is ready, or (failure) it will not be, with a sentence. */
	void (*started)(void *arg, const struct cop_err *failure);
	void *arg;
};
/* Returns when the node has stopped: 0, or -errno with the sentence if it did not start. left_dead:
 * its mount is still there, and nobody serves it. */
int cop_node_run(const struct cop_node_run *how, bool *left_dead, struct cop_err *err);

#endif
