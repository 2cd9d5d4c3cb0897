/* SPDX-License-Identifier: BSD-3-Clause */
/* run_tree: a tree that is there for one command, or for the tasks that a launcher starts of it:
 * the first of them on each machine starts a node, and all nodes are stopped when the last task has
 * ended. */
#ifndef COP_CMD_RUN_TREE_H
#define COP_CMD_RUN_TREE_H

#include "conf/conf.h"

struct cop_run_tree;

/* Starts the node, or waits for it; calls run in a child, which does not return or returns an exit
 * status; waits for the child, passes signals on, and ends as it has ended. 125 where there is no
 * node. */
int cop_run_tree(struct cop_conf *conf,
	int (*run)(void *arg, const struct cop_run_tree *tree, const char *mountpoint), void *arg);

/* In the child, right before it becomes the command: that is killed when this process is. */
void cop_run_tree_tie(const struct cop_run_tree *tree);

#endif
