/* SPDX-License-Identifier: BSD-3-Clause */
/* node: one Copper process: an ordered start of everything, a wait, and the mirrored stop; the readiness of the tree, and what is done
 * on every node at once (stop, statistics). */
#ifndef COP_NODE_H
#define COP_NODE_H

#include "base/base.h"
#include "conf/conf.h"

/* Runs a node as the configuration says. In the background (unless conf->foreground) this returns in the
 * process that was started by the user, when the tree is ready (0) or with -errno and a sentence; the node itself lives on and
 * never returns from here. In the foreground it returns when the node has stopped. */
int cop_node_launch(const struct cop_conf *conf, struct cop_err *err);

/* Looks at everything that a start with this configuration needs, without mounting: a line for each, ok, warning or
 * failed, with the way out; or, with conf->json, one object. Returns how many failed, or -ENOMEM. */
int cop_node_check(const struct cop_conf *conf, struct cop_buf *out);

/* The libfabric providers that this program has on this machine, with commas between, for people. */
void cop_node_providers(char *out, size_t size);

/* How nodes are to be started where this command runs. */
enum cop_node_how {
	COP_NODE_HERE,      /* cop_node_launch: this machine's */
	COP_NODE_BY_STEP,   /* cop_node_launch_step: all of them, from the script, a shell or the first task of a Slurm job */
	COP_NODE_BY_TASK_0, /* cop_node_await_step: the first task of this Slurm step starts all of them */
};
enum cop_node_how cop_node_how(const struct cop_conf *conf);

/* Starts every node of the Slurm job in a step of its own, by srun, with the options in argv (argv[0] is the subcommand), and returns when
 * the tree is ready (0) or with -errno and a sentence. The step lasts until the nodes are stopped or the job ends. */
int cop_node_launch_step(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* Waits for the node of this host, which task 0 starts: 0 when the tree is ready, or -errno and a sentence. */
int cop_node_await_step(const struct cop_conf *conf, struct cop_err *err);

/* Whether a killed node left its mount there. */
bool cop_node_is_dead(const char *mountpoint);
/* Takes away the mount that a killed node left behind. 0 or -errno. */
int cop_node_unmount_dead(const char *mountpoint);

#endif
