/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm: decides whether this command may start nodes in a Slurm job, and starts them in a job step
 * of their own, by srun. It knows neither mounts nor trees: to it, a node is a command to start,
 * and one line that the node reports. Outside of Slurm it does nothing. */
#ifndef COP_SLURM_H
#define COP_SLURM_H

#include "base/base/base.h"
#include "job/conf/conf.h"

/* How this command must start nodes. */
enum cop_slurm_how {
	COP_SLURM_HERE,    /* only this machine's node, by this process */
	COP_SLURM_BY_STEP, /* cop_slurm_launch: all of them, from the job's script or a shell of the
			      job */
	COP_SLURM_REFUSED, /* cop_slurm_refuse: the tasks of a step cannot leave nodes behind */
};
enum cop_slurm_how cop_slurm_how(const struct cop_conf *conf);

/* Sets a sentence that names the ways that work; -EINVAL. */
int cop_slurm_refuse(const char *subcommand, struct cop_err *err);

/* Starts every node of the job in a step of its own, by srun, with the options in argv (argv[0] is
 * the subcommand), and returns when the tree is ready (0) or with -errno and a sentence. The step
 * lasts until the nodes are stopped or the job ends. */
int cop_slurm_launch(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* ---- the side of a node ---- */

/* Whether this process is a node of such a step. */
bool cop_slurm_is_node(void);
/* Reports how the start of this node went (failure NULL: it is ready) to the command that started
 * the step, on fd, and closes fd. */
void cop_slurm_tell(int fd, const struct cop_err *failure);
/* Whether this process is in a job step, the nodes' own or another. */
bool cop_slurm_in_a_step(void);
/* Whether this process is in a step that ends its processes with it and is not the nodes' own. */
bool cop_slurm_ends_with_step(void);

#endif
