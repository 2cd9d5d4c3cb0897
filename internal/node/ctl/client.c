/* SPDX-License-Identifier: BSD-3-Clause */
/* The client's side of a request. */
#include "node/ctl/ctl_priv.h"
#include "base/base/sock.h"

#include <assert.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#define HEAD_MAX 64 /* longest status line */

struct call {
	int fd;
	int passed;  /* descriptor received with the reply; -1: none */
	bool polled; /* the caller polls fd, so receiving must not wait */
	bool headed; /* the status line has been removed from in */
	const char *path, *line;
	uint32_t timeout_ms;
	struct cop_err *err;
	struct cop_buf in;
};

static int timed_out(struct call *c)
{
	return cop_err_set(c->err, ETIMEDOUT,
		"the Copper process at %s has not answered for %u ms; it was asked to \"%.200s\"",
		c->path, c->timeout_ms, c->line);
}

static int went_away(struct call *c)
{
	return cop_err_set(c->err, ECONNRESET,
		"the Copper process at %s ended before it answered \"%.200s\"; its log may say why",
		c->path, c->line);
}

static int bad_reply(struct call *c)
{
	return cop_err_set(c->err, EBADMSG,
		"what answers at %s is not a Copper process of this version", c->path);
}

/* Another user could listen there and send us anything. */
static int check_server(struct call *c)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(c->fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return cop_err_set(c->err, errno, "cannot tell who listens at %s: %m", c->path);
	if (geteuid() != 0 && cred.uid != geteuid() && cred.uid != 0)
		return cop_err_set(c->err, EACCES,
			"the process at %s belongs to user %u, not to you", c->path,
			(unsigned)cred.uid);
	return 0;
}

static int connect_failed(struct call *c, int code)
{
	errno = code;
	switch (code) {
	case ENOENT:
		return cop_err_set(c->err, ENOENT,
			"no Copper process listens at %s; it was not started on this machine, or was "
			"stopped",
			c->path);
	case ECONNREFUSED:
		return cop_err_set(c->err, ECONNREFUSED,
			"the control socket %s was left over by a Copper process that was killed; 'copper stop MOUNTPOINT' removes what it left behind, and so does the next start",
			c->path);
	case EAGAIN:
		return timed_out(c);
	default:
		return cop_err_set(
			c->err, code, "cannot reach the Copper process at %s: %m", c->path);
	}
}

static int connect_server(struct call *c)
{
	struct timeval tv = {
		.tv_sec = c->timeout_ms / 1000, .tv_usec = c->timeout_ms % 1000 * 1000};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	if (strlen(c->path) >= sizeof(sa.sun_path))
		return cop_err_set(
			c->err, ENAMETOOLONG, "%s is too long for a socket's path", c->path);
	memcpy(sa.sun_path, c->path, strlen(c->path) + 1);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (c->fd < 0)
		return cop_err_set(c->err, errno, "cannot create a socket: %m");
	/* A timeout of zero would mean no timeout. */
	if (!c->timeout_ms)
		tv.tv_usec = 1;
	setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	if (cop_sock_connect(c->fd, (struct sockaddr *)&sa, sizeof(sa)))
		return connect_failed(c, errno);
	return check_server(c);
}

static int check_line(struct call *c)
{
	if (strlen(c->line) > COP_CTL_LINE_MAX || strchr(c->line, '\n'))
		return cop_err_set(c->err, E2BIG,
			"the request is too long for the control socket (4096 bytes, one line)");
	return 0;
}

/* A server that refuses a request early may already have closed its side; its reply is still
 * readable. */
static int send_line(struct call *c)
{
	size_t len = strlen(c->line), sent = 0;
	struct cop_buf out = {0};
	int rc = 0;

	cop_buf_add(&out, c->line, len);
	cop_buf_add(&out, "\n", 1);
	if (out.failed)
		rc = cop_err_set(c->err, ENOMEM, "no memory for the request");
	while (!rc && sent < out.len) {
		ssize_t n = cop_sock_send(c->fd, out.data + sent, out.len - sent, MSG_NOSIGNAL);

		if (n > 0)
			sent += (size_t)n;
		else if (errno == EAGAIN)
			rc = timed_out(c);
		else if (errno == EPIPE || errno == ECONNRESET)
			break;
		else if (errno != EINTR)
			rc = went_away(c);
	}
	cop_buf_free(&out);
	return rc;
}

static int await_reply(struct call *c)
{
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	uint64_t until = cop_now_ms() + c->timeout_ms, now;
	int ready;

	for (;;) {
		now = cop_now_ms();
		ready = poll(
			&p, 1, until > now ? (int)COP_MIN(until - now, (uint64_t)INT32_MAX) : 0);
		if (ready > 0)
			return 0;
		if (ready == 0 && cop_now_ms() >= until)
			return timed_out(c);
		if (ready < 0 && errno != EINTR)
			return cop_err_set(c->err, errno, "cannot wait for %s: %m", c->path);
	}
}

/* Calls recvmsg(2) and keeps a received descriptor; there is space for only one. */
static ssize_t receive_some(struct call *c, void *data, size_t size)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct iovec part = {data, size};
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = CMSG_LEN(sizeof(int))};
	ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	struct cmsghdr *h = n < 0 ? NULL : CMSG_FIRSTHDR(&msg);

	if (!h || h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
		return n;
	if (c->passed >= 0)
		close(c->passed);
	memcpy(&c->passed, CMSG_DATA(h), sizeof(c->passed));
	return n;
}

/* Appends the bytes that are available. -EAGAIN: there are none, and the caller polls. */
static int receive_reply(struct call *c)
{
	char block[16384];
	int rc = c->polled ? 0 : await_reply(c);
	ssize_t n;

	if (rc)
		return rc;
	n = receive_some(c, block, sizeof(block));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return c->polled ? -EAGAIN : 0;
	if (n <= 0)
		return went_away(c);
	cop_buf_add(&c->in, block, (size_t)n);
	return c->in.failed ? cop_err_set(c->err, ENOMEM, "no memory for the answer") : 0;
}

static void drop_bytes(struct cop_buf *b, size_t n)
{
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

/* Receives until in starts with a whole line, and NUL-terminates that; *len includes its
 * newline. */
static int next_line(struct call *c, size_t *len)
{
	for (;;) {
		char *end = c->in.len ? memchr(c->in.data, '\n', c->in.len) : NULL;
		int rc;

		if (end) {
			*end = '\0';
			*len = (size_t)(end - c->in.data) + 1;
			return strlen(c->in.data) + 1 == *len ? 0 : bad_reply(c);
		}
		if (c->in.len > HEAD_MAX)
			return bad_reply(c);
		rc = receive_reply(c);
		if (rc)
			return rc;
	}
}

/* "status N LENGTH" */
static int parse_status(struct call *c, const char *text, struct cop_ctl_reply *reply)
{
	uint64_t len;
	int n = 0;

	if (sscanf(text, "status %d %n", &reply->status, &n) != 1 || n == 0 ||
		cop_parse_u64(text + n, &len) || len > COP_CTL_REPLY_MAX)
		return bad_reply(c);
	reply->len = len;
	return 0;
}

static int read_head(struct call *c, struct cop_ctl_reply *reply)
{
	size_t len = 0;
	int rc = next_line(c, &len);

	if (!rc)
		rc = parse_status(c, c->in.data, reply);
	if (rc)
		return rc;
	drop_bytes(&c->in, len);
	c->headed = true;
	return 0;
}

/* Can be called again after -EAGAIN. */
static int read_reply(struct call *c, struct cop_ctl_reply *reply)
{
	int rc = c->headed ? 0 : read_head(c, reply);

	while (!rc && c->in.len < reply->len)
		rc = receive_reply(c);
	if (!rc && c->in.len > reply->len)
		rc = bad_reply(c);
	return rc;
}

static void end_call(struct call *c)
{
	cop_buf_free(&c->in);
	if (c->fd >= 0)
		close(c->fd);
	if (c->passed >= 0)
		close(c->passed);
	c->fd = c->passed = -1;
}

/* Hands the reply to the caller. */
static void take_answer(struct call *c, struct cop_ctl_reply *reply)
{
	reply->fd = c->passed;
	reply->text = c->in.data;
	c->in = (struct cop_buf){0};
	c->passed = -1;
}

static int start_call(struct call *c)
{
	int rc = check_line(c);

	if (!rc)
		rc = connect_server(c);
	return rc ? rc : send_line(c);
}

int cop_ctl_call(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_reply *reply, struct cop_err *err)
{
	struct call c = {.fd = -1,
		.passed = -1,
		.path = path,
		.line = line,
		.timeout_ms = timeout_ms,
		.err = err};
	int rc = start_call(&c);

	*reply = (struct cop_ctl_reply){.fd = -1};
	if (!rc)
		rc = read_reply(&c, reply);
	if (rc)
		*reply = (struct cop_ctl_reply){.fd = -1};
	else
		take_answer(&c, reply);
	end_call(&c);
	return rc;
}

/* ---- for callers that poll several descriptors ---- */

struct cop_ctl_question {
	struct call call;
	struct cop_ctl_reply reply; /* what has been read so far */
	char path[COP_CTL_PATH_SIZE], line[64];
};

int cop_ctl_ask(const char *path, const char *line, uint32_t timeout_ms,
	struct cop_ctl_question **out, struct cop_err *err)
{
	struct cop_ctl_question *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return cop_err_set(err, ENOMEM, "no memory for the request");
	assert(strlen(line) < sizeof(q->line) && strlen(path) < sizeof(q->path));
	strcpy(q->path, path);
	strcpy(q->line, line);
	q->call = (struct call){.fd = -1,
		.passed = -1,
		.polled = true,
		.path = q->path,
		.line = q->line,
		.timeout_ms = timeout_ms,
		.err = err};
	rc = start_call(&q->call);
	if (rc) {
		cop_ctl_question_free(q);
		return rc;
	}
	*out = q;
	return 0;
}

int cop_ctl_question_fd(const struct cop_ctl_question *q)
{
	return q->call.fd;
}

int cop_ctl_question_read(
	struct cop_ctl_question *q, struct cop_ctl_reply *reply, struct cop_err *err)
{
	int rc;

	q->call.err = err;
	rc = read_reply(&q->call, &q->reply);
	if (rc)
		return rc;
	*reply = q->reply;
	take_answer(&q->call, reply);
	return 0;
}

void cop_ctl_question_free(struct cop_ctl_question *q)
{
	if (q)
		end_call(&q->call);
	free(q);
}
