/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes whether the children are reachable. They report readiness over bidirectional connections
 * that they open themselves, so a firewall that blocks their own port would go unnoticed until much
 * later, when a node in between has died or another node sends a request. Therefore each rank
 * probes the fabric ports of its children as soon as the tree is ready. Main thread, except for the
 * first function. */
#include "tree/start/start_priv.h"

/* Long enough for TCP to retransmit a lost packet after a second. Only a port that does not answer
 * takes this long. */
#define WAY_MS 1500
#define LOOK_MS 10

void cop_start_way_note(struct cop_start *j, uint32_t rank, const char *address, size_t len)
{
	uint32_t child[COP_TOPO_MAX_FANOUT],
		count = cop_topo_children(&j->conf.topo, 0, j->conf.rank, child);

	for (uint32_t i = 0; i < count; i++)
		if (child[i] == rank && len < sizeof(j->below[i].at))
			snprintf(j->below[i].at, sizeof(j->below[i].at), "%.*s", (int)len, address);
}

void cop_start_way_begin(struct cop_start *j, uint64_t now_ms)
{
	bool ready = cop_start_is_ready(j);
	struct cop_ip ip, own;
	uint16_t port;
	/* The children know this node by its fabric address and reject connections from other
	 * hosts. */
	struct cop_rpc *rpc = cop_start_rpc(j);
	bool has_own =
		rpc && cop_probe_address(cop_endpoint_address(cop_rpc_fabric(rpc)), &own, &port);

	pthread_mutex_lock(&j->lock);
	for (uint32_t i = 0; i < COP_TOPO_MAX_FANOUT; i++) {
		struct below *b = &j->below[i];

		b->tried = ready && cop_probe_address(b->at, &ip, &port);
		if (b->tried)
			cop_probe_begin_from(
				&b->way, has_own ? &own : NULL, &ip, port, now_ms + WAY_MS);
	}
	pthread_mutex_unlock(&j->lock);
}

unsigned cop_start_way_left_ms(struct cop_start *j, uint64_t now_ms)
{
	bool waits = false;

	for (uint32_t i = 0; i < COP_TOPO_MAX_FANOUT; i++)
		waits |= j->below[i].tried &&
			 cop_probe_look(&j->below[i].way, now_ms) == COP_PROBE_WAITS;
	return waits ? LOOK_MS : 0;
}

void cop_start_way_end(struct cop_start *j)
{
	for (uint32_t i = 0; i < COP_TOPO_MAX_FANOUT; i++)
		if (j->below[i].tried)
			cop_probe_end(&j->below[i].way);
}

bool cop_start_blocked_below(struct cop_start *j, uint32_t *i, char *out, size_t size)
{
	uint32_t child[COP_TOPO_MAX_FANOUT],
		count = cop_topo_children(&j->conf.topo, 0, j->conf.rank, child);

	for (; *i < count; ++*i) {
		const struct below *b = &j->below[*i];

		if (!b->tried ||
			(b->way.state != COP_PROBE_SILENT && b->way.state != COP_PROBE_REFUSED))
			continue;
		pthread_mutex_lock(&j->lock);
		snprintf(out, size,
			"%s (rank %" PRIu32
			"): new connections to its fabric address %s do not get through (%s): the tree uses the connection that this node opened itself, but no other node can ask it, as they must when a node dies; open the port, or choose open ones with --fabric-port",
			cop_start_host(j, child[*i]), child[*i], b->at, cop_probe_why(&b->way));
		pthread_mutex_unlock(&j->lock);
		++*i;
		return true;
	}
	return false;
}
