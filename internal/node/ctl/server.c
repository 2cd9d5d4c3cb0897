/* SPDX-License-Identifier: BSD-3-Clause */
/* The server's thread, which polls the listening socket, a wake-up descriptor and the clients. */
#include "node/ctl/ctl_priv.h"
#include "base/base/sock.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "base/log/log.h"

/* A node that is stopping may have unmounted already but not yet closed its socket. */
#define FREE_MS 3000

void cop_ctl_put(struct cop_ctl *c)
{
	bool last;

	pthread_mutex_lock(&c->lock);
	last = --c->refs == 0;
	pthread_mutex_unlock(&c->lock);
	if (!last)
		return;
	if (c->wake_fd >= 0)
		close(c->wake_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static bool is_stopping(struct cop_ctl *c)
{
	bool stop;

	pthread_mutex_lock(&c->lock);
	stop = c->stopping;
	pthread_mutex_unlock(&c->lock);
	return stop;
}

/* Whether the peer is the same user or root, who has access anyway. */
static bool is_allowed(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len))
		return false;
	if (cred.uid == geteuid() || cred.uid == 0)
		return true;
	cop_log_warn("control request refused uid=%u", (unsigned)cred.uid);
	return false;
}

static int free_slot(const struct cop_ctl *c)
{
	for (int i = 0; i < COP_CTL_CLIENTS; i++)
		if (!c->conn[i])
			return i;
	return -1;
}

static void accept_one(struct cop_ctl *c)
{
	int slot = free_slot(c), fd;

	fd = cop_sock_accept(c->socket.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0) {
		/* Pause, because the waiting client would wake this thread again immediately. */
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
			usleep(10000);
		return;
	}
	if (!is_allowed(fd))
		close(fd);
	else
		c->conn[slot] = cop_ctl_conn_new(c, fd);
}

/* Closes connections that are finished or have expired; returns when the next one expires. */
static uint64_t close_expired(struct cop_ctl *c)
{
	uint64_t now = cop_now_ms(), next = UINT64_MAX;

	for (int i = 0; i < COP_CTL_CLIENTS; i++) {
		struct cop_ctl_conn *conn = c->conn[i];

		if (!conn)
			continue;
		/* Called for its side effect: it may set the deadline. */
		cop_ctl_conn_wants_write(conn);
		if (conn->fd >= 0 && now >= conn->deadline_ms)
			cop_ctl_conn_close(conn);
		if (cop_ctl_conn_finished(conn)) {
			cop_ctl_conn_close(conn);
			cop_ctl_conn_put(conn);
			c->conn[i] = NULL;
		} else if (conn->fd >= 0) {
			next = COP_MIN(next, conn->deadline_ms);
		}
	}
	return next;
}

static short wanted_events(struct cop_ctl_conn *conn)
{
	if (!conn->asked)
		return POLLIN;
	return cop_ctl_conn_wants_write(conn) ? POLLOUT : 0;
}

static void serve_conn(struct cop_ctl_conn *conn, short events)
{
	if (conn->asked && (events & (POLLERR | POLLHUP)))
		cop_ctl_conn_close(conn);
	else if (!conn->asked && events)
		cop_ctl_conn_read(conn);
	if (conn->fd >= 0 && (events & POLLOUT))
		cop_ctl_conn_write(conn);
}

/* Sleeps until an event or until_ms, and handles events. */
static void serve_once(struct cop_ctl *c, uint64_t until_ms, bool accepting)
{
	struct pollfd p[COP_CTL_CLIENTS + 2] = {{.fd = c->wake_fd, .events = POLLIN},
		{.fd = accepting && free_slot(c) >= 0 ? c->socket.fd : -1, .events = POLLIN}};
	uint64_t now = cop_now_ms();
	eventfd_t value;
	int timeout = -1;

	if (until_ms != UINT64_MAX)
		timeout = until_ms > now ? (int)COP_MIN(until_ms - now, (uint64_t)60000) : 0;
	for (int i = 0; i < COP_CTL_CLIENTS; i++) {
		struct cop_ctl_conn *conn = c->conn[i];

		p[i + 2] = (struct pollfd){.fd = conn ? conn->fd : -1};
		if (conn && conn->fd >= 0)
			p[i + 2].events = wanted_events(conn);
	}
	if (poll(p, COP_ARRAY_SIZE(p), timeout) <= 0)
		return;
	if (p[0].revents)
		eventfd_read(c->wake_fd, &value);
	for (int i = 0; i < COP_CTL_CLIENTS; i++)
		if (p[i + 2].revents)
			serve_conn(c->conn[i], p[i + 2].revents);
	if (p[1].revents)
		accept_one(c);
}

/* Whether there are replies still to be sent; at the end, nothing else matters. */
static bool replies_left(struct cop_ctl *c)
{
	bool left = false;

	for (int i = 0; i < COP_CTL_CLIENTS; i++)
		left |= c->conn[i] && c->conn[i]->fd >= 0 && cop_ctl_conn_replied(c->conn[i]);
	return left;
}

static void *serve_clients(void *arg)
{
	struct cop_ctl *c = arg;
	uint64_t end, next;

	while (!is_stopping(c)) {
		next = close_expired(c);
		serve_once(c, next, true);
	}
	end = cop_now_ms() + COP_CTL_FLUSH_MS;
	for (;;) {
		next = close_expired(c);
		if (!replies_left(c) || cop_now_ms() >= end)
			break;
		serve_once(c, COP_MIN(next, end), false);
	}
	for (int i = 0; i < COP_CTL_CLIENTS; i++) {
		if (!c->conn[i])
			continue;
		cop_ctl_conn_close(c->conn[i]);
		cop_ctl_conn_put(c->conn[i]);
	}
	return NULL;
}

int cop_ctl_start(const char *path, const char *key, cop_ctl_handler *handler, void *ctx,
	struct cop_ctl **out, struct cop_err *err)
{
	struct cop_ctl *c = calloc(1, sizeof(*c));
	int rc;

	if (!c)
		return cop_err_set(err, ENOMEM, "no memory for the control socket");
	pthread_mutex_init(&c->lock, NULL);
	c->refs = 1;
	c->handler = handler;
	c->ctx = ctx;
	c->wake_fd = -1;
	rc = cop_ctl_socket_open(&c->socket, path, key, err);
	if (rc)
		goto fail;
	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	rc = c->wake_fd < 0 ? -errno : cop_thread_start(&c->thread, "ctl", serve_clients, c);
	if (rc) {
		errno = -rc;
		cop_err_set(err, -rc, "cannot start the control thread: %m");
		goto fail;
	}
	*out = c;
	return 0;
fail:
	cop_ctl_socket_close(&c->socket);
	cop_ctl_put(c);
	return rc;
}

int cop_ctl_start_when_free(const char *path, const char *key, cop_ctl_handler *handler, void *ctx,
	struct cop_ctl **out, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + FREE_MS;
	int rc;

	while ((rc = cop_ctl_start(path, key, handler, ctx, out, err)) == -EADDRINUSE &&
		cop_now_ms() < end)
		poll(NULL, 0, 50);
	if (rc == -EADDRINUSE)
		cop_err_set(err, EADDRINUSE,
			"a copper node runs here as %s already (it listens at %s); end it with 'copper stop %s' before it is started again",
			key, path, key);
	return rc;
}

int cop_ctl_leave_note(struct cop_ctl *c, const char *words)
{
	return cop_ctl_socket_note(&c->socket, words);
}

int cop_ctl_tend(struct cop_ctl *c)
{
	uint64_t now;

	if (cop_ctl_keep(&c->socket) > 0)
		eventfd_write(c->wake_fd, 1);
	now = cop_now_ms();
	return c->socket.look_ms > now ? (int)(c->socket.look_ms - now) : 0;
}

void cop_ctl_stop(struct cop_ctl *c)
{
	if (!c)
		return;
	pthread_mutex_lock(&c->lock);
	c->stopping = true;
	pthread_mutex_unlock(&c->lock);
	eventfd_write(c->wake_fd, 1);
	pthread_join(c->thread, NULL);
	cop_ctl_socket_close(&c->socket);
	cop_ctl_put(c);
}
