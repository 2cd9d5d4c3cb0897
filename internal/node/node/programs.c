/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/node/programs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* linux/pidfd.h of Linux 6.15, which few machines have that compile this. */
struct pidfd_info {
	uint64_t mask, cgroup;
	uint32_t pid, tgid, ppid, id[8];
	int32_t exit_code;
	uint32_t more[2];
};
#define PIDFD_INFO_EXIT (1u << 3)
#define PIDFD_GET_INFO _IOWR(0xff, 11, struct pidfd_info)

struct program {
	pid_t pid;
	int fd; /* -1: it has ended, and only its caller knows how */
};

struct cop_programs {
	pthread_mutex_t lock; /* for all of it */
	uint32_t rank;
	struct program of[COP_PROGRAMS_MAX];
	unsigned n;
	struct cop_op_exits exits;
};

struct cop_programs *cop_programs_new(uint32_t rank)
{
	struct cop_programs *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	p->rank = rank;
	return p;
}

void cop_programs_free(struct cop_programs *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->n; i++)
		if (p->of[i].fd >= 0)
			close(p->of[i].fd);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void forget(struct cop_programs *p, unsigned i)
{
	if (p->of[i].fd >= 0)
		close(p->of[i].fd);
	p->of[i] = p->of[--p->n];
}

/* False: it runs, or the kernel does not say how it ended. */
static bool ask_kernel(int fd, int *status)
{
	struct pidfd_info info = {.mask = PIDFD_INFO_EXIT};

	if (ioctl(fd, PIDFD_GET_INFO, &info) || !(info.mask & PIDFD_INFO_EXIT))
		return false;
	*status = info.exit_code;
	return true;
}

/* Asks for the ends of all that have ended. The kernel says how as soon as the parent has waited.
 */
static void collect(struct cop_programs *p)
{
	for (unsigned i = p->n; i-- > 0;) {
		struct pollfd ended = {.fd = p->of[i].fd, .events = POLLIN};
		int status;

		if (p->of[i].fd < 0 || poll(&ended, 1, 0) <= 0)
			continue;
		if (ask_kernel(p->of[i].fd, &status)) {
			cop_op_exits_count(&p->exits, p->rank, status);
			forget(p, i);
		} else if (ended.revents & POLLHUP || kill(p->of[i].pid, 0)) {
			close(p->of[i].fd);
			p->of[i].fd = -1;
		}
	}
}

static bool find(const struct cop_programs *p, pid_t pid, unsigned *at)
{
	for (*at = 0; *at < p->n; ++*at)
		if (p->of[*at].pid == pid)
			return true;
	return false;
}

void cop_programs_add(struct cop_programs *p, pid_t pid)
{
	unsigned at;

	pthread_mutex_lock(&p->lock);
	collect(p);
	p->exits.commands++;
	if (find(p, pid, &at))
		forget(p, at);
	if (p->n < COP_PROGRAMS_MAX)
		p->of[p->n++] = (struct program){pid, (int)syscall(SYS_pidfd_open, pid, 0)};
	pthread_mutex_unlock(&p->lock);
}

void cop_programs_ended(struct cop_programs *p, pid_t pid, int status)
{
	unsigned at;

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
	for (unsigned i = 0; i < p->n; i++)
		out->running += p->of[i].fd >= 0;
	pthread_mutex_unlock(&p->lock);
}
