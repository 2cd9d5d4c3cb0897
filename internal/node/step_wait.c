/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks of a Slurm step that do not start the nodes: each waits for the node of its host, which task 0 brings up in a step of the
 * nodes' own (step.c). The node sends one datagram to HASH.wait, beside its control socket, when it knows how its start went: "ready" or
 * a sentence. It may have done so before the task listened: a node that is ready is found at its control socket, and one that failed
 * leaves its sentence in HASH.said, behind the number of the step whose tasks are meant. */
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
#define ANSWER_MS 2000
#define READY "ready"
#define SAID_MAX 4096

struct place {
	char control[COP_CTL_PATH_SIZE], said[COP_CTL_PATH_SIZE];
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
	/* .wait and .said are as long as .sock */
	p->wait = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (!rc) {
		int len = (int)(strlen(p->control) - strlen(".sock"));

		snprintf(p->wait.sun_path, sizeof(p->wait.sun_path), "%.*s.wait", len, p->control);
		snprintf(p->said, sizeof(p->said), "%.*s.said", len, p->control);
	}
	return rc;
}

/* ---- the node's side ---- */

static void leave_word(const struct place *p, const char *step, const char *text)
{
	struct cop_buf said = {0};

	cop_buf_printf(&said, "%s %s", step, text);
	if (said.data && !said.failed)
		cop_write_file(p->said, said.data, said.len, 0600);
	cop_buf_free(&said);
}

void cop_node_step_tell(const struct cop_conf *conf, const char *failure)
{
	const char *text = failure ? failure : READY, *step = cop_node_step_waiting();
	struct place p;
	bool told;
	int fd;

	if (find_place(conf, &p, NULL))
		return;
	unlink(p.said);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	told = fd >= 0 && sendto(fd, text, strlen(text), 0, (struct sockaddr *)&p.wait, sizeof(p.wait)) >= 0;
	if (!told && failure && step)
		leave_word(&p, step, failure);
	if (fd >= 0)
		close(fd);
}

void cop_node_step_forget(const struct cop_conf *conf)
{
	struct place p;

	if (find_place(conf, &p, NULL) == 0)
		unlink(p.said);
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

/* What a node of this step left before the task listened. Word for another step is the next node's to remove. */
static bool word_was_left(const struct place *p, struct cop_err *err)
{
	char step[COP_NODE_STEP_NAME], *text = NULL;
	size_t len = 0, skip = cop_node_step_name(step);
	bool left = skip && cop_read_file(p->said, SAID_MAX, &text, &len) == 0 && len > skip && text[skip] == ' ' &&
		memcmp(text, step, skip) == 0;

	if (left) {
		unlink(p->said);
		cop_err_set(err, EIO, "%s", text + skip + 1);
	}
	free(text);
	return left;
}

static int await(const struct place *p, int fd, uint32_t timeout_ms, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + timeout_ms;
	struct pollfd told = {.fd = fd, .events = POLLIN};
	char text[sizeof(err->text)];

	while (!is_ready(p->control)) {
		ssize_t n;

		if (word_was_left(p, err))
			return -EIO;
		n = poll(&told, 1, ASK_MS) > 0 ? recv(fd, text, sizeof(text) - 1, 0) : -1;

		if (n >= 0) {
			text[n] = '\0';
			return strcmp(text, READY) == 0 ? 0 : cop_err_set(err, EIO, "%s", text);
		}
		if (cop_now_ms() >= end)
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
		rc = await(&p, fd, conf->ready_timeout_ms + COP_NODE_STEP_MS, err);
	unlink(p.wait.sun_path);
	if (fd >= 0)
		close(fd);
	return rc;
}
