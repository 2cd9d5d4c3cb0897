/* SPDX-License-Identifier: BSD-3-Clause */
/* scheduler: decides whether this command may start nodes in a Slurm job, and starts them with srun
 * in a job step of their own. It knows nothing of mounts and trees: a node is just a command to
 * start and a one-line report to read. Outside Slurm it does nothing. */
#ifndef COP_JOB_SCHEDULER_H
#define COP_JOB_SCHEDULER_H

#include <signal.h>

#include "base/base/base.h"
#include "job/conf/conf.h"

/* How this command must start nodes. */
enum cop_slurm_how {
	COP_SLURM_HERE,    /* only this machine's node, by this process */
	COP_SLURM_BY_STEP, /* cop_slurm_launch: all nodes, from the job's script or from a shell in
			      the job */
	COP_SLURM_REFUSED, /* cop_slurm_refuse: nodes started by tasks of a step would not survive
			      them */
};
enum cop_slurm_how cop_slurm_how(const struct cop_conf *conf);

/* Sets err to a message that lists alternatives that work; returns -EINVAL. */
int cop_slurm_refuse(const char *subcommand, struct cop_err *err);

/* Starts all nodes of the job with srun in a step of their own, with the options in argv (argv[0]
 * is the subcommand). Returns 0 when the tree is ready, or -errno with err set. The step lasts
 * until the nodes are stopped or the job ends. */
int cop_slurm_launch(const struct cop_conf *conf, char **argv, struct cop_err *err);

/* ---- in a node ---- */

/* Whether this process is a node of such a step. */
bool cop_slurm_is_node(void);
/* Reports the result of this node's start (failure NULL: ready) over fd to the command that started
 * the step, and closes fd. */
void cop_slurm_tell(int fd, const struct cop_err *failure);
/* Whether this process is in a job step, be it the nodes' step or another. */
bool cop_slurm_in_a_step(void);
/* Whether this process is in a step other than the nodes' that kills its processes when it ends. */
bool cop_slurm_ends_with_step(void);

/* ---- queries to Slurm ---- */

/* Runs a Slurm command without a shell and appends its output, at most 1 MiB. -ETIMEDOUT: timed out
 * and was killed; -EIO: it failed; -ENOENT: no such command. */
int cop_slurm_command(char *const argv[], uint32_t timeout_ms, struct cop_buf *out);
/* Why Slurm is ending this process's job, in a few words ("cancelled", "time limit"). NULL if there
 * is no such job, Slurm did not reply in time, or the job is ending by itself. For a completing
 * job, asks repeatedly until Slurm knows the exit status of its script or the timeout passes. */
const char *cop_slurm_why(uint32_t timeout_ms);

/* A job as recorded by Slurm's accounting. */
struct cop_slurm_account {
	char state[64]; /* "COMPLETED", "CANCELLED by 1000" */
	bool ended;
	uint64_t elapsed_s;
	uint64_t max_rss_bytes; /* maximum over all tasks; 0: unknown */
	char tres[1024];        /* TRESUsageInTot of that task's step; "": unknown */
};
/* Parses sacct output for the job that was running at the time at_s (seconds since 1970), which
 * tells apart the attempts of a requeued job and jobs with the same number. -ENOENT: not found;
 * -EBADMSG: not sacct output. */
int cop_slurm_account_parse(
	const char *text, const char *job, double at_s, struct cop_slurm_account *out);
/* Runs sacct. cluster is "" or NULL for the local one. Sets SLURM_TIME_FORMAT in the environment.
 * Errors are those of cop_slurm_command, too. */
int cop_slurm_account(const char *job, const char *cluster, double at_s, uint32_t timeout_ms,
	struct cop_slurm_account *out);

/* tasks: the tasks of one launch (srun, mpiexec) on one machine. Finds this process's task and
 * their number, and lets the commands that the tasks run meet. Overlapping calls form a generation
 * and share one keeper; a later call joins the generation while it lasts, or begins the next one.
 * Any call may lead, i.e. start the keeper. Each call holds a file lock, which the kernel releases
 * when the process ends for whatever reason. The module neither starts nor ends processes, and
 * contacts no other machine. */

struct cop_tasks {
	bool launched;  /* started by a launcher; otherwise it is the only task */
	bool again;     /* this call was made by a program of the task, which may make more */
	uint32_t local; /* index of this task on this machine, from 0 */
	uint32_t here;  /* number of tasks on this machine */
	bool elsewhere; /* there are tasks on other machines too */
	uint64_t id;    /* identifies the launch; same for all tasks on this machine; the caller may
			   change it before joining */
	uint64_t start; /* same on all machines; 0: unknown */
	const char *variable; /* environment variable that holds the task number, or NULL */
	uint64_t ancestor;    /* the process that started the tasks; 0: unknown */
	char names[4]
		  [160];   /* the tasks' lock, the keeper's lock, its message, its standard error */
	bool led;          /* this call has been the leader */
	bool again_came;   /* for the keeper: some call had `again` set */
	uint32_t again_ms; /* how long a call of a task that may call again waits for other
			      machines; 0: default */
	uint64_t wait_until_ms;    /* how long this call waits for the next generation */
	int fd, first_fd, word_fd; /* -1: none */
};

/* Fills t from the environment. Returns -EINVAL with err set if the environment contradicts
 * itself. */
int cop_tasks_find(struct cop_tasks *t, struct cop_err *err);

/* Makes this process one of the calls until it exits or finishes. dir is private to the user.
 * Returns 0, or -errno with err set. */
int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err);
void cop_tasks_leave(struct cop_tasks *t);
/* Waits at most timeout_ms for the keeper's message, with the signal mask `unblocked` in effect
 * while it sleeps (NULL: unchanged). 0: word is set. 1: this call leads; it forks the keeper and
 * waits again. word is then the word of an earlier keeper that was killed, if no longer needed, or
 * "". -errno with err set: the keeper's failure (-EIO), or this function's own. */
int cop_tasks_await(struct cop_tasks *t, uint32_t timeout_ms, const sigset_t *unblocked, char *word,
	size_t size, struct cop_err *err);
/* The leading call uses this after forking the keeper. */
void cop_tasks_hand_over(struct cop_tasks *t);
/* This call has finished its work, successfully or not, and no longer counts as live. In the last
 * call, returns true once the keeper has exited, because launchers kill whatever the last task
 * leaves behind. In other calls, returns false immediately. If the task may call again, it also
 * returns false if other tasks on this machine are still expected, if another call arrives, or
 * after waiting some seconds for busy machines. */
bool cop_tasks_finish(struct cop_tasks *t, bool well);

/* ---- in the keeper ---- */

/* Makes this process the keeper; it no longer counts as a call. */
void cop_tasks_keep(struct cop_tasks *t);
/* Tells the calls that the service is ready (word) or has failed. Also resumes after
 * cop_tasks_suspend. */
int cop_tasks_tell(struct cop_tasks *t, const char *word, const struct cop_err *failure);
/* From now on, the last call prints what the keeper wrote to standard error before it exits: a
 * launcher considers a task finished once no process holds its standard error. */
void cop_tasks_give_back_stderr(const struct cop_tasks *t);
/* Returns once no call is live and all tasks have arrived, or the missing ones have exited, or no
 * call has been live for absent_ms. New calls then block until one of the next two functions is
 * called. Returns 0, or -errno with err set. */
int cop_tasks_wait_idle(struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err);
/* Lets calls join again; they wait until cop_tasks_tell or cop_tasks_close. */
int cop_tasks_suspend(struct cop_tasks *t);
/* Ends the generation: waiting and later calls belong to the next one. */
void cop_tasks_close(struct cop_tasks *t);
/* Whether the last call succeeded and is waiting for the keeper. If not, a launcher may kill the
 * keeper too. */
bool cop_tasks_is_waited_for(const struct cop_tasks *t);
/* Whether a call with unfinished work is alive. Works at any time and needs no descriptor in t. */
bool cop_tasks_live(const struct cop_tasks *t);
/* Removes the files that are left. */
void cop_tasks_end(struct cop_tasks *t);

/* ---- in any process of the user ---- */

/* Removes the files of launches whose processes have all been killed. found gets the word of each
 * such launch's keeper. */
void cop_tasks_sweep(const char *dir, void (*found)(void *arg, const char *word), void *arg);

/* resource: describes a process and its environment as the attributes of an OpenTelemetry resource:
 * the program, the host, and the job according to the scheduler's variables. It only reads
 * environment variables and sends nothing. */

/* key and value are valid only during the call. */
typedef void cop_resource_visit(void *arg, const char *key, const char *value);

/* Visits the job's attributes (slurm.job_id etc.), from the variables of Slurm, PBS and Flux. Skips
 * variables that are unset or empty. */
void cop_resource_job(cop_resource_visit *visit, void *arg);
/* Visits all attributes: the process (service.*, host.name, process.pid) and the job. */
void cop_resource_all(uint32_t rank, cop_resource_visit *visit, void *arg);

#endif
