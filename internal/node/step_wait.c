/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of a Slurm step that do not start the nodes: each waits for the node of its host, which task 0 brings up in a step of the
 * nodes' own (step.c). The node sends one datagram to HASH.wait, beside its control socket, when it knows how its start went: "ready" or
 * a sentence. It may have done so before the task listened, or have been killed before it could say anything; so its control socket is
 * asked as well, and task 0 leaves word of a failure in the job directory. */
#include "node/node_priv.h"

#include <errno.h>
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
#define READY "ready"

struct place {
	char control[COP_CTL_PATH_SIZE];
	struct sockaddr_un wait;
};

static int find_place(const struct cop_conf *conf, struct place *p, struct cop_err *err)
{
	struct cop_node *n = calloc(1, sizeof(*n));
	char key[COP_CTL_KEY_MAX + 1];
	int rc;

	if (!n)
		return cop_err_set(err, ENOMEM, "out of memory");
	n->conf = conf;
	rc = cop_node_find_hosts(n, err);
	if (!rc && !conf->serve_only && !realpath(conf->mountpoint, n->mountpoint))
		rc = cop_err_set(err, errno, "%s: %s", conf->mountpoint, strerror(errno));
	if (!rc)
		rc = cop_node_socket(n, p->control, key, err);
	cop_job_hosts_free(&n->hosts);
	free(n);
	/* .wait is as long as .sock */
	p->wait = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!rc)
		snprintf(p->wait.sun_path, sizeof(p->wait.sun_path), "%.*s.wait", (int)(strlen(p->control) - strlen(".sock")), p->control);
	return rc;
}

/* ---- the node's side ---- */

void cop_node_step_tell(const struct cop_conf *conf, const char *failure)
{
	const char *text = failure ? failure : READY;
	struct place p;
	int fd;

	if (find_place(conf, &p, NULL))
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	/* Nobody may wait. */
	if (fd >= 0 && sendto(fd, text, strlen(text), 0, (struct sockaddr *)&p.wait, sizeof(p.wait)) < 0)
		cop_log_debug("nobody waits for the node socket=%s", p.wait.sun_path);
	if (fd >= 0)
		close(fd);
}

/* ---- the task's side ---- */

static bool is_ready(const char *control)
{
	struct cop_ctl_reply reply = {0};
	bool ready = cop_ctl_call(control, "stats", ANSWER_MS, NULL, NULL, &reply, NULL) == 0 && reply.text &&
		strstr(reply.text, "\"ready\":true");

	free(reply.text);
	return ready;
}

static bool word_of_task_0(const struct cop_conf *conf, char *text, size_t size)
{
	char step[COP_NODE_STEP_NAME];

	return conf->job_dir && cop_node_step_name(step) && cop_job_step_failure_read(conf->job_dir, step, text, size);
}

static int await(const struct cop_conf *conf, const struct place *p, int fd, struct cop_err *err)
{
	uint32_t timeout_ms = conf->ready_timeout_ms + COP_NODE_STEP_MS;
	/* Task 0 takes away what it said of an earlier start in the same step, but may be a little later than this one. */
	uint64_t now = cop_now_ms(), end = now + timeout_ms, look = now + LOOK_MS;
	struct pollfd told = {.fd = fd, .events = POLLIN};
	char text[sizeof(err->text)];

	while (!is_ready(p->control)) {
		ssize_t n = poll(&told, 1, ASK_MS) > 0 ? recv(fd, text, sizeof(text) - 1, 0) : -1;

		now = cop_now_ms();
		if (n >= 0) {
			text[n] = '\0';
			return strcmp(text, READY) == 0 ? 0 : cop_err_set(err, EIO, "%s", text);
		}
		if (now >= look && word_of_task_0(conf, text, sizeof(text)))
			return cop_err_set(err, EIO, "%s", text);
		look = now >= look ? now + LOOK_MS : look;
		if (now >= end)
			return cop_err_set(err, ETIMEDOUT, "no node was ready on this host in %u s; task 0 of this step starts all of them: did it run this command, and what does it say?",
				timeout_ms / 1000);
	}
	return 0;
}

int cop_node_await_step(const struct cop_conf *conf, struct cop_err *err)
{
	struct place p;
	int rc = find_place(conf, &p, err), fd;

	if (rc)
		return rc;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unlink(p.wait.sun_path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&p.wait, sizeof(p.wait)))
		rc = cop_err_set(err, errno, "cannot listen at %s: %s", p.wait.sun_path, strerror(errno));
	else
		rc = await(conf, &p, fd, err);
	unlink(p.wait.sun_path);
	if (fd >= 0)
		close(fd);
	return rc;
}
