/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/node/programs.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* From linux/pidfd.h of Linux 6.15, which most build machines lack. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, id[8];
	int32_t exit_code;
	uint32_t more[2];
};
#define PIDFD_INFO_EXIT (1u << 3)
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct pidfd_info)

#define STAT_EXIT_CODE 52 /* field number in /proc/PID/stat, counted from 1 */
#define STAT_STATE 3

struct program {
	pid_t pid;
	int fd; /* -1: it has exited, and only its parent has the status */
};

struct cop_programs {
	pthread_mutex_t lock; /* for all members */
	uint32_t rank;
	bool kernel_tells; /* constant */
	struct program *of;
	size_t n, room;
	struct cop_op_exits exits;
};

static int open_pid(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

/* False: still running, or the kernel does not report its status. */
static bool ask_kernel(int fd, int *status)
{
	struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};

	if (ioctl(fd, PIDFD_GET_INFO, &info) || !(info.mask & PIDFD_INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

/* Linux 6.13 has the request but does not return the exit status, so the probe needs a process that
 * has exited. */
static bool try_kernel(void)
{
	int hold[2], fd, status;
	bool tells;
	pid_t pid;
	char c;

	if (pipe2(hold, O_CLOEXEC))
		return false;
	pid = fork();
	if (!pid) {
		close(hold[1]);
		_exit(read(hold[0], &c, 1) < 0);
	}
	close(hold[0]);
	fd = pid > 0 ? open_pid(pid) : -1;
	close(hold[1]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	tells = fd >= 0 && ask_kernel(fd, &status);
	if (fd >= 0)
		close(fd);
	return tells;
}

struct cop_programs *cop_programs_new(uint32_t rank)
{
	struct cop_programs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->rank = rank;
	p->kernel_tells = try_kernel();
	return p;
}

void cop_programs_free(struct cop_programs *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		if (p->of[i].fd >= 0)
			close(p->of[i].fd);
	pthread_mutex_destroy(&p->lock);
	free(p->of);
	free(p);
}

static void forget(struct cop_programs *p, size_t i)
{
	if (p->of[i].fd >= 0)
		close(p->of[i].fd);
	p->of[i] = p->of[--p->n];
}

/* A field of /proc/PID/stat, counted from the last ')', because the name before it may contain any
 * character. */
static const char *stat_field(const char *stat, unsigned number)
{
	const char *at = strrchr(stat, ')');

	for (unsigned i = 2; at && i < number; i++)
		at = strchr(at + 1, ' ');
	return at ? at + 1 : "";
}

/* Without this permission the kernel shows 0 as the status (proc(5), PTRACE_MODE_READ_FSCREDS). */
static bool may_see_status(const char *process)
{
	struct stat st;

	return !stat(process, &st) &&
	       (!geteuid() || (st.st_uid == geteuid() && st.st_gid == getegid()));
}

/* Reads the status of a zombie, that is, before its parent has waited for it. */
static bool ask_zombie(pid_t pid, int *status)
{
	char process[24], path[32], *text = NULL;
	size_t len;
	bool ended;

	snprintf(process, sizeof(process), "/proc/%d", (int)pid);
	snprintf(path, sizeof(path), "%s/stat", process);
	if (!may_see_status(process) || cop_read_file(path, 4096, &text, &len))
		return false;
	ended = *stat_field(text, STAT_STATE) == 'Z';
	*status = (int)strtol(stat_field(text, STAT_EXIT_CODE), NULL, 10);
	free(text);
	return ended;
}

/* Reads the status of all commands that have exited. */
static void collect(struct cop_programs *p)
{
	for (size_t i = p->n; i-- > 0;) {
		struct pollfd ended = {.fd = p->of[i].fd, .events = POLLIN};
		int status;

		if (p->of[i].fd < 0 || poll(&ended, 1, 0) <= 0)
			continue;
		if (ask_kernel(p->of[i].fd, &status) || ask_zombie(p->of[i].pid, &status)) {
			cop_op_exits_count(&p->exits, p->rank, status);
			forget(p, i);
		} else if (ended.revents & POLLHUP || kill(p->of[i].pid, 0)) {
			close(p->of[i].fd);
			p->of[i].fd = -1;
		}
	}
}

static bool find(const struct cop_programs *p, pid_t pid, size_t *at)
{
	for (*at = 0; *at < p->n; ++*at)
		if (p->of[*at].pid == pid)
			return true;
	return false;
}

static bool make_room(struct cop_programs *p)
{
	size_t room = p->room ? 2 * p->room : 64;
	struct program *more;

	if (p->n < p->room)
		return true;
	more = reallocarray(p->of, room, sizeof(*more));
	if (!more)
		return false;
	p->of = more;
	p->room = room;
	return true;
}

bool cop_programs_add(struct cop_programs *p, pid_t pid)
{
	int fd = open_pid(pid);
	size_t at;

	pthread_mutex_lock(&p->lock);
	collect(p);
	p->exits.commands++;
	if (find(p, pid, &at))
		forget(p, at);
	if (make_room(p))
		p->of[p->n++] = (struct program){pid, fd};
	else if (fd >= 0)
		close(fd);
	pthread_mutex_unlock(&p->lock);
	return !p->kernel_tells || fd < 0;
}

void cop_programs_ended(struct cop_programs *p, pid_t pid, int status)
{
	size_t at;

	pthread_mutex_lock(&p->lock);
	if (find(p, pid, &at)) {
		cop_op_exits_count(&p->exits, p->rank, status);
		forget(p, at);
	}
	pthread_mutex_unlock(&p->lock);
}

void cop_programs_exits(struct cop_programs *p, struct cop_op_exits *out)
{
	pthread_mutex_lock(&p->lock);
	collect(p);
	*out = p->exits;
	for (size_t i = 0; i < p->n; i++)
		out->running += p->of[i].fd >= 0;
	pthread_mutex_unlock(&p->lock);
}
