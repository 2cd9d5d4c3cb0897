/* SPDX-License-Identifier: BSD-3-Clause */
/* sched: decides whether this command may start nodes in a Slurm job, and starts them in a job step
 * of their own, by srun. It knows neither mounts nor trees: to it, a node is a command to start,
 * and one line that the node reports. Outside of Slurm it does nothing. */
#ifndef COP_JOB_SCHEDULER_H
#define COP_JOB_SCHEDULER_H

#include <signal.h>

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

/* ---- asking Slurm ---- */

/* Runs a command of Slurm, without a shell, and appends what it prints, at most 1 MiB. -ETIMEDOUT:
 * it was ended; -EIO: it failed; -ENOENT: there is no such command. */
int cop_slurm_command(char *const argv[], uint32_t timeout_ms, struct cop_buf *out);
/* Why Slurm ends this process's job, in a few words ("cancelled", "time limit"); NULL: there is no
 * such job, Slurm does not answer in time, or the job ends by itself. A job that completes is asked
 * for until Slurm knows how its script has ended, or until the time is over. */
const char *cop_slurm_why(uint32_t timeout_ms);

/* What Slurm's accounting says of a job. */
struct cop_slurm_account {
	char state[64]; /* "COMPLETED", "CANCELLED by 1000" */
	bool ended;
	uint64_t elapsed_s;
	uint64_t max_rss_bytes; /* of the task that had most; 0: not known */
	char tres[1024];        /* TRESUsageInTot of that task's step; "": not known */
};
/* Parses the output of sacct for a job that ran at a time since 1970, which tells the attempts of a
 * job that was requeued apart, and jobs of the same number. -ENOENT: there is none; -EBADMSG: this
 * is no such output. */
int cop_slurm_account_parse(
	const char *text, const char *job, double at_s, struct cop_slurm_account *out);
/* Asks sacct. cluster: "" or NULL for this one. Changes SLURM_TIME_FORMAT in the environment. Also
 * the errors of cop_slurm_command. */
int cop_slurm_account(const char *job, const char *cluster, double at_s, uint32_t timeout_ms,
	struct cop_slurm_account *out);

/* tasks: the tasks of one launch (srun, mpiexec) on one machine: which one this process belongs to,
 * how many there are, and how the commands that they call find each other. The calls that overlap
 * in time are a generation and share one keeper; a call that comes later joins it while it lives,
 * or begins the next one. Any call may lead, that is start the keeper. Each call holds a lock on a
 * file, which the kernel releases when it ends for any reason. The module starts and ends no
 * process and contacts no other machine. */

struct cop_tasks {
	bool launched;  /* a launcher started this task; else it is the only one */
	bool again;     /* a program of the task made this call, and may make others */
	uint32_t local; /* the number of this task on this machine, from 0 */
	uint32_t here;  /* how many tasks are on this machine */
	bool elsewhere; /* there are tasks on other machines */
	uint64_t id;    /* of this launch, the same in all tasks on this machine; the caller may
			   change it before it joins */
	uint64_t start; /* the same on all machines; 0: unknown */
	const char *variable;   /* its value in the environment is the number of a task; NULL */
	uint64_t ancestor;      /* identifies the process that started the tasks; 0: unknown */
	char names[4][160];     /* lock of the tasks, lock of the keeper, its message, its standard
				   error */
	bool led;               /* this call has led */
	bool again_came;        /* for the keeper: a call came with `again` */
	uint32_t again_ms;      /* how long a call waits for other machines, if its task may call
				   again; 0: the default */
	uint64_t wait_until_ms; /* how long this call waits for the next generation */
	int fd, first_fd, word_fd; /* -1 */
};

/* Fills t from the environment. -EINVAL with a sentence if the environment contradicts itself. */
int cop_tasks_find(struct cop_tasks *t, struct cop_err *err);

/* Makes this process one of the calls until it ends or leaves; dir is a directory that only the
 * user can enter. 0 or -errno with a sentence. */
int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err);
void cop_tasks_leave(struct cop_tasks *t);
/* Waits at most timeout_ms for the keeper's message, with these signals blocked while it sleeps
 * (NULL: as they are). 0: word has it. 1: this call leads: it forks the keeper and waits again;
 * word has the word of an earlier keeper that was killed, if that is not needed any more, or "".
 * -errno with a sentence: the keeper's (-EIO), or this function's own. */
int cop_tasks_await(struct cop_tasks *t, uint32_t timeout_ms, const sigset_t *unblocked, char *word,
	size_t size, struct cop_err *err);
/* In the call that leads, after it has forked the keeper. */
void cop_tasks_hand_over(struct cop_tasks *t);
/* This call has finished its work, successfully or not, and no longer counts as live. Of the last
 * one this returns true once the keeper has ended, because launchers kill what the last task leaves
 * behind. Of the others it returns false at once. If the task may call again, it also returns false
 * while other tasks of this machine may still come, when another call comes, or after some seconds
 * in which other machines are busy. */
bool cop_tasks_finish(struct cop_tasks *t, bool well);

/* ---- in the keeper ---- */

/* Makes this process the keeper, which is not one of the calls. */
void cop_tasks_keep(struct cop_tasks *t);
/* Tells the calls that what they wait for is ready (word), or why it is not; also to resume. */
int cop_tasks_tell(struct cop_tasks *t, const char *word, const struct cop_err *failure);
/* From now on the last call repeats, when it ends, what the keeper writes to standard error: a
 * launcher regards a task as ended when no process holds its standard error any more. */
void cop_tasks_give_back_stderr(const struct cop_tasks *t);
/* Returns when no call is live and all tasks have come, or when those that have not come have
 * ended, or when no call has been live for absent_ms. No call can join until one of the next two
 * functions. 0, or -errno with a sentence. */
int cop_tasks_wait_idle(struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err);
/* Calls can join, and wait until cop_tasks_tell or cop_tasks_close. */
int cop_tasks_suspend(struct cop_tasks *t);
/* Calls that come from now on, or wait, are of the next generation. */
void cop_tasks_close(struct cop_tasks *t);
/* Whether the last call succeeded and waits for the keeper. If it does not, nothing keeps a
 * launcher from ending the keeper as well. */
bool cop_tasks_is_waited_for(const struct cop_tasks *t);
/* At any time: whether a call that has not finished its work is alive. Needs no descriptor of t. */
bool cop_tasks_live(const struct cop_tasks *t);
/* Removes the files that are left. */
void cop_tasks_end(struct cop_tasks *t);

/* ---- in any process of the user ---- */

/* Removes the files of launches whose processes were all killed. found gets the word that the
 * keeper of such a launch had given. */
void cop_tasks_sweep(const char *dir, void (*found)(void *arg, const char *word), void *arg);

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
