/* SPDX-License-Identifier: BSD-3-Clause */
/* A few nodes on a fake network, for this directory's tests. */
#ifndef COP_FABRIC_RPC_TESTING_H
#define COP_FABRIC_RPC_TESTING_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/rpc/rpc_priv.h"

#define T_NODES 4
#define T_RESULTS 4096
#define T_HELD 4096

enum {
	T_ECHO,    /* head and body are the payload */
	T_BODY,    /* a body of the length in the payload (u32) */
	T_HOLD,    /* kept until t_answer_held */
	T_FAIL,    /* -EACCES with a head */
	T_FORWARD, /* forwards to the next rank before it replies */
	T_UNABLE,  /* has no descriptor left */
	T_KEEP,    /* like T_BODY, with a confirmed answer */
};

struct t_result {
	unsigned times;
	int status;
	bool answered, unable, in_landing;
	size_t head_len, body_len;
	uint64_t body_hash;
	char head[COP_RPC_HEAD_MAX + 1];
};

struct t_world;
struct t_node {
	struct t_world *w;
	uint32_t rank;
	struct cop_rpc *rpc;
	struct cop_stats stats;
	bool mute_resolver, no_address;
	bool lives_on;  /* a look-up finds its process alive even while it is cut */
	unsigned lives; /* restarts, each with another address; part of the name */
	uint64_t config_hash;
	unsigned mismatch;  /* nodes seen with another configuration */
	uint32_t body_mask; /* bounds T_BODY if not 0 */
	unsigned resolves, served, releases, bodies;
	struct cop_rpc_req *held[T_HELD];
	unsigned held_count;
};

struct t_world {
	struct cop_endpoint_net *net;
	struct t_node node[T_NODES];
	struct t_result result[T_RESULTS];
	unsigned results; /* ended calls */
	uint64_t ms;      /* advanced so far */
};

static const struct cop_wire_secret t_secret = {{1, 2, 3}};

static inline void t_name(uint32_t rank, char name[16])
{
	snprintf(name, 16, "n%u", rank);
}

static inline void t_address(const struct t_world *w, uint32_t rank, char text[32])
{
	unsigned lives = w->node[rank].lives;

	snprintf(text, 32, lives ? "fake://n%u.%u" : "fake://n%u", rank, lives);
}

static inline void t_resolve(void *ctx, uint32_t rank, bool silent)
{
	struct t_node *n = ctx;
	char text[32];

	(void)silent;
	n->resolves++;
	if (n->mute_resolver)
		return;
	t_address(n->w, rank, text);
	cop_rpc_resolved(n->rpc, rank, n->no_address ? NULL : text, n->w->node[rank].lives_on);
}

static inline void *t_pattern(size_t len)
{
	uint8_t *p = malloc(len ? len : 1);

	for (size_t i = 0; p && i < len; i++)
		p[i] = (uint8_t)(i * 31 + (i >> 8) * 7 + len);
	return p;
}

static inline uint64_t t_pattern_hash(size_t len)
{
	void *p = t_pattern(len);
	uint64_t hash = cop_hash64(p, len, 0);

	free(p);
	return hash;
}

struct t_body {
	struct t_node *n;
	void *data;
};

static inline void t_release(void *arg)
{
	struct t_body *b = arg;

	b->n->releases++;
	free(b->data);
	free(b);
}

static inline void t_answer_body(struct t_node *n, struct cop_rpc_req *q, size_t len)
{
	struct t_body *b = calloc(1, sizeof(*b));
	struct cop_rpc_answer a = {.head = "head",
		.head_len = 4,
		.body_len = len,
		.release = t_release,
		.release_arg = b};

	if (!b)
		abort();
	b->n = n;
	a.confirm = cop_rpc_req_op(q) == T_KEEP;
	a.body = b->data = t_pattern(len);
	n->bodies++;
	cop_rpc_reply(q, &a);
}

static inline void t_done(void *arg, const struct cop_rpc_result *r)
{
	struct t_result *t = arg;

	t->times++;
	t->status = r->status;
	t->answered = r->answered;
	t->unable = r->unable;
	t->in_landing = r->in_landing;
	t->head_len = r->head_len;
	t->body_len = r->body_len;
	t->body_hash = r->body ? cop_hash64(r->body, r->body_len, 0) : 0;
	if (r->head_len)
		memcpy(t->head, r->head, r->head_len);
}

struct t_forward {
	struct cop_rpc_req *q;
};

static inline void t_forwarded(void *arg, const struct cop_rpc_result *r)
{
	struct t_forward *f = arg;
	struct cop_rpc_answer a = {.status = r->status, .head = r->head, .head_len = r->head_len};

	cop_rpc_reply(f->q, &a);
	free(f);
}

static inline void t_forward(struct t_node *n, struct cop_rpc_req *q)
{
	struct t_forward *f = calloc(1, sizeof(*f));
	struct cop_rpc_call c = {
		.rank = n->rank + 1, .op = T_FORWARD, .done = t_forwarded, .arg = f};

	if (!f)
		abort();
	f->q = q;
	c.payload = cop_rpc_req_payload(q, &c.payload_len);
	if (n->rank + 2 == T_NODES)
		c.op = T_ECHO;
	cop_rpc_call(n->rpc, &c);
}

static inline void t_serve(void *ctx, struct cop_rpc_req *q)
{
	struct t_node *n = ctx;
	struct cop_rpc_answer a = {.head = "no", .head_len = 2};
	size_t len;
	const void *payload = cop_rpc_req_payload(q, &len);
	struct cop_rd rd = cop_rd_init(payload, len);

	n->served++;
	switch (cop_rpc_req_op(q)) {
	case T_ECHO:
		a.head = payload;
		a.head_len = COP_MIN(len, COP_RPC_HEAD_MAX);
		cop_rpc_reply(q, &a);
		break;
	case T_BODY:
	case T_KEEP:
		len = cop_rd_u32(&rd);
		t_answer_body(n, q, n->body_mask ? len & n->body_mask : len);
		break;
	case T_HOLD:
		if (n->held_count == T_HELD)
			abort();
		n->held[n->held_count++] = q;
		break;
	case T_FORWARD:
		t_forward(n, q);
		break;
	case T_UNABLE:
		a.status = -EMFILE;
		a.unable = true;
		cop_rpc_reply(q, &a);
		break;
	default:
		a.status = -EACCES;
		cop_rpc_reply(q, &a);
		break;
	}
}

static inline void t_answer_held(struct t_node *n)
{
	struct cop_rpc_answer a = {.head = "held", .head_len = 4};

	for (unsigned i = 0; i < n->held_count; i++)
		cop_rpc_reply(n->held[i], &a);
	n->held_count = 0;
}

static inline void t_mismatch(void *ctx, uint32_t rank)
{
	struct t_node *n = ctx;

	(void)rank;
	n->mismatch++;
}

static inline int t_open(struct t_world *w, uint32_t rank, const struct cop_wire_secret *secret)
{
	struct t_node *n = &w->node[rank];
	struct cop_rpc_conf conf = {.rank = rank,
		.nodes = T_NODES,
		.secret = *secret,
		.config_hash = n->config_hash,
		.peer_timeout_ms = 3000,
		.stats = &n->stats,
		.ctx = n,
		.resolve = t_resolve,
		.serve = t_serve,
		.mismatch = t_mismatch};
	char text[32];

	n->w = w;
	n->rank = rank;
	t_address(w, rank, text);
	return cop_rpc_open_fake(&conf, w->net, text + strlen("fake://"), &n->rpc);
}

static inline struct t_world *t_new(void)
{
	struct t_world *w = calloc(1, sizeof(*w));

	if (!w || !(w->net = cop_endpoint_net_new()))
		abort();
	for (uint32_t i = 0; i < T_NODES; i++)
		if (t_open(w, i, &t_secret))
			abort();
	return w;
}

static inline void t_close(struct t_world *w, uint32_t rank)
{
	if (w->node[rank].rpc)
		cop_rpc_close(w->node[rank].rpc);
	w->node[rank].rpc = NULL;
}

static inline void t_free(struct t_world *w)
{
	for (uint32_t i = 0; i < T_NODES; i++)
		t_close(w, i);
	for (uint32_t i = 0; i < T_NODES; i++)
		t_answer_held(&w->node[i]);
	cop_endpoint_net_free(w->net);
	free(w);
}

static inline void t_run(struct t_world *w)
{
	cop_endpoint_fake_run(w->net, 1000000);
}

/* Advances the fake clock and runs the network between the ticks. */
static inline void t_advance(struct t_world *w, uint64_t ms)
{
	for (uint64_t i = 0; i < ms; i += 100) {
		cop_endpoint_fake_advance(w->net, 100);
		cop_endpoint_fake_run(w->net, 1000000);
		w->ms += 100;
	}
}

/* Runs until the call has ended; returns the ms of fake time it took, or UINT64_MAX. */
static inline uint64_t t_until(struct t_world *w, const struct t_result *t, uint64_t max_ms)
{
	uint64_t from = w->ms;

	t_run(w);
	while (!t->times && w->ms - from < max_ms)
		t_advance(w, 100);
	return t->times ? w->ms - from : UINT64_MAX;
}

static inline struct t_result *t_next(struct t_world *w)
{
	if (w->results == T_RESULTS)
		abort();
	return &w->result[w->results++];
}

static inline struct t_result *t_call(
	struct t_world *w, uint32_t from, uint32_t to, uint8_t op, const void *payload, size_t len)
{
	struct t_result *t = t_next(w);
	struct cop_rpc_call c = {.rank = to,
		.op = op,
		.payload = payload,
		.payload_len = len,
		.done = t_done,
		.arg = t};

	cop_rpc_call(w->node[from].rpc, &c);
	return t;
}

/* A call that must succeed immediately. */
static inline struct t_result *t_connect(struct t_world *w, uint32_t from, uint32_t to)
{
	struct t_result *t = t_call(w, from, to, T_ECHO, "hi", 2);

	t_run(w);
	if (t->times != 1 || t->status)
		abort();
	return t;
}

static inline struct t_result *t_call_sized(struct t_world *w, uint32_t from, uint32_t to,
	uint8_t op, uint32_t body_len, void *landing, size_t landing_len)
{
	uint8_t want[4];
	struct cop_wr wr = cop_wr_init(want, sizeof(want));
	struct t_result *t = t_next(w);
	struct cop_rpc_call c = {.rank = to,
		.op = op,
		.payload = want,
		.payload_len = 4,
		.landing = landing,
		.landing_len = landing_len,
		.done = t_done,
		.arg = t};

	cop_wr_u32(&wr, body_len);
	cop_rpc_call(w->node[from].rpc, &c);
	return t;
}

static inline struct t_result *t_call_body(struct t_world *w, uint32_t from, uint32_t to,
	uint32_t body_len, void *landing, size_t landing_len)
{
	return t_call_sized(w, from, to, T_BODY, body_len, landing, landing_len);
}

static inline uint64_t t_stat(struct t_world *w, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&w->node[rank].stats, c);
}

/* ---- an unverified peer on the network ---- */

static inline void t_ignore_msg(void *ctx, const void *msg, size_t len)
{
	(void)ctx, (void)msg, (void)len;
}

static inline void t_ignore_tick(void *ctx, uint64_t now_ms)
{
	(void)ctx, (void)now_ms;
}

static inline struct cop_endpoint *t_evil(struct t_world *w)
{
	struct cop_endpoint_conf fc = {.events = {.recv = t_ignore_msg, .tick = t_ignore_tick}};
	struct cop_endpoint *evil = NULL;

	if (cop_endpoint_fake_open(w->net, "evil", &fc, &evil))
		abort();
	return evil;
}

struct t_shot {
	struct cop_endpoint_work work;
	struct cop_endpoint *evil;
	const char *to;
	const void *msg;
	size_t len;
};

static inline void t_shoot_posted(struct cop_endpoint_work *w)
{
	struct t_shot *s = COP_CONTAINER_OF(w, struct t_shot, work);
	cop_endpoint_peer_t peer;

	if (cop_endpoint_peer(s->evil, s->to, &peer) ||
		cop_endpoint_send(s->evil, peer, s->msg, s->len, NULL, NULL))
		abort();
}

static inline void t_shoot(
	struct t_world *w, struct cop_endpoint *evil, const char *to, const void *msg, size_t len)
{
	struct t_shot s = {{.run = t_shoot_posted}, evil, to, msg, len};

	if (cop_endpoint_post(evil, &s.work))
		abort();
	t_run(w);
}

#endif
