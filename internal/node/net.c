/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's end of the network, and the requests of other nodes, each of which comes in by the
 * gate. */
#include "node/node_priv.h"

#include <errno.h>

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
	[COP_TREEOP_RELEASED] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
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

/* A command that is no node of the tree (guest) may stop it. */
static bool may_ask(const struct cop_node *n, uint32_t rank, uint8_t op)
{
	return rank < n->topo.nodes || op == COP_TREEOP_STOP;
}

static void serve(void *ctx, struct cop_rpc_req *req)
{
	struct cop_node *n = ctx;
	uint8_t op = cop_rpc_req_op(req);

	if (!may_ask(n, cop_rpc_req_rank(req), op)) {
		refuse(req, -EPERM);
	} else if (cop_gate_enter(&n->gate, is_own(op) ? served[op].when : COP_GATE_OPEN)) {
		serve_inside(n, req);
		cop_gate_leave(&n->gate);
	} else {
		refuse(req, -ESHUTDOWN);
	}
}

static void mismatch(void *ctx, uint32_t rank)
{
	struct cop_node *n = ctx;

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

static void looked(void *ctx, uint32_t rank, bool found, const char *why)
{
	struct cop_node *n = ctx;

	(void)found;
	cop_join_no_address(n->join, rank, why);
}

/* ---- opening ---- */

static int make_reach(struct cop_node *n, struct cop_err *err)
{
	struct cop_reach_conf conf = {.rank = n->rank,
		.nodes = n->topo.nodes,
		.hosts = &n->hosts,
		.net_type = n->conf->net_type,
		.job_dir = n->job_dir,
		.insecure = n->conf->insecure,
		.secret = &n->wire_secret,
		.config_hash = n->config_hash,
		.peer_timeout_ms = n->conf->peer_timeout_ms,
		.stats = &n->stats,
		.rpc = &n->rpc,
		.ctx = n,
		.serve = serve,
		.mismatch = mismatch,
		.tick = tick,
		.looked = looked};

	n->reach = cop_reach_new(&conf);
	if (!n->reach)
		return cop_err_set(err, ENOMEM, "out of memory");
	if (!n->conf->address_book || n->conf->discover)
		return 0;
	return cop_reach_use_book(
		n->reach, n->conf->address_book, cop_fabric_net_device(n->conf->net_type), err);
}

int cop_node_open_rpc(struct cop_node *n, struct cop_err *err)
{
	int rc;

	if (n->topo.nodes == 1)
		return 0;
	n->config_hash = cop_reach_config_hash(&n->topo, n->conf->chunk, n->source, &n->hosts);
	rc = make_reach(n, err);
	if (rc)
		return rc;
	if (n->conf->insecure)
		cop_log_warn(
			"not guarded because of --insecure: anyone who reaches the ports of this job can send requests and answers, and end nodes");
	cop_log_info("starting libfabric engine");
	rc = cop_reach_open(n->reach, n->hosts.host[n->rank].name, err);
	if (rc)
		return rc;
	cop_join_use_rpc(n->join, n->rpc);
	cop_log_info("engine started");
	cop_log_info("provider=%s because of --net-type %s",
		cop_fabric_provider(cop_rpc_fabric(n->rpc)), n->conf->net_type);
	cop_log_info("server running at address: %s", cop_fabric_address(cop_rpc_fabric(n->rpc)));
	return 0;
}

int cop_node_open_rendezvous(struct cop_node *n, struct cop_err *err)
{
	return n->reach ? cop_reach_listen(n->reach, err) : 0;
}
