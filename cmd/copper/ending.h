/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for the local processes ended by a stop: they must not disturb a node started right
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

/* Call it before the stop: opens the process of the node at this control socket and, unless
 * local is set, those of its tree with sockets in the same folder. */
void cop_cmd_ending_begin(struct cop_cmd_ending *e, const char *path, bool local);
/* The same for all nodes of a tree with a socket there; e->path stays NULL. */
void cop_cmd_ending_tree(struct cop_cmd_ending *e, const char *runtime_dir, const char *tree);
/* Call it after the stop: waits a few seconds at most for them to exit. Closes the descriptors
 * opened by begin; returns the number of remaining processes. */
unsigned cop_cmd_ending_wait(struct cop_cmd_ending *e);
/* Call it instead of cop_cmd_ending_wait: closes the descriptors without waiting. */
void cop_cmd_ending_close(struct cop_cmd_ending *e);

#endif
