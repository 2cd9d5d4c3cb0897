/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens and closes this end of the network. */
#include "fabric/reach/reach_priv.h"

#define FLUSH_MS 1000

uint64_t cop_reach_config_hash(const struct cop_topo *topo, uint64_t chunk_bytes,
	const char *source, const struct cop_job_hosts *hosts)
{
	char text[4096 + 256];
	int len = snprintf(text, sizeof(text), "%s|%u|%u|%u|%" PRIu64 "|%s", cop_version,
		topo->nodes, topo->fanout, topo->trees, chunk_bytes, source);
	uint64_t hash = cop_hash64(text, (size_t)len, 0);

	for (uint32_t r = 0; r < hosts->count; r++) {
		const struct cop_job_host *h = &hosts->host[r];

		hash = cop_hash64(h->name, strlen(h->name) + 1, hash);
		hash = cop_hash64(&h->port, sizeof(h->port), hash);
	}
	return hash;
}

void cop_reach_tree_name(
	const struct cop_wire_secret *secret, uint64_t config_hash, char out[COP_REACH_TREE_SIZE])
{
	uint8_t tree[32];

	cop_wire_mac(secret, "tree", &config_hash, sizeof(config_hash), tree);
	for (int i = 0; i < 16; i++)
		snprintf(out + 2 * i, 3, "%02x", tree[i]);
}

struct cop_reach *cop_reach_new(const struct cop_reach_conf *conf)
{
	struct cop_reach *r = calloc(1, sizeof(*r));

	if (r)
		r->conf = *conf;
	return r;
}

void cop_reach_free(struct cop_reach *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; r->book && i < r->conf.hosts->count; i++)
		free(r->book[i]);
	free(r->book);
	free(r);
}

/* ---- rpc ---- */

static void fabric_mac(void *ctx, const void *data, size_t len, uint8_t out[32])
{
	struct cop_reach *r = ctx;

	cop_wire_mac(r->conf.secret, "fabric port", data, len, out);
}

static void serve(void *ctx, struct cop_rpc_req *req)
{
	struct cop_reach *r = ctx;

	r->conf.serve(r->conf.ctx, req);
}

static void tick(void *ctx, uint64_t now_ms)
{
	struct cop_reach *r = ctx;

	if (r->conf.tick)
		r->conf.tick(r->conf.ctx, now_ms);
}

static void peer_lags(void *ctx, uint32_t rank, bool lags, uint64_t silent_ms)
{
	struct cop_reach *r = ctx;

	if (r->conf.peer_lags)
		r->conf.peer_lags(r->conf.ctx, rank, lags, silent_ms);
}

static void peer_changed(void *ctx, uint32_t rank, bool lives)
{
	struct cop_reach *r = ctx;

	if (r->conf.peer_changed)
		r->conf.peer_changed(r->conf.ctx, rank, lives);
}

/* A client from an older tree must not keep this tree from starting, so clients are ignored. */
static void mismatch(void *ctx, uint32_t rank)
{
	struct cop_reach *r = ctx;
	bool client = rank >= r->conf.nodes && rank < r->conf.nodes + COP_REACH_CLIENTS;

	if (r->conf.mismatch && !client)
		r->conf.mismatch(r->conf.ctx, rank);
}

int cop_reach_open(struct cop_reach *r, const char *host, struct cop_err *err)
{
	const struct cop_reach_conf *c = &r->conf;
	struct cop_rpc_conf conf = {.rank = c->rank,
		.nodes = c->nodes + COP_REACH_CLIENTS,
		.config_hash = c->config_hash,
		.secret = *c->secret,
		.peer_timeout_ms = c->peer_timeout_ms,
		.stats = c->stats,
		.ctx = r,
		.resolve = cop_reach_resolve,
		.serve = serve,
		.mismatch = mismatch,
		.peer_changed = peer_changed,
		.peer_lags = peer_lags,
		.tick = tick};
	struct cop_endpoint_conf fabric = {.net_type = c->net_type,
		.host = host,
		.address = c->rank < c->nodes ? cop_reach_in_book(r, c->rank) : NULL,
		.port_low = c->port_low,
		.port_high = c->port_high,
		.stats = c->stats};

	/* Without a book, other nodes first contact the rendezvous, which admits them. */
	fabric.admitted_only = !r->book && !c->insecure;
	fabric.mac = c->insecure ? NULL : fabric_mac;
	fabric.mac_ctx = r;
	return cop_rpc_open(&conf, &fabric, c->rpc, err);
}

/* ---- the end of the barrier, and of this node ---- */

void cop_reach_barrier_ended(struct cop_reach *r, bool ready)
{
	struct cop_rendezvous *rendezvous = atomic_load(&r->rendezvous);

	if (ready)
		atomic_store(&r->ready, true);
	if (rendezvous)
		cop_rendezvous_end_asks(rendezvous, r->conf.peer_timeout_ms / 2);
}

void cop_reach_close_door(struct cop_reach *r)
{
	atomic_store(&r->door_closed, true);
}

/* rpc's threads may be inside the rendezvous, which they enter only through r. Once their calls are
 * cancelled, none of them is inside. */
void cop_reach_cancel(struct cop_reach *r)
{
	struct cop_rendezvous *rendezvous = atomic_exchange(&r->rendezvous, NULL);

	if (!*r->conf.rpc)
		return;
	/* Outgoing replies may share a connection with a cancelled call, whose bytes must not
	 * arrive later. */
	cop_endpoint_flush(cop_rpc_fabric(*r->conf.rpc), FLUSH_MS);
	cop_rpc_quiet(*r->conf.rpc);
	cop_rendezvous_stop(rendezvous);
}
