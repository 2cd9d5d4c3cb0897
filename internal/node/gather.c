/* SPDX-License-Identifier: BSD-3-Clause */
/* One operation on every node of a subtree, answers summed on the way up. A dead node is passed
 * over: its children are asked directly, so that one node less is one node less. */
#include "node/node_priv.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* An answer that cannot be read is asked for so often. */
#define TRIES 3

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
	unsigned tries;
};

static void ask(struct gather *g, uint32_t rank);
static void ask_again(struct gather *g, uint32_t rank, unsigned tries);

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
	cop_gate_leave(&n->gate);
}

static void add(struct gather *g, const struct gathered *part)
{
	pthread_mutex_lock(&g->lock);
	cop_node_gathered_add(&g->result, part, g->task.op == OP_STATS ? ',' : '\n');
	pthread_mutex_unlock(&g->lock);
}

void cop_node_answer_gathered(struct cop_rpc_req *req, const struct gathered *g)
{
	/* Who answers a stop ends, and takes along what was not heard. */
	struct cop_rpc_answer a = {.release = free, .confirm = cop_rpc_req_op(req) == OP_STOP};
	struct cop_buf body = {0};

	a.status = cop_node_gathered_encode(g, &body);
	a.body = a.release_arg = body.data;
	a.body_len = body.len;
	cop_rpc_reply(req, &a);
}

/* ---- nodes without an answer ---- */

static void lost_json(const struct lost *l, struct cop_buf *out)
{
	cop_buf_printf(out, "{\"rank\":%" PRIu32 ",\"host\":", l->rank);
	cop_buf_json_str(out, l->host, strlen(l->host));
	if (l->kind == LOST_DEAD) {
		cop_buf_str(out, ",\"dead\":true}");
		return;
	}
	cop_buf_printf(
		out, ",\"%s\":true,\"reason\":", l->kind == LOST_REFUSED ? "refused" : "failed");
	cop_buf_json_str(out, l->reason, strlen(l->reason));
	cop_buf_printf(out, ",\"below\":%" PRIu32 "}", l->below);
}

static void lost_sentence(const struct lost *l, struct cop_buf *out)
{
	if (l->kind == LOST_DEAD)
		cop_buf_printf(out, NODE_SILENT_LINE, l->host, l->rank);
	else
		cop_buf_printf(out, "%s (rank %" PRIu32 ") %s: %s", l->host, l->rank,
			l->kind == LOST_REFUSED ? "refused" : "failed", l->reason);
	if (l->below)
		cop_buf_printf(
			out, "; the %" PRIu32 " nodes below it are not counted either", l->below);
}

static void lost_row(const struct lost *l, struct cop_buf *out)
{
	static const char *const words[] = {
		[LOST_DEAD] = "dead", [LOST_REFUSED] = "refused", [LOST_FAILED] = "failed"};

	cop_buf_printf(out, "%7" PRIu32 "  %-24s %s", l->rank, l->host, words[l->kind]);
	if (l->kind != LOST_DEAD)
		cop_buf_printf(out, ": %s", l->reason);
	if (l->below)
		cop_buf_printf(out, ", with the %" PRIu32 " nodes below it", l->below);
}

void cop_node_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out)
{
	if (op == OP_STATS)
		lost_json(l, out);
	else if (op == OP_TABLE)
		lost_row(l, out);
	else
		lost_sentence(l, out);
}

/* The first of them by name, all of them by number. */
static void lose_subtree(const struct cop_topo *t, uint32_t rank, struct gathered *g)
{
	for (uint32_t r = rank; r < t->nodes && g->missing < MISSING_NAMED; r++)
		if (cop_topo_below(t, 0, rank, r))
			cop_node_gathered_lose(g, r);
	g->missing = cop_topo_subtree(t, 0, rank);
}

static void lose(
	struct gather *g, uint32_t rank, enum lost_kind kind, bool with_below, const char *reason)
{
	struct lost l = {
		.kind = kind, .rank = rank, .host = cop_node_host(g->node, rank), .reason = reason};
	struct gathered gone = {.dead = kind == LOST_DEAD,
		.refused = kind == LOST_REFUSED,
		.failed = kind == LOST_FAILED};

	if (with_below)
		lose_subtree(&g->node->topo, rank, &gone);
	else
		cop_node_gathered_lose(&gone, rank);
	l.below = gone.missing - 1;
	cop_node_lost_text(g->task.op, &l, &gone.text);
	cop_log_warn("no answer op=%u rank=%" PRIu32 " reason=\"%s\"", g->task.op, rank, reason);
	add(g, &gone);
	cop_node_gathered_free(&gone);
}

/* ---- asking ---- */

static void ask_children(struct gather *g, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT];
	uint32_t n = cop_topo_children(&g->node->topo, 0, rank, child);

	for (uint32_t i = 0; i < n; i++)
		ask(g, child[i]);
}

/* A node that has asked nobody below it: it is not there, takes us for strangers, ends, or has no
 * room for a request. */
static bool is_passed_over(struct gather *g, uint32_t rank, const struct cop_rpc_result *r)
{
	if (r->answered && r->status == -ESHUTDOWN)
		lose(g, rank, LOST_FAILED, false, "it is ending");
	else if (r->answered && r->unable)
		lose(g, rank, LOST_FAILED, false, strerror(-r->status));
	else if (!r->answered && r->status == -EHOSTDOWN)
		lose(g, rank, LOST_DEAD, false, "it is dead");
	else if (!r->answered && r->status == -EACCES)
		lose(g, rank, LOST_REFUSED, false, "it holds another secret");
	else if (!r->answered && r->status == -EPROTO)
		lose(g, rank, LOST_REFUSED, false, "it was started with other options");
	else
		return false;
	return true;
}

static const char *reason_of(int status)
{
	switch (status) {
	case -EBADMSG:
		return "its answer came damaged";
	case -EMSGSIZE:
		return "its answer is too long";
	case -ECANCELED:
		return "the node that asked it was ending";
	default:
		return strerror(-status);
	}
}

static void answered(void *arg, const struct cop_rpc_result *r)
{
	struct part p = *(struct part *)arg;
	struct gather *g = p.g;
	struct gathered part = {0};
	int rc = r->status ? r->status : cop_node_gathered_decode(r->body, r->body_len, &part);

	free(arg);
	if (!rc) {
		add(g, &part);
	} else if (rc == -EBADMSG && p.tries < TRIES) {
		/* What is asked may be asked twice. */
		ask_again(g, p.rank, p.tries + 1);
	} else if (is_passed_over(g, p.rank, r)) {
		ask_children(g, p.rank);
	} else {
		/* It was asked, and has asked those below it: they have answered to it, and may be
		 * gone. */
		lose(g, p.rank, LOST_FAILED, true, reason_of(rc));
	}
	cop_node_gathered_free(&part);
	finish_one(g);
}

/* This node itself, met on the way down from a dead ancestor. */
static void self_done(void *arg, struct gathered *own)
{
	struct gather *g = arg;

	add(g, own);
	finish_one(g);
}

static void ask_again(struct gather *g, uint32_t rank, unsigned tries)
{
	struct cop_rpc_call call = {.rank = rank,
		.op = g->task.op,
		.payload = g->task.path,
		.payload_len = strlen(g->task.path),
		.done = answered};
	struct part *p = g->node->rpc ? malloc(sizeof(*p)) : NULL;

	atomic_fetch_add(&g->pending, 1);
	if (!p) {
		lose(g, rank, LOST_FAILED, true, "out of memory");
		finish_one(g);
		return;
	}
	*p = (struct part){g, rank, tries};
	call.arg = p;
	cop_rpc_call(g->node->rpc, &call);
}

static void ask(struct gather *g, uint32_t rank)
{
	if (rank != g->node->rank) {
		ask_again(g, rank, 1);
		return;
	}
	atomic_fetch_add(&g->pending, 1);
	cop_node_do(g->node, &g->task, self_done, g);
}

static struct gather *new_gather(
	struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
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
	cop_gate_more(&n->gate);
	return g;
}

int cop_node_gather(struct cop_node *n, const struct task *task, uint32_t rank,
	cop_node_gathered *done, void *arg)
{
	struct gather *g = new_gather(n, task, done, arg);

	if (!g)
		return -ENOMEM;
	ask(g, rank);
	finish_one(g);
	return 0;
}

int cop_node_gather_below(
	struct cop_node *n, const struct task *task, cop_node_gathered *done, void *arg)
{
	struct gather *g = new_gather(n, task, done, arg);

	if (!g)
		return -ENOMEM;
	ask_children(g, n->rank);
	finish_one(g);
	return 0;
}
