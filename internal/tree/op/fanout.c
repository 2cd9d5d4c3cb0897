/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs an operation on every node of a subtree and sums the answers on the way up. A dead node is
 * bypassed: the request goes to its children directly, so only that node is missing. */
#include "tree/op/op_priv.h"

#include "base/log/log.h"

/* Number of attempts if an answer is unreadable. */
#define TRIES 3

struct fanout {
	struct cop_op *treeop;
	struct cop_op_request what; /* the argument is below */
	treeop_self *self;
	_Atomic uint32_t pending;
	pthread_mutex_t lock; /* protects sum */
	struct cop_op_sum sum;
	cop_op_done *done;
	void *arg;
	char argument[];
};

struct part {
	struct fanout *fanout;
	uint32_t rank;
	unsigned tries;
};

static void ask_subtree(struct fanout *f, uint32_t rank);
static void ask_node(struct fanout *f, uint32_t rank, unsigned tries);

static void finish_one(struct fanout *f)
{
	struct cop_gate *gate = f->treeop->conf.gate;

	if (atomic_fetch_sub(&f->pending, 1) != 1)
		return;
	f->done(f->arg, &f->sum);
	cop_op_sum_free(&f->sum);
	pthread_mutex_destroy(&f->lock);
	free(f);
	cop_gate_leave(gate);
}

static void add_answer(struct fanout *f, const struct cop_op_sum *part)
{
	pthread_mutex_lock(&f->lock);
	cop_op_sum_add(&f->sum, part, f->what.op == COP_OP_STATS ? ',' : '\n');
	pthread_mutex_unlock(&f->lock);
}

/* ---- nodes without an answer ---- */

/* Counts all missing nodes and records the first ranks. */
static void lose_subtree(const struct cop_topo *t, uint32_t rank, struct cop_op_sum *s)
{
	for (uint32_t r = rank; r < t->nodes && s->missing < COP_OP_NAMED; r++)
		if (cop_topo_below(t, 0, rank, r))
			cop_op_sum_lose(s, r);
	s->missing = cop_topo_subtree(t, 0, rank);
}

static void lose_child(
	struct fanout *f, uint32_t rank, enum lost_kind kind, bool with_below, const char *reason)
{
	struct cop_op *t = f->treeop;
	struct lost l = {.kind = kind, .rank = rank, .host = host_of(t, rank), .reason = reason};
	struct cop_op_sum gone = {.dead = kind == LOST_DEAD,
		.refused = kind == LOST_REFUSED,
		.failed = kind == LOST_FAILED};

	if (with_below)
		lose_subtree(&t->conf.topo, rank, &gone);
	else
		cop_op_sum_lose(&gone, rank);
	if (kind == LOST_DEAD)
		cop_op_sum_add_silent(&gone, rank);
	l.below = gone.missing - 1;
	cop_op_lost_text(f->what.op, &l, &gone.text);
	/* A release is polled, so this would be logged repeatedly. */
	if (f->what.op != COP_OP_RELEASED)
		cop_log_warn(
			"no answer op=%u rank=%" PRIu32 " reason=\"%s\"", f->what.op, rank, reason);
	add_answer(f, &gone);
	cop_op_sum_free(&gone);
}

/* ---- requests ---- */

static void ask_children(struct fanout *f, uint32_t rank)
{
	uint32_t child[COP_TOPO_MAX_FANOUT];
	uint32_t n = cop_topo_children(&f->treeop->conf.topo, 0, rank, child);

	for (uint32_t i = 0; i < n; i++)
		ask_subtree(f, child[i]);
}

/* Whether the node did not forward the request to the nodes below: it is dead or ending, rejects
 * our proof of the secret, or has no memory for a request. */
static bool is_passed_over(struct fanout *f, uint32_t rank, const struct cop_rpc_result *r)
{
	if (r->answered && r->status == -ESHUTDOWN)
		lose_child(f, rank, LOST_FAILED, false, "it is ending");
	else if (r->answered && r->unable)
		lose_child(f, rank, LOST_FAILED, false, strerror(-r->status));
	else if (!r->answered && r->status == -EHOSTDOWN)
		lose_child(f, rank, LOST_DEAD, false, "it is dead");
	else if (!r->answered && r->status == -EACCES)
		lose_child(f, rank, LOST_REFUSED, false, "it holds another secret");
	else if (!r->answered && r->status == -EPROTO)
		lose_child(f, rank, LOST_REFUSED, false, "it was started with other options");
	else
		return false;
	return true;
}

static const char *reason_of(int status)
{
	switch (status) {
	case -EBADMSG:
		return "its answer was damaged";
	case -EMSGSIZE:
		return "its answer is too long";
	case -ECANCELED:
		return "the node that asked it was ending";
	default:
		return strerror(-status);
	}
}

static void child_answered(void *arg, const struct cop_rpc_result *r)
{
	struct part p = *(struct part *)arg;
	struct fanout *f = p.fanout;
	struct cop_op_sum part = {0};
	int rc = r->status ? r->status : cop_op_sum_decode(r->body, r->body_len, &part);

	free(arg);
	if (!rc) {
		add_answer(f, &part);
	} else if (rc == -EBADMSG && p.tries < TRIES) {
		/* Every operation may be repeated. */
		ask_node(f, p.rank, p.tries + 1);
	} else if (is_passed_over(f, p.rank, r)) {
		ask_children(f, p.rank);
	} else {
		/* The node has forwarded the request, and the nodes below have answered it and may
		 * have exited. */
		lose_child(f, p.rank, LOST_FAILED, true, reason_of(rc));
	}
	cop_op_sum_free(&part);
	finish_one(f);
}

static void ask_node(struct fanout *f, uint32_t rank, unsigned tries)
{
	struct cop_rpc *rpc = f->treeop->conf.ops->rpc(f->treeop->conf.ctx);
	struct cop_rpc_call call = {.rank = rank,
		.op = f->what.op,
		.payload = f->what.argument,
		.payload_len = strlen(f->what.argument),
		.done = child_answered};
	struct part *p = rpc ? malloc(sizeof(*p)) : NULL;

	atomic_fetch_add(&f->pending, 1);
	if (!p) {
		lose_child(f, rank, LOST_FAILED, true, "out of memory");
		finish_one(f);
		return;
	}
	*p = (struct part){f, rank, tries};
	call.arg = p;
	cop_rpc_call(rpc, &call);
}

/* Adds this node's own part: the request reached it on the way down from a dead ancestor, or it is
 * the root. */
static void self_done(void *arg, struct cop_op_sum *own)
{
	struct fanout *f = arg;

	add_answer(f, own);
	finish_one(f);
}

static void ask_subtree(struct fanout *f, uint32_t rank)
{
	if (rank != f->treeop->conf.rank) {
		ask_node(f, rank, 1);
		return;
	}
	atomic_fetch_add(&f->pending, 1);
	f->self(f->treeop, &f->what, self_done, f);
}

/* NULL: out of memory; the operation has ended. */
static struct fanout *begin_fanout(
	struct cop_op *t, const struct cop_op_request *what, cop_op_done *done, void *arg)
{
	size_t len = strlen(what->argument) + 1;
	struct fanout *f = calloc(1, sizeof(*f) + len);
	struct cop_op_sum nothing = {0};

	if (!f) {
		done(arg, &nothing);
		return NULL;
	}
	f->treeop = t;
	f->what.op = what->op;
	f->what.argument = memcpy(f->argument, what->argument, len);
	f->done = done;
	f->arg = arg;
	/* The starting function holds one reference, which keeps the operation open until all
	 * requests are sent. */
	atomic_init(&f->pending, 1);
	pthread_mutex_init(&f->lock, NULL);
	cop_gate_more(t->conf.gate);
	return f;
}

void cop_op_fan_out(struct cop_op *t, const struct cop_op_request *what, uint32_t rank,
	treeop_self *self, cop_op_done *done, void *arg)
{
	struct fanout *f = begin_fanout(t, what, done, arg);

	if (!f)
		return;
	f->self = self;
	ask_subtree(f, rank);
	finish_one(f);
}

/* All requests go to nodes below this one, so self is never called. */
void cop_op_fan_out_below(
	struct cop_op *t, const struct cop_op_request *what, cop_op_done *done, void *arg)
{
	struct fanout *f = begin_fanout(t, what, done, arg);

	if (!f)
		return;
	ask_children(f, t->conf.rank);
	finish_one(f);
}
