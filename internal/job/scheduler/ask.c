/* SPDX-License-Identifier: BSD-3-Clause */
#include "job/scheduler/scheduler.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

#define OUTPUT_MAX COP_MIB
#define ASK_AGAIN_US 200000

extern char **environ;

/* The child has no blocked signals and a process group of its own. */
static int start(char *const argv[], int out_fd, pid_t *pid)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t blocked;
	int rc;

	/* Slurm ends a job by signalling all processes of its steps, some repeatedly; this query
	 * must survive that. It has a deadline. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&attr);
	posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&files, out_fd, 1);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setsigmask(&attr, &blocked);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	rc = posix_spawnp(pid, argv[0], &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -rc;
}

/* Reads until the output ends. Returns 0 or -ETIMEDOUT. */
static int read_output(int fd, uint64_t end_ms, struct cop_buf *out)
{
	char data[4096];

	for (;;) {
		uint64_t now_ms = cop_now_ms();
		struct pollfd p = {.fd = fd, .events = POLLIN};
		ssize_t n;

		if (now_ms >= end_ms || poll(&p, 1, (int)(end_ms - now_ms)) == 0)
			return -ETIMEDOUT;
		n = read(fd, data, sizeof(data));
		if (n == 0)
			return 0;
		if (n > 0 && out->len + (size_t)n <= OUTPUT_MAX)
			cop_buf_add(out, data, (size_t)n);
		else if (n < 0 && errno != EINTR)
			return -errno;
	}
}

/* The process may live on after closing its output. */
static int wait_for_end(pid_t pid, uint64_t end_ms, int *status)
{
	pid_t got;

	while ((got = waitpid(pid, status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
		if (cop_now_ms() >= end_ms)
			return -ETIMEDOUT;
		usleep(1000);
	}
	return 0;
}

int cop_slurm_command(char *const argv[], uint32_t timeout_ms, struct cop_buf *out)
{
	uint64_t end_ms = cop_now_ms() + timeout_ms;
	int ends[2], status = 0, rc;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	rc = start(argv, ends[1], &pid);
	close(ends[1]);
	if (!rc) {
		rc = read_output(ends[0], end_ms, out);
		rc = rc ? rc : wait_for_end(pid, end_ms, &status);
		if (rc) {
			kill(-pid, SIGKILL);
			while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
				continue;
		}
	}
	close(ends[0]);
	return rc ? rc : status ? -EIO : out->failed ? -ENOMEM : 0;
}

static const char *word_for(const char *state)
{
	static const struct {
		const char *state, *word;
	} words[] = {{"CANCELLED", "cancelled"}, {"TIMEOUT", "time limit"},
		{"DEADLINE", "time limit"}, {"OUT_OF_MEMORY", "out of memory"},
		{"NODE_FAIL", "node failure"}, {"PREEMPTED", "preempted"}, {"REQUEUE", "requeued"},
		{"PENDING", "requeued"}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(words); i++)
		if (strncmp(state, words[i].state, strlen(words[i].state)) == 0)
			return words[i].word;
	return NULL;
}

/* The value in KEY=VALUE in a job's line; "" if not found. */
static const char *field(const char *line, const char *key)
{
	size_t len = strlen(key);

	for (const char *at = line; (at = strstr(at, key)); at += len)
		if (at == line || at[-1] == ' ')
			return at + len;
	return "";
}

/* Converts "1-02:03:04" to seconds; -1 if it is not a time, e.g. for a job without a limit. */
static long seconds_of(const char *text)
{
	long days = 0, h, m, s;

	if (sscanf(text, "%ld-%ld:%ld:%ld", &days, &h, &m, &s) == 4)
		return ((days * 24 + h) * 60 + m) * 60 + s;
	return sscanf(text, "%ld:%ld:%ld", &h, &m, &s) == 3 ? (h * 60 + m) * 60 + s : -1;
}

/* While its steps are ending, possibly including this process, a job is COMPLETING, whatever the
 * reason. */
static const char *word_for_ending(const char *line)
{
	const char *count = getenv("SLURM_RESTART_COUNT");
	long limit_s = seconds_of(field(line, "TimeLimit="));
	int code, signal;

	if (atoi(field(line, "Restarts=")) > (count ? atoi(count) : 0))
		return "requeued";
	if (limit_s >= 0 && seconds_of(field(line, "RunTime=")) >= limit_s)
		return "time limit";
	if (sscanf(field(line, "ExitCode="), "%d:%d", &code, &signal) == 2 && signal)
		return "cancelled";
	return NULL;
}

/* Asks once. Sets *again if the job is completing and Slurm has no reason yet. */
static const char *ask_why(char *job, uint32_t timeout_ms, bool *again)
{
	char *argv[] = {"scontrol", "-o", "show", "job", job, NULL};
	struct cop_buf out = {0};
	const char *word = NULL, *state;

	*again = false;
	if (cop_slurm_command(argv, timeout_ms, &out) == 0 && out.data) {
		state = field(out.data, "JobState=");
		*again = strncmp(state, "COMPLETING", 10) == 0;
		word = *again ? word_for_ending(out.data) : word_for(state);
	}
	cop_buf_free(&out);
	return word;
}

const char *cop_slurm_why(uint32_t timeout_ms)
{
	uint64_t now_ms = cop_now_ms(), end_ms = now_ms + timeout_ms;
	char *job = getenv("SLURM_JOB_ID");
	const char *word = NULL;
	bool again = job && *job;

	while (again && !word && now_ms < end_ms) {
		word = ask_why(job, (uint32_t)(end_ms - now_ms), &again);
		if (again && !word)
			usleep(ASK_AGAIN_US);
		now_ms = cop_now_ms();
	}
	return word;
}
