/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of a Slurm step that do not start the nodes: each waits for the node of its host, which
 * task 0 brings up in a step of the nodes' own (step.c). The node sends one datagram to HASH.wait,
 * beside its control socket, when it knows how its start went (word.c). It may have done so before
 * the task listened, or have been killed before it could say anything; so its control socket is
 * asked as well, and task 0 leaves word of a failure in the job directory.
 *
 * Tasks may start again after a failure, in the same step, and each as early or late as it likes: a
 * task that is early finds the word of the start that it saw fail. So each start has a number,
 * which goes with its word, and a task leaves the last that it heard of for its next start, in
 * HASH.heard. */
#include "ctl/ctl.h"
#include "job/job.h"
#include "slurm/slurm_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define ASK_MS 1000
#define LOOK_MS 5000 /* the job directory is on shared storage */
#define ANSWER_MS 2000

struct place {
	char control[COP_CTL_PATH_SIZE], heard[COP_CTL_PATH_SIZE + 8];
	struct sockaddr_un wait;
};

/* What a task waits by. */
struct vigil {
	const struct cop_conf *conf;
	struct place p;
	char step[COP_SLURM_STEP_NAME]; /* empty where Slurm does not tell */
	uint64_t heard; /* the start of which it has heard, that it failed; 0: of none */
	int fd;
};

static void find_place(const char *control, struct place *p)
{
	int stem = (int)(strlen(control) - strlen(".sock"));

	snprintf(p->control, sizeof(p->control), "%s", control);
	snprintf(p->heard, sizeof(p->heard), "%.*s.heard", stem, control);
	cop_slurm_wait_address(control, &p->wait);
}

static bool is_ready(const char *control)
{
	struct cop_ctl_reply reply = {0};
	bool ready = cop_ctl_call(control, "stats", ANSWER_MS, NULL, NULL, &reply, NULL) == 0 &&
		     reply.text && strstr(reply.text, "\"ready\":true");

	free(reply.text);
	return ready;
}

/* "STEP START" */
static uint64_t read_heard(const struct vigil *v)
{
	size_t len, step = strlen(v->step);
	char *text = NULL;
	uint64_t start = 0;

	if (!step || cop_read_file(v->p.heard, COP_SLURM_STEP_NAME + 24, &text, &len))
		return 0;
	if (strncmp(text, v->step, step) == 0 && text[step] == ' ')
		start = strtoull(text + step + 1, NULL, 10);
	free(text);
	return start;
}

static void write_heard(const struct vigil *v, uint64_t start)
{
	char text[COP_SLURM_STEP_NAME + 24];

	snprintf(text, sizeof(text), "%s %" PRIu64, v->step, start);
	if (v->step[0] && start)
		cop_write_file(v->p.heard, text, strlen(text), 0600);
}

/* A start that is said to have failed: whether it is news, which it is once. */
static bool is_news(const struct vigil *v, uint64_t start)
{
	if (start && start == v->heard)
		return false;
	write_heard(v, start);
	return true;
}

/* What the node of this host says. True if it settles the matter, in *rc. */
static bool hear_node(const struct vigil *v, int *rc, struct cop_err *err)
{
	char text[sizeof(err->text) + 24];
	ssize_t n = recv(v->fd, text, sizeof(text) - 1, 0);
	const char *why;
	uint64_t start;

	if (n < 0)
		return false;
	text[n] = '\0';
	*rc = 0;
	why = cop_slurm_understand(text, &start);
	if (!why)
		return true;
	if (!is_news(v, start))
		return false;
	*rc = cop_err_set(err, EIO, "%s", why);
	return true;
}

static bool hear_task_0(const struct vigil *v, int *rc, struct cop_err *err)
{
	char text[sizeof(err->text)];
	uint64_t start;

	if (!v->conf->job_dir || !v->step[0] ||
		!cop_job_step_failure_read(v->conf->job_dir, v->step, &start, text, sizeof(text)) ||
		!is_news(v, start))
		return false;
	*rc = cop_err_set(err, EIO, "%s", text);
	return true;
}

static int await(const struct vigil *v, struct cop_err *err)
{
	uint32_t timeout_ms = v->conf->ready_timeout_ms + COP_SLURM_STEP_MS;
	/* Task 0 takes away what it said of an earlier start in the same step, but may be a little
	 * later than this one. */
	uint64_t now = cop_now_ms(), end = now + timeout_ms, look = now + LOOK_MS;
	struct pollfd told = {.fd = v->fd, .events = POLLIN};
	int rc;

	while (!is_ready(v->p.control)) {
		if (poll(&told, 1, ASK_MS) > 0 && hear_node(v, &rc, err))
			return rc;
		now = cop_now_ms();
		if (now >= look && hear_task_0(v, &rc, err))
			return rc;
		look = now >= look ? now + LOOK_MS : look;
		if (now >= end)
			return cop_err_set(err, ETIMEDOUT,
				"no node was ready on this host in %u s; task 0 of this step starts all of them: did it run this command, and what does it say?",
				timeout_ms / 1000);
	}
	return 0;
}

int cop_slurm_await(const struct cop_conf *conf, const char *control, struct cop_err *err)
{
	struct vigil v = {.conf = conf};
	const char *path = v.p.wait.sun_path;
	int rc;

	find_place(control, &v.p);
	if (!cop_slurm_step_name(v.step))
		v.step[0] = '\0';
	v.heard = read_heard(&v);
	v.fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(path);
	if (v.fd < 0 || bind(v.fd, (struct sockaddr *)&v.p.wait, sizeof(v.p.wait)))
		rc = cop_err_set(err, errno, "cannot listen at %s: %s", path, strerror(errno));
	else
		rc = await(&v, err);
	unlink(path);
	if (!rc)
		unlink(v.p.heard);
	if (v.fd >= 0)
		close(v.fd);
	return rc;
}
