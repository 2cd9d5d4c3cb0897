/* SPDX-License-Identifier: BSD-3-Clause */
/* scheduler: decides whether this command may start nodes in a Slurm job, and starts them with srun
 * in a job step of their own. It is independent of mounts and trees: to it, a node is a command to
 * start and one line of report. Outside of Slurm it does nothing. */
#ifndef COP_JOB_SCHEDULER_H
#define COP_JOB_SCHEDULER_H

#include <signal.h>

#include "base/base/base.h"
#include "job/conf/conf.h"

/* How this command must start nodes. */
enum cop_slurm_how {
	COP_SLURM_HERE,    /* only this machine's node, by this process */
	COP_SLURM_BY_STEP, /* cop_slurm_launch: all nodes, from the job's script or a shell of the
			      job */
	COP_SLURM_REFUSED, /* cop_slurm_refuse: the tasks of a step cannot leave nodes behind */
};
enum cop_slurm_how cop_slurm_how(const struct cop_conf *conf);

/* Sets a sentence with the alternatives that work; -EINVAL. */
int cop_slurm_refuse(const char *subcommand, struct cop_err *err);

/* Starts every node of the job with srun in a step of its own, with the options in argv (argv[0] is
 * the subcommand). Returns 0 when the tree is ready, or -errno with a sentence. The step lasts
 * until the nodes are stopped or the job ends. */
int cop_slurm_launch(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* ---- in a node ---- */

/* Whether this process is a node of such a step. */
bool cop_slurm_is_node(void);
/* Reports the result of this node's start (failure NULL: ready) on fd to the command that started
 * the step, and closes fd. */
void cop_slurm_tell(int fd, const struct cop_err *failure);
/* Whether this process is in a job step, either the nodes' or another. */
bool cop_slurm_in_a_step(void);
/* Whether this process is in a step that kills its processes at its end and is not the nodes'
 * step. */
bool cop_slurm_ends_with_step(void);

/* ---- queries to Slurm ---- */

/* Runs a Slurm command without a shell, and appends its output, at most 1 MiB. -ETIMEDOUT: it was
 * killed; -EIO: it failed; -ENOENT: no such command. */
int cop_slurm_command(char *const argv[], uint32_t timeout_ms, struct cop_buf *out);
/* Why Slurm ends this process's job, in a few words ("cancelled", "time limit"); NULL: no such job,
 * no reply in time, or the job ends by itself. The query for a completing job is repeated until
 * Slurm has its script's status, or until the timeout. */
const char *cop_slurm_why(uint32_t timeout_ms);

/* A job in Slurm's accounting. */
struct cop_slurm_account {
	char state[64]; /* "COMPLETED", "CANCELLED by 1000" */
	bool ended;
	uint64_t elapsed_s;
	uint64_t max_rss_bytes; /* maximum over tasks; 0: unknown */
	char tres[1024];        /* TRESUsageInTot of that task's step; "": unknown */
};
/* Parses the output of sacct for a job that ran at a time since 1970, which distinguishes the
 * attempts of a requeued job and jobs with the same number. -ENOENT: not found; -EBADMSG: not sacct
 * output. */
int cop_slurm_account_parse(
	const char *text, const char *job, double at_s, struct cop_slurm_account *out);
/* Runs sacct. cluster: "" or NULL for this one. Changes SLURM_TIME_FORMAT in the environment. Also
 * returns the errors of cop_slurm_command. */
int cop_slurm_account(const char *job, const char *cluster, double at_s, uint32_t timeout_ms,
	struct cop_slurm_account *out);

/* tasks: the tasks of one launch (srun, mpiexec) on one machine: this process's task, their
 * number, and a meeting point for the commands that they call. Overlapping calls form a
 * generation and share one keeper; a later call joins it while it is alive, or begins the next
 * one. Any call may lead, i.e. start the keeper. Each call holds a file lock, which the kernel
 * releases when the process ends for any reason. The module neither starts nor ends processes,
 * and contacts no other machine. */

struct cop_tasks {
	bool launched;  /* started by a launcher; else it is the only task */
	bool again;     /* a program of the task made this call and may make more */
	uint32_t local; /* the number of this task on this machine, from 0 */
	uint32_t here;  /* number of tasks on this machine */
	bool elsewhere; /* other machines have tasks too */
	uint64_t id; /* of this launch, equal in all tasks on this machine; the caller may change it
			before joining */
	uint64_t start;       /* equal on all machines; 0: unknown */
	const char *variable; /* environment variable with the task number; NULL */
	uint64_t ancestor;    /* the process that started the tasks; 0: unknown */
	char names[4][160];   /* lock of the tasks, lock of the keeper, its message, its standard
				 error */
	bool led;             /* this call has led */
	bool again_came;      /* for the keeper: a call had `again` set */
	uint32_t again_ms; /* how long a call waits for other machines, if its task may call again;
			      0: default */
	uint64_t wait_until_ms;    /* until when this call waits for the next generation */
	int fd, first_fd, word_fd; /* -1: none */
};

/* Fills t from the environment. -EINVAL with a sentence if the environment is contradictory. */
int cop_tasks_find(struct cop_tasks *t, struct cop_err *err);

/* Makes this process one of the calls until it exits or leaves; dir is private to the user. 0 or
 * -errno with a sentence. */
int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err);
void cop_tasks_leave(struct cop_tasks *t);
/* Waits at most timeout_ms for the keeper's message, with these signals blocked while it sleeps
 * (NULL: unchanged). 0: word has it. 1: this call leads: it forks the keeper and waits again; word
 * is that of an earlier, killed keeper if no longer needed, or "". -errno with a sentence: the
 * keeper's (-EIO), or this function's own. */
int cop_tasks_await(struct cop_tasks *t, uint32_t timeout_ms, const sigset_t *unblocked, char *word,
	size_t size, struct cop_err *err);
/* In the leading call, after it has forked the keeper. */
void cop_tasks_hand_over(struct cop_tasks *t);
/* This call has finished its work, successfully or not, and no longer counts as live. In the last
 * call this returns true once the keeper has exited, because launchers kill what the last task
 * leaves behind. In the others it returns false immediately. If the task may call again, it also
 * returns false while other tasks of this machine are still expected, when another call arrives, or
 * after some seconds of waiting for busy machines. */
bool cop_tasks_finish(struct cop_tasks *t, bool well);

/* ---- in the keeper ---- */

/* Makes this process the keeper, which is not one of the calls. */
void cop_tasks_keep(struct cop_tasks *t);
/* Reports to the calls that the service is ready (word), or the failure; also to resume. */
int cop_tasks_tell(struct cop_tasks *t, const char *word, const struct cop_err *failure);
/* From now on the last call prints, at its end, the keeper's output to standard error: a launcher
 * considers a task finished when no process holds its standard error. */
void cop_tasks_give_back_stderr(const struct cop_tasks *t);
/* Returns when no call is live and all tasks have arrived, when the missing ones have exited, or
 * when no call has been live for absent_ms. Blocks new calls until one of the next two functions.
 * 0, or -errno with a sentence. */
int cop_tasks_wait_idle(struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err);
/* Calls can join again, and wait until cop_tasks_tell or cop_tasks_close. */
int cop_tasks_suspend(struct cop_tasks *t);
/* Later and waiting calls belong to the next generation. */
void cop_tasks_close(struct cop_tasks *t);
/* Whether the last call succeeded and waits for the keeper. If it does not, a launcher may kill the
 * keeper as well. */
bool cop_tasks_is_waited_for(const struct cop_tasks *t);
/* At any time: whether a call with unfinished work is alive. Needs no descriptor of t. */
bool cop_tasks_live(const struct cop_tasks *t);
/* Removes the remaining files. */
void cop_tasks_end(struct cop_tasks *t);

/* ---- in any process of the user ---- */

/* Removes the files of launches whose processes were all killed. found receives the word of such a
 * launch's keeper. */
void cop_tasks_sweep(const char *dir, void (*found)(void *arg, const char *word), void *arg);

/* resource: describes a process and its environment by the attributes of an OpenTelemetry resource:
 * the program, the host, and the job from the scheduler's variables. It reads only environment
 * variables, and sends nothing. */

/* The texts are valid only during the call. */
typedef void cop_resource_visit(void *arg, const char *key, const char *value);

/* The job, from the variables of Slurm, PBS and Flux: slurm.job_id etc. Omits attributes of missing
 * or empty variables. */
void cop_resource_job(cop_resource_visit *visit, void *arg);
/* All attributes: the process (service.*, host.name, process.pid) and the job. */
void cop_resource_all(uint32_t rank, cop_resource_visit *visit, void *arg);

#endif
