/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: starts a node on one host, from the user's command until the node is ready. It selects
 * the starter (this process or Slurm), finds a place for the mount, moves the process into the
 * background with a guard beside it, and reports to the user. All it needs to know of a node is
 * whether the tree is ready. */
#ifndef COP_NODE_LAUNCH_H
#define COP_NODE_LAUNCH_H

#include "base/base/base.h"
#include "job/conf/conf.h"

/* Runs a node with these settings, which came from the options in argv; argv[0] is the subcommand.
 * In the background (unless conf->foreground) this returns in the process that the user started: 0
 * when the tree is ready, or -errno with a sentence. The node itself continues and never returns
 * from here. In the foreground it returns when the node has stopped. */
int cop_launch(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* live: whether programs that may use the mount are still alive. Called after the node was killed,
 * in a process without the caller's descriptors. */
struct cop_launch_users {
	bool (*live)(void *arg);
	void *arg;
};
/* The same in the background, always on this machine, for the caller's own programs. The caller
 * stops the node, which also ends when the caller does. Sets mountpoint to where it is mounted. */
int cop_launch_here(const struct cop_conf *conf, const struct cop_launch_users *users,
	char mountpoint[4096], struct cop_err *err);

/* Tells the nodes on other machines, which are waiting for a node on this machine, why it will not
 * start. */
void cop_launch_tell_others(const struct cop_conf *conf, const struct cop_err *failure);

#endif
