/* SPDX-License-Identifier: BSD-3-Clause */
/* The answering side: reads one ask, writes one answer, closes the connection. If a peer does not
 * prove the secret within RDV_CONNECTION_MS, or before its slot is needed for another, its
 * connection is closed without a reply and counted. A node sends its whole ask at once, so
 * unverified peers cannot block it by occupying all slots. */
#include <sys/socket.h>

#include "job/rendezvous/rdv_priv.h"
#include "base/base/sock.h"

#define ACCEPT_PAUSE_MS 100

static void hang_up(struct rdv_conn *c)
{
	close(c->fd);
	c->fd = -1;
}

/* Reports before closing, so that a peer that sees the close also sees the count. */
static void refuse_asker(struct cop_rendezvous *r, struct rdv_conn *c, int rc)
{
	cop_rdv_refused(r, "ask", &c->from, rc);
	hang_up(c);
}

/* Why a peer is refused that timed out or closed the connection before its whole ask arrived. */
static int unfinished_error(const struct rdv_conn *c)
{
	return c->in_len ? -EBADMSG : -ETIMEDOUT;
}

/* Returns a free slot, else that of the connection that has been silent longest; NULL if all of
 * them are being answered. */
static struct rdv_conn *slot_for_new(struct cop_rendezvous *r)
{
	struct rdv_conn *silent = NULL;

	for (size_t i = 0; i < RDV_SERVED_MAX; i++) {
		struct rdv_conn *c = &r->conn[i];

		if (c->fd < 0)
			return c;
		if (!c->out_len && (!silent || c->deadline_ms < silent->deadline_ms))
			silent = c;
	}
	return silent;
}

short cop_rdv_serve_wants(const struct rdv_conn *c)
{
	return c->out_len ? POLLOUT : POLLIN;
}

static void write_answer(struct rdv_conn *c)
{
	ssize_t n =
		cop_sock_send(c->fd, c->out + c->out_done, c->out_len - c->out_done, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n > 0)
		c->out_done += (size_t)n;
	if (n < 0 || c->out_done == c->out_len)
		hang_up(c);
}

/* An answer fits in any socket buffer, so it is usually sent in the same step. */
static void read_ask(struct cop_rendezvous *r, struct rdv_conn *c)
{
	ssize_t n = cop_sock_recv(c->fd, c->in + c->in_len, sizeof(c->in) - c->in_len, 0);
	char address[COP_JOB_ADDRESS_MAX + 1];
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n <= 0) {
		refuse_asker(r, c, unfinished_error(c));
		return;
	}
	c->in_len += (size_t)n;
	rc = cop_rdv_ask_check(&r->key, r->identity, c->in, c->in_len, address);
	if (!rc)
		return;
	if (rc > 0 && cop_recent_has(&r->heard, c->in + RDV_HEAD))
		rc = -EALREADY;
	if (rc < 0) {
		refuse_asker(r, c, rc);
		return;
	}
	cop_recent_add(&r->heard, c->in + RDV_HEAD);
	if (r->met)
		r->met(r->key.ctx, address);
	rc = cop_rdv_answer_build(&r->key, r->identity, c->in, r->address, c->out);
	if (rc < 0) {
		hang_up(c);
		return;
	}
	c->out_len = (size_t)rc;
	write_answer(c);
}

void cop_rdv_serve(struct cop_rendezvous *r, struct rdv_conn *c, short events, uint64_t now_ms)
{
	if (events && c->out_len)
		write_answer(c);
	else if (events)
		read_ask(r, c);
	if (c->fd < 0 || now_ms < c->deadline_ms)
		return;
	if (c->out_len)
		hang_up(c);
	else
		refuse_asker(r, c, unfinished_error(c));
}

/* A peer from the backlog has usually sent its ask already, so we read it immediately. */
static bool accept_one(struct cop_rendezvous *r, uint64_t now_ms)
{
	struct sockaddr_storage from = {0};
	socklen_t from_len = sizeof(from);
	int fd = cop_sock_accept(
		r->listen_fd, (struct sockaddr *)&from, &from_len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	struct rdv_conn *c;

	if (fd < 0 && errno == ECONNABORTED)
		return true; /* this connection failed while in the backlog; the next may be fine */
	if (fd < 0) {
		/* Out of descriptors or memory: the connection stays in the backlog, and poll would
		 * report it again at once. */
		r->accept_after_ms = errno == EAGAIN ? 0 : now_ms + ACCEPT_PAUSE_MS;
		return false;
	}
	c = slot_for_new(r);
	if (!c) {
		close(fd);
		return false;
	}
	if (c->fd >= 0)
		refuse_asker(r, c, unfinished_error(c));
	*c = (struct rdv_conn){.fd = fd, .deadline_ms = now_ms + RDV_CONNECTION_MS};
	cop_ip_of_socket((struct sockaddr *)&from, &c->from, NULL);
	read_ask(r, c);
	return true;
}

void cop_rdv_accept(struct cop_rendezvous *r, uint64_t now_ms)
{
	r->accept_after_ms = 0;
	for (int i = 0; i < RDV_SERVED_MAX && accept_one(r, now_ms); i++)
		;
}
