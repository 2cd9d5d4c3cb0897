/* SPDX-License-Identifier: BSD-3-Clause */
/* Where Slurm does not track processes by control groups, a node that srun started lives on when
 * its step has ended, and nobody would end it with the job. So one of them asks squeue now and then
 * whether the job still runs. Nodes in a step of their own (step.c) need none of this. */
#include "log/log.h"
#include "slurm/slurm_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define EVERY_MS 15000
#define SAID_MAX 4096

extern char **environ;

struct cop_slurm_watch {
	void (*over)(void *arg);
	void *arg;
	pthread_t thread;
	int wake_fd;
	char job[24];
};

static int spawn_squeue(struct cop_slurm_watch *w, pid_t *pid, int *out_fd)
{
	char *argv[] = {"squeue", "--noheader", "--format=%T", "--jobs", w->job, NULL};
	posix_spawn_file_actions_t files;
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, fds[1], 1);
	posix_spawn_file_actions_adddup2(&files, fds[1], 2);
	rc = posix_spawnp(pid, argv[0], &files, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	close(fds[1]);
	*out_fd = fds[0];
	if (rc)
		close(fds[0]);
	return -rc;
}

/* Everything it says, until its end (true). Not that (false) if this node ends, or where it cannot
 * be read or kept: silence would mean that there is no such job any more. */
static bool hear(const struct cop_slurm_watch *w, int fd, struct cop_buf *said)
{
	struct pollfd fds[2] = {{.fd = fd, .events = POLLIN}, {.fd = w->wake_fd, .events = POLLIN}};
	char data[512];
	ssize_t n = 1;

	while (n > 0 && said->len < SAID_MAX) {
		if (poll(fds, 2, -1) < 0)
			continue;
		if (fds[1].revents)
			return false;
		n = read(fd, data, sizeof(data));
		if (n > 0)
			cop_buf_add(said, data, (size_t)n);
		if (n < 0 || said->failed)
			return false;
	}
	return true;
}

/* A job that is over is listed as such for a moment, then not at all. A controller that does not
 * answer is no answer. */
bool cop_slurm_says_over(const char *said, int status)
{
	static const char *const states[] = {"COMPLET", "CANCEL", "FAILED", "TIMEOUT", "NODE_FAIL",
		"OUT_OF_MEM", "BOOT_FAIL", "DEADLINE", "PREEMPTED"};

	if (!WIFEXITED(status))
		return false;
	if (WEXITSTATUS(status))
		return strstr(said, "Invalid job id") != NULL;
	for (size_t i = 0; i < COP_ARRAY_SIZE(states); i++)
		if (strncmp(said, states[i], strlen(states[i])) == 0)
			return true;
	return !*said;
}

/* 1: it is over; 0: it is not; -errno: it cannot be asked for. */
static int ask(struct cop_slurm_watch *w)
{
	struct cop_buf said = {0};
	int fd = -1, status = 0, rc;
	pid_t pid;
	bool all;

	rc = spawn_squeue(w, &pid, &fd);
	if (rc)
		return rc;
	all = hear(w, fd, &said);
	close(fd);
	if (!all)
		kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) == pid && all)
		rc = cop_slurm_says_over(said.data ? said.data : "", status);
	cop_buf_free(&said);
	return rc;
}

static bool is_number(const char *job)
{
	return *job && strlen(job) < sizeof(((struct cop_slurm_watch *)0)->job) &&
	       strspn(job, "0123456789") == strlen(job);
}

bool cop_slurm_job_is_over(const char *job, int wake_fd)
{
	struct cop_slurm_watch w = {.wake_fd = wake_fd};

	if (!is_number(job))
		return false;
	strcpy(w.job, job);
	return ask(&w) > 0;
}

static void *watch(void *arg)
{
	struct cop_slurm_watch *w = arg;
	struct pollfd fd = {.fd = w->wake_fd, .events = POLLIN};
	int rc = 0;

	while (!rc && poll(&fd, 1, EVERY_MS) <= 0)
		rc = ask(w);
	if (rc > 0)
		w->over(w->arg);
	return NULL;
}

struct cop_slurm_watch *cop_slurm_watch_start(void (*over)(void *arg), void *arg)
{
	const char *job = getenv("SLURM_JOB_ID");
	struct cop_slurm_watch *w;

	if (!getenv("SLURM_STEP_ID") || !job || !is_number(job))
		return NULL;
	w = calloc(1, sizeof(*w));
	if (!w)
		return NULL;
	w->over = over;
	w->arg = arg;
	strcpy(w->job, job);
	w->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (w->wake_fd >= 0 && cop_thread_start(&w->thread, "cop-jobwatch", watch, w) == 0)
		return w;
	if (w->wake_fd >= 0)
		close(w->wake_fd);
	free(w);
	return NULL;
}

void cop_slurm_watch_stop(struct cop_slurm_watch *w)
{
	uint64_t one = 1;

	if (!w)
		return;
	if (write(w->wake_fd, &one, sizeof(one)) < 0)
		cop_log_error("cannot wake the watch of the job error=\"%s\"", strerror(errno));
	pthread_join(w->thread, NULL);
	close(w->wake_fd);
	free(w);
}
