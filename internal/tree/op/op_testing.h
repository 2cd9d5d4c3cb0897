/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of nodes in one process, for the tests in this directory: the fake network, the real rpc,
 * and nodes that count the operations. All nodes run on one thread. */
#ifndef COP_TREE_OP_TESTING_H
#define COP_TREE_OP_TESTING_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree/op/op_priv.h"
#include "fabric/wire/wire.h"

#define T_NODES 7 /* with a fan-out of 2: 0 above 1 and 2, 1 above 3 and 4, 2 above 5 and 6 */
#define T_CLIENT T_NODES
#define T_ALIVE 34
#define T_TIMEOUT_MS 3000
/* Each node counts its rank plus one, so the sum is 28. */
#define T_COUNTER COP_ORIGIN_OPERATIONS
#define T_ALL 28

struct t_tree;
struct t_node {
	struct t_tree *tree;
	uint32_t rank;
	char name[8], host[32];
	uint64_t config_hash;
	struct cop_stats stats;
	struct cop_rpc *rpc;
	struct cop_gate gate;
	struct cop_defer deferred;
	struct cop_op *op;
	/* how it behaves */
	bool slow;    /* it never unmounts */
	bool holds;   /* its kernel forgets slowly */
	bool starved; /* it has no memory to notify its kernel */
	int status;   /* it answers every operation with this status and has no other effect */
	bool unable;
	const void *body; /* it answers the next `bodies` operations with this body and has no other
			     effect */
	size_t body_len;
	unsigned bodies;
	bool mounted; /* it cannot unmount */
	const char *cannot_write, *cannot_complete, *unwritten, *remark;
	/* what it did */
	unsigned asked, looked, reports, resets, ends, completed; /* looked: liveness probes */
	bool ending, ended;
	char forgot[32];
	unsigned forgot_at;
	void (*then)(void *arg);
	void *then_arg;
	uint32_t wrote_nodes; /* for the root: from its final sum */
	uint64_t wrote_count;
};

struct t_tree {
	struct cop_endpoint_net *net;
	struct t_node node[T_NODES + 1]; /* the last is a client */
	unsigned clock;
	uint8_t flip_type; /* messages of this type from this node are corrupted */
	const char *flip_from;
};

struct t_heard {
	unsigned times;
	struct cop_op_sum sum;
};

static inline struct cop_rpc *t_rpc(void *ctx)
{
	struct t_node *n = ctx;

	return n->rpc;
}

static inline const char *t_host(void *ctx, uint32_t rank)
{
	struct t_node *n = ctx;

	return n->tree->node[rank].host;
}

static inline void t_own(void *ctx, struct cop_op_sum *own, uint8_t op)
{
	struct t_node *n = ctx;

	own->nodes = 1;
	cop_stats_add(&own->stats, T_COUNTER, n->rank + 1);
	own->usage.used_bytes = n->rank;
	own->machine = (struct cop_op_machine){n->rank + 1, n->rank + 1, n->rank, n->rank};
	own->hosts.of[COP_MACHINE_CPU_PERCENT] =
		(struct cop_machine_value){1, n->rank + 1, n->rank + 1};
	if (op != COP_OP_TELEMETRY)
		cop_buf_printf(
			&own->text, op == COP_OP_TABLE ? "row %u" : "{\"rank\":%u}", n->rank);
}

static inline int t_forget(void *ctx, const char *path, void (*then)(void *arg), void *arg)
{
	struct t_node *n = ctx;

	snprintf(n->forgot, sizeof(n->forgot), "%s", path);
	n->forgot_at = ++n->tree->clock;
	if (n->starved)
		return -ENOMEM;
	if (!n->holds) {
		then(arg);
		return 0;
	}
	n->then = then;
	n->then_arg = arg;
	return 0;
}

static inline int t_written(struct t_node *n, struct cop_err *err)
{
	if (!n->cannot_write)
		return 0;
	return *n->cannot_write ? cop_err_set(err, EIO, "%s", n->cannot_write) : -ENOENT;
}

static inline int t_report(void *ctx, struct cop_err *err)
{
	struct t_node *n = ctx;

	n->reports++;
	return t_written(n, err);
}

static inline int t_reset(void *ctx, struct cop_err *err)
{
	struct t_node *n = ctx;

	n->resets++;
	return t_written(n, err);
}

static inline void t_end(void *ctx)
{
	struct t_node *n = ctx;

	n->ends++;
	n->ending = true;
}

static inline int t_complete_sum(void *ctx, struct cop_op_sum *sum, struct cop_err *err)
{
	struct t_node *n = ctx;

	n->completed++;
	cop_stats_add(&sum->stats, T_COUNTER, n->rank + 1);
	if (n->rank == 0) {
		n->wrote_nodes = sum->nodes;
		n->wrote_count = cop_stats_get(&sum->stats, T_COUNTER);
	}
	return n->cannot_complete ? cop_err_set(err, ENOSPC, "%s", n->cannot_complete) : 0;
}

static inline void t_resolve(void *ctx, uint32_t rank, bool silent)
{
	struct t_node *n = ctx;
	char address[32];

	(void)silent;
	snprintf(address, sizeof(address), "fake://%s", n->tree->node[rank].name);
	cop_rpc_resolved(n->rpc, rank, rank < T_NODES ? address : NULL, false);
}

static inline bool t_is_odd(struct t_node *n, struct cop_rpc_req *req)
{
	if (n->bodies) {
		n->bodies--;
		cop_rpc_reply(
			req, &(struct cop_rpc_answer){.body = n->body, .body_len = n->body_len});
		return true;
	}
	if (n->status)
		cop_rpc_reply(
			req, &(struct cop_rpc_answer){.status = n->status, .unable = n->unable});
	return n->status != 0;
}

static inline void t_serve(void *ctx, struct cop_rpc_req *req)
{
	struct t_node *n = ctx;

	if (cop_rpc_req_op(req) == T_ALIVE) {
		n->looked++;
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = 0});
		return;
	}
	n->asked++;
	if (t_is_odd(n, req))
		return;
	if (!cop_gate_enter(&n->gate, COP_GATE_OPEN)) {
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ESHUTDOWN});
		return;
	}
	cop_op_serve(n->op, req);
	cop_gate_leave(&n->gate);
}

static inline void t_wake(void *ctx)
{
	(void)ctx;
}

static inline void t_open(struct t_tree *t, uint32_t rank, uint64_t config_hash)
{
	static const struct cop_op_ops ops = {
		t_rpc, t_host, t_own, t_forget, t_report, t_reset, t_end, t_complete_sum};
	struct t_node *n = &t->node[rank];
	struct cop_rpc_conf rpc = {.rank = rank,
		.nodes = T_NODES + 1,
		.config_hash = config_hash,
		.peer_timeout_ms = T_TIMEOUT_MS,
		.stats = &n->stats,
		.ctx = n,
		.resolve = t_resolve,
		.serve = t_serve};
	struct cop_op_conf conf = {.topo = {T_NODES, 2, 1},
		.rank = rank,
		.peer_timeout_ms = T_TIMEOUT_MS,
		.alive_op = T_ALIVE,
		.ops = &ops,
		.ctx = n,
		.gate = &n->gate,
		.deferred = rank < T_NODES ? &n->deferred : NULL};

	n->tree = t;
	n->rank = rank;
	n->config_hash = config_hash;
	snprintf(n->name, sizeof(n->name), "n%u", rank);
	snprintf(n->host, sizeof(n->host), "host%u", rank);
	cop_gate_init(&n->gate);
	cop_gate_open(&n->gate);
	cop_defer_init(&n->deferred, t_wake, n);
	n->op = cop_op_new(&conf);
	if (!n->op || cop_rpc_open_fake(&rpc, t->net, n->name, &n->rpc))
		abort();
}

static inline bool t_tap(void *arg, const char *from, const char *to, void *msg, size_t len)
{
	struct t_tree *t = arg;
	uint8_t *m = msg;

	(void)to;
	if (t->flip_from && strcmp(from, t->flip_from) == 0 && len > 5 && m[5] == t->flip_type)
		m[len / 2] ^= 1;
	return true;
}

/* odd: this rank was started with other options. */
static inline struct t_tree *t_new_with(uint32_t odd)
{
	struct t_tree *t = calloc(1, sizeof(*t));

	if (!t || !(t->net = cop_endpoint_net_new()))
		abort();
	cop_endpoint_fake_tap(t->net, t_tap, t);
	for (uint32_t r = 0; r <= T_NODES; r++)
		t_open(t, r, r == odd ? 7 : 0);
	return t;
}

static inline struct t_tree *t_new(void)
{
	return t_new_with(T_NODES + 1);
}

/* Does the work of the main threads. */
static inline bool t_main_threads(struct t_tree *t)
{
	bool did = false;

	for (uint32_t r = 0; r < T_NODES; r++) {
		struct t_node *n = &t->node[r];

		cop_defer_run(&n->deferred, false);
		if (n->ending && !n->ended && !n->slow) {
			n->ended = did = true;
			cop_op_ended(n->op, n->remark, n->unwritten, n->mounted);
		}
	}
	return did;
}

/* Runs all pending work without advancing the clock. */
static inline void t_run(struct t_tree *t)
{
	size_t events;

	do
		events = cop_endpoint_fake_run(t->net, 1000000) + t_main_threads(t);
	while (events);
}

/* The same, but advances the clock. */
static inline void t_advance(struct t_tree *t, unsigned ms)
{
	t_run(t);
	for (unsigned at = 0; at < ms; at += 100) {
		cop_endpoint_fake_advance(t->net, 100);
		t_run(t);
	}
}

static inline void t_cut(struct t_tree *t, uint32_t rank)
{
	cop_endpoint_fake_cut(t->net, t->node[rank].name, true);
}

/* Ends the nodes: outstanding requests are answered, and all gates are then empty. */
static inline void t_free(struct t_tree *t)
{
	for (uint32_t r = 0; r <= T_NODES; r++)
		cop_op_ended(t->node[r].op, NULL, NULL, false);
	for (uint32_t r = 0; r <= T_NODES; r++)
		cop_rpc_close(t->node[r].rpc);
	for (uint32_t r = 0; r <= T_NODES; r++) {
		struct t_node *n = &t->node[r];

		cop_defer_run(&n->deferred, true);
		cop_gate_close(&n->gate);
		cop_gate_drain(&n->gate);
		cop_op_free(n->op);
		cop_defer_fini(&n->deferred);
		cop_gate_fini(&n->gate);
	}
	cop_endpoint_net_free(t->net);
	free(t);
}

/* ---- requests ---- */

static inline void t_done(void *arg, struct cop_op_sum *sum)
{
	struct t_heard *h = arg;

	h->times++;
	cop_op_sum_free(&h->sum);
	h->sum = *sum;
	h->sum.prof = NULL;
	h->sum.text = h->sum.silent = (struct cop_buf){0};
	if (sum->silent.len)
		cop_buf_add(&h->sum.silent, sum->silent.data, sum->silent.len);
	cop_buf_add(&h->sum.text, sum->text.data ? sum->text.data : "", sum->text.len);
}

static inline void t_ask_all(
	struct t_tree *t, uint32_t from, uint8_t op, const char *argument, struct t_heard *h)
{
	*h = (struct t_heard){0};
	cop_op_all(t->node[from].op, &(struct cop_op_request){op, argument}, t_done, h);
}

static inline void t_ask_here(struct t_tree *t, uint32_t rank, uint8_t op, const char *argument,
	bool below, struct t_heard *h)
{
	*h = (struct t_heard){0};
	cop_op_here(t->node[rank].op, &(struct cop_op_request){op, argument}, below, t_done, h);
}

static inline uint64_t t_counted(const struct t_heard *h)
{
	return cop_stats_get(&h->sum.stats, T_COUNTER);
}

static inline const char *t_text(const struct t_heard *h)
{
	return h->sum.text.data ? h->sum.text.data : "";
}

static inline void t_forget_heard(struct t_heard *h)
{
	cop_op_sum_free(&h->sum);
}

#endif
