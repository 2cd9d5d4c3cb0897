/* SPDX-License-Identifier: BSD-3-Clause */
/* The command waits on a pipe for the background node to report that it is ready or has failed: one
 * byte, then the message. */
#include "job/startnote/startnote.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#define READY 'r'
#define FAILED 'e'

void cop_startnote_say(int fd, const struct cop_err *failure)
{
	char kind = failure ? FAILED : READY;

	if (cop_write_full(fd, &kind, 1) == 1 && failure)
		cop_write_full(fd, failure->text, strlen(failure->text));
	close(fd);
}

static int hear_outcome(int fd, pid_t pid, struct cop_err *err)
{
	char text[sizeof(err->text)] = "";
	ssize_t n = cop_read_full(fd, text, sizeof(text) - 1);
	int status = 0;

	close(fd);
	if (n > 0 && text[0] == READY)
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

/* A launcher may detect the end of its processes by descriptors that they inherit (mpiexec:
 * PMI_FD). */
static void close_inherited(int keep_fd, int keep_too_fd)
{
	int keep[] = {2, COP_MIN(keep_fd, keep_too_fd), COP_MAX(keep_fd, keep_too_fd)};

	for (int i = 1; i < 3; i++)
		if (keep[i] > keep[i - 1] + 1)
			cop_close_range((unsigned)keep[i - 1] + 1, (unsigned)keep[i] - 1);
		else
			keep[i] = COP_MAX(keep[i], keep[i - 1]);
	cop_close_range((unsigned)keep[2] + 1, ~0U);
}

int cop_startnote_background(int *fd, int keep_fd, struct cop_err *err)
{
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		return cop_err_set(err, errno, "cannot create a pipe: %s", strerror(errno));
	pid = fork();
	if (pid < 0) {
		int rc = cop_err_set(err, errno, "cannot start a process: %s", strerror(errno));

		close(fds[0]);
		close(fds[1]);
		return rc;
	}
	if (pid) {
		close(fds[1]);
		return hear_outcome(fds[0], pid, err);
	}
	close_inherited(fds[1], keep_fd);
	setsid();
	*fd = fds[1];
	return 1;
}
