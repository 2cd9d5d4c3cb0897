/* SPDX-License-Identifier: BSD-3-Clause */
/* The requesting side. We retry an ask, with pauses, until its deadline: the other node may start
 * later, have no free connection, or not be known to the name service yet. */
#include <sys/socket.h>

#include "job/rendezvous/rdv_priv.h"
#include "base/base/sock.h"

static const char no_answer[] = "it did not answer";

static bool is_open(const struct rdv_ask *a)
{
	return a->fd >= 0;
}

static bool is_connected(const struct rdv_ask *a)
{
	return is_open(a) && (a->step == RDV_SENDS || a->step == RDV_RECEIVES);
}

/* The other side may have accepted the connection already. We still send it the ask, because
 * otherwise it would count this node as an unverified peer. */
static void close_ask(struct cop_rendezvous *r, struct rdv_ask *a)
{
	if (!is_open(a))
		return;
	if (a->step != RDV_RECEIVES)
		(void)!cop_sock_send(
			a->fd, a->out + a->out_done, a->out_len - a->out_done, MSG_NOSIGNAL);
	close(a->fd);
	a->fd = -1;
	r->open_asks--;
}

void cop_rdv_ask_end(
	struct cop_rendezvous *r, struct rdv_ask *a, const char *address, const char *why)
{
	close_ask(r, a);
	cop_rdv_resolve_drop(r, a);
	cop_list_remove(&a->link);
	pthread_mutex_lock(&r->lock);
	r->asked--;
	pthread_mutex_unlock(&r->lock);
	a->found(a->arg, address, address || a->silent, why);
	free(a->name);
	free(a);
}

static void give_up(struct cop_rendezvous *r, struct rdv_ask *a)
{
	char why[RDV_IDENTITY + sizeof(a->problem) + 80];

	a->silent |= is_connected(a);
	snprintf(why, sizeof(why), "%s gave no address within %llu ms: %s", a->identity,
		(unsigned long long)a->timeout_ms, a->problem[0] ? a->problem : "no answer yet");
	cop_rdv_ask_end(r, a, NULL, why);
}

/* This attempt failed. Moves the ask to the end of the queue, behind those that wait for a free
 * connection. Does not log that nothing listens at the second port. */
static void retry_ask(
	struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms, const char *problem)
{
	bool tried = is_open(a), silent = tried && problem == no_answer && is_connected(a);

	a->silent = silent || (a->second && a->silent);
	close_ask(r, a);
	cop_list_remove(&a->link);
	cop_list_push_back(&r->asks, &a->link);
	if (!a->second || strcmp(problem, strerror(ECONNREFUSED)))
		snprintf(a->problem, sizeof(a->problem), "%s", problem);
	a->step = cop_ip_is_none(&a->to) ? RDV_NEEDS_NAME : RDV_WAITS;
	a->next_ms = now_ms;
	a->second = tried && a->second_port && !a->second;
	if (a->second)
		return;
	a->next_ms = now_ms + a->pause_ms;
	a->pause_ms = COP_MIN(a->pause_ms * 2, (uint32_t)RDV_RETRY_MS_MOST);
	if (tried)
		a->patience_ms = COP_MIN(a->patience_ms * 2, (uint32_t)RDV_CONNECTION_MS);
}

/* If the local host is given as an address, we send asks from it, so that many nodes on one machine
 * (127.0.0.x) look like separate machines. */
static int open_socket(const struct cop_rendezvous *r, int family)
{
	int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, rc;
	bool bound = !cop_ip_is_none(&r->self) && cop_ip_family(&r->self) == family;
	struct sockaddr_storage self;
	socklen_t len = cop_ip_to_socket(&r->self, 0, &self);

	if (fd < 0)
		return -errno;
	/* Leaves the choice of port until connect, when the other end is known; this allows many
	 * more connections. */
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	if (bound && bind(fd, (const struct sockaddr *)&self, len)) {
		rc = -errno;
		close(fd);
		return rc;
	}
	return fd;
}

/* If the connection is not established yet, sends the ask later. */
static void send_ask(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms)
{
	ssize_t n =
		cop_sock_send(a->fd, a->out + a->out_done, a->out_len - a->out_done, MSG_NOSIGNAL);

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n < 0) {
		retry_ask(r, a, now_ms, strerror(errno));
		return;
	}
	a->out_done += (size_t)n;
	a->step = a->out_done == a->out_len ? RDV_RECEIVES : RDV_SENDS;
}

static void start_try(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms)
{
	int fd = open_socket(r, cop_ip_family(&a->to)), rc;
	struct sockaddr_storage to;
	socklen_t len = cop_ip_to_socket(&a->to, a->second ? a->second_port : a->port, &to);

	if (fd < 0) {
		retry_ask(r, a, now_ms, strerror(-fd));
		return;
	}
	a->fd = fd;
	if (!a->tried)
		a->deadline_ms = COP_MAX(a->deadline_ms, now_ms + RDV_FIRST_TRY_MS);
	a->tried = true;
	r->open_asks++;
	a->out_done = a->in_len = 0;
	a->attempt_end_ms = COP_MIN(now_ms + a->patience_ms, a->deadline_ms);
	a->step = RDV_CONNECTS;
	rc = cop_rdv_ask_build(&r->key, a->identity, r->address, a->nonce, a->out);
	a->out_len = rc < 0 ? 0 : (size_t)rc;
	if (rc < 0)
		retry_ask(r, a, now_ms, "no random numbers");
	else if (cop_sock_connect(fd, (const struct sockaddr *)&to, len) && errno != EINPROGRESS)
		retry_ask(r, a, now_ms, strerror(errno));
	else
		send_ask(r, a, now_ms);
}

static void finish_connect(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms)
{
	socklen_t size = sizeof(int);
	int error = 0;

	if (getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	if (error)
		retry_ask(r, a, now_ms, strerror(error));
	else
		a->step = RDV_SENDS;
}

/* Another program on the port is harmless. But a reply that speaks the protocol without proof is an
 * attempt to impersonate a node. */
static void refuse_answer(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms, int rc)
{
	if (rc == -EACCES)
		cop_rdv_refused(r, "answer", &a->to, rc);
	retry_ask(r, a, now_ms,
		rc == -EACCES ? "its answer does not prove the job's secret"
			      : "what answers there is not a rendezvous");
}

static void receive_answer(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms)
{
	ssize_t n = cop_sock_recv(a->fd, a->in + a->in_len, sizeof(a->in) - a->in_len, 0);
	char address[COP_JOB_ADDRESS_MAX + 1];
	int rc;

	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
		return;
	if (n <= 0) {
		retry_ask(r, a, now_ms,
			n ? strerror(errno)
			  : "it closed the connection without an answer (does it have the same secret and host list?)");
		return;
	}
	a->in_len += (size_t)n;
	rc = cop_rdv_answer_check(&r->key, a->identity, a->nonce, a->in, a->in_len, address);
	if (rc > 0)
		cop_rdv_ask_end(r, a, address, NULL);
	else if (rc < 0)
		refuse_answer(r, a, now_ms, rc);
}

short cop_rdv_step_wants(const struct rdv_ask *a)
{
	if (!is_open(a))
		return 0;
	return a->step == RDV_RECEIVES ? POLLIN : POLLOUT;
}

uint64_t cop_rdv_step_when(const struct rdv_ask *a, bool may_connect)
{
	if (is_open(a))
		return a->attempt_end_ms;
	if (a->step == RDV_AT_RESOLVER || (a->step == RDV_WAITS && !may_connect))
		return a->deadline_ms;
	return COP_MIN(a->next_ms, a->deadline_ms);
}

void cop_rdv_resolved(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms)
{
	struct rdv_lookup *l = a->lookup;

	a->lookup = NULL;
	if (l->verdict) {
		retry_ask(r, a, now_ms, l->problem.text);
	} else {
		a->to = l->found;
		a->step = RDV_WAITS;
		a->next_ms = now_ms;
	}
	cop_rdv_lookup_free(l);
}

static void continue_ask(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms)
{
	switch (a->step) {
	case RDV_CONNECTS:
		finish_connect(r, a, now_ms);
		break;
	case RDV_SENDS:
		send_ask(r, a, now_ms);
		break;
	default:
		receive_answer(r, a, now_ms);
	}
}

/* Each branch makes the last use of the ask, which may be freed there. An expired deadline ends the
 * ask in any state after the first attempt, but an answer that has already arrived still counts. */
void cop_rdv_step(struct cop_rendezvous *r, struct rdv_ask *a, short events, uint64_t now_ms)
{
	bool may_try = a->step == RDV_WAITS && now_ms >= a->next_ms && r->open_asks < RDV_OPEN_MAX;

	if (events)
		continue_ask(r, a, now_ms);
	else if (may_try && !a->tried)
		start_try(r, a, now_ms);
	else if (now_ms >= a->deadline_ms)
		give_up(r, a);
	else if (is_open(a) && now_ms >= a->attempt_end_ms)
		retry_ask(r, a, now_ms, no_answer);
	else if (may_try)
		start_try(r, a, now_ms);
	else if (a->step == RDV_NEEDS_NAME && now_ms >= a->next_ms) {
		a->step = RDV_AT_RESOLVER;
		if (cop_rdv_resolve_give(r, a))
			retry_ask(r, a, now_ms, "no thread to look up its name");
	}
}
