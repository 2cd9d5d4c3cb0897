/* SPDX-License-Identifier: BSD-3-Clause */
/* run_node: selects one of this user's nodes for a command. */
#ifndef COP_CMD_RUN_NODE_H
#define COP_CMD_RUN_NODE_H

#include <limits.h>

#include "base/base/base.h"
#include "node/ctl/ctl.h"
#include "mount/view/view.h"

struct cop_run_where {
	const char *mountpoint, *runtime_dir; /* NULL: not given */
	const char *command;                  /* NULL: none */
};
struct cop_run_node {
	char mountpoint[PATH_MAX], source[PATH_MAX], socket[COP_CTL_PATH_SIZE];
	int user_ns; /* -1: none */
};

/* Finds the node at the mount point. Without a mount point, considers the nodes that this command
 * can refer to (socket.h), and finds the only one, or the one whose source contains the working
 * directory or the command. -ENOENT; -ECONNREFUSED for a dead node; -EINVAL if several match; each
 * with a message. On success, the caller closes the node. */
int cop_run_find_node(
	const struct cop_run_where *where, struct cop_run_node *out, struct cop_err *err);
/* Reports to the node that this process becomes a command, and sets the job's environment
 * variables. Has no effect if the node runs an older version. Returns true if a run is recorded
 * that needs the command's exit status, which only a parent can report. */
bool cop_run_node_begin(const struct cop_run_node *node);
/* Reports to the node that this command fell back to variables, with the reason. */
void cop_run_node_fell_back(const struct cop_run_node *node, const char *why);
/* Reports a command's exit status, as from wait(2), to the node at this socket. */
void cop_run_node_ended(const char *socket, pid_t pid, int status);
/* Closes its descriptor. */
void cop_run_node_close(struct cop_run_node *node);

#endif
