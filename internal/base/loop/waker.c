/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/loop/loop.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include "base/log/log.h"

int cop_waker_init(struct cop_waker *w, int report_fd, struct cop_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGUSR1); /* the usual request to terminate, forwarded by srun */
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a log that hits ulimit -f must not kill the node */
	w->report_fd = report_fd;
	w->gone_fd = -1;
	w->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->signal_fd < 0 || w->wake_fd < 0)
		return cop_err_set(err, errno, "cannot create a descriptor: %s", strerror(errno));
	return 0;
}

void cop_waker_fini(struct cop_waker *w)
{
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	if (w->signal_fd >= 0)
		close(w->signal_fd);
}

void cop_waker_started(struct cop_waker *w)
{
	w->report_fd = -1;
}

void cop_waker_watch_mount(struct cop_waker *w, int gone_fd)
{
	w->gone_fd = gone_fd;
}

static void take_wake(struct cop_waker *w)
{
	uint64_t count;

	while (read(w->wake_fd, &count, sizeof(count)) < 0 && errno == EINTR)
		;
}

/* poll skips negative descriptors, and always reports a pipe that has lost its reader. */
unsigned cop_waker_wait(struct cop_waker *w, unsigned reasons, int timeout_ms)
{
	const struct {
		unsigned reason;
		int fd;
	} of[] = {{COP_WAKER_WOKEN, w->wake_fd}, {COP_WAKER_SIGNAL, w->signal_fd},
		{COP_WAKER_DESERTED, w->report_fd}, {COP_WAKER_UNMOUNTED, w->gone_fd}};
	struct pollfd fds[COP_ARRAY_SIZE(of)];
	unsigned found = 0;

	for (size_t i = 0; i < COP_ARRAY_SIZE(of); i++)
		fds[i] = (struct pollfd){.fd = reasons & of[i].reason ? of[i].fd : -1,
			.events = of[i].reason == COP_WAKER_DESERTED ? 0 : POLLIN};
	if (poll(fds, COP_ARRAY_SIZE(of), timeout_ms) <= 0)
		return 0;
	for (size_t i = 0; i < COP_ARRAY_SIZE(of); i++)
		found |= fds[i].revents ? of[i].reason : 0;
	if (found & COP_WAKER_WOKEN)
		take_wake(w);
	return found;
}

const char *cop_waker_interrupted(struct cop_waker *w)
{
	unsigned found = cop_waker_wait(w, COP_WAKER_SIGNAL | COP_WAKER_DESERTED, 0);

	if (!found)
		return NULL;
	return found & COP_WAKER_SIGNAL
		       ? "ended before the tree was ready, by a signal"
		       : "ended before the tree was ready, by the end of the command that started it";
}

void cop_waker_wake(void *waker)
{
	struct cop_waker *w = waker;
	uint64_t one = 1;

	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		cop_log_error("cannot wake the main thread error=\"%s\"", strerror(errno));
}

void cop_waker_end(void *waker)
{
	struct cop_waker *w = waker;

	atomic_store(&w->ending, true);
	cop_waker_wake(w);
}

bool cop_waker_is_ending(const struct cop_waker *w)
{
	return atomic_load(&w->ending);
}
