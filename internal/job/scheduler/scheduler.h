/* SPDX-License-Identifier: BSD-3-Clause */
/* sched: decides whether this command may start nodes in a Slurm job, and starts them in a job step
 * of their own, by srun. It knows neither mounts nor trees: to it, a node is a command to start,
 * and one line that the node reports. Outside of Slurm it does nothing. */
#ifndef COP_JOB_SCHEDULER_H
#define COP_JOB_SCHEDULER_H

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

/* tasks: the tasks of one command that a launcher (srun, mpiexec) starts on one machine: which one
 * this process is, how many there are, and how they find each other. Each holds a lock on a file,
 * which the kernel releases when the task ends for any reason; the process that keeps what they
 * share waits until nobody holds a lock. The module starts and ends no process and contacts no
 * other machine. */

struct cop_tasks {
	bool launched;      /* a launcher started this task; else it is the only one */
	uint32_t local;     /* the number of this task on this machine, from 0 */
	uint32_t here;      /* how many tasks are on this machine */
	bool elsewhere;     /* there are tasks on other machines */
	uint64_t id;        /* of this start, the same in all tasks on this machine */
	uint64_t start;     /* the same on all machines; 0: unknown */
	char names[4][160]; /* lock of the tasks, lock of the first task, message of the first,
			       its standard error */
	int fd, first_fd;   /* -1 */
};

/* Fills t from the environment. -EINVAL with a sentence if the environment contradicts itself. */
int cop_tasks_find(struct cop_tasks *t, struct cop_err *err);

/* Makes this process one of the tasks until it ends or leaves; dir is a directory that only the
 * user can enter. 0 or -errno with a sentence. */
int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err);
void cop_tasks_leave(struct cop_tasks *t);

/* ---- in a process that the first task forked after it had joined: the keeper ---- */

/* Makes this process the keeper, which is not one of the tasks. */
void cop_tasks_keep(struct cop_tasks *t);
/* Tells the tasks that what they wait for is ready (word), or why it is not. */
int cop_tasks_tell(const struct cop_tasks *t, const char *word, const struct cop_err *failure);
/* From now on the last task repeats, when it ends, what the keeper writes to standard error: a
 * launcher regards a task as ended when nobody holds its standard error any more. */
void cop_tasks_give_back_stderr(const struct cop_tasks *t);
/* Returns when all expected tasks have started and ended, or when those that started have ended and
 * no other started for absent_ms. Returns the number of tasks that never started, or -errno. */
int64_t cop_tasks_wait_gone(const struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err);
/* Call it after cop_tasks_wait_gone: whether the last task succeeded and waits for the keeper. If
 * it does not, nothing keeps a launcher from ending the keeper as well. */
bool cop_tasks_is_waited_for(const struct cop_tasks *t);
/* At any time: whether a task that has not finished its work is alive. Needs no descriptor of t. */
bool cop_tasks_live(const struct cop_tasks *t);
/* Removes the files of the tasks. */
void cop_tasks_end(struct cop_tasks *t);

/* ---- in any process of the user ---- */

/* Removes the files of starts whose processes were all killed. found gets the word that the keeper
 * of such a start had given. */
void cop_tasks_sweep(const char *dir, void (*found)(void *arg, const char *word), void *arg);

/* ---- in a task ---- */

/* Waits at most timeout_ms for the keeper's message: 0 and its word; or -errno with a sentence: the
 * keeper's, or that the first task has ended or never started. */
int cop_tasks_await(const struct cop_tasks *t, uint32_t timeout_ms, char *word, size_t size,
	struct cop_err *err);
/* This task has finished its work, successfully or not, and no longer counts as one of the tasks.
 * In the last one this returns true once the keeper has ended, because launchers kill what the last
 * task leaves behind. In the others it returns false at once. */
bool cop_tasks_finish(struct cop_tasks *t, bool well);

/* resource: describes a process and where it runs by the attributes of an OpenTelemetry resource:
 * the program, the host, and the job as the scheduler's environment describes it. It reads only
 * environment variables, and sends nothing. */

/* The texts are valid during the call only. */
typedef void cop_resource_visit(void *arg, const char *key, const char *value);

/* The job, from the variables of Slurm, PBS and Flux: slurm.job_id and so on. Variables that are
 * absent or empty give no attribute. */
void cop_resource_job(cop_resource_visit *visit, void *arg);
/* All attributes: the process (service.*, host.name, process.pid) and the job. */
void cop_resource_all(uint32_t rank, cop_resource_visit *visit, void *arg);

#endif
