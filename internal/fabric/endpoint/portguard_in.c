/* SPDX-License-Identifier: BSD-3-Clause */
/* The listening side. A connection accepted from the socket is pending here: a challenge is sent,
 * and the connection is handed to the provider after the answer. The provider calls accept only
 * when its socket is readable, so this process then connects to itself, and accept recognises that
 * connection.
 *
 * One lock for all guards, because accept receives only a descriptor. Sends and receives under it
 * never block, and the log limits messages from here (cop_log_refused). */
#include <sys/epoll.h>
#include <sys/syscall.h>

#include "fabric/endpoint/portguard_priv.h"
#include "fabric/endpoint/ofi_priv.h"
#include "fabric/endpoint/plain.h"

struct pending {
	int fd;                    /* -1: free */
	uint64_t since_ms, number; /* its sequence number among all connections */
	struct sockaddr_storage from, at;
	uint8_t challenge[COP_GREET_CHALLENGE];
	uint8_t in[COP_GREET_ANSWER];
	size_t in_len;
};

struct cop_portguard {
	struct cop_portguard *next;
	int listener, epoll_fd, knock_fd;
	struct cop_greet_key key;
	struct cop_stats *rejected;
	struct sockaddr_storage own, knock;
	_Atomic unsigned count; /* of pending */
	struct pending pending[COP_PORTGUARD_PENDING_MAX];
	int passed[COP_PORTGUARD_PENDING_MAX]; /* authenticated connections, in order */
	_Atomic unsigned passed_count;
	uint64_t numbers;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cop_portguard *guards;
static __thread bool watching;
static __thread int watched = -1;
/* A listening socket for which the admission policy is not decided yet: admits no peer. */
static int undecided = -1;

int cop_portguard_watch(bool on)
{
	int fd = watched;

	watching = on;
	if (on)
		watched = -1;
	return fd;
}

void cop_portguard_none(int listener)
{
	pthread_mutex_lock(&lock);
	if (undecided == listener)
		undecided = -1;
	pthread_mutex_unlock(&lock);
}

/* Interposes the C library's function for libfabric, like the others here; hence names without
 * cop_. */
int listen(int fd, int backlog)
{
	int rc;

	if (watching) {
		pthread_mutex_lock(&lock);
		undecided = fd;
		pthread_mutex_unlock(&lock);
	}
	rc = (int)syscall(SYS_listen, fd, backlog);
	if (rc == 0 && watching)
		watched = fd;
	return rc;
}

/* ---- what is pending: under the lock ---- */

static void release_pending(struct cop_portguard *g, struct pending *h)
{
	cop_plain_epoll(g->epoll_fd, EPOLL_CTL_DEL, h->fd, NULL);
	h->fd = -1;
	g->count--;
}

static void refuse_connection(struct cop_portguard *g, struct pending *h, int rc)
{
	int fd = h->fd;

	cop_endpoint_ofi_refused(g->rejected, &h->from, rc);
	release_pending(g, h);
	cop_plain_close(fd);
}

/* The peer closed the connection without answering, as when it was killed or has connected again
 * since. */
static void forget_pending(struct cop_portguard *g, struct pending *h)
{
	int fd = h->fd;

	release_pending(g, h);
	cop_plain_close(fd);
}

static int unfinished_error(const struct pending *h)
{
	return h->in_len ? -EBADMSG : -ETIMEDOUT;
}

static struct pending *free_slot(struct cop_portguard *g)
{
	struct pending *oldest = &g->pending[0];

	for (unsigned i = 0; i < COP_PORTGUARD_PENDING_MAX; i++) {
		if (g->pending[i].fd < 0)
			return &g->pending[i];
		if (g->pending[i].number < oldest->number)
			oldest = &g->pending[i];
	}
	refuse_connection(g, oldest, unfinished_error(oldest));
	return oldest;
}

static void add_pending(struct cop_portguard *g, int fd, const struct sockaddr_storage *from)
{
	struct pending *h = free_slot(g);
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = h};
	socklen_t len = sizeof(h->at);

	*h = (struct pending){
		.fd = fd, .since_ms = cop_now_ms(), .number = ++g->numbers, .from = *from};
	if (getsockname(fd, (struct sockaddr *)&h->at, &len) ||
		cop_endpoint_greet_challenge(h->challenge) ||
		cop_sock_send(fd, h->challenge, sizeof(h->challenge),
			MSG_DONTWAIT | MSG_NOSIGNAL) != sizeof(h->challenge) ||
		cop_plain_epoll(g->epoll_fd, EPOLL_CTL_ADD, fd, &e)) {
		h->fd = -1;
		cop_plain_close(fd);
		return;
	}
	g->count++;
}

/* ---- letting in ---- */

/* Does nothing if an earlier wake-up has not been accepted yet. */
static void wake_acceptor(struct cop_portguard *g)
{
	socklen_t len = sizeof(g->knock);
	int fd;

	if (g->knock_fd >= 0)
		return;
	fd = socket(g->own.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	len = sizeof(g->own);
	if ((cop_sock_connect(fd, (struct sockaddr *)&g->own, len) && errno != EINPROGRESS) ||
		getsockname(fd, (struct sockaddr *)&g->knock, &len))
		close(fd);
	else
		g->knock_fd = fd;
}

static bool same_port(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	in_port_t port_a, port_b;
	struct cop_ip ip_a, ip_b;

	return cop_ip_of_socket((const struct sockaddr *)a, &ip_a, &port_a) &&
	       cop_ip_of_socket((const struct sockaddr *)b, &ip_b, &port_b) && port_a == port_b &&
	       cop_ip_same(&ip_a, &ip_b);
}

static bool is_knock(struct cop_portguard *g, const struct sockaddr_storage *from)
{
	if (g->knock_fd < 0 || !same_port(&g->knock, from))
		return false;
	close(g->knock_fd);
	g->knock_fd = -1;
	return true;
}

static int pop_passed(struct cop_portguard *g)
{
	int fd = g->passed_count ? g->passed[0] : -1;

	if (fd >= 0)
		memmove(g->passed, g->passed + 1, --g->passed_count * sizeof(g->passed[0]));
	return fd;
}

static struct cop_portguard *guard_of(int listener)
{
	struct cop_portguard *g = guards;

	while (g && g->listener != listener)
		g = g->next;
	return g;
}

/* Under the lock: a connection for the provider, or -1. */
static int accept_guarded(struct cop_portguard *g)
{
	struct sockaddr_storage from = {0};
	socklen_t len = sizeof(from);
	int fd = pop_passed(g);

	if (fd >= 0)
		return fd;
	fd = cop_sock_accept(g->listener, (struct sockaddr *)&from, &len, SOCK_CLOEXEC);
	if (fd < 0)
		return -1;
	if (is_knock(g, &from) || !cop_endpoint_ofi_may_enter(g->listener, fd))
		cop_plain_close(fd);
	else
		add_pending(g, fd, &from);
	errno = EAGAIN;
	return -1;
}

/* To the provider this looks like a connection that was closed before accept. */
int accept(int listener, __SOCKADDR_ARG at, socklen_t *restrict len)
{
	struct cop_portguard *g;
	bool closed;
	int fd, code;

	pthread_mutex_lock(&lock);
	g = guard_of(listener);
	closed = listener == undecided;
	errno = EAGAIN;
	fd = g ? accept_guarded(g) : -1;
	code = errno;
	pthread_mutex_unlock(&lock);
	if (!g && !closed) {
		fd = cop_sock_accept(listener, at.__sockaddr__, len, 0);
		if (fd < 0 || cop_endpoint_ofi_may_enter(listener, fd))
			return fd;
		cop_plain_close(fd);
		fd = -1;
		code = EAGAIN;
	} else if (fd >= 0 && len) {
		getpeername(fd, at, len);
	}
	errno = code;
	return fd;
}

/* ---- pending greetings ---- */

/* The peer has answered. The proof is sent before any byte from the provider. */
static void pass_connection(struct cop_portguard *g, struct pending *h)
{
	uint8_t proof[COP_GREET_PROOF];
	int fd = h->fd,
	    rc = cop_endpoint_greet_check_answer(&g->key, h->challenge, &h->at, h->in, proof);

	if (rc) {
		refuse_connection(g, h, rc);
		return;
	}
	release_pending(g, h);
	if (g->passed_count == COP_PORTGUARD_PENDING_MAX ||
		cop_sock_send(fd, proof, sizeof(proof), MSG_DONTWAIT | MSG_NOSIGNAL) !=
			sizeof(proof))
		cop_plain_close(fd);
	else
		g->passed[g->passed_count++] = fd;
}

/* Reads no byte beyond the answer: the following bytes are the provider's. */
static void continue_greeting(struct cop_portguard *g, struct pending *h)
{
	ssize_t n =
		cop_sock_recv(h->fd, h->in + h->in_len, sizeof(h->in) - h->in_len, MSG_DONTWAIT);
	const uint8_t magic[4] = {'C', 'O', 'P', 'G'};

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 && !h->in_len) {
		forget_pending(g, h);
		return;
	}
	h->in_len += n > 0 ? (size_t)n : 0;
	if (n <= 0 || memcmp(h->in, magic, COP_MIN(h->in_len, sizeof(magic))))
		refuse_connection(g, h, -EBADMSG);
	else if (h->in_len == sizeof(h->in))
		pass_connection(g, h);
}

static void drop_late(struct cop_portguard *g)
{
	uint64_t now_ms = cop_now_ms();

	for (unsigned i = 0; i < COP_PORTGUARD_PENDING_MAX; i++)
		if (g->pending[i].fd >= 0 &&
			now_ms - g->pending[i].since_ms >= COP_PORTGUARD_PENDING_MS)
			refuse_connection(g, &g->pending[i], unfinished_error(&g->pending[i]));
}

bool cop_portguard_turn(struct cop_portguard *g)
{
	struct epoll_event events[32];
	bool more;
	int n;

	if (!g || (!atomic_load_explicit(&g->count, memory_order_relaxed) && !g->passed_count))
		return false;
	pthread_mutex_lock(&lock);
	n = epoll_wait(g->epoll_fd, events, (int)COP_ARRAY_SIZE(events), 0);
	for (int i = 0; i < n; i++) {
		struct pending *h = events[i].data.ptr;

		if (h->fd >= 0)
			continue_greeting(g, h);
	}
	drop_late(g);
	more = g->passed_count > 0;
	if (more)
		wake_acceptor(g);
	pthread_mutex_unlock(&lock);
	return more;
}

int cop_portguard_fd(const struct cop_portguard *g)
{
	return g ? g->epoll_fd : -1;
}

/* ---- start and stop ---- */

int cop_portguard_start(int listener, const struct cop_greet_key *key, struct cop_stats *rejected,
	struct cop_portguard **out)
{
	struct cop_portguard *g = calloc(1, sizeof(*g));
	socklen_t len = sizeof(g->own);
	int rc;

	if (!g)
		return -ENOMEM;
	*g = (struct cop_portguard){
		.listener = listener, .knock_fd = -1, .key = *key, .rejected = rejected};
	for (unsigned i = 0; i < COP_PORTGUARD_PENDING_MAX; i++)
		g->pending[i].fd = -1;
	g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (g->epoll_fd < 0 || getsockname(listener, (struct sockaddr *)&g->own, &len)) {
		rc = -errno;
		if (g->epoll_fd >= 0)
			close(g->epoll_fd);
		free(g);
		return rc;
	}
	pthread_mutex_lock(&lock);
	g->next = guards;
	guards = g;
	undecided = -1;
	pthread_mutex_unlock(&lock);
	*out = g;
	return 0;
}

void cop_portguard_stop(struct cop_portguard *g)
{
	struct cop_portguard **at = &guards;

	if (!g)
		return;
	pthread_mutex_lock(&lock);
	while (*at && *at != g)
		at = &(*at)->next;
	if (*at)
		*at = g->next;
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < COP_PORTGUARD_PENDING_MAX; i++)
		if (g->pending[i].fd >= 0)
			cop_plain_close(g->pending[i].fd);
	while (g->passed_count)
		cop_plain_close(pop_passed(g));
	if (g->knock_fd >= 0)
		close(g->knock_fd);
	close(g->epoll_fd);
	free(g);
}
