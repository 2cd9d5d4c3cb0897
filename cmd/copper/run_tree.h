/* SPDX-License-Identifier: BSD-3-Clause */
/* run_tree: a tree that exists for one command, or for those of its tasks that a launcher starts:
 * the first task on each machine starts a node, and all nodes are stopped when the last task has
 * ended. */
#ifndef COP_CMD_RUN_TREE_H
#define COP_CMD_RUN_TREE_H

#include "job/conf/conf.h"

/* Starts the node, or waits for it. Runs `run` in a child of task, where it does not return or
 * returns an exit status; waits for the child, passes signals on, and ends as the child has ended.
 * 125 if there is no node. */
int cop_run_tree(struct cop_conf *conf, int (*run)(void *arg, pid_t task, const char *mountpoint),
	void *arg);

#endif
