/* SPDX-License-Identifier: BSD-3-Clause */
#include "node/node/net_priv.h"

#include "base/log/log.h"

#define FLUSH_MS 1000

bool cop_net_compresses(const struct cop_conf *conf, struct cop_rpc *rpc)
{
	if (conf->compress != COP_CONF_COMPRESS_AUTO)
		return conf->compress == COP_CONF_COMPRESS_ON;
	return rpc && cop_endpoint_is_slower_than_lz4(cop_endpoint_address(cop_rpc_fabric(rpc)));
}

/* ---- requests ---- */

static void refuse_request(struct cop_rpc_req *req, int status)
{
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = status});
}

static void serve_treeop(struct cop_net *n, struct cop_rpc_req *req)
{
	cop_op_serve(n->conf.treeop, req);
}

static void serve_join(struct cop_net *n, struct cop_rpc_req *req)
{
	if (!cop_start_serve(n->conf.join, req))
		refuse_request(req, -EOPNOTSUPP);
}

static void serve_sampler(struct cop_net *n, struct cop_rpc_req *req)
{
	cop_sampler_serve(n->conf.sampler, req);
}

/* Which requests from other nodes are served in which state. A starting node cannot serve reads
 * yet, but already takes part in the tree. A stopping node still answers stop requests, with the
 * same reply that earlier requesters received (tree/op). */
static const struct {
	void (*serve)(struct cop_net *n, struct cop_rpc_req *req);
	unsigned when;
} served[] = {
	[COP_START_OP_READY] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_START_OP_BARRIER] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_START_OP_STATE] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_STOP] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN | COP_GATE_CLOSED},
	[COP_OP_STATS] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_INVALIDATE] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_TABLE] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_SNAPSHOT] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_RESET] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_RELEASED] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_RELEASED_BELOW] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_OP_TELEMETRY] = {serve_treeop, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_SAMPLER_OP] = {serve_sampler, COP_GATE_STARTING | COP_GATE_OPEN},
	[COP_START_OP_TOLD] = {serve_join, COP_GATE_STARTING | COP_GATE_OPEN},
};

static bool is_own(uint8_t op)
{
	return op < COP_ARRAY_SIZE(served) && served[op].serve;
}

/* An operation that neither this module nor fetch knows comes from a later version. */
static void serve_inside(struct cop_net *n, struct cop_rpc_req *req)
{
	uint8_t op = cop_rpc_req_op(req);

	if (is_own(op))
		served[op].serve(n, req);
	else if (!cop_fetch_serve(n->fetch, req))
		refuse_request(req, -EOPNOTSUPP);
}

/* A command that is not a node of the tree (a client) may only stop the tree and request the state
 * of its nodes. */
static bool may_ask(const struct cop_net *n, uint32_t rank, uint8_t op)
{
	return rank < n->conf.topo.nodes || op == COP_OP_STOP || op == COP_OP_STATS ||
	       op == COP_OP_TABLE;
}

void cop_net_serve(void *ctx, struct cop_rpc_req *req)
{
	struct cop_net *n = ctx;
	uint8_t op = cop_rpc_req_op(req);

	if (!may_ask(n, cop_rpc_req_rank(req), op)) {
		refuse_request(req, -EPERM);
	} else if (cop_gate_enter(n->conf.gate, is_own(op) ? served[op].when : COP_GATE_OPEN)) {
		serve_inside(n, req);
		cop_gate_leave(n->conf.gate);
	} else {
		refuse_request(req, -ESHUTDOWN);
	}
}

static void mismatch(void *ctx, uint32_t rank)
{
	struct cop_net *n = ctx;

	if (!cop_gate_enter(n->conf.gate, COP_GATE_STARTING | COP_GATE_OPEN))
		return;
	cop_start_mismatch(n->conf.join, rank);
	cop_gate_leave(n->conf.gate);
}

static void no_way(void *ctx, uint32_t rank, const char *why)
{
	struct cop_net *n = ctx;

	if (!cop_gate_enter(n->conf.gate, COP_GATE_STARTING | COP_GATE_OPEN))
		return;
	cop_start_no_way(n->conf.join, rank, why);
	cop_gate_leave(n->conf.gate);
}

static void tick(void *ctx, uint64_t now_ms)
{
	struct cop_net *n = ctx;

	if (!cop_gate_enter(n->conf.gate, COP_GATE_OPEN))
		return;
	cop_fetch_tick(n->fetch, now_ms);
	cop_gate_leave(n->conf.gate);
}

static void looked(void *ctx, uint32_t rank, const char *address, const char *why)
{
	struct cop_net *n = ctx;

	cop_start_looked(n->conf.join, rank, address, why);
}

static void peer_changed(void *ctx, uint32_t rank, bool lives)
{
	struct cop_net *n = ctx;

	cop_sampler_peer(n->conf.sampler, rank, lives);
	cop_telemetry_event(n->conf.telemetry,
		lives ? COP_TELEMETRY_PEER_BACK : COP_TELEMETRY_PEER_DEAD, "rank %u (%s)", rank,
		cop_job_host_name(n->conf.hosts, rank));
}

static void peer_lags(void *ctx, uint32_t rank, bool lags, uint64_t silent_ms)
{
	struct cop_net *n = ctx;
	const char *host = cop_job_host_name(n->conf.hosts, rank);

	if (lags)
		cop_telemetry_event(n->conf.telemetry, COP_TELEMETRY_PEER_LAGS,
			"rank %u (%s) was silent for %llu ms; others are asked until it has answered pings for 10 s",
			rank, host, (unsigned long long)silent_ms);
	else
		cop_telemetry_event(n->conf.telemetry, COP_TELEMETRY_PEER_BACK,
			"rank %u (%s) has answered pings for 10 s", rank, host);
}

/* ---- opening ---- */

static int make_reach(struct cop_net *n, struct cop_err *err)
{
	const struct cop_net_conf *c = &n->conf;
	struct cop_reach_conf conf = {.rank = c->rank,
		.nodes = c->topo.nodes,
		.hosts = c->hosts,
		.net_type = c->conf->net_type,
		.port_low = c->conf->fabric_port_low,
		.port_high = c->conf->fabric_port_high,
		.job_dir = c->job_dir,
		.insecure = c->conf->insecure,
		.secret = c->secret,
		.config_hash = c->config_hash,
		.peer_timeout_ms = c->conf->peer_timeout_ms,
		.stats = c->stats,
		.rpc = c->rpc,
		.ctx = n,
		.serve = cop_net_serve,
		.mismatch = mismatch,
		.no_way = no_way,
		.tick = tick,
		.peer_changed = peer_changed,
		.peer_lags = peer_lags,
		.looked = looked};

	n->reach = cop_reach_new(&conf);
	if (!n->reach)
		return cop_err_set(err, ENOMEM, "out of memory");
	if (!c->conf->address_book || c->conf->discover)
		return 0;
	return cop_reach_use_book(
		n->reach, c->conf->address_book, cop_endpoint_net_device(c->conf->net_type), err);
}

struct cop_net *cop_net_new(const struct cop_net_conf *conf)
{
	struct cop_net *n = calloc(1, sizeof(*n));

	if (n)
		n->conf = *conf;
	return n;
}

int cop_net_open(struct cop_net *n, struct cop_err *err)
{
	const struct cop_net_conf *c = &n->conf;
	struct cop_endpoint *fabric;
	int rc = make_reach(n, err);

	if (rc)
		return rc;
	if (c->conf->insecure)
		cop_log_warn(
			"not guarded because of --insecure: anyone who reaches the ports of this job can send requests and answers, and end nodes");
	cop_log_info("starting libfabric engine");
	rc = cop_reach_open(n->reach, c->hosts->host[c->rank].name, err);
	if (rc)
		return rc;
	fabric = cop_rpc_fabric(*c->rpc);
	cop_start_use_rpc(c->join, *c->rpc);
	cop_log_info("engine started");
	cop_log_info("provider=%s because of --net-type %s", cop_endpoint_provider(fabric),
		c->conf->net_type);
	cop_log_info("server running at address: %s", cop_endpoint_address(fabric));
	return 0;
}

int cop_net_listen(struct cop_net *n, struct cop_err *err)
{
	return cop_reach_listen(n->reach, err);
}

void cop_net_use_fetch(struct cop_net *n, struct cop_fetch *fetch)
{
	n->fetch = fetch;
}

bool cop_net_is_duplicate(const struct cop_net *n)
{
	return n && n->reach && cop_reach_is_duplicate(n->reach);
}

void cop_net_barrier_ended(struct cop_net *n, bool ready)
{
	if (n && n->reach)
		cop_reach_barrier_ended(n->reach, ready);
}

/* ---- leaving ---- */

void cop_net_close_door(struct cop_net *n)
{
	if (n && n->reach)
		cop_reach_close_door(n->reach);
}

void cop_net_cancel(struct cop_net *n)
{
	if (n && n->reach)
		cop_reach_cancel(n->reach);
}

void cop_net_flush(struct cop_net *n)
{
	if (n && *n->conf.rpc)
		cop_endpoint_flush(cop_rpc_fabric(*n->conf.rpc), FLUSH_MS);
}

void cop_net_close(struct cop_net *n)
{
	if (n && *n->conf.rpc)
		cop_rpc_close(*n->conf.rpc);
}

void cop_net_free(struct cop_net *n)
{
	if (n)
		cop_reach_free(n->reach);
	free(n);
}
