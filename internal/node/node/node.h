/* SPDX-License-Identifier: BSD-3-Clause */
/* node: one Copper process. It starts its modules in order, waits, and stops them in reverse order.
 * join coordinates the ranks during the start; tree/op runs operations on all ranks. */
#ifndef COP_NODE_H
#define COP_NODE_H

#include "base/base/base.h"
#include "job/conf/conf.h"
#include "node/mountdir/mountdir.h"

/* One node from start to stop, on this thread. */
struct cop_node_run {
	const struct cop_conf *conf;
	struct cop_mountdir *place; /* its mount point; none for a node without a mount */
	pid_t last_pid;             /* the last process of this node to end */
	/* Pipe to the process that waits for the start. The start is abandoned when the reader
	 * closes it; -1: no reader. */
	int report_fd;
	const char *note; /* printed by rank 0 of several nodes when ready; may be NULL */
	/* Called once: when the node is ready or, with failure set, when it has failed to start. */
	void (*started)(void *arg, const struct cop_err *failure);
	void *arg;
};
/* Returns when the node has stopped: 0, or -errno with a sentence if it did not start. left_dead:
 * the mount still exists without a serving process. */
int cop_node_run(const struct cop_node_run *how, bool *left_dead, struct cop_err *err);

#endif
