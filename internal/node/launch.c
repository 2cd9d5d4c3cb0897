/* SPDX-License-Identifier: BSD-3-Clause */
/* From the user's command to a daemon that is ready: the command waits on a pipe until the node
 * says that the tree is ready, or why it is not. */
#include "guard/guard.h"
#include "node/node_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long the answers of a stop command that came in here may still take after this node has
 * unmounted. */
#define INITIATOR_MS 120000

static int open_wakers(struct cop_node *n, struct cop_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1); /* the gentle end that srun passes on: step.c */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log that has grown to ulimit -f is no reason to end */
	n->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	n->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (n->signal_fd < 0 || n->wake_fd < 0)
		return cop_err_set(err, errno, "cannot make a descriptor: %s", strerror(errno));
	return 0;
}

/* Sleeps until somebody wants this node to end. */
static void wait_for_the_end(struct cop_node *n)
{
	struct pollfd fds[3] = {{.fd = n->wake_fd, .events = POLLIN},
		{.fd = n->signal_fd, .events = POLLIN},
		{.fd = n->fs ? cop_fs_gone_fd(n->fs) : -1, .events = POLLIN}};
	uint64_t every_ms = n->conf->profile_interval_s * 1000ULL,
		 next_ms = cop_now_ms() + every_ms, drain;

	while (!atomic_load(&n->stopping)) {
		uint64_t now_ms = cop_now_ms();

		if (every_ms && now_ms >= next_ms) {
			cop_node_profile_write(n, "runtime-snapshot", NULL);
			next_ms = now_ms + every_ms;
		}
		if (poll(fds, 3, every_ms ? (int)(next_ms - now_ms) : -1) <= 0)
			continue;
		if (fds[1].revents || fds[2].revents) {
			n->left_dead = !fds[1].revents && cop_fs_is_dead(n->mountpoint);
			cop_log_info("ending reason=%s",
				fds[1].revents ? "signal"
				: n->left_dead ? "\"the FUSE connection was aborted\""
					       : "unmounted");
			atomic_store(&n->stopping, true);
		}
		if (fds[0].revents && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		cop_defer_run(&n->deferred, false);
	}
}

/* The answer to a stop command that came in at this node may still have to come from the root. */
static void wait_for_initiators(struct cop_node *n)
{
	uint64_t end = cop_now_ms() + INITIATOR_MS, drain;
	struct pollfd fd = {.fd = n->wake_fd, .events = POLLIN};

	while (atomic_load(&n->initiators) && cop_now_ms() < end) {
		if (poll(&fd, 1, 100) > 0 && read(n->wake_fd, &drain, sizeof(drain)) < 0)
			continue;
		cop_defer_run(&n->deferred, false);
	}
	cop_defer_run(&n->deferred, true);
}

/* The kernel has ended the connection by itself: then nothing is unmounted below. */
static bool is_cut(const struct cop_node *n)
{
	struct pollfd fd = {.fd = n->fs ? cop_fs_gone_fd(n->fs) : -1, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static void end(struct cop_node *n)
{
	struct cop_buf holders = {0};
	struct cop_err unwritten = {0};
	bool cut = is_cut(n);

	cop_defer_run(&n->deferred, false);
	cop_node_profile_write(n, "pre-destroy", NULL);
	cop_fs_stop(n->fs, STOP_GRACE_MS, &holders);
	if (cut && !n->left_dead && cop_fs_is_dead(n->mountpoint))
		cop_fs_unmount_dead(n->mountpoint);
	cop_node_profile_write(n, NULL, &unwritten);
	cop_node_prefetch_save(n);
	if (holders.len)
		cop_log_warn("unmounted lazily, held by %s", holders.data);
	cop_node_stopped(n, holders.data, unwritten.code ? unwritten.text : NULL);
	cop_buf_free(&holders);
	wait_for_initiators(n);
	cop_node_confirmed(n);
}

/* Says to whoever started the command how it went: one byte, then the sentence. */
static void report(const struct cop_conf *conf, int fd, int rc, const struct cop_err *err)
{
	char kind = rc == 0 ? 'r' : 'e';

	if (cop_node_in_step()) {
		cop_node_step_report(fd, rc, err);
		cop_node_step_tell(conf, rc ? err->text : NULL);
	}
	if (fd < 0 || cop_node_in_step())
		return;
	if (cop_write_full(fd, &kind, 1) == 1 && rc)
		cop_write_full(fd, err->text, strlen(err->text));
	close(fd);
}

static void detach_stdio(void)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
	if (null > 2)
		close(null);
	if (chdir("/"))
		cop_log_warn("cannot change to / error=\"%s\"", strerror(errno));
}

/* Chunks come and go by the megabyte, from many threads. glibc would learn to take them from its
 * arenas, where what is freed stays resident between what is not; as mappings of their own they go
 * back to the system (mallopt(3)). */
static void tame_malloc(void)
{
	mallopt(M_MMAP_THRESHOLD, 256 * 1024);
	mallopt(M_ARENA_MAX, 4);
}

static void note(const char *text)
{
	fprintf(stderr, "copper: note: %s\n", text);
	cop_log_info("note: %s", text);
}

/* It started, but perhaps not as it was meant. Who forgot to ask the scheduler for nodes gets what
 * works on a machine of one's own too: that must not look like a tree of a job. */
static void notes(const struct cop_node *n)
{
	if (n->report_fd >= 0 && n->rank == 0 && n->hosts.count > 1 && cop_node_ends_with_step())
		note("Slurm ends these nodes with the job step in which they were started: without --hosts and --rank they get a step of their own; or keep "
		     "them with --foreground");
	if (n->hosts.count == 0)
		note("a tree of one node, since there is no --hosts, and no job of Slurm or PBS in the environment (--hosts localhost: one node is meant)");
	if (n->secret.note[0])
		note(n->secret.note);
	if (n->cache_note[0])
		note(n->cache_note);
}

static struct cop_guard start_guard(const struct cop_conf *conf, const char *mountpoint)
{
	/* In the background this is a session of its own, and whoever gave the command waits above.
	 */
	struct cop_guard_conf guard = {.mountpoint = mountpoint,
		.above = conf->foreground && (cop_node_in_step() || cop_node_ends_with_step()),
		.session = getsid(conf->foreground ? 0 : getppid()),
		.is_job_over = cop_node_job_is_over};

	return cop_guard_start(&guard);
}

/* One node from start to stop. report_fd: -1 in the foreground. */
static int run(
	const struct cop_conf *conf, const char *mountpoint, int report_fd, struct cop_err *err)
{
	struct cop_guard guard = start_guard(conf, mountpoint);
	struct cop_node *n = calloc(1, sizeof(*n));
	struct cop_node_jobwatch *job;
	bool left_dead = false;
	int rc;

	tame_malloc();
	if (!n)
		return cop_err_set(err, ENOMEM, "out of memory");
	n->conf = conf;
	cop_gate_init(&n->gate);
	cop_defer_init(&n->deferred, cop_node_wake, n);
	n->last_pid = cop_guard_last(&guard);
	n->wake_fd = n->signal_fd = -1;
	n->report_fd = report_fd;
	snprintf(n->mountpoint, sizeof(n->mountpoint), "%s", mountpoint);
	rc = open_wakers(n, err);
	if (!rc)
		rc = cop_node_start(n, err);
	/* Without a log of its own the node would say it twice. */
	if (rc && n->logging)
		cop_log_error("not started: %s", err->text);
	/* Without this it does not know its rank. */
	if (rc && n->ready_rank)
		cop_node_failure_tell(n, err);
	if (!rc)
		notes(n);
	report(conf, report_fd, rc, err);
	n->report_fd = -1;
	if (!rc) {
		if (report_fd >= 0)
			detach_stdio();
		job = cop_node_jobwatch_start(n);
		wait_for_the_end(n);
		cop_node_jobwatch_stop(job);
	}
	if (rc == 0 || atomic_load(&n->stopping))
		end(n);
	cop_node_stop(n);
	left_dead = n->left_dead;
	if (n->wake_fd >= 0)
		close(n->wake_fd);
	if (n->signal_fd >= 0)
		close(n->signal_fd);
	free(n);
	cop_guard_end(&guard, left_dead);
	return rc;
}

/* The started process: waits for the node's word. */
static int hear(int fd, pid_t pid, struct cop_err *err)
{
	char text[sizeof(err->text)] = "";
	ssize_t n = cop_read_full(fd, text, sizeof(text) - 1);
	int status = 0;

	close(fd);
	if (n > 0 && text[0] == 'r')
		return 0;
	waitpid(pid, &status, 0);
	if (n > 1)
		return cop_err_set(err, EIO, "%s", text + 1);
	if (WIFSIGNALED(status))
		return cop_err_set(err, EIO,
			"the node was ended by signal %d (%s) before it was ready",
			WTERMSIG(status), strsignal(WTERMSIG(status)));
	return cop_err_set(err, EIO, "the node ended before it was ready");
}

/* A launcher may have left descriptors open by which it waits for its processes to end (mpiexec:
 * PMI_FD). */
static void close_inherited(int keep_fd)
{
	if (keep_fd > 3)
		close_range(3, (unsigned)keep_fd - 1, 0);
	close_range((unsigned)keep_fd + 1, ~0U, 0);
}

static int daemonize(const struct cop_conf *conf, const char *mountpoint, struct cop_err *err)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return cop_err_set(err, errno, "cannot make a pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		int rc = cop_err_set(err, errno, "cannot start a process: %s", strerror(errno));

		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (pid) {
		close(fds[1]);
		return hear(fds[0], pid, err);
	}
	close_inherited(fds[1]);
	setsid();
	exit(run(conf, mountpoint, fds[1], err) ? 1 : 0);
}

/* A mount that a killed node of this user left behind is in the way and of no use. */
static void take_dead_mount_away(const char *mountpoint)
{
	if (cop_fs_is_dead(mountpoint) && cop_fs_unmount_dead(mountpoint) == 0)
		fprintf(stderr,
			"copper: note: took the dead mount of an earlier node away from %s\n",
			mountpoint);
}

static int check_mountpoint(const struct cop_conf *conf, char out[PATH_MAX], struct cop_err *err)
{
	struct cop_err shared = {0};
	int rc;

	take_dead_mount_away(conf->mountpoint);
	rc = cop_fs_check(conf->mountpoint, err);
	if (rc == 0 && cop_fs_check_shared(conf->mountpoint, &shared))
		fprintf(stderr, "copper: warning: %s\n", shared.text);
	if (rc)
		return rc;
	return realpath(conf->mountpoint, out)
		       ? 0
		       : cop_err_set(err, errno, "%s: %s", conf->mountpoint, strerror(errno));
}

/* Before there is a node: the others wait for it all the same. */
static void tell_others(const struct cop_conf *conf, const struct cop_err *err)
{
	struct cop_node *n = calloc(1, sizeof(*n));
	struct cop_err ignored;

	if (n) {
		n->conf = conf;
		if (cop_node_find_hosts(n, &ignored) == 0)
			cop_node_failure_tell(n, err);
		cop_job_hosts_free(&n->hosts);
	}
	free(n);
}

int cop_node_launch(const struct cop_conf *conf, struct cop_err *err)
{
	int report_fd = cop_node_in_step() ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3) : -1, rc = 0;
	char mountpoint[PATH_MAX] = "";

	if (!conf->serve_only)
		rc = check_mountpoint(conf, mountpoint, err);
	if (rc) {
		tell_others(conf, err);
		report(conf, report_fd, rc, err);
		return rc;
	}
	if (conf->foreground)
		return run(conf, mountpoint, report_fd, err);
	return daemonize(conf, mountpoint, err);
}

bool cop_node_is_dead(const char *mountpoint)
{
	return cop_fs_is_dead(mountpoint);
}

int cop_node_unmount_dead(const char *mountpoint)
{
	return cop_fs_unmount_dead(mountpoint);
}
