/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes: each call of copper run stays as the parent of its command, so that the launcher's
 * processes end last. The first call on a machine has a second child, the keeper, in a session of
 * its own. The keeper starts the node and waits for all calls on this machine to end, and then for
 * those on other machines, because their nodes read through this one. Calls that start in the
 * meantime use the same node. The root's keeper stops the tree. The last task on a machine exits
 * after the keeper, because Slurm kills whatever processes the last task leaves behind; if the call
 * that started the keeper ends earlier, the keeper carries on for the others. */
#include "run_tree.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "child.h"
#include "node/ctl/ctl.h"
#include "ending.h"
#include "node/launch/launch.h"
#include "run_node.h"
#include "socket.h"
#include "sweep.h"
#include "tree/op/op.h"
#include "job/scheduler/scheduler.h"

#define FAILED 125
#define STOP_MS 60000
/* The initial and the maximum interval between queries whether other nodes still need this one, and
 * the timeout for detecting dead ones. */
#define ASK_MS_FIRST 20
#define ASK_MS_MOST 1000
#define ANSWER_MS 60000
/* How long the last task waits if it failed: often all tasks fail at the same time. */
#define FAILED_MS 2000
/* How long a node that another machine stopped may take to exit: it first delivers its reply to the
 * requester (tree/op). */
#define ENDING_MS 130000
/* Interval at which the keeper checks for new calls while it waits for other machines. */
#define CALLS_MS 100
/* How long the node is kept, after all other tasks have exited, for tasks that have not called
 * yet. */
#define ABSENT_MS 5000
/* Added to --ready-timeout, so that the node itself can report why it is not ready. */
#define LATE_MS 10000
/* Each tree of a step uses the step's port plus an offset below this number. */
#define STEP_TREES 509

static int report_failure(const struct cop_err *err)
{
	fprintf(stderr, "copper run: %s\n", err->text);
	return FAILED;
}

/* ---- the keeper ---- */

/* A launcher may wait for every process with a descriptor inherited from it (mpiexec: PMI_FD). */
static void close_inherited(int keep_fd)
{
	cop_child_leave_streams(1);
	if (keep_fd > 3)
		cop_close_range(3, (unsigned)keep_fd - 1);
	if (keep_fd >= 3)
		cop_close_range((unsigned)keep_fd + 1, ~0U);
}

/* Prints the remarks about single nodes that follow the first line of the reply to a stop. */
static void show_remarks(char *text)
{
	char *rest = text ? strchr(text, '\n') : NULL;

	if (rest && rest[1])
		fprintf(stderr, "%s", rest + 1);
}

static int stop_tree(const char *mountpoint, const struct cop_conf *conf, bool local)
{
	struct cop_cmd_ending ending = {0};
	struct cop_ctl_reply reply = {0};
	char socket[COP_CTL_PATH_SIZE];
	struct cop_err err = {0};
	int rc = cop_cmd_socket(mountpoint, conf->runtime_dir, socket, &err);

	/* The node was killed; its guard removed the mount, but was then killed as well. */
	if (rc == -ENOENT)
		cop_cmd_clear_mount(conf->runtime_dir, mountpoint);
	if (rc)
		return rc == -ENOENT ? 0 : report_failure(&err);
	cop_cmd_ending_begin(&ending, socket, local);
	rc = cop_ctl_call(socket, local ? "stop local" : "stop", STOP_MS, &reply, &err);
	/* The node was killed. Its guard still keeps the mount for the programs, but they have all
	 * exited. */
	if (rc == -ECONNREFUSED)
		cop_cmd_clear_away(mountpoint, socket);
	else if (rc)
		report_failure(&err);
	else if (reply.status != -ESHUTDOWN)
		show_remarks(reply.text);
	free(reply.text);
	cop_cmd_ending_wait(&ending);
	return rc && rc != -ECONNREFUSED ? FAILED : 0;
}

/* ---- the tasks of other machines ---- */

static bool ends_within(const struct cop_cmd_ending *node, int ms)
{
	struct pollfd p = {.fd = node->count ? node->fd[0] : -1, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static int ask_node(const char *socket, const char *line)
{
	struct cop_ctl_reply reply = {0};
	struct cop_err ignored;
	int rc = cop_ctl_call(socket, line, ANSWER_MS, &reply, &ignored);

	if (!rc)
		rc = reply.status;
	free(reply.text);
	return rc == -ETIMEDOUT || rc == -ENOMEM ? -EAGAIN : rc;
}

/* Returns 0 if no machine needs the tree, so that this node must stop it; -EAGAIN if it is too
 * early, or not up to this node; other errors if the node is being stopped or is dead. Sets late if
 * the answer was 0 but took too long, as when dead nodes had to be detected. These are known by
 * then, so the next answer is fast. */
static int release_node(const char *socket, bool *late)
{
	uint64_t began = cop_now_ms();
	int rc = ask_node(socket, *late ? "release again" : "release");

	*late = !rc && cop_now_ms() - began > COP_OP_RELEASED_MS;
	return *late ? -EAGAIN : rc;
}

enum after { STOP_NODE, STOP_TREE, CALLED_AGAIN };

/* Waits until the node ends, must be stopped, or is needed by a new call. */
static int await_end(const struct cop_tasks *t, const char *socket, struct cop_cmd_ending *node,
	enum after *after)
{
	uint64_t end = cop_now_ms() + FAILED_MS, ask_at = 0;
	int rc = -EAGAIN, wait_ms = ASK_MS_FIRST;
	bool late = false;

	*after = STOP_NODE;
	/* If the last task failed, it must report to its launcher soon: wait only briefly, then
	 * stop this node. The other nodes continue without it. */
	while (rc == -EAGAIN &&
		(t->again_came || cop_tasks_is_waited_for(t) || cop_now_ms() < end)) {
		if (cop_tasks_live(t)) {
			*after = CALLED_AGAIN;
			rc = ask_node(socket, "hold");
		} else if (cop_now_ms() >= ask_at) {
			*after = STOP_TREE;
			rc = release_node(socket, &late);
			wait_ms = late ? ASK_MS_FIRST : wait_ms;
			ask_at = cop_now_ms() + (uint64_t)wait_ms;
			wait_ms = COP_MIN(2 * wait_ms, ASK_MS_MOST);
		}
		if (rc == -EAGAIN && ends_within(node, COP_MIN(wait_ms, CALLS_MS)))
			return -ESHUTDOWN;
	}
	return rc;
}

static enum after await_others(struct cop_tasks *t, const char *mountpoint, const char *runtime_dir)
{
	char socket[COP_CTL_PATH_SIZE];
	struct cop_cmd_ending node = {0};
	enum after after;
	struct cop_err ignored;
	int rc;

	if (cop_cmd_socket(mountpoint, runtime_dir, socket, &ignored))
		return STOP_NODE;
	cop_cmd_ending_begin(&node, socket, true);
	rc = await_end(t, socket, &node, &after);
	if (node.count && rc && rc != -EAGAIN)
		ends_within(&node, ENDING_MS);
	cop_cmd_ending_close(&node);
	return rc ? STOP_NODE : after;
}

/* ---- the keeper's main function ---- */

static void block_ends(sigset_t *before)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COP_ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

/* A signal to the whole job must end only the tasks, so ignore it here: the keeper exits after
 * them. */
static void outlive_tasks(void)
{
	setsid();
	block_ends(NULL);
}

static bool tasks_live(void *tasks)
{
	return cop_tasks_live(tasks);
}

static void tell_tasks(struct cop_tasks *t, const char *mountpoint, const struct cop_err *failure)
{
	int rc = cop_tasks_tell(t, mountpoint, failure);

	if (rc && !failure)
		fprintf(stderr, "copper run: cannot tell the tasks where the node is: %s\n",
			strerror(-rc));
}

/* Returns when the node must be stopped: alone (true), or with the whole tree. */
static bool keep_node(struct cop_tasks *t, const char *mountpoint, const struct cop_conf *conf)
{
	enum after after = CALLED_AGAIN;
	struct cop_err err = {0};

	while (after == CALLED_AGAIN) {
		if (cop_tasks_wait_idle(t, ABSENT_MS, &err)) {
			report_failure(&err);
			return t->elsewhere;
		}
		if (!t->elsewhere)
			return false;
		cop_tasks_suspend(t);
		after = await_others(t, mountpoint, conf->runtime_dir);
		if (after == CALLED_AGAIN)
			tell_tasks(t, mountpoint, NULL);
	}
	return after == STOP_NODE;
}

static int run_keeper(struct cop_tasks *t, const struct cop_conf *conf)
{
	struct cop_err err = {0};
	char mountpoint[4096];
	int rc, code = 0;

	outlive_tasks();
	cop_tasks_keep(t);
	close_inherited(t->first_fd);
	rc = cop_launch_here(conf, &(struct cop_launch_users){tasks_live, t}, mountpoint, &err);
	tell_tasks(t, mountpoint, rc ? &err : NULL);
	cop_tasks_give_back_stderr(t);
	if (rc) {
		cop_tasks_wait_idle(t, ABSENT_MS, &err);
		cop_tasks_close(t);
	} else {
		bool alone = keep_node(t, mountpoint, conf);

		cop_tasks_close(t);
		code = stop_tree(mountpoint, conf, alone);
	}
	cop_tasks_end(t);
	return code;
}

static pid_t start_keeper(struct cop_tasks *t, const struct cop_conf *conf)
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		exit(run_keeper(t, conf));
	return pid;
}

/* ---- the task ---- */

static int run_command(int (*run)(void *arg, pid_t task, const char *mountpoint), void *arg,
	const char *mountpoint, const char *runtime_dir, const struct cop_child_signals *before)
{
	char socket[COP_CTL_PATH_SIZE];
	pid_t task = getpid(), pid;
	struct cop_err ignored;
	int status;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		cop_child_restore(before);
		exit(run(arg, task, mountpoint));
	}
	if (pid < 0) {
		fprintf(stderr, "copper run: cannot start a process: %s\n", strerror(errno));
		return FAILED << 8;
	}
	status = cop_child_wait(pid, NULL);
	if (cop_cmd_socket(mountpoint, runtime_dir, socket, &ignored) == 0)
		cop_run_node_ended(socket, pid, status);
	return status;
}

/* Chooses the hosts of the tree. It spans several machines only if a launcher provides the
 * hosts. */
static void choose_hosts(const struct cop_tasks *t, struct cop_conf *conf)
{
	conf->of_step = t->elsewhere;
	if (t->elsewhere)
		return;
	conf->hosts = "localhost";
	conf->rank = 0;
}

/* The nodes of a tree share a secret in a directory named after the step and a hash of the tree,
 * since a step may have several trees at once. Trees with a user-supplied secret and no job
 * directory all use the step's first port, so a task with a different source is detected. */
static void choose_secret(const struct cop_tasks *t, struct cop_conf *conf, char step[PATH_MAX],
	char dir[PATH_MAX + 32])
{
	const char *home = getenv("HOME"), *given = getenv("COPPER_SECRET");
	char real[PATH_MAX];
	const char *tree = conf->job_dir                  ? conf->job_dir
			   : realpath(conf->source, real) ? real
							  : conf->source;
	uint64_t id = cop_hash64(tree, strlen(tree), 0);

	if (conf->job_dir)
		conf->step_tree = (uint32_t)(id % STEP_TREES);
	if (!t->elsewhere || !t->start || conf->job_dir || conf->secret_file || conf->insecure ||
		(given && *given) || !home || *home != '/')
		return;
	conf->step_tree = (uint32_t)(id % STEP_TREES);
	snprintf(step, PATH_MAX, "%.4000s/.copper-run-%016" PRIx64, home, t->start);
	snprintf(dir, PATH_MAX + 32, "%s/%016" PRIx64, step, id);
	conf->step_dir = step;
	conf->secret_dir = dir;
}

/* Calls of one launch share a tree only if they have the same source, job directory and hosts. */
static void choose_id(struct cop_tasks *t, const struct cop_conf *conf)
{
	char real[PATH_MAX];
	const char *parts[] = {
		realpath(conf->source, real) ? real : conf->source, conf->job_dir, conf->hosts};

	for (size_t i = 0; i < COP_ARRAY_SIZE(parts); i++) {
		const char *text = parts[i] ? parts[i] : "";

		t->id = cop_hash64(text, strlen(text) + 1, t->id);
	}
}

static int join_tasks(struct cop_tasks *t, const struct cop_conf *conf, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE];
	int rc = cop_ctl_dir(conf->runtime_dir, dir, sizeof(dir), err);

	choose_id(t, conf);
	if (!rc)
		rc = cop_tasks_join(t, dir, err);
	if (rc && t->local == 0)
		cop_launch_tell_others(conf, err);
	return rc;
}

/* Waits for the node, after starting the keeper if this call is the first. Signals are blocked
 * except while it waits. Returns the keeper's pid, or 0 if another call started it or there is
 * none. */
static pid_t await_node(struct cop_tasks *t, const struct cop_conf *conf, const sigset_t *unblocked,
	char mountpoint[4096], struct cop_err *err)
{
	const uint32_t ms = conf->ready_timeout_ms + LATE_MS;
	pid_t keeper = 0;

	while (cop_tasks_await(t, ms, unblocked, mountpoint, 4096, err) == 1) {
		/* Clean up after earlier launches, and after an earlier keeper of this launch. */
		cop_cmd_sweep(conf->runtime_dir);
		if (*mountpoint)
			cop_cmd_clear_mount(conf->runtime_dir, mountpoint);
		keeper = start_keeper(t, conf);
		cop_tasks_hand_over(t);
		if (keeper < 0) {
			cop_err_set(err, errno, "cannot start a process: %s", strerror(errno));
			return 0;
		}
	}
	return keeper;
}

int cop_run_tree(
	struct cop_conf *conf, int (*run)(void *arg, pid_t task, const char *mountpoint), void *arg)
{
	struct cop_err err = {0};
	char mountpoint[4096], step_dir[PATH_MAX], secret_dir[PATH_MAX + 32];
	struct cop_tasks t;
	struct cop_child_signals before;
	sigset_t unblocked;
	pid_t keeper = 0;
	int status = FAILED << 8;

	if (cop_tasks_find(&t, &err))
		return report_failure(&err);
	choose_hosts(&t, conf);
	choose_secret(&t, conf, step_dir, secret_dir);
	/* From here on there are files that the keeper must remove, so signals stay blocked. */
	block_ends(&unblocked);
	if (join_tasks(&t, conf, &err))
		return report_failure(&err);
	cop_child_expect(&before);
	keeper = await_node(&t, conf, &unblocked, mountpoint, &err);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	cop_child_hold(&before);
	if (!err.code)
		status = run_command(run, arg, mountpoint, conf->runtime_dir, &before);
	else if (t.led || err.code != EIO)
		report_failure(&err);
	sigprocmask(SIG_SETMASK, &before.blocked, NULL);
	/* The keeper's failure does not change the result of the command. */
	if (cop_tasks_finish(&t, status == 0))
		while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
			continue;
	return cop_child_end_as(status);
}
