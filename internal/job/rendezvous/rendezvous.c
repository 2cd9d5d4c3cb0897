/* SPDX-License-Identifier: BSD-3-Clause */
#include <sys/eventfd.h>
#include <sys/socket.h>

#include "job/rendezvous/rdv_priv.h"
#include "base/base/sock.h"
#include "base/log/log.h"

#define BACKLOG 1024

void cop_rdv_wake(struct cop_rendezvous *r)
{
	uint64_t one = 1;

	(void)!write(r->wake_fd, &one, sizeof(one));
}

void cop_rdv_refused(struct cop_rendezvous *r, const char *what, const struct cop_ip *from, int rc)
{
	const char *why = rc == -ETIMEDOUT  ? "it said nothing"
			  : rc == -EACCES   ? "it does not prove the job's secret"
			  : rc == -EALREADY ? "it was received before"
					    : "it is not from Copper";
	char text[COP_IP_TEXT_SIZE];

	cop_log_refused(what, why, cop_ip_print(from, text));
	if (r->refused)
		r->refused(r->key.ctx, rc);
}

/* Collects asks whose names have been resolved. An ask that ends before that removes its lookup
 * from the list. */
static void collect_resolved(struct cop_rendezvous *r, uint64_t now_ms)
{
	for (;;) {
		struct cop_list *item;

		pthread_mutex_lock(&r->lock);
		item = cop_list_pop_front(&r->resolver.done);
		pthread_mutex_unlock(&r->lock);
		if (!item)
			return;
		cop_rdv_resolved(r, COP_CONTAINER_OF(item, struct rdv_lookup, link)->ask, now_ms);
	}
}

/* Takes over what other threads have queued. Returns false if the rendezvous must stop. */
static bool collect_asks(struct cop_rendezvous *r)
{
	uint64_t count;
	bool stopping;

	(void)!read(r->wake_fd, &count, sizeof(count));
	pthread_mutex_lock(&r->lock);
	stopping = r->stopping;
	cop_list_splice(&r->asks, &r->new_asks);
	pthread_mutex_unlock(&r->lock);
	if (!stopping)
		collect_resolved(r, cop_now_ms());
	return !stopping;
}

/* What one round polls, and which object owns each slot. */
struct round {
	struct pollfd set[2 + RDV_SERVED_MAX + RDV_OPEN_MAX];
	void *owner[2 + RDV_SERVED_MAX + RDV_OPEN_MAX];
	nfds_t used;
	uint64_t wake_ms; /* when poll must return at the latest */
};

static void add_fd(struct round *w, int fd, short events, void *owner)
{
	w->set[w->used] = (struct pollfd){.fd = fd, .events = events};
	w->owner[w->used++] = owner;
}

static void prepare_round(struct cop_rendezvous *r, struct round *w)
{
	struct cop_list *item;

	w->used = 0;
	w->wake_ms = r->accept_after_ms ? r->accept_after_ms : UINT64_MAX;
	add_fd(w, r->wake_fd, POLLIN, NULL);
	add_fd(w, r->accept_after_ms ? -1 : r->listen_fd, POLLIN, NULL);
	for (size_t i = 0; i < RDV_SERVED_MAX; i++) {
		struct rdv_conn *c = &r->conn[i];

		if (c->fd < 0)
			continue;
		add_fd(w, c->fd, cop_rdv_serve_wants(c), c);
		w->wake_ms = COP_MIN(w->wake_ms, c->deadline_ms);
	}
	for (item = r->asks.next; item != &r->asks; item = item->next) {
		struct rdv_ask *a = COP_CONTAINER_OF(item, struct rdv_ask, link);
		uint64_t when = cop_rdv_step_when(a, r->open_asks < RDV_OPEN_MAX);

		if (a->fd >= 0)
			add_fd(w, a->fd, cop_rdv_step_wants(a), a);
		w->wake_ms = COP_MIN(w->wake_ms, when);
	}
}

static int timeout_of(const struct round *w, uint64_t now_ms)
{
	if (w->wake_ms == UINT64_MAX)
		return -1;
	return w->wake_ms <= now_ms ? 0 : (int)COP_MIN(w->wake_ms - now_ms, (uint64_t)60000);
}

static bool is_conn(const struct cop_rendezvous *r, const void *owner)
{
	return (const char *)owner >= (const char *)r->conn &&
	       (const char *)owner < (const char *)(r->conn + RDV_SERVED_MAX);
}

/* Runs the asks that are due. A step may end its own ask or move it to the end of the list, and
 * callbacks can only add asks through new_asks. So `next` stays valid. */
static void step_timers(struct cop_rendezvous *r, uint64_t now_ms)
{
	uint64_t end_asks_ms = atomic_exchange(&r->end_asks_ms, 0);
	struct cop_list *item, *next;

	for (item = r->asks.next; end_asks_ms && item != &r->asks; item = item->next) {
		struct rdv_ask *a = COP_CONTAINER_OF(item, struct rdv_ask, link);

		a->deadline_ms = COP_MIN(a->deadline_ms, end_asks_ms);
	}
	for (item = r->asks.next; item != &r->asks; item = next) {
		next = item->next;
		cop_rdv_step(r, COP_CONTAINER_OF(item, struct rdv_ask, link), 0, now_ms);
	}
	for (size_t i = 0; i < RDV_SERVED_MAX; i++)
		if (r->conn[i].fd >= 0)
			cop_rdv_serve(r, &r->conn[i], 0, now_ms);
}

static void run_round(struct cop_rendezvous *r, struct round *w)
{
	uint64_t now_ms = cop_now_ms();

	for (nfds_t i = 2; i < w->used; i++) {
		if (!w->set[i].revents)
			continue;
		if (is_conn(r, w->owner[i]))
			cop_rdv_serve(r, w->owner[i], w->set[i].revents, now_ms);
		else
			cop_rdv_step(r, w->owner[i], w->set[i].revents, now_ms);
	}
	step_timers(r, now_ms);
	if (w->set[1].revents || (r->accept_after_ms && now_ms >= r->accept_after_ms))
		cop_rdv_accept(r, now_ms);
}

static void *serve_and_ask(void *arg)
{
	struct cop_rendezvous *r = arg;
	struct round w;

	while (collect_asks(r)) {
		prepare_round(r, &w);
		if (poll(w.set, w.used, timeout_of(&w, cop_now_ms())) < 0)
			continue; /* EINTR: all signals are blocked here, except a debugger's */
		run_round(r, &w);
	}
	return NULL;
}

/* Returns a bound socket, or -errno. */
static int bound_socket(const struct cop_ip *ip, uint16_t port)
{
	struct sockaddr_storage at;
	socklen_t len = cop_ip_to_socket(ip, port, &at);
	int fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0, rc;

	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (at.ss_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(fd, (struct sockaddr *)&at, len) == 0)
		return fd;
	rc = -errno;
	close(fd);
	return rc;
}

/* If ip is all zeros, binds to all addresses of both IP versions, or just of IPv4 if there is no
 * IPv6. */
static int open_listener(const struct cop_ip *ip, uint16_t port)
{
	struct cop_ip all_of_four = cop_ip_of4((struct in_addr){INADDR_ANY});
	int fd = bound_socket(ip, port);

	if (cop_ip_is_none(ip) && (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL))
		fd = bound_socket(&all_of_four, port);
	return fd;
}

static int listen_on(
	struct cop_rendezvous *r, const struct cop_rendezvous_conf *conf, struct cop_err *err)
{
	const struct cop_job_host *self = conf->self;
	uint16_t port = conf->at_second_port ? self->second_port : self->port;
	struct sockaddr_storage at;
	socklen_t size = sizeof(at);
	struct cop_ip ip;
	in_port_t bound = 0;
	int rc;

	/* Other nodes may reach a host name over any network, so we listen on all of them. Locally,
	 * the host's own name often resolves to a loopback address, which other machines cannot
	 * reach. */
	cop_ip_parse(self->name, &r->self);
	r->listen_fd = rc = open_listener(&r->self, port);
	if (rc >= 0 &&
		(cop_sock_listen(rc, BACKLOG) || getsockname(rc, (struct sockaddr *)&at, &size)))
		rc = -errno;
	if (rc < 0)
		return cop_err_set(err, -rc, "cannot listen on %s port %u for the rendezvous: %s%s",
			self->name, port, strerror(-rc),
			rc == -EADDRINUSE ? " (is another copper running here? "
					    "choose another --port)"
					  : "");
	cop_ip_of_socket((struct sockaddr *)&at, &ip, &bound);
	r->port = ntohs(bound);
	return 0;
}

void cop_rdv_free(struct cop_rendezvous *r)
{
	if (r->listen_fd >= 0)
		close(r->listen_fd);
	if (r->wake_fd >= 0)
		close(r->wake_fd);
	pthread_cond_destroy(&r->resolver.more);
	pthread_mutex_destroy(&r->lock);
	free(r);
}

static struct cop_rendezvous *rendezvous_new(void)
{
	struct cop_rendezvous *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->listen_fd = r->wake_fd = -1;
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->resolver.more, NULL);
	cop_list_init(&r->new_asks);
	cop_list_init(&r->resolver.done);
	cop_list_init(&r->asks);
	cop_list_init(&r->resolver.todo);
	for (size_t i = 0; i < RDV_SERVED_MAX; i++)
		r->conn[i].fd = -1;
	return r;
}

int cop_rendezvous_start(
	const struct cop_rendezvous_conf *conf, struct cop_rendezvous **out, struct cop_err *err)
{
	struct cop_rendezvous *r;
	int rc;

	if (!cop_job_address_ok(conf->fabric_address, strlen(conf->fabric_address)))
		return cop_err_set(err, EINVAL, "'%.60s' is not a fabric address of 1 to %d bytes",
			conf->fabric_address, COP_JOB_ADDRESS_MAX);
	r = rendezvous_new();
	if (!r)
		return cop_err_set(err, ENOMEM, "no memory for the rendezvous");
	r->key = (struct rdv_key){.mac = conf->mac, .ctx = conf->ctx};
	r->met = conf->met;
	r->refused = conf->refused;
	snprintf(r->address, sizeof(r->address), "%s", conf->fabric_address);
	rc = listen_on(r, conf, err);
	if (rc)
		goto fail;
	/* The identity contains the port that other nodes know. */
	cop_job_label(
		conf->self->name, conf->at_second_port ? conf->self->port : r->port, r->identity);
	r->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	rc = r->wake_fd < 0 ? -errno
			    : cop_thread_start(&r->thread, "cop-rendezvous", serve_and_ask, r);
	if (rc) {
		cop_err_set(err, -rc, "cannot start the rendezvous: %s", strerror(-rc));
		goto fail;
	}
	*out = r;
	return 0;
fail:
	cop_rdv_free(r);
	return rc;
}

/* Runs on the caller's thread after the rendezvous thread has ended. New asks from callbacks are
 * refused. */
static void end_all(struct cop_rendezvous *r)
{
	struct cop_list *item;

	cop_list_splice(&r->asks, &r->new_asks);
	while ((item = cop_list_pop_front(&r->asks)))
		cop_rdv_ask_end(r, COP_CONTAINER_OF(item, struct rdv_ask, link), NULL,
			"the rendezvous was stopped");
	for (size_t i = 0; i < RDV_SERVED_MAX; i++)
		if (r->conn[i].fd >= 0)
			close(r->conn[i].fd);
	close(r->listen_fd);
	r->listen_fd = -1;
}

void cop_rendezvous_stop(struct cop_rendezvous *r)
{
	if (!r)
		return;
	pthread_mutex_lock(&r->lock);
	r->stopping = true;
	pthread_mutex_unlock(&r->lock);
	cop_rdv_wake(r);
	pthread_join(r->thread, NULL);
	end_all(r);
	if (cop_rdv_resolve_stop(r))
		cop_rdv_free(r);
}

void cop_rendezvous_end_asks(struct cop_rendezvous *r, uint32_t timeout_ms)
{
	atomic_store(&r->end_asks_ms, cop_now_ms() + timeout_ms);
	cop_rdv_wake(r);
}

uint16_t cop_rendezvous_port(const struct cop_rendezvous *r)
{
	return r->port;
}

static struct rdv_ask *ask_new(const struct cop_job_host *host, uint32_t timeout_ms)
{
	struct rdv_ask *a = calloc(1, sizeof(*a));
	uint64_t now_ms = cop_now_ms();

	if (!a)
		return NULL;
	a->name = strdup(host->name);
	if (!a->name) {
		free(a);
		return NULL;
	}
	cop_list_init(&a->link);
	a->port = host->port;
	a->second_port = host->second_port;
	cop_job_label(host->name, host->port, a->identity);
	a->fd = -1;
	a->timeout_ms = timeout_ms;
	a->next_ms = now_ms;
	a->deadline_ms = now_ms + timeout_ms;
	a->pause_ms = RDV_RETRY_MS_FIRST;
	a->patience_ms = host->second_port ? RDV_PATIENCE_MS_FIRST : RDV_CONNECTION_MS;
	if (!cop_ip_parse(host->name, &a->to))
		a->to = host->address;
	a->step = cop_ip_is_none(&a->to) ? RDV_NEEDS_NAME : RDV_WAITS;
	return a;
}

/* Counts the ask, or refuses it if there are too many. */
static int admit_ask(struct cop_rendezvous *r, struct rdv_ask *a)
{
	int rc = 0;

	pthread_mutex_lock(&r->lock);
	if (r->stopping)
		rc = -ESHUTDOWN;
	else if (r->asked >= RDV_ASKS_MAX)
		rc = -EBUSY;
	if (!rc) {
		r->asked++;
		cop_list_push_back(&r->new_asks, &a->link);
	}
	pthread_mutex_unlock(&r->lock);
	return rc;
}

int cop_rendezvous_ask(struct cop_rendezvous *r, const struct cop_job_host *host,
	uint32_t timeout_ms, cop_rendezvous_found *found, void *arg)
{
	struct rdv_ask *a = ask_new(host, timeout_ms);
	int rc;

	if (!a)
		return -ENOMEM;
	a->found = found;
	a->arg = arg;
	rc = admit_ask(r, a);
	if (rc) {
		free(a->name);
		free(a);
		return rc;
	}
	cop_rdv_wake(r);
	return 0;
}
