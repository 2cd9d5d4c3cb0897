/* SPDX-License-Identifier: BSD-3-Clause */
/* The connecting side. The provider's first bytes on a new connection are held back. When the
 * challenge arrives, the answer is sent, followed by these bytes. Until the proof arrives, recv
 * reports no data.
 *
 * A descriptor is identified by its number and the inode of its socket: the provider may close it
 * at any time, and its number is then reused. */
#include <stdatomic.h>

#include "fabric/endpoint/portguard_priv.h"
#include "fabric/endpoint/ofi_priv.h"
#include "fabric/endpoint/plain.h"

/* The provider's first message has a head and at most 256 bytes. */
#define KEPT_MAX 1024

struct address {
	struct address *next;
	struct cop_greet_key key;
	struct cop_stats *rejected;
	_Alignas(struct sockaddr_in6) unsigned char raw[sizeof(struct sockaddr_in6)];
	size_t len;
};

struct greeting {
	struct greeting *next;
	int fd;
	uint64_t socket; /* its inode */
	struct cop_greet_key key;
	struct cop_stats *rejected;
	struct sockaddr_storage to;
	uint8_t challenge[COP_GREET_CHALLENGE], answer[COP_GREET_ANSWER], proof[COP_GREET_PROOF];
	size_t challenge_len, proof_len;
	bool answered, failed;
	uint8_t kept[KEPT_MAX];
	size_t kept_len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct address *addresses;
static struct greeting *greetings;
static _Atomic unsigned under_way;

/* ---- peers to greet ---- */

int cop_portguard_peer(const struct cop_greet_key *key, struct cop_stats *rejected, const void *raw,
	size_t raw_len)
{
	struct address *a;

	if (raw_len > sizeof(a->raw))
		return 0;
	pthread_mutex_lock(&lock);
	for (a = addresses;
		a && (a->len != raw_len || memcmp(a->raw, raw, raw_len) || a->key.ctx != key->ctx);)
		a = a->next;
	if (!a && (a = calloc(1, sizeof(*a)))) {
		*a = (struct address){
			.next = addresses, .key = *key, .rejected = rejected, .len = raw_len};
		memcpy(a->raw, raw, raw_len);
		addresses = a;
	}
	pthread_mutex_unlock(&lock);
	return a ? 0 : -ENOMEM;
}

/* The lock is held by the caller. */
static void drop_greeting(struct greeting **at)
{
	struct greeting *g = *at;

	*at = g->next;
	free(g);
	under_way--;
}

void cop_portguard_forget(const struct cop_greet_key *key)
{
	pthread_mutex_lock(&lock);
	for (struct address **at = &addresses; *at;) {
		struct address *a = *at;

		if (a->key.ctx == key->ctx) {
			*at = a->next;
			free(a);
		} else {
			at = &a->next;
		}
	}
	for (struct greeting **at = &greetings; *at;)
		if ((*at)->key.ctx == key->ctx)
			drop_greeting(at);
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&lock);
}

static const struct address *address_of(const struct sockaddr *to, socklen_t len)
{
	const struct address *a = addresses;
	struct cop_ip want, have;
	in_port_t want_port, have_port;

	/* The kernel rejects it as well. */
	if (len < (to->sa_family == AF_INET ? sizeof(struct sockaddr_in)
					    : sizeof(struct sockaddr_in6)) ||
		!cop_ip_of_socket(to, &want, &want_port))
		return NULL;
	for (; a; a = a->next)
		if (cop_ip_of_socket((const struct sockaddr *)&a->raw, &have, &have_port) &&
			have_port == want_port && cop_ip_same(&have, &want))
			return a;
	return NULL;
}

/* False: nothing may be sent on this connection. */
static bool begin_greeting(int fd, const struct sockaddr *to, socklen_t len)
{
	const struct address *a;
	struct greeting *g, **at;
	uint64_t inode;

	pthread_mutex_lock(&lock);
	for (at = &greetings; *at;)
		if ((*at)->fd == fd)
			drop_greeting(at);
		else
			at = &(*at)->next;
	a = address_of(to, len);
	g = a && cop_plain_inode(fd, &inode) == 0 ? calloc(1, sizeof(*g)) : NULL;
	if (g) {
		*g = (struct greeting){.next = greetings,
			.fd = fd,
			.socket = inode,
			.key = a->key,
			.rejected = a->rejected};
		memcpy(&g->to, to, COP_MIN(len, sizeof(g->to)));
		greetings = g;
		under_way++;
	}
	pthread_mutex_unlock(&lock);
	return !a || g;
}

int connect(int fd, __CONST_SOCKADDR_ARG to, socklen_t len)
{
	int rc = cop_sock_connect(fd, to.__sockaddr__, len), code = errno;

	if ((rc == 0 || code == EINPROGRESS) &&
		(to.__sockaddr__->sa_family == AF_INET || to.__sockaddr__->sa_family == AF_INET6))
		if (!begin_greeting(fd, to.__sockaddr__, len)) {
			shutdown(fd, SHUT_RDWR);
			rc = -1;
			code = ENOMEM;
		}
	errno = code;
	return rc;
}

/* ---- the greeting: under the lock ---- */

/* Reads what has arrived of a message of this length. 1: complete; 0: not yet; or -errno. */
static int receive_some(int fd, uint8_t *in, size_t *have, size_t len)
{
	ssize_t n = *have < len ? cop_sock_recv(fd, in + *have, len - *have, MSG_DONTWAIT) : 0;

	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	if (n == 0 && *have < len)
		return -ECONNREFUSED;
	*have += (size_t)n;
	return *have == len;
}

/* Sends the answer and the held-back bytes in one call; the other side reads only the answer. */
static int answer_challenge(struct greeting *g)
{
	struct iovec parts[] = {{g->answer, sizeof(g->answer)}, {g->kept, g->kept_len}};
	struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
	int rc = cop_endpoint_greet_answer(&g->key, g->challenge, &g->to, g->answer);

	if (rc)
		return rc;
	g->answered = true;
	return cop_plain_sendmsg(g->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL) ==
			       (ssize_t)(sizeof(g->answer) + g->kept_len)
		       ? 1
		       : -EPIPE;
}

/* 1: the greeting has finished; 0: not yet; or -errno, now and in every later call. */
static int advance_greeting(struct greeting *g)
{
	int rc = 1;

	if (g->failed)
		return -ECONNREFUSED;

	if (!g->answered) {
		rc = receive_some(g->fd, g->challenge, &g->challenge_len, sizeof(g->challenge));
		if (rc == 1)
			rc = answer_challenge(g);
	}
	if (rc == 1)
		rc = receive_some(g->fd, g->proof, &g->proof_len, sizeof(g->proof));
	if (rc == 1)
		rc = cop_endpoint_greet_check_proof(
			     &g->key, g->challenge, &g->to, g->answer, g->proof)
			     ?: 1;
	g->failed = rc < 0;
	if (rc == -EACCES)
		cop_endpoint_ofi_refused(g->rejected, &g->to, rc);
	return rc;
}

static struct greeting **find_greeting(int fd)
{
	struct greeting **at = &greetings;
	uint64_t inode;

	while (*at && (*at)->fd != fd)
		at = &(*at)->next;
	if (*at && (cop_plain_inode(fd, &inode) || inode != (*at)->socket)) {
		drop_greeting(at);
		return NULL;
	}
	return *at ? at : NULL;
}

static ssize_t fail_call(int rc)
{
	errno = rc == -EBADMSG || rc == -EACCES ? ECONNREFUSED : -rc;
	return -1;
}

/* ---- interposed C library functions ---- */

/* Data sent after the answer need not wait for the proof: the provider proceeds only after it has
 * read a reply. */
static ssize_t keep_back(struct greeting *g, const void *data, size_t len)
{
	if (g->answered)
		return cop_sock_send(g->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (len > sizeof(g->kept) - g->kept_len)
		return fail_call(-ENOBUFS);
	memcpy(g->kept + g->kept_len, data, len);
	g->kept_len += len;
	return (ssize_t)len;
}

ssize_t send(int fd, const void *data, size_t len, int flags)
{
	struct greeting **at;
	ssize_t n = 0;

	if (!atomic_load_explicit(&under_way, memory_order_relaxed))
		return cop_sock_send(fd, data, len, flags);
	pthread_mutex_lock(&lock);
	at = find_greeting(fd);
	if (at)
		n = keep_back(*at, data, len);
	pthread_mutex_unlock(&lock);
	return at ? n : cop_sock_send(fd, data, len, flags);
}

ssize_t recv(int fd, void *data, size_t len, int flags)
{
	struct greeting **at;
	int rc = 1;

	if (!atomic_load_explicit(&under_way, memory_order_relaxed))
		return cop_sock_recv(fd, data, len, flags);
	pthread_mutex_lock(&lock);
	at = find_greeting(fd);
	if (at && (rc = advance_greeting(*at)) == 1)
		drop_greeting(at);
	pthread_mutex_unlock(&lock);
	if (rc == 1)
		return cop_sock_recv(fd, data, len, flags);
	return fail_call(rc ? rc : -EAGAIN);
}
