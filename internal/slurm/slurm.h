/* SPDX-License-Identifier: BSD-3-Clause */
/* slurm: what is different about nodes that Slurm starts: whether they need a job step of their
 * own, that step and the tasks that wait for it, and whether the job still goes on. It speaks with
 * srun, squeue and the other tasks of this host only. It knows neither mounts nor trees: a node is
 * a command to start, and a word of it that comes back. It does nothing where no job of Slurm is.
 */
#ifndef COP_SLURM_H
#define COP_SLURM_H

#include "base/base.h"
#include "conf/conf.h"

/* How nodes are to be started where this command runs. */
enum cop_slurm_how {
	COP_SLURM_HERE,      /* this machine's, by this process */
	COP_SLURM_BY_STEP,   /* cop_slurm_launch: all of them, from the script, a shell or the first
				task of a job */
	COP_SLURM_BY_TASK_0, /* cop_slurm_await: the first task of this step starts all of them */
};
enum cop_slurm_how cop_slurm_how(const struct cop_conf *conf);

/* Starts every node of the job in a step of its own, by srun, with the options in argv (argv[0] is
 * the subcommand), and returns when the tree is ready (0) or with -errno and a sentence. The step
 * lasts until the nodes are stopped or the job ends. */
int cop_slurm_launch(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* Waits for the node of this host, which task 0 starts and which has this control socket: 0 when
 * the tree is ready, or -errno and a sentence. */
int cop_slurm_await(const struct cop_conf *conf, const char *control, struct cop_err *err);

/* ---- the side of a node ---- */

/* This process is a node of such a step. */
bool cop_slurm_is_node(void);
/* It says how its start went (failure NULL: it is ready) to the command that started the step, by
 * the descriptor fd, which is closed then (-1: nobody), and to a task that waits on this host for
 * the node with this control socket (NULL: that is not known). */
void cop_slurm_tell(int fd, const char *control, const struct cop_err *failure);
/* In a step that takes its processes along when it ends, and that is not the nodes' own. */
bool cop_slurm_ends_with_step(void);

/* ---- whether the job goes on ---- */

/* Asks squeue about a job, by its number, until it answers or wake_fd becomes readable. */
bool cop_slurm_job_is_over(const char *job, int wake_fd);

struct cop_slurm_watch;
/* Calls over(arg) once, on a thread of its own, when the job of this process is over. NULL where
 * nothing has to be watched. */
struct cop_slurm_watch *cop_slurm_watch_start(void (*over)(void *arg), void *arg);
/* Joins its thread; NULL is fine. */
void cop_slurm_watch_stop(struct cop_slurm_watch *w);

#endif
