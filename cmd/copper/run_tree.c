/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes: each task waits as the parent of its command, so that nothing outlives what a launcher
 * started. The first task of a machine has another child, the keeper, in a session of its own: it
 * starts the node, waits until no task of this machine is left, and then until the tasks of the
 * other machines are gone, since their nodes read through this one. The keeper of the root stops
 * the tree. The last task of a machine ends after the keeper, for Slurm kills what the last one
 * leaves on its machine; if the first one has ended before, the keeper goes on for the others. */
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

#include "ctl/ctl.h"
#include "ending.h"
#include "fs/fs.h"
#include "launch/launch.h"
#include "place/place.h"
#include "socket.h"
#include "tasks/tasks.h"

#define FAILED 125
#define STOP_MS 60000
/* How often the node is asked whether others need it, at first and in the end, and how long it may
 * take to find out who of them is dead. */
#define ASK_MS_FIRST 20
#define ASK_MS_MOST 1000
#define ANSWER_MS 60000
/* A last task that failed waits for so long, since often all fail at the same time. */
#define FAILED_MS 2000
/* How long a node that was stopped from elsewhere may stay, until that has its answer (treeop). */
#define ENDING_MS 130000
/* How long the node is kept for tasks of which nothing was heard, after the others have ended. */
#define ABSENT_MS 30000
/* Beyond --ready-timeout: a launcher starts its tasks one after the other. */
#define LATE_MS 30000

struct cop_run_tree {
	pid_t task;
};

static int failed(const struct cop_err *err)
{
	fprintf(stderr, "copper run: %s\n", err->text);
	return FAILED;
}

/* ---- the keeper ---- */

/* A launcher may wait for whoever has a descriptor that it left open (mpiexec: PMI_FD). */
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

/* What a stop says of single nodes stands behind its first line. */
static void show_remarks(char *text)
{
	char *rest = text ? strchr(text, '\n') : NULL;

	if (rest && rest[1])
		fprintf(stderr, "%s", rest + 1);
}

/* The node was killed: its guard keeps the mount for programs that are not there any more. */
static void clear_away(const char *mountpoint, const char *socket)
{
	if (cop_fs_is_dead(mountpoint))
		cop_place_unmount_dead(mountpoint, socket);
	cop_ctl_clear(socket, NULL);
}

static int stop(const char *mountpoint, const struct cop_conf *conf, bool local)
{
	struct cop_cmd_ending ending = {0};
	struct cop_ctl_reply reply = {0};
	char socket[COP_CTL_PATH_SIZE];
	struct cop_err err = {0};
	int rc = cop_cmd_socket(mountpoint, conf->runtime_dir, socket, &err);

	if (rc)
		return rc == -ENOENT ? 0 : failed(&err);
	cop_cmd_ending_begin(&ending, socket, local);
	rc = cop_ctl_call(socket, local ? "stop local" : "stop", STOP_MS, NULL, NULL, &reply, &err);
	if (rc == -ECONNREFUSED)
		clear_away(mountpoint, socket);
	else if (rc)
		failed(&err);
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

/* 0: no machine needs the tree, and it is to be stopped from here; -EAGAIN: not yet, or not from
 * here; else the node is being stopped, or dead. */
static int ask_node(const char *socket)
{
	struct cop_ctl_reply reply = {0};
	struct cop_err ignored;
	int rc = cop_ctl_call(socket, "release", ANSWER_MS, NULL, NULL, &reply, &ignored);

	if (!rc)
		rc = reply.status;
	free(reply.text);
	return rc == -ETIMEDOUT || rc == -ENOMEM ? -EAGAIN : rc;
}

/* Whether the node is to stop the whole tree. A last task that failed does not wait for long, for
 * its launcher is to hear of it, and takes the node along; the others go on without it. */
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

/* Whoever ends everything ends the tasks, and with them what is kept for them. */
static void outlive_tasks(void)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};
	sigset_t set;

	setsid();
	sigemptyset(&set);
	for (size_t i = 0; i < COP_ARRAY_SIZE(signals); i++)
		sigaddset(&set, signals[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
}

static int keep(struct cop_tasks *t, const struct cop_conf *conf)
{
	struct cop_err err = {0};
	char mountpoint[4096];
	int64_t absent;
	int rc, code;

	outlive_tasks();
	cop_tasks_keep(t);
	close_inherited(t->first_fd);
	rc = cop_launch_here(conf, mountpoint, &err);
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
		  : stop(mountpoint, conf,
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
		exit(keep(t, conf));
	return pid;
}

/* ---- the task ---- */

static const int passed_on[] = {
	SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGCONT, SIGWINCH};

/* What this process had, for its command. */
struct signals {
	sigset_t blocked;
	struct sigaction child;
};

static void begin_signals(struct signals *before)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < COP_ARRAY_SIZE(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	sigprocmask(SIG_BLOCK, &set, &before->blocked);
}

/* A terminal's signals reach the command as well as this process. */
static void pass_on(pid_t pid, const siginfo_t *info)
{
	if (info->si_code != SI_KERNEL)
		kill(pid, info->si_signo);
}

static int wait_for(pid_t pid)
{
	int status = 0, sig;
	siginfo_t info;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	for (size_t i = 0; i < COP_ARRAY_SIZE(passed_on); i++)
		sigaddset(&set, passed_on[i]);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		sig = sigwaitinfo(&set, &info);
		if (sig > 0 && sig != SIGCHLD)
			pass_on(pid, &info);
	}
	return status;
}

/* As the command ended. Its core file is the one that counts. */
static int end_as(int status)
{
	struct rlimit none = {0};
	sigset_t set;

	if (!WIFSIGNALED(status))
		return WEXITSTATUS(status);
	setrlimit(RLIMIT_CORE, &none);
	signal(WTERMSIG(status), SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, WTERMSIG(status));
	sigprocmask(SIG_UNBLOCK, &set, NULL);
	raise(WTERMSIG(status));
	return 128 + WTERMSIG(status);
}

void cop_run_tree_tie(const struct cop_run_tree *tree)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != tree->task)
		_exit(FAILED);
}

static int run_command(
	int (*run)(void *arg, const struct cop_run_tree *tree, const char *mountpoint), void *arg,
	const char *mountpoint, const struct signals *before)
{
	struct cop_run_tree tree = {.task = getpid()};
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		sigaction(SIGCHLD, &before->child, NULL);
		sigprocmask(SIG_SETMASK, &before->blocked, NULL);
		exit(run(arg, &tree, mountpoint));
	}
	if (pid < 0) {
		fprintf(stderr, "copper run: cannot start a process: %s\n", strerror(errno));
		return FAILED << 8;
	}
	return wait_for(pid);
}

/* Where the tree is. Only a launcher that names the hosts can start it on several machines. */
static void choose_hosts(const struct cop_tasks *t, struct cop_conf *conf)
{
	conf->of_step = t->elsewhere;
	if (t->elsewhere)
		return;
	conf->hosts = "localhost";
	conf->rank = 0;
}

/* The nodes of one step find it by the step's number. */
static void choose_secret(const struct cop_tasks *t, struct cop_conf *conf, char dir[PATH_MAX])
{
	const char *home = getenv("HOME"), *given = getenv("COPPER_SECRET");

	if (!t->elsewhere || !t->start || conf->job_dir || conf->secret_file || conf->insecure ||
		(given && *given) || !home || *home != '/')
		return;
	snprintf(dir, PATH_MAX, "%.4000s/.copper-run-%016" PRIx64, home, t->start);
	conf->secret_dir = dir;
}

static int join(struct cop_tasks *t, const struct cop_conf *conf, struct cop_err *err)
{
	char dir[COP_CTL_PATH_SIZE];
	int rc = cop_ctl_dir(conf->runtime_dir, dir, sizeof(dir), err);

	return rc ? rc : cop_tasks_join(t, dir, err);
}

int cop_run_tree(struct cop_conf *conf,
	int (*run)(void *arg, const struct cop_run_tree *tree, const char *mountpoint), void *arg)
{
	struct cop_err err = {0};
	char mountpoint[4096], secret_dir[PATH_MAX];
	struct cop_tasks t;
	struct signals before;
	pid_t keeper = 0;
	int status = FAILED << 8;

	if (cop_tasks_find(&t, &err) || join(&t, conf, &err))
		return failed(&err);
	/* Where it is ignored nobody can be waited for. */
	sigaction(SIGCHLD, &(struct sigaction){.sa_handler = SIG_DFL}, &before.child);
	choose_hosts(&t, conf);
	choose_secret(&t, conf, secret_dir);
	if (t.local == 0)
		keeper = start_keeper(&t, conf);
	if (keeper < 0)
		cop_err_set(&err, errno, "cannot start a process: %s", strerror(errno));
	else
		cop_tasks_await(
			&t, conf->ready_timeout_ms + LATE_MS, mountpoint, sizeof(mountpoint), &err);
	begin_signals(&before);
	if (!err.code)
		status = run_command(run, arg, mountpoint, &before);
	else if (t.local == 0)
		failed(&err);
	sigprocmask(SIG_SETMASK, &before.blocked, NULL);
	/* The keeper's failure does not undo what the command has done. */
	if (cop_tasks_finish(&t, status == 0))
		while (keeper > 0 && waitpid(keeper, NULL, 0) < 0 && errno == EINTR)
			continue;
	return end_as(status);
}
