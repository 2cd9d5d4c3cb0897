/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes: each task waits as the parent of its command, so that nothing outlives what a launcher
 * started. The first task of a machine has another child, the keeper, in a session of its own. The
 * keeper starts the node, waits until no task of this machine is left, and then until the tasks of
 * the other machines have ended, because their nodes read through this one. The root's keeper stops
 * the tree. The last task of a machine ends after the keeper, because Slurm kills what the last one
 * leaves on its machine; if the first task has ended before, the keeper continues for the
 * others. */
#include "run_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"
#include "node/ctl/ctl.h"
#include "ending.h"
#include "node/launch/launch.h"
#include "run_node.h"
#include "socket.h"
#include "sweep.h"
#include "job/scheduler/scheduler.h"

#define FAILED 125
#define STOP_MS 60000
/* How often the node is asked whether others need it, at first and at most, and how long it may
 * take to find out which of them are dead. */
#define ASK_MS_FIRST 20
#define ASK_MS_MOST 1000
#define ANSWER_MS 60000
/* How long a last task that failed waits, because often all tasks fail at the same time. */
#define FAILED_MS 2000
/* How long a node that was stopped from another machine may stay, until the requester has its
 * answer (treeop). */
#define ENDING_MS 130000
/* How long the node is kept for tasks that have not come, after the others have ended. */
#define ABSENT_MS 30000
/* Added to --ready-timeout, because a launcher starts its tasks one after another. */
#define LATE_MS 30000

struct cop_run_tree {
	pid_t task;
};

static int report_failure(const struct cop_err *err)
{
	fprintf(stderr, "copper run: %s\n", err->text);
	return FAILED;
}

/* ---- the keeper ---- */

/* A launcher may wait for any process that has a descriptor that it left open (mpiexec: PMI_FD). */
static void close_inherited(int keep_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (null >= 0) {
		dup2(null, 0);
		dup2(null, 1);
	}
	if (keep_fd > 3)
		cop_close_range(3, (unsigned)keep_fd - 1);
	if (keep_fd >= 3)
		cop_close_range((unsigned)keep_fd + 1, ~0U);
}

/* Remarks about single nodes follow the first line of a stop's answer. */
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

	/* The node was killed, and so was its guard after it had removed the mount. */
	if (rc == -ENOENT)
		cop_cmd_clear_mount(conf->runtime_dir, mountpoint);
	if (rc)
		return rc == -ENOENT ? 0 : report_failure(&err);
	cop_cmd_ending_begin(&ending, socket, local);
	rc = cop_ctl_call(socket, local ? "stop local" : "stop", STOP_MS, &reply, &err);
	/* The node's guard keeps the mount for programs that no longer exist. */
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

/* 0: no machine needs the tree, and this node must stop it; -EAGAIN: not yet, or not this node;
 * other errors: the node is being stopped, or is dead. */
static int ask_node(const char *socket)
{
	struct cop_ctl_reply reply = {0};
	struct cop_err ignored;
	int rc = cop_ctl_call(socket, "release", ANSWER_MS, &reply, &ignored);

	if (!rc)
		rc = reply.status;
	free(reply.text);
	return rc == -ETIMEDOUT || rc == -ENOMEM ? -EAGAIN : rc;
}

/* Whether the node must stop the whole tree. A last task that failed does not wait for long,
 * because its launcher must hear of it, and stops the node; the other nodes continue without it. */
static bool await_others(const struct cop_tasks *t, const char *mountpoint, const char *runtime_dir)
{
	char socket[COP_CTL_PATH_SIZE];
	struct cop_cmd_ending node = {0};
	uint64_t end = cop_now_ms() + FAILED_MS;
	int rc = -EAGAIN, wait_ms = ASK_MS_FIRST;
	struct cop_err ignored;

	if (cop_cmd_socket(mountpoint, runtime_dir, socket, &ignored))
		return false;
	cop_cmd_ending_begin(&node, socket, true);
	while (cop_tasks_is_waited_for(t) || cop_now_ms() < end) {
		rc = ask_node(socket);
		if (rc != -EAGAIN || ends_within(&node, wait_ms))
			break;
		wait_ms = COP_MIN(2 * wait_ms, ASK_MS_MOST);
	}
	if (node.count && rc && rc != -EAGAIN)
		ends_within(&node, ENDING_MS);
	cop_cmd_ending_close(&node);
	return rc == 0;
}

/* ---- the keeper's life ---- */

static void block_ends(sigset_t *before)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < COP_ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, before);
}

/* A signal that is meant to end everything ends the tasks, and thereby the keeper. */
static void outlive_tasks(void)
{
	setsid();
	block_ends(NULL);
}

static bool tasks_live(void *tasks)
{
	return cop_tasks_live(tasks);
}

static int run_keeper(struct cop_tasks *t, const struct cop_conf *conf)
{
	struct cop_err err = {0};
	char mountpoint[4096];
	int64_t absent;
	int rc, code;

	outlive_tasks();
	cop_tasks_keep(t);
	close_inherited(t->first_fd);
	rc = cop_launch_here(conf, &(struct cop_launch_users){tasks_live, t}, mountpoint, &err);
	code = cop_tasks_tell(t, mountpoint, rc ? &err : NULL);
	if (code && !rc)
		fprintf(stderr, "copper run: cannot tell the tasks where the node is: %s\n",
			strerror(-code));
	cop_tasks_give_back_stderr(t);
	absent = cop_tasks_wait_gone(t, ABSENT_MS, &err);
	if (absent > 0 && !rc)
		fprintf(stderr,
			"copper run: %lld of the %u tasks of this machine never started; the node ends without them\n",
			(long long)absent, t->here);
	code = rc ? 0
		  : stop_tree(mountpoint, conf,
			    t->elsewhere && !await_others(t, mountpoint, conf->runtime_dir));
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

void cop_run_tree_tie(const struct cop_run_tree *tree)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != tree->task)
		_exit(FAILED);
}

static int run_command(
	int (*run)(void *arg, const struct cop_run_tree *tree, const char *mountpoint), void *arg,
	const char *mountpoint, const char *runtime_dir, const struct cop_child_signals *before)
{
	struct cop_run_tree tree = {.task = getpid()};
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		cop_child_restore(before);
		exit(run(arg, &tree, mountpoint));
	}
	if (pid < 0) {
		fprintf(stderr, "copper run: cannot start a process: %s\n", strerror(errno));
		return FAILED << 8;
	}
	status = cop_child_wait(pid, NULL);
	cop_run_node_ended(mountpoint, runtime_dir, pid, status);
	return status;
}

/* Chooses where the tree runs. Only under a launcher that names the hosts can it run on several
 * machines. */
static void choose_hosts(const struct cop_tasks *t, struct cop_conf *conf)
{
	conf->of_step = t->elsewhere;
	if (t->elsewhere)
		return;
	conf->hosts = "localhost";
	conf->rank = 0;
}

/* The nodes of one step find their common secret by the step's number. */
static void choose_secret(const struct cop_tasks *t, struct cop_conf *conf, char dir[PATH_MAX])
{
	const char *home = getenv("HOME"), *given = getenv("COPPER_SECRET");

	if (!t->elsewhere || !t->start || conf->job_dir || conf->secret_file || conf->insecure ||
		(given && *given) || !home || *home != '/')
		return;
	snprintf(dir, PATH_MAX, "%.4000s/.copper-run-%016" PRIx64, home, t->start);
	conf->secret_dir = dir;
}

static int join_tasks(struct cop_tasks *t, const struct cop_conf *conf, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE];
	int rc = cop_ctl_dir(conf->runtime_dir, dir, sizeof(dir), err);

	if (t->local == 0)
		cop_cmd_sweep(conf->runtime_dir);
	if (!rc)
		rc = cop_tasks_join(t, dir, err);
	if (rc && t->local == 0)
		cop_launch_tell_others(conf, err);
	return rc;
}

int cop_run_tree(struct cop_conf *conf,
	int (*run)(void *arg, const struct cop_run_tree *tree, const char *mountpoint), void *arg)
{
	struct cop_err err = {0};
	char mountpoint[4096], secret_dir[PATH_MAX];
	struct cop_tasks t;
	struct cop_child_signals before;
	sigset_t unblocked;
	pid_t keeper = 0;
	int status = FAILED << 8;

	if (cop_tasks_find(&t, &err))
		return report_failure(&err);
	choose_hosts(&t, conf);
	choose_secret(&t, conf, secret_dir);
	/* From here on there are files, which the keeper removes. */
	block_ends(&unblocked);
	if (join_tasks(&t, conf, &err))
		return report_failure(&err);
	cop_child_expect(&before);
	if (t.local == 0)
		keeper = start_keeper(&t, conf);
	sigprocmask(SIG_SETMASK, &unblocked, NULL);
	if (keeper < 0)
		cop_err_set(&err, errno, "cannot start a process: %s", strerror(errno));
	else
		cop_tasks_await(
			&t, conf->ready_timeout_ms + LATE_MS, mountpoint, sizeof(mountpoint), &err);
	cop_child_hold(&before);
	if (!err.code)
		status = run_command(run, arg, mountpoint, conf->runtime_dir, &before);
	else if (t.local == 0)
		report_failure(&err);
	sigprocmask(SIG_SETMASK, &before.blocked, NULL);
	/* The keeper's failure does not change the result of the command. */
	if (cop_tasks_finish(&t, status == 0))
		while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
			continue;
	return cop_child_end_as(status);
}
