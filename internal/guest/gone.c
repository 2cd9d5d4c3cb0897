/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a node that does not answer is dead or out of reach. That it is dead is believed where
 * its machine says that nobody listens at the node's port; but so does many a firewall, hence only
 * of this machine, or when others of the tree were reached. */
#include "guest/guest_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE_MS 1000

bool cop_guest_address_of(const char *name, struct sockaddr_in *out)
{
	*out = (struct sockaddr_in){.sin_family = AF_INET};
	return cop_host_address(name, &out->sin_addr, NULL) == 0;
}

static bool is_here(const struct sockaddr_in *at)
{
	struct sockaddr_in self = {.sin_family = AF_INET, .sin_addr = at->sin_addr};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool here = fd >= 0 && bind(fd, (struct sockaddr *)&self, sizeof(self)) == 0;

	if (fd >= 0)
		close(fd);
	return here;
}

/* 0: somebody listens there; -errno. */
static int try_port(uint64_t deadline_ms, struct sockaddr_in at, uint16_t port)
{
	uint64_t now = cop_now_ms();
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(error);

	if (fd < 0)
		return -errno;
	at.sin_port = htons(port);
	if (now >= deadline_ms)
		error = ETIMEDOUT;
	else if (connect(fd, (struct sockaddr *)&at, sizeof(at)) && errno != EINPROGRESS)
		error = errno;
	else if (poll(&p, 1, (int)COP_MIN(deadline_ms - now, (uint64_t)PROBE_MS)) <= 0)
		error = ETIMEDOUT;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size))
		error = errno;
	close(fd);
	return -error;
}

/* Where a rank listens: its rendezvous, or what the book says of it. */
static bool places_of(const struct guest *g, uint32_t rank, char name[256], uint16_t port[2])
{
	const struct cop_job_host *h = &g->hosts.host[rank];
	const char *book = cop_reach_in_book(g->reach, rank);

	port[0] = h->port;
	port[1] = h->second_port;
	snprintf(name, 256, "%s", h->name);
	if (!book)
		return true;
	port[1] = 0;
	return sscanf(book, "ofi+tcp://%255[^:]:%hu", name, &port[0]) == 2;
}

bool cop_guest_is_gone(
	const struct guest *g, uint32_t rank, bool others, char why[COP_GUEST_GONE_WHY])
{
	struct sockaddr_in at;
	uint16_t port[2];
	char name[256];
	int rc = 0;

	if (!places_of(g, rank, name, port) || !cop_guest_address_of(name, &at)) {
		snprintf(why, COP_GUEST_GONE_WHY,
			"was not reached and may still run: it has no address that can be checked from here");
		return false;
	}
	for (int i = 0; i < 2 && port[i]; i++) {
		rc = try_port(g->deadline_ms, at, port[i]);
		if (rc != -ECONNREFUSED)
			break;
	}
	if (rc == -ECONNREFUSED && (others || is_here(&at))) {
		snprintf(why, COP_GUEST_GONE_WHY,
			"%sdoes not run: it was stopped before, or was killed",
			g->tree.left_count ? "did not answer the last stop, and " : "");
		return true;
	}
	if (rc)
		snprintf(why, COP_GUEST_GONE_WHY, "was not reached and may still run: port %u: %s",
			port[0], strerror(-rc));
	else
		snprintf(why, COP_GUEST_GONE_WHY,
			"did not answer and may still run: something listens on port %u that hangs, or is not a node with this secret",
			port[0]);
	return false;
}
