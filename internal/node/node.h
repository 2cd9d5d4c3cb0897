/* SPDX-License-Identifier: BSD-3-Clause */
/* node: one Copper process: an ordered start of everything, a wait, and the mirrored stop; the
 * readiness of the tree, and what is done on every node at once (stop, statistics). */
#ifndef COP_NODE_H
#define COP_NODE_H

#include "base/base.h"
#include "conf/conf.h"

/* Runs a node as the configuration says. In the background (unless conf->foreground) this returns
 * in the process that was started by the user, when the tree is ready (0) or with -errno and a
 * sentence; the node itself lives on and never returns from here. In the foreground it returns when
 * the node has stopped. */
int cop_node_launch(const struct cop_conf *conf, struct cop_err *err);

/* How nodes are to be started where this command runs. */
enum cop_node_how {
	COP_NODE_HERE,      /* cop_node_launch: this machine's */
	COP_NODE_BY_STEP,   /* cop_node_launch_step: all of them, from the script, a shell or the
			       first task of a Slurm job */
	COP_NODE_BY_TASK_0, /* cop_node_await_step: the first task of this Slurm step starts all of
			       them */
};
enum cop_node_how cop_node_how(const struct cop_conf *conf);

/* Starts every node of the Slurm job in a step of its own, by srun, with the options in argv
 * (argv[0] is the subcommand), and returns when the tree is ready (0) or with -errno and a
 * sentence. The step lasts until the nodes are stopped or the job ends. */
int cop_node_launch_step(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* Waits for the node of this host, which task 0 starts: 0 when the tree is ready, or -errno and a
 * sentence. */
int cop_node_await_step(const struct cop_conf *conf, struct cop_err *err);

/* ---- stopping a tree from outside, by its job directory ---- */

#define COP_NODE_TREE_SIZE 40
struct cop_node_stop_job {
	const char *job_dir, *secret_file; /* secret_file NULL: as the nodes have it */
	uint32_t timeout_ms;
	/* The name of the tree, as its nodes tell it on their sockets, before any is asked; may be
	 * NULL. */
	void (*known)(void *arg, const char *tree);
	void *arg;
};
struct cop_node_stopped_job {
	uint32_t stopped, of;   /* nodes */
	uint32_t unwritten;     /* of those: final files that could not be written */
	uint32_t unknown;       /* nodes that were not reached, and are not known to have ended */
	struct cop_buf remarks; /* a line each; the caller's */
	char socket[108];       /* not "": the tree is one node on this machine, to be asked there;
				   nothing was done */
};
/* Stops every node of the tree that the root left word of in JOBDIR/logs, and that can be reached
 * from this machine, in about timeout_ms. 0; -EALREADY: it was stopped before; -EACCES: the secret
 * is missing; -EINVAL: no such directory, or no tree in it; each with a sentence. */
int cop_node_stop_job(const struct cop_node_stop_job *what, struct cop_node_stopped_job *out,
	struct cop_err *err);

/* Whether a killed node left its mount there. */
bool cop_node_is_dead(const char *mountpoint);
/* Takes away the mount that a killed node left behind. 0 or -errno. */
int cop_node_unmount_dead(const char *mountpoint);

#endif
