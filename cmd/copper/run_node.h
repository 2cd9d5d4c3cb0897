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
	uint64_t key; /* of cop_view_key: the view of another command will do; 0: it will not */
};
struct cop_run_node {
	char mountpoint[PATH_MAX], source[PATH_MAX], socket[COP_CTL_PATH_SIZE];
	int user_ns;               /* -1: it has none */
	struct cop_view_kept kept; /* another command's view; -1: there is none */
	uint64_t offer;            /* the number under which it takes a view; 0: it takes none */
};

/* The node at the mount point; else, of those that this command can be for (socket.h), the only
 * one; else the one whose source contains the working directory or the command. -ENOENT;
 * -ECONNREFUSED for a node that died; -EINVAL if several fit: each with a sentence. On success the
 * caller closes it. */
int cop_run_find_node(
	const struct cop_run_where *where, struct cop_run_node *out, struct cop_err *err);
/* Closes its descriptors. */
void cop_run_node_close(struct cop_run_node *node);
/* Gives the node what made has to offer, without waiting, and closes it. */
void cop_run_node_offer(const struct cop_run_node *node, struct cop_view_made *made);

#endif
