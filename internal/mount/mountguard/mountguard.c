/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard removes a dead mount
 *
 *   - immediately on a signal, which schedulers send to all processes of a job that has ended;
 *   - else once no program is left that may use it, and a normal unmount succeeds.
 *
 * audience.c finds these programs, unless whoever started the node supplies a function for it. A
 * node that is killed or crashes while it notifies the kernel of a change, or while it reads its
 * own mount, may be unable to exit, because the kernel is waiting for a reply from that same node
 * (fuse/abort.c). Then the guard aborts the connection.
 *
 * The guard also exits when something else has removed the mount, such as `copper stop` or the next
 * `copper mount`.
 *
 * Usually the guard is a child of the node, in a session of its own, so that signals to the node's
 * process group do not reach it. In a Slurm step the node is the child: when the task that srun
 * started has exited, Slurm kills all other processes of the step. */
#include "mount/mountguard/mountguard_priv.h"

#include "mount/fuse/fuse.h"
#include "base/log/log.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* Polling intervals while a program that may use the mount exists, and while none does. */
#define SEEN_MS 30000
#define UNSEEN_MS 1000
/* How often to check whether the node has died but cannot exit, and how many checks in a row must
 * say so. */
#define LOOK_MS 5000
#define LOOKS 2
/* How long the node waits for its guard to exit, and the guard for a killed node to exit. */
#define END_MS 5000
#define KILLED_MS 30000

struct guard {
	const char *mountpoint;
	void (*gone)(void *arg);
	void *arg;
	bool (*needed)(void *arg);
	void *needed_arg;
	struct audience audience;
	pid_t node;    /* the node if it is the child; else 0 */
	pid_t watched; /* the node */
	unsigned connection, ended_looks;
	int signal_fd, mounts_fd;
	int node_fd; /* readable when all threads of the node have exited; -1 before Linux 5.3 */
	bool told;   /* a signal has indicated the end of the job */
};

static void end_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGHUP);
	sigaddset(set, SIGUSR1); /* the termination request that srun forwards */
}

/* Closes the descriptors inherited from the node, except its pipe, which becomes 3. */
static void adopt_descriptors(int word_fd)
{
	int null;

	if (word_fd != 3)
		dup2(word_fd, 3);
	cop_close_range(4, ~0U);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int fd = 0; fd < 3 && null >= 0; fd++)
		dup2(null, fd);
}

static void set_up(struct guard *g, int word_fd)
{
	sigset_t set;

	prctl(PR_SET_NAME, "cop-guard");
	adopt_descriptors(word_fd);
	end_signals(&set);
	g->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	g->mounts_fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	g->node_fd = (int)syscall(SYS_pidfd_open, g->watched, 0);
	if (chdir("/"))
		_exit(1);
}

static void forward_signals(struct guard *g)
{
	struct signalfd_siginfo info;

	while (read(g->signal_fd, &info, sizeof(info)) == sizeof(info)) {
		g->told = true;
		if (g->node)
			kill(g->node, (int)info.ssi_signo);
	}
}

/* Whether the process has exited or is dumping core, even if some of its threads have not exited.
 * The kernel starts a dump, even one that will not be written, only after all other threads have
 * stopped. */
static bool has_ended(pid_t pid)
{
	char path[64], *text;
	bool ended;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (cop_read_file(path, 64 * COP_KIB, &text, &len))
		return false;
	ended = strstr(text, "\nState:\tZ") || strstr(text, "\nState:\tX") ||
		strstr(text, "\nCoreDumping:\t1");
	free(text);
	return ended;
}

static void look_after(struct guard *g)
{
	if (!g->connection)
		g->connection = cop_fuse_connection(g->mountpoint);
	g->ended_looks = has_ended(g->watched) ? g->ended_looks + 1 : 0;
	if (g->ended_looks >= LOOKS && g->connection)
		cop_fuse_abort(g->connection);
}

/* Waits until the node ends. Returns whether it ended without a message. */
static bool is_orphaned(struct guard *g)
{
	struct pollfd fds[2] = {
		{.fd = 3, .events = POLLIN}, {.fd = g->signal_fd, .events = POLLIN}};
	char word;
	ssize_t n;

	for (;;) {
		int events = poll(fds, 2, LOOK_MS);

		if (events == 0)
			look_after(g);
		if (events <= 0)
			continue;
		if (fds[1].revents)
			forward_signals(g);
		if (!fds[0].revents)
			continue;
		n = read(3, &word, 1);
		if (n >= 0 || errno != EINTR)
			return n == 0;
	}
}

/* The kernel closes a killed process's descriptors one by one, so when the pipe closes, the mount
 * may not be dead yet, and the folder around it may still be locked. */
static void await_end(struct guard *g)
{
	struct pollfd fds[2] = {
		{.fd = g->node_fd, .events = POLLIN}, {.fd = g->signal_fd, .events = POLLIN}};
	uint64_t now, end = cop_now_ms() + KILLED_MS;

	while (!fds[0].revents && (now = cop_now_ms()) < end) {
		if (g->node_fd < 0 && (kill(g->watched, 0) || has_ended(g->watched)))
			return;
		if (poll(fds, 2, g->node_fd < 0 ? 10 : (int)(end - now)) > 0 && fds[1].revents)
			forward_signals(g);
	}
}

/* Waits for a signal, the exit of this process (unless 0), or the timeout. False: the mount has
 * been removed. */
static bool wait_a_while(struct guard *g, pid_t pid, uint64_t ms)
{
	int pid_fd = pid ? (int)syscall(SYS_pidfd_open, pid, 0) : -1;
	struct pollfd fds[3] = {{.fd = g->signal_fd, .events = POLLIN},
		{.fd = pid_fd, .events = POLLIN}, {.fd = g->mounts_fd, .events = POLLPRI}};
	uint64_t now, end = cop_now_ms() + (pid && pid_fd < 0 ? UNSEEN_MS : ms);
	bool there = true;

	while (there && !g->told && !fds[1].revents && (now = cop_now_ms()) < end) {
		if (poll(fds, 3, (int)(end - now)) <= 0)
			continue;
		if (fds[0].revents)
			forward_signals(g);
		if (fds[2].revents)
			there = cop_fuse_is_dead(g->mountpoint);
	}
	if (pid_fd >= 0)
		close(pid_fd);
	return there;
}

/* In a Slurm step there is nothing to check, because this process ends with the step. */
static bool is_over(struct guard *g, uint64_t died_ms, uint64_t *seen_ms, pid_t *seen)
{
	uint64_t now = cop_now_ms();

	if (g->node)
		return false;
	if (g->needed)
		return !g->needed(g->needed_arg);
	*seen = cop_mountguard_audience_one(&g->audience);
	if (!*seen)
		return cop_mountguard_audience_gone(&g->audience, now - *seen_ms);
	*seen_ms = now;
	return cop_mountguard_audience_tells_little(&g->audience, now - died_ms);
}

static void keep_dead_mount(struct guard *g)
{
	uint64_t died_ms = cop_now_ms(), seen_ms = died_ms;
	pid_t seen = 0;

	cop_mountguard_audience_begin(&g->audience);
	while (cop_fuse_is_dead(g->mountpoint)) {
		forward_signals(g);
		if (g->told) {
			cop_fuse_unmount_dead(g->mountpoint);
			return;
		}
		if (is_over(g, died_ms, &seen_ms, &seen) &&
			cop_fuse_unmount_unused(g->mountpoint) == 0)
			return;
		if (!wait_a_while(g, seen, seen || g->node ? SEEN_MS : UNSEEN_MS))
			return;
	}
}

/* The exit status that a shell would report for the node. */
static int status_of(pid_t node)
{
	int status = 0;

	while (waitpid(node, &status, 0) < 0 && errno == EINTR)
		continue;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void guard_node(struct guard *g, int word_fd)
{
	set_up(g, word_fd);
	if (is_orphaned(g)) {
		await_end(g);
		keep_dead_mount(g);
		if (g->gone)
			g->gone(g->arg);
	}
	_exit(g->node ? status_of(g->node) : 0);
}

/* ---- in the node ---- */

/* Runs in the process that becomes the guard; never returns. */
static void run_guard(struct guard *g, int fds[2])
{
	close(fds[1]);
	guard_node(g, fds[0]);
}

struct cop_mountguard cop_mountguard_start(const struct cop_mountguard_conf *conf)
{
	struct cop_mountguard none = {.fd = -1}, started = {.above = conf->above};
	struct guard g = {.mountpoint = conf->mountpoint,
		.gone = conf->gone,
		.arg = conf->arg,
		.needed = conf->needed,
		.needed_arg = conf->needed_arg,
		.watched = getpid()};
	sigset_t set, before;
	int fds[2];
	pid_t pid;

	if (!*conf->mountpoint || pipe2(fds, O_CLOEXEC))
		return none;
	cop_mountguard_audience_init(&g.audience, conf->session);
	end_signals(&set);
	sigprocmask(SIG_BLOCK, &set, &before);
	pid = fork();
	if (pid > 0 && started.above) {
		g.node = g.watched = pid;
		run_guard(&g, fds);
	}
	if (pid == 0 && !started.above) {
		setsid();
		run_guard(&g, fds);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return none;
	}
	if (started.above)
		prctl(PR_SET_PDEATHSIG, SIGTERM);
	started.fd = fds[1];
	started.pid = started.above ? getppid() : pid;
	return started;
}

pid_t cop_mountguard_last(const struct cop_mountguard *g)
{
	return g->above ? g->pid : getpid();
}

/* Whoever waits for this process also expects its guard to be gone. */
static void wait_for(pid_t pid)
{
	uint64_t end = cop_now_ms() + END_MS;

	while (waitpid(pid, NULL, WNOHANG) == 0 && cop_now_ms() < end)
		poll(NULL, 0, 1);
}

void cop_mountguard_end(const struct cop_mountguard *g, bool left_dead)
{
	if (g->fd < 0)
		return;
	if (!left_dead && write(g->fd, "q", 1) != 1)
		cop_log_debug("the guard of the mount is gone");
	close(g->fd);
	if (!left_dead && !g->above)
		wait_for(g->pid);
}
