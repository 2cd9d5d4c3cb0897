/* SPDX-License-Identifier: BSD-3-Clause */
/* Decides whether a silent node is dead or only unreachable. It counts as dead if its machine
 * refuses connections to the node's port. Many firewalls refuse connections too, so that is
 * evidence only for nodes on this machine, or if other nodes of the tree were reached. */
#include "base/base/ip.h"
#include "base/base/probe.h"
#include "node/remotestop/remotestop_priv.h"

#define PROBE_MS 1000

/* Returns 0 if a process is listening there, else -errno. */
static int try_port(uint64_t deadline_ms, const struct cop_ip *ip, uint16_t port)
{
	uint64_t end_ms = COP_MIN(deadline_ms, cop_now_ms() + PROBE_MS);
	struct cop_probe p;

	cop_probe_begin(&p, ip, port, end_ms);
	cop_probe_wait(&p);
	return -p.error;
}

/* Where a rank listens: at its rendezvous ports, or at its address in the address book. */
static bool places_of(const struct client *g, uint32_t rank, char name[256], uint16_t port[2])
{
	const struct cop_job_host *h = &g->hosts.host[rank];
	const char *book = cop_reach_in_book(g->reach, rank);

	port[0] = h->port;
	port[1] = h->second_port;
	snprintf(name, 256, "%s", h->name);
	if (!book)
		return true;
	port[1] = 0;
	return sscanf(book, "ofi+tcp://[%255[^]]]:%hu", name, &port[0]) == 2 ||
	       sscanf(book, "ofi+tcp://%255[^:[]:%hu", name, &port[0]) == 2;
}

bool cop_remotestop_is_gone(
	const struct client *g, uint32_t rank, bool others, char why[COP_REMOTESTOP_GONE_WHY])
{
	struct cop_ip at;
	uint16_t port[2];
	char name[256];
	int rc = 0;

	if (!places_of(g, rank, name, port) || cop_host_address(name, &at, NULL)) {
		snprintf(why, COP_REMOTESTOP_GONE_WHY,
			"was not reached and may still run: it has no address that can be checked from here");
		return false;
	}
	for (int i = 0; i < 2 && port[i]; i++) {
		rc = try_port(g->deadline_ms, &at, port[i]);
		if (rc != -ECONNREFUSED)
			break;
	}
	if (rc == -ECONNREFUSED && (others || cop_ip_is_here(&at))) {
		snprintf(why, COP_REMOTESTOP_GONE_WHY,
			"%sdoes not run: it was stopped before, or was killed",
			g->tree.left_count ? "did not answer the last stop, and " : "");
		return true;
	}
	if (rc)
		snprintf(why, COP_REMOTESTOP_GONE_WHY,
			"was not reached and may still run: port %u: %s", port[0], strerror(-rc));
	else
		snprintf(why, COP_REMOTESTOP_GONE_WHY,
			"did not answer and may still run: something listens on port %u that hangs, or is not a node with this secret",
			port[0]);
	return false;
}
