/* SPDX-License-Identifier: BSD-3-Clause */
/* run_tree: a tree for the duration of one command, or of all tasks of a launcher: the first
 * task on each machine starts a node, and the nodes are stopped after the last task has exited. */
#ifndef COP_CMD_RUN_TREE_H
#define COP_CMD_RUN_TREE_H

#include "job/conf/conf.h"

/* Starts the node, or waits for it to be ready. Calls run in a child of this task, in which it
 * returns an exit status or never returns; forwards signals to the child, waits for it, and returns
 * its exit status. Returns 125 if there is no node. */
int cop_run_tree(struct cop_conf *conf, int (*run)(void *arg, pid_t task, const char *mountpoint),
	void *arg);

#endif
