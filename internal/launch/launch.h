/* SPDX-License-Identifier: BSD-3-Clause */
/* launch: from the user's command to a node that is ready, on one host: who starts it (this
 * process, or Slurm), whether there is a place for its mount, the process in the background, the
 * guard beside it, and what the user hears. It looks into no node, and knows nothing of the tree
 * but whether it is ready. */
#ifndef COP_LAUNCH_H
#define COP_LAUNCH_H

#include "base/base.h"
#include "conf/conf.h"

/* Runs a node as the settings say; argv are the options they came from, argv[0] the subcommand. In
 * the background (unless conf->foreground) this returns in the process that was started by the
 * user, when the tree is ready (0) or with -errno and a sentence; the node itself lives on and
 * never returns from here. In the foreground it returns when the node has stopped. */
int cop_launch(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* The same in the background, on this machine, wherever this runs: the node is for programs of
 * which the caller knows, and is the caller's to stop. Its mount point is told. */
int cop_launch_here(const struct cop_conf *conf, char mountpoint[4096], struct cop_err *err);

#endif
