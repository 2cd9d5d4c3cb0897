/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs each operation on this node and all nodes below, for any requester. */
#include "tree/op/op_priv.h"

struct cop_op *cop_op_new(const struct cop_op_conf *conf)
{
	struct cop_op *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->conf = *conf;
	pthread_mutex_init(&t->lock, NULL);
	cop_list_init(&t->stop_requests);
	return t;
}

void cop_op_free(struct cop_op *t)
{
	if (!t)
		return;
	cop_op_sum_free(&t->stop_sum);
	pthread_mutex_destroy(&t->lock);
	free(t);
}

/* ---- statistics and the table: the nodes below first, then this node ---- */

static void add_own(struct request *q)
{
	struct cop_op_conf *c = &q->treeop->conf;
	bool table = q->what.op == COP_OP_TABLE;

	c->ops->own(c->ctx, &q->own, q->what.op);
	cop_op_sum_add(&q->sum, &q->own, table ? '\n' : ',');
	cop_op_request_finish(q);
}

static void stats_below(void *arg, struct cop_op_sum *below)
{
	struct request *q = arg;

	cop_op_sum_move(&q->sum, below);
	add_own(q);
}

static void count_below(struct request *q)
{
	if (q->local)
		add_own(q);
	else
		cop_op_fan_out_below(q->treeop, &q->what, stats_below, q);
}

/* ---- invalidate: this node first, so a repeated request finds no stale data above ---- */

/* Only this node failed; the nodes below have answered. */
static void lose_own(struct request *q)
{
	const struct cop_op *t = q->treeop;
	struct lost l = {.kind = LOST_FAILED,
		.rank = t->conf.rank,
		.host = host_of(t, t->conf.rank),
		.reason = "it has no memory left to make its kernel forget this; ask again"};

	if (q->sum.text.len)
		cop_buf_str(&q->sum.text, "\n");
	cop_op_lost_text(q->what.op, &l, &q->sum.text);
	cop_op_sum_lose(&q->sum, l.rank);
	q->sum.failed++;
}

static void forgotten_below(void *arg, struct cop_op_sum *below)
{
	struct request *q = arg;

	cop_op_sum_move(&q->sum, below);
	if (q->untold)
		lose_own(q);
	else
		q->sum.nodes++;
	cop_op_request_finish(q);
}

static void forgotten_here(void *arg)
{
	struct request *q = arg;

	cop_op_fan_out_below(q->treeop, &q->what, forgotten_below, q);
}

static void forget_request(struct request *q)
{
	struct cop_op_conf *c = &q->treeop->conf;

	/* After a successful forget, q may already be freed. */
	if (c->ops->forget(c->ctx, q->what.argument, forgotten_here, q) == 0)
		return;
	q->untold = true;
	forgotten_here(q);
}

/* ---- all operations ---- */

static void run_request(struct request *q)
{
	switch (q->what.op) {
	case COP_OP_STOP:
		cop_op_stop(q);
		break;
	case COP_OP_INVALIDATE:
		forget_request(q);
		break;
	case COP_OP_SNAPSHOT:
	case COP_OP_RESET:
		cop_op_report(q);
		break;
	case COP_OP_RELEASED:
		cop_op_released(q);
		break;
	default:
		count_below(q);
		break;
	}
}

void cop_op_here(struct cop_op *t, const struct cop_op_request *what, bool below, cop_op_done *done,
	void *arg)
{
	struct request *q = cop_op_request_new(t, what, !below, done, arg);
	struct cop_op_sum nothing = {0};

	if (q)
		run_request(q);
	else
		done(arg, &nothing);
}

static void here_and_below(
	struct cop_op *t, const struct cop_op_request *what, cop_op_done *done, void *arg)
{
	cop_op_here(t, what, true, done, arg);
}

void cop_op_all(struct cop_op *t, const struct cop_op_request *what, cop_op_done *done, void *arg)
{
	uint32_t root = cop_topo_root(&t->conf.topo, 0);

	cop_op_fan_out(t, what, root, here_and_below, done, arg);
}

/* ---- requests from other nodes ---- */

static void answer_request(void *arg, struct cop_op_sum *sum)
{
	struct cop_rpc_req *req = arg;
	/* A node exits after answering a stop, so the answer must be confirmed. */
	struct cop_rpc_answer a = {.release = free, .confirm = cop_rpc_req_op(req) == COP_OP_STOP};
	struct cop_buf body = {0};

	a.status = cop_op_sum_encode(sum, &body);
	a.body = a.release_arg = body.data;
	a.body_len = body.len;
	cop_rpc_reply(req, &a);
}

static void reply_status(struct cop_rpc_req *req, int status)
{
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = status});
}

void cop_op_serve(struct cop_op *t, struct cop_rpc_req *req)
{
	struct cop_op_request what = {.op = cop_rpc_req_op(req)};
	char argument[COP_OP_ARGUMENT_SIZE];
	size_t len;
	const void *payload = cop_rpc_req_payload(req, &len);

	if (what.op == COP_OP_RELEASED_BELOW) {
		cop_op_released_below(t, cop_rpc_req_rank(req), len > 0);
		reply_status(req, 0);
		return;
	}
	if (len >= sizeof(argument) || (len && memchr(payload, 0, len))) {
		reply_status(req, -EINVAL);
		return;
	}
	if (len)
		memcpy(argument, payload, len);
	argument[len] = '\0';
	what.argument = argument;
	/* This node is ending, so the requester must contact the nodes below itself. */
	if (what.op == COP_OP_STOP && cop_op_has_ended_alone(t))
		reply_status(req, -ESHUTDOWN);
	else
		cop_op_here(t, &what, true, answer_request, req);
}
