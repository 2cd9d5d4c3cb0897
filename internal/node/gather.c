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
	struct cop_node *n;

	if (atomic_fetch_sub(&g->pending, 1) != 1)
		return;
	n = g->node;
	g->done(g->arg, &g->result);
	cop_node_gathered_free(&g->result);
	free((char *)g->task.path);
	pthread_mutex_destroy(&g->lock);
	free(g);
	cop_node_gate_leave(&n->gate);
}

void cop_node_gathered_free(struct gathered *g)
{
	cop_buf_free(&g->text);
	cop_prof_sum_free(g->prof);
	*g = (struct gathered){0};
}

void cop_node_gathered_add(struct gathered *into, const struct gathered *from, char separator)
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
	if (from->text.len && into->text.len)
		cop_buf_add(&into->text, &separator, 1);
	cop_buf_add(&into->text, from->text.data ? from->text.data : "", from->text.len);
	if (!from->prof)
		return;
	if (!into->prof)
		into->prof = cop_prof_sum_new();
	/* What is missing then can be told from the number of nodes in the sums. */
	if (!into->prof || cop_prof_merge(into->prof, from->prof))
		cop_log_error("no memory for the sums of nodes=%" PRIu64, cop_prof_sum_nodes(from->prof));
}

static void add(struct gather *g, const struct gathered *part)
{
	pthread_mutex_lock(&g->lock);
	cop_node_gathered_add(&g->result, part, g->task.op == OP_STATS ? ',' : '\n');
	pthread_mutex_unlock(&g->lock);
}

/* ---- the answer's body: fixed numbers, the text, the profile ---- */

#define NUMBERS (3 * 4 + 8 * (COP_COUNTERS + 2 * COP_TABLES + 2))

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
	cop_wr_u32(&w, (uint32_t)g->text.len);
}

/* A profile that is not one is left out: the rest of the answer is as good as before. */
static void decode_prof(const void *data, size_t len, struct gathered *g)
{
	int rc = len ? cop_prof_decode(data, len, &g->prof) : 0;

	if (rc)
		cop_log_error("sums that came from below cannot be used bytes=%zu error=\"%s\"", len, strerror(-rc));
}

static bool decode(const void *body, size_t len, struct gathered *g)
{
	struct cop_rd r = cop_rd_init(body, len);
	const char *rest;
	uint32_t text;

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
	text = cop_rd_u32(&r);
	rest = cop_rd_rest(&r, &len);
	if (r.bad || text > len)
		return false;
	cop_buf_add(&g->text, rest, text);
	decode_prof(rest + text, len - text, g);
	return !g->text.failed;
}

void cop_node_answer_gathered(struct cop_rpc_req *req, const struct gathered *g)
{
	struct cop_rpc_answer a = {.release = free};
	struct cop_buf body = {0};
	uint8_t numbers[NUMBERS];

	encode(g, numbers);
	cop_buf_add(&body, numbers, NUMBERS);
	cop_buf_add(&body, g->text.data ? g->text.data : "", g->text.len);
	if (g->prof)
		cop_prof_encode(g->prof, &body);
	if (body.failed || g->text.failed) {
		cop_buf_free(&body);
		cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -ENOMEM});
		return;
	}
	a.body = a.release_arg = body.data;
	a.body_len = body.len;
	cop_rpc_reply(req, &a);
}

/* ---- asking ---- */

static void add_dead(struct gather *g, uint32_t rank)
{
	const char *host = cop_node_host(g->node, rank);
	struct gathered dead = {.dead = 1};

	switch (g->task.op) {
	case OP_STATS:
		cop_buf_printf(&dead.text, "{\"rank\":%" PRIu32 ",\"host\":", rank);
		cop_buf_json_str(&dead.text, host, strlen(host));
		cop_buf_str(&dead.text, ",\"dead\":true}");
		break;
	case OP_TABLE:
		cop_buf_printf(&dead.text, "%7" PRIu32 "  %-24s dead", rank, host);
		break;
	default:
		cop_buf_printf(&dead.text, NODE_SILENT_LINE, host, rank);
	}
	add(g, &dead);
	cop_node_gathered_free(&dead);
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

	if (r->status == 0 && decode(r->body, r->body_len, &part)) {
		add(g, &part);
	} else {
		add_dead(g, p->rank);
		ask_children(g, p->rank);
	}
	cop_node_gathered_free(&part);
	free(p);
	finish_one(g);
}

/* This node itself, met on the way down from a dead ancestor. */
static void self_done(void *arg, struct gathered *own)
{
	struct gather *g = arg;

	add(g, own);
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
	cop_node_gate_more(&n->gate);
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
