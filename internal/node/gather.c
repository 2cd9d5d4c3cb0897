/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation on every node of a subtree, answers summed on the way up. A dead node is passed over: its children
 * are asked directly, so that one node less is one node less. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct gather {
	struct cop_node *node;
	struct task task; /* its path is this struct's own */
	_Atomic uint32_t pending;
	pthread_mutex_t lock; /* over result */
	struct gathered result;
	cop_node_gathered *done;
	void *arg;
};

struct part {
	struct gather *g;
	uint32_t rank;
};

static void ask(struct gather *g, uint32_t rank);

static void finish_one(struct gather *g)
{
	if (atomic_fetch_sub(&g->pending, 1) != 1)
		return;
	g->done(g->arg, &g->result);
	cop_buf_free(&g->result.text);
	free((char *)g->task.path);
	pthread_mutex_destroy(&g->lock);
	free(g);
}

static void merge(struct gathered *into, const struct gathered *from, const char *text, size_t len)
{
	into->nodes += from->nodes;
	into->dead += from->dead;
	cop_stats_sum(&into->stats, &from->stats);
	for (unsigned t = 0; t < COP_TABLES; t++) {
		into->usage.table[t].bytes += from->usage.table[t].bytes;
		into->usage.table[t].entries += from->usage.table[t].entries;
	}
	into->usage.limit_bytes += from->usage.limit_bytes;
	into->usage.used_bytes += from->usage.used_bytes;
	if (!len)
		return;
	if (into->text.len)
		cop_buf_str(&into->text, ",");
	cop_buf_add(&into->text, text, len);
}

/* ---- the answer's body: fixed numbers, then the text ---- */

#define NUMBERS (2 * 4 + 8 * (COP_COUNTERS + 2 * COP_TABLES + 2))

static void encode(const struct gathered *g, uint8_t out[NUMBERS])
{
	struct cop_wr w = cop_wr_init(out, NUMBERS);

	cop_wr_u32(&w, g->nodes);
	cop_wr_u32(&w, g->dead);
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_wr_u64(&w, cop_stats_get(&g->stats, c));
	for (unsigned t = 0; t < COP_TABLES; t++) {
		cop_wr_u64(&w, g->usage.table[t].bytes);
		cop_wr_u64(&w, g->usage.table[t].entries);
	}
	cop_wr_u64(&w, g->usage.limit_bytes);
	cop_wr_u64(&w, g->usage.used_bytes);
}

static bool decode(const void *body, size_t len, struct gathered *g, const char **text, size_t *text_len)
{
	struct cop_rd r = cop_rd_init(body, len);

	g->nodes = cop_rd_u32(&r);
	g->dead = cop_rd_u32(&r);
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(&g->stats, c, cop_rd_u64(&r));
	for (unsigned t = 0; t < COP_TABLES; t++) {
		g->usage.table[t].bytes = cop_rd_u64(&r);
		g->usage.table[t].entries = cop_rd_u64(&r);
	}
	g->usage.limit_bytes = cop_rd_u64(&r);
	g->usage.used_bytes = cop_rd_u64(&r);
	*text = cop_rd_rest(&r, text_len);
	return !r.bad;
}

void cop_node_answer_gathered(struct cop_rpc_req *req, const struct gathered *g)
{
	struct cop_rpc_answer a = {.release = free};
	uint8_t *body = malloc(NUMBERS + g->text.len);

	if (!body || g->text.failed) {
		free(body);
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ENOMEM});
		return;
	}
	encode(g, body);
	if (g->text.len)
		memcpy(body + NUMBERS, g->text.data, g->text.len);
	a.body = body;
	a.body_len = NUMBERS + g->text.len;
	a.release_arg = body;
	cop_rpc_reply(req, &a);
}

/* ---- asking ---- */

static void add_dead(struct gather *g, uint32_t rank)
{
	struct gathered dead = {.dead = 1};
	struct cop_buf text = {0};

	if (g->task.op == OP_STATS) {
		cop_buf_printf(&text, "{\"rank\":%" PRIu32 ",\"host\":", rank);
		cop_buf_json_str(&text, cop_node_host(g->node, rank), strlen(cop_node_host(g->node, rank)));
		cop_buf_str(&text, ",\"dead\":true}");
	} else {
		cop_buf_printf(&text, "%s (rank %" PRIu32 ") did not answer", cop_node_host(g->node, rank), rank);
	}
	pthread_mutex_lock(&g->lock);
	merge(&g->result, &dead, text.data, text.len);
	pthread_mutex_unlock(&g->lock);
	cop_buf_free(&text);
}

static void ask_children(struct gather *g, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT];
	uint32_t n = cop_topo_children(&g->node->topo, 0, rank, child);

	for (uint32_t i = 0; i < n; i++)
		ask(g, child[i]);
}

static void answered(void *arg, const struct cop_rpc_result *r)
{
	struct part *p = arg;
	struct gather *g = p->g;
	struct gathered part = {0};
	const char *text;
	size_t len;

	if (r->status == 0 && decode(r->body, r->body_len, &part, &text, &len)) {
		pthread_mutex_lock(&g->lock);
		merge(&g->result, &part, text, len);
		pthread_mutex_unlock(&g->lock);
	} else {
		add_dead(g, p->rank);
		ask_children(g, p->rank);
	}
	free(p);
	finish_one(g);
}

/* This node itself, met on the way down from a dead ancestor. */
static void self_done(void *arg, struct gathered *own)
{
	struct gather *g = arg;

	pthread_mutex_lock(&g->lock);
	merge(&g->result, own, own->text.data, own->text.len);
	pthread_mutex_unlock(&g->lock);
	finish_one(g);
}

static void ask(struct gather *g, uint32_t rank)
{
	struct cop_rpc_call call = {.rank = rank, .op = g->task.op, .payload = g->task.path,
		.payload_len = strlen(g->task.path), .done = answered};
	struct part *p;

	atomic_fetch_add(&g->pending, 1);
	if (rank == g->node->rank) {
		cop_node_do(g->node, &g->task, self_done, g);
		return;
	}
	p = malloc(sizeof(*p));
	if (!p || !g->node->rpc) {
		free(p);
		add_dead(g, rank);
		finish_one(g);
		return;
	}
	*p = (struct part){g, rank};
	call.arg = p;
	cop_rpc_call(g->node->rpc, &call);
}

static struct gather *new_gather(struct cop_node *n, const struct task *task, cop_node_gathered *done,
	void *arg)
{
	struct gather *g = calloc(1, sizeof(*g));

	if (!g)
		return NULL;
	g->node = n;
	g->task.op = task->op;
	g->task.path = strdup(task->path);
	if (!g->task.path) {
		free(g);
		return NULL;
	}
	g->done = done;
	g->arg = arg;
	/* One for whoever starts it, so that it cannot finish before all are asked. */
	atomic_init(&g->pending, 1);
	pthread_mutex_init(&g->lock, NULL);
	return g;
}

int cop_node_gather(struct cop_node *n, const struct task *task, uint32_t rank, cop_node_gathered *done,
	void *arg)
{
	struct gather *g = new_gather(n, task, done, arg);

	if (!g)
		return -ENOMEM;
	ask(g, rank);
	finish_one(g);
	return 0;
}

int cop_node_gather_below(struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
{
	struct gather *g = new_gather(n, task, done, arg);

	if (!g)
		return -ENOMEM;
	ask_children(g, n->rank);
	finish_one(g);
	return 0;
}
