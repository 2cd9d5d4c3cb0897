/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's end of the network: where other nodes are, and their requests, each of which comes in
 * by the gate. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- addresses ---- */

struct found {
	struct cop_node *node;
	uint32_t rank;
};

static void found(void *arg, const char *address, bool lives, const char *why)
{
	struct found *f = arg;

	if (!address)
		cop_log_debug(
			"no address rank=%u lives=%d why=\"%s\"", f->rank, lives, why ? why : "");
	if (f->node->guest) {
		cop_node_guest_looked(f->node, f->rank, address != NULL);
	} else {
		cop_join_no_address(f->node->join, f->rank, address ? NULL : why);
	}
	if (!address && f->node->book)
		address = f->node->book[f->rank];
	cop_rpc_resolved(f->node->rpc, f->rank, address, lives);
	free(f);
}

/* While the tree forms a peer may not be up yet, so it is asked for longer, and again by whoever
 * needs it (join.c); but not without end, for this node may have been restarted while its parent is
 * dead, and its own children wait for its answers. */
static void ask_rendezvous(struct cop_node *n, uint32_t rank)
{
	struct cop_rendezvous *rendezvous = atomic_load(&n->rendezvous);
	struct found *f = malloc(sizeof(*f));
	uint32_t timeout_ms = n->conf->peer_timeout_ms / 2;

	if (n->guest || !cop_join_is_ready(n->join))
		timeout_ms = n->conf->peer_timeout_ms;
	if (!f) {
		cop_rpc_resolved(n->rpc, rank, NULL, false);
		return;
	}
	*f = (struct found){n, rank};
	if (!rendezvous ||
		cop_rendezvous_ask(rendezvous, &n->hosts.host[rank], timeout_ms, found, f))
		found(f, NULL, false, "no rendezvous");
}

/* A book has the address, and does not know who lives. */
static void resolve(void *ctx, uint32_t rank, bool silent)
{
	struct cop_node *n = ctx;

	if (rank >= n->topo.nodes) {
		/* A guest has no place. */
		cop_rpc_resolved(n->rpc, rank, NULL, false);
	} else if (n->book && !silent) {
		cop_rpc_resolved(n->rpc, rank, n->book[rank], false);
	} else if (cop_gate_enter(&n->gate, COP_GATE_STARTING | COP_GATE_OPEN)) {
		ask_rendezvous(n, rank);
		cop_gate_leave(&n->gate);
	} else {
		cop_rpc_resolved(n->rpc, rank, n->book ? n->book[rank] : NULL, false);
	}
}

/* ---- requests ---- */

static void refuse(struct cop_rpc_req *req, int status)
{
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = status});
}

static void serve_treeop(struct cop_node *n, struct cop_rpc_req *req)
{
	cop_treeop_serve(n->treeop, req);
}

static void serve_join(struct cop_node *n, struct cop_rpc_req *req)
{
	if (!cop_join_serve(n->join, req))
		refuse(req, -EOPNOTSUPP);
}

/* What another node is served, and when. While this one starts it holds nothing that could be read,
 * but it is a node of the tree; when it ends, whoever asks it to stop still gets the answer that
 * the others got (treeop). */
static const struct {
	void (*serve)(struct cop_node *n, struct cop_rpc_req *req);
	unsigned when;
} served[] = {
	[COP_JOIN_OP_READY] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_JOIN_OP_BARRIER] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_JOIN_OP_STATE] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_TREEOP_STOP] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN | COP_GATE_CLOSED},
	[COP_TREEOP_STATS] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_TREEOP_INVALIDATE] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_TREEOP_TABLE] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_TREEOP_SNAPSHOT] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_TREEOP_RESET] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_JOIN_OP_TOLD] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
};

static bool is_own(uint8_t op)
{
	return op < COP_ARRAY_SIZE(served) && served[op].serve;
}

/* What is neither this module's nor coop's is of a version to come. */
static void serve_inside(struct cop_node *n, struct cop_rpc_req *req)
{
	uint8_t op = cop_rpc_req_op(req);

	if (is_own(op))
		served[op].serve(n, req);
	else if (!cop_coop_serve(n->coop, req))
		refuse(req, -EOPNOTSUPP);
}

/* A command that is no node of the tree (guest.c) may stop it, and is itself asked for nothing. */
static bool is_for(const struct cop_node *n, uint32_t rank, uint8_t op)
{
	return !n->guest && (rank < n->topo.nodes || op == COP_TREEOP_STOP);
}

static void serve(void *ctx, struct cop_rpc_req *req)
{
	struct cop_node *n = ctx;
	uint8_t op = cop_rpc_req_op(req);

	if (!is_for(n, cop_rpc_req_rank(req), op)) {
		refuse(req, -EPERM);
	} else if (cop_gate_enter(&n->gate, is_own(op) ? served[op].when : COP_GATE_OPEN)) {
		serve_inside(n, req);
		cop_gate_leave(&n->gate);
	} else {
		refuse(req, -ESHUTDOWN);
	}
}

static void differs(void *ctx, uint32_t rank)
{
	struct cop_node *n = ctx;

	/* A guest that knows an older tree is no reason not to start. */
	if (n->guest || (rank >= n->topo.nodes && rank < n->topo.nodes + NODE_GUESTS))
		return;
	if (!cop_gate_enter(&n->gate, COP_GATE_STARTING | COP_GATE_OPEN))
		return;
	cop_join_mismatch(n->join, rank);
	cop_gate_leave(&n->gate);
}

static void tick(void *ctx, uint64_t now_ms)
{
	struct cop_node *n = ctx;

	if (!cop_gate_enter(&n->gate, COP_GATE_OPEN))
		return;
	cop_coop_tick(n->coop, now_ms);
	cop_gate_leave(&n->gate);
}

/* ---- opening ---- */

/* What all nodes of a job must have been started with, since each computes from it who is whose
 * parent and what is asked of whom. */
static uint64_t terms(const struct cop_node *n)
{
	char text[sizeof(n->source) + 256];
	int len = snprintf(text, sizeof(text), "%s|%u|%u|%u|%" PRIu64 "|%s", cop_version,
		n->topo.nodes, n->topo.fanout, n->topo.stripes, n->conf->chunk, n->source);
	uint64_t hash = cop_hash64(text, (size_t)len, 0);

	for (uint32_t r = 0; r < n->hosts.count; r++) {
		const struct cop_job_host *h = &n->hosts.host[r];

		hash = cop_hash64(h->name, strlen(h->name) + 1, hash);
		hash = cop_hash64(&h->port, sizeof(h->port), hash);
	}
	return hash;
}

static void fabric_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	struct cop_node *n = ctx;

	cop_wire_mac(&n->wire_secret, "fabric port", data, len, out);
}

int cop_node_open_network(
	struct cop_node *n, const char *host, const char *address, struct cop_err *err)
{
	struct cop_rpc_conf conf = {.rank = n->rank,
		.nodes = n->topo.nodes + NODE_GUESTS,
		.terms = n->terms,
		.secret = n->wire_secret,
		.peer_timeout_ms = n->conf->peer_timeout_ms,
		.stats = &n->stats,
		.ctx = n,
		.resolve = resolve,
		.serve = serve,
		.differs = differs,
		.tick = tick};
	struct cop_fabric_conf fabric = {.net_type = n->conf->net_type,
		.host = host,
		.address = address,
		.stats = &n->stats};

	/* Others first come to the rendezvous, which a book makes needless. */
	fabric.admitted_only = !n->book && !n->conf->insecure;
	fabric.mac = n->conf->insecure ? NULL : fabric_mac;
	fabric.mac_ctx = n;
	return cop_rpc_open(&conf, &fabric, &n->rpc, err);
}

int cop_node_open_rpc(struct cop_node *n, struct cop_err *err)
{
	int rc;

	if (n->topo.nodes == 1)
		return 0;
	rc = cop_node_load_book(n, err);
	if (rc)
		return rc;
	n->terms = terms(n);
	if (n->conf->insecure)
		cop_log_warn(
			"not guarded because of --insecure: whoever reaches the ports of this job can ask, answer and end nodes");
	cop_log_info("starting libfabric engine");
	rc = cop_node_open_network(
		n, n->hosts.host[n->rank].name, n->book ? n->book[n->rank] : NULL, err);
	if (!rc)
		cop_join_use_rpc(n->join, n->rpc);
	if (!rc)
		cop_log_info("engine started");
	if (!rc)
		cop_log_info("provider=%s because of --net-type %s",
			cop_fabric_provider(cop_rpc_fabric(n->rpc)), n->conf->net_type);
	if (!rc)
		cop_log_info("server running at address: %s",
			cop_fabric_address(cop_rpc_fabric(n->rpc)));
	return rc;
}
