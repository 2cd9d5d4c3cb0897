/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for the local processes that a stop ends, so that they cannot disturb a node started right
 * after it. */
#ifndef COP_CMD_ENDING_H
#define COP_CMD_ENDING_H

#include "base/base/base.h"

#define COP_CMD_ENDING_MAX 64

struct cop_cmd_ending {
	int fd[COP_CMD_ENDING_MAX]; /* pidfd_open(2) */
	unsigned count;
	const char *path;
	char tree[40];
};

/* Call it before the stop: opens the process of the node at this control socket and, unless local
 * is set, those of its tree's nodes with sockets in the same directory. */
void cop_cmd_ending_begin(struct cop_cmd_ending *e, const char *path, bool local);
/* The same for all nodes of a tree that have a socket there; e->path stays NULL. */
void cop_cmd_ending_tree(struct cop_cmd_ending *e, const char *runtime_dir, const char *tree);
/* Call it after the stop: waits at most a few seconds for the processes to exit. Closes the
 * descriptors that begin opened and returns the number of processes that remain. */
unsigned cop_cmd_ending_wait(struct cop_cmd_ending *e);
/* Call it instead of cop_cmd_ending_wait: closes the descriptors without waiting. */
void cop_cmd_ending_close(struct cop_cmd_ending *e);

#endif
