/* SPDX-License-Identifier: BSD-3-Clause */
/* One client of the server. */
#include "node/ctl/ctl_priv.h"
#include "base/base/sock.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

struct cop_ctl_conn *cop_ctl_conn_new(struct cop_ctl *c, int fd)
{
	struct cop_ctl_conn *conn = calloc(1, sizeof(*conn));

	if (!conn) {
		close(fd);
		return NULL;
	}
	conn->ctl = c;
	conn->fd = fd;
	conn->pass = -1;
	conn->refs = 1;
	conn->deadline_ms = cop_now_ms() + COP_CTL_REQUEST_MS;
	pthread_mutex_lock(&c->lock);
	c->refs++;
	pthread_mutex_unlock(&c->lock);
	return conn;
}

void cop_ctl_conn_put(struct cop_ctl_conn *conn)
{
	struct cop_ctl *c = conn->ctl;
	bool last;

	pthread_mutex_lock(&c->lock);
	last = --conn->refs == 0;
	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	cop_buf_free(&conn->sending);
	cop_buf_free(&conn->out);
	if (conn->pass >= 0)
		close(conn->pass);
	free(conn);
	cop_ctl_put(c);
}

void cop_ctl_conn_close(struct cop_ctl_conn *conn)
{
	pthread_mutex_lock(&conn->ctl->lock);
	conn->gone = true;
	pthread_mutex_unlock(&conn->ctl->lock);
	if (conn->fd >= 0)
		close(conn->fd);
	conn->fd = -1;
}

/* ---- for any thread ---- */

static void wake_server(struct cop_ctl *c)
{
	eventfd_write(c->wake_fd, 1);
}

/* Queues the reply for the server's thread, which closes pass (-1: none) after sending it. If there
 * is no memory for the reply, the thread closes the connection, which the client cannot mistake for
 * a reply. */
static void queue_reply(
	struct cop_ctl_conn *conn, int status, const char *text, size_t len, int pass)
{
	pthread_mutex_lock(&conn->ctl->lock);
	conn->pass = pass;
	if (!conn->gone) {
		cop_buf_printf(&conn->out, "status %d %zu\n", status, len);
		cop_buf_add(&conn->out, text, len);
	}
	conn->final = true;
	pthread_mutex_unlock(&conn->ctl->lock);
}

void cop_ctl_reply(struct cop_ctl_conn *conn, int status, const char *text, size_t len)
{
	cop_ctl_reply_with(conn, status, text, len, -1);
}

void cop_ctl_reply_with(struct cop_ctl_conn *conn, int status, const char *text, size_t len, int fd)
{
	static const char too_long[] = "the answer is too long for the control socket";

	if (len > COP_CTL_REPLY_MAX)
		queue_reply(conn, 1, too_long, sizeof(too_long) - 1, -1);
	else
		queue_reply(conn, status, text, len, fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3));
	wake_server(conn->ctl);
	cop_ctl_conn_put(conn);
}

/* ---- for the server's thread only ---- */

static void refuse_caller(struct cop_ctl_conn *conn, const char *why)
{
	conn->asked = true;
	conn->deadline_ms = cop_now_ms() + COP_CTL_SEND_MS;
	queue_reply(conn, 2, why, strlen(why), -1);
}

static void ask_handler(struct cop_ctl_conn *conn)
{
	struct cop_ctl *c = conn->ctl;

	conn->asked = true;
	conn->deadline_ms = UINT64_MAX;
	pthread_mutex_lock(&c->lock);
	conn->refs++;
	pthread_mutex_unlock(&c->lock);
	c->handler(c->ctx, conn, conn->line);
}

void cop_ctl_conn_read(struct cop_ctl_conn *conn)
{
	size_t space = sizeof(conn->line) - conn->line_len;
	ssize_t n = cop_sock_recv(conn->fd, conn->line + conn->line_len, space, MSG_DONTWAIT);
	char *end;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		cop_ctl_conn_close(conn);
		return;
	}
	end = memchr(conn->line + conn->line_len, '\n', (size_t)n);
	conn->line_len += (size_t)n;
	if (!end && conn->line_len == sizeof(conn->line)) {
		refuse_caller(conn, "the request is longer than 4096 bytes");
	} else if (end) {
		*end = '\0';
		if (strlen(conn->line) != (size_t)(end - conn->line))
			refuse_caller(conn, "the request has a NUL byte");
		else
			ask_handler(conn);
	}
}

/* Whether there are bytes to send; takes over queued output once the previous output has been
 * sent. */
static bool more_to_send(struct cop_ctl_conn *conn)
{
	bool failed;

	if (conn->sent < conn->sending.len)
		return true;
	cop_buf_free(&conn->sending);
	conn->sent = 0;
	pthread_mutex_lock(&conn->ctl->lock);
	conn->sending = conn->out;
	conn->out = (struct cop_buf){0};
	failed = conn->sending.failed;
	pthread_mutex_unlock(&conn->ctl->lock);
	if (failed)
		cop_ctl_conn_close(conn);
	return !failed && conn->sending.len > 0;
}

static int take_passed(struct cop_ctl_conn *conn)
{
	int pass;

	pthread_mutex_lock(&conn->ctl->lock);
	pass = conn->pass;
	conn->pass = -1;
	pthread_mutex_unlock(&conn->ctl->lock);
	return pass;
}

static void give_back(struct cop_ctl_conn *conn, int pass)
{
	pthread_mutex_lock(&conn->ctl->lock);
	conn->pass = pass;
	pthread_mutex_unlock(&conn->ctl->lock);
}

/* Calls sendmsg(2) with one descriptor, or with none if fd is -1. */
static ssize_t send_with(int sock, const void *data, size_t len, int fd)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec part = {(void *)(uintptr_t)data, len};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};

	if (fd >= 0) {
		control.align = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(sizeof(int))};
		memcpy(CMSG_DATA(&control.align), &fd, sizeof(fd));
		msg.msg_control = control.space;
		msg.msg_controllen = sizeof(control.space);
	}
	return sendmsg(sock, &msg, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A descriptor travels with the first bytes (unix(7)). */
static ssize_t send_some(struct cop_ctl_conn *conn)
{
	int pass = take_passed(conn);
	ssize_t n = send_with(
		conn->fd, conn->sending.data + conn->sent, conn->sending.len - conn->sent, pass);

	if (n < 0)
		give_back(conn, pass);
	else if (pass >= 0)
		close(pass);
	return n;
}

void cop_ctl_conn_write(struct cop_ctl_conn *conn)
{
	while (conn->fd >= 0 && more_to_send(conn)) {
		ssize_t n = send_some(conn);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n < 0) {
			cop_ctl_conn_close(conn);
			return;
		}
		conn->sent += (size_t)n;
		conn->deadline_ms = cop_now_ms() + COP_CTL_SEND_MS;
	}
	/* Everything so far has been sent, and the handler has no time limit. */
	if (conn->asked)
		conn->deadline_ms = UINT64_MAX;
}

/* A reply for which there was no memory counts as pending output: trying to send it closes the
 * connection. */
bool cop_ctl_conn_wants_write(struct cop_ctl_conn *conn)
{
	bool waiting;

	if (conn->fd < 0)
		return false;
	pthread_mutex_lock(&conn->ctl->lock);
	waiting = conn->out.len > 0 || conn->out.failed;
	pthread_mutex_unlock(&conn->ctl->lock);
	waiting |= conn->sent < conn->sending.len;
	if (waiting && conn->asked && conn->deadline_ms == UINT64_MAX)
		conn->deadline_ms = cop_now_ms() + COP_CTL_SEND_MS;
	return waiting;
}

bool cop_ctl_conn_replied(struct cop_ctl_conn *conn)
{
	bool final;

	pthread_mutex_lock(&conn->ctl->lock);
	final = conn->final;
	pthread_mutex_unlock(&conn->ctl->lock);
	return final;
}

/* True if the reply has been sent, or if the client has disconnected and no handler still has to
 * reply. */
bool cop_ctl_conn_finished(struct cop_ctl_conn *conn)
{
	bool final = cop_ctl_conn_replied(conn);

	if (conn->fd < 0)
		return final || !conn->asked;
	return final && !cop_ctl_conn_wants_write(conn);
}
