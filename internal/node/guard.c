/* SPDX-License-Identifier: BSD-3-Clause */
/* A FUSE mount outlives its process: after SIGKILL (the kernel short of memory, an impatient scheduler) it stays, and every
 * access fails with ENOTCONN. So a second process, forked before there are threads, waits for the end of the first one and
 * takes the mount away if that did not do it. It has a session of its own and ignores the signals that end the node. */
#include "node/node_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

/* The connection is cut when the last descriptor of the dead process is closed: that may take a moment. */
#define TRIES 100
#define PAUSE_US 20000

static void guard(int fd, const char *mountpoint)
{
	char word;
	ssize_t n;

	setsid();
	prctl(PR_SET_NAME, "cop-guard");
	signal(SIGTERM, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGUSR1, SIG_IGN);
	if (fd != 3)
		dup2(fd, 3);
	close_range(4, ~0U, 0);
	for (int i = 0; i < 3; i++)
		close(i);
	if (chdir("/"))
		_exit(1);
	while ((n = read(3, &word, 1)) < 0 && errno == EINTR)
		continue;
	for (int i = 0; n == 0 && i < TRIES; i++) {
		if (cop_fs_is_dead(mountpoint)) {
			cop_fs_unmount_dead(mountpoint);
			break;
		}
		usleep(PAUSE_US);
	}
	_exit(0);
}

int cop_node_guard_start(const char *mountpoint)
{
	int fds[2];
	pid_t pid;

	if (!*mountpoint || pipe2(fds, O_CLOEXEC))
		return -1;
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		guard(fds[0], mountpoint);
	}
	close(fds[0]);
	if (pid < 0) {
		close(fds[1]);
		return -1;
	}
	return fds[1];
}

void cop_node_guard_end(int fd)
{
	if (fd < 0)
		return;
	if (write(fd, "q", 1) != 1)
		cop_log_debug("the guard of the mount is gone");
	close(fd);
}
