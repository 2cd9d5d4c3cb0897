/* SPDX-License-Identifier: BSD-3-Clause */
/* run_node: chooses the node in which a command will run, among this user's nodes. */
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
	int user_ns; /* -1: it has none */
};

/* Finds the node at the mount point or, among those to which this command can refer (socket.h), the
 * only one or the one whose source contains the working directory or the command. -ENOENT;
 * -ECONNREFUSED for a node that died; -EINVAL if several match; each with a sentence. On success
 * the caller closes it. */
int cop_run_find_node(
	const struct cop_run_where *where, struct cop_run_node *out, struct cop_err *err);
/* Tells the node that this process becomes a command, and sets the variables of the job in its
 * environment. Does nothing with a node of an older version. Returns true if only the command's
 * parent can report its exit status, and a run is recorded that needs it. */
bool cop_run_node_begin(const struct cop_run_node *node);
/* Reports to the node that this command got only variables, and why. */
void cop_run_node_fell_back(const struct cop_run_node *node, const char *why);
/* Reports a command's exit status, as from wait(2), to the node at this socket. */
void cop_run_node_ended(const char *socket, pid_t pid, int status);
/* Closes its descriptor. */
void cop_run_node_close(struct cop_run_node *node);

#endif
