/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c decides what each operation does; stop.c and report.c run those that need the main thread,
 * and release.c the one that asks whether the tree is needed. request.c is one operation on this
 * node, fanout.c one in a subtree, confirm.c the end of a node that has answered a stop. Calls go
 * from the first of these to the last; results come back through functions that were passed down.
 *
 * `lock` guards the state of the stop (the list of requests, the sum, and the flags) and of the
 * release. Nothing is called under it. Once the node has ended, the sum may be read without it. The
 * other members belong to the main thread. */
#ifndef COP_TREE_OP_PRIV_H
#define COP_TREE_OP_PRIV_H

#include <stdatomic.h>

#include "tree/op/op.h"

#define ASKERS 16

/* A node that asked for the stop and has not confirmed the answer. */
struct asker {
	uint32_t rank;
	uint64_t asked_ms;
	_Atomic bool heard, gone;
};

struct cop_op {
	struct cop_op_conf conf;
	pthread_mutex_t lock;
	struct cop_list stop_requests; /* requests to answer when this node has ended */
	struct cop_op_sum stop_sum;
	bool stop_asked,
		stop_answered; /* stop_asked: the nodes below were asked, once for all requesters;
				  stop_answered: they have answered, and stop_sum is their sum */
	bool ending; /* this node has unmounted and no longer waits for those below; only the main
			thread sets it */
	bool ended;  /* stop_sum covers all nodes, and does not change any more */
	char last_reset[COP_OP_ARGUMENT_SIZE]; /* main thread: the last reset that this node did
						*/
	_Atomic bool released;                 /* changes under the lock, as do the six below */
	bool again; /* this node or one below it was held after it had reported its release */
	uint64_t promised_until_ms; /* until then this node may not be held again */
	bool look_now; /* a node below reported something that makes this node check early */
	uint64_t complete_children; /* the children that were released with all nodes below them, by
				       position */
	uint64_t look_at_ms;
	uint32_t look_wait_ms;      /* 0: it was not released */
	struct asker asker[ASKERS]; /* main thread */
	unsigned askers;
};

static inline const char *host_of(const struct cop_op *t, uint32_t rank)
{
	return t->conf.ops->host(t->conf.ctx, rank);
}

/* ---- sum.c ---- */
/* Counts one more missing rank. */
void cop_op_sum_lose(struct cop_op_sum *s, uint32_t rank);
/* Records that this rank is dead. */
void cop_op_sum_add_silent(struct cop_op_sum *s, uint32_t rank);
/* Encodes the body of an answer, at most COP_RPC_BODY_MAX long, into an empty out; leaves out the
 * text if it would be longer. 0, -ENOMEM. */
int cop_op_sum_encode(const struct cop_op_sum *s, struct cop_buf *out);

/* ---- lost.c: a node without an answer ---- */
enum lost_kind {
	LOST_DEAD,
	LOST_REFUSED, /* it has another secret or other options */
	LOST_FAILED,
};
struct lost {
	enum lost_kind kind;
	uint32_t rank, below; /* below: how many nodes below it are missing with it */
	const char *host, *reason;
};
/* Describes the lost node in the form of the operation's text. A dead node has no sentence there:
 * cop_op_say_silent makes it from the sum's silent ranks. */
void cop_op_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out);

/* ---- fanout.c: one operation on every node of a subtree ---- */
/* Runs the operation on this node and everything below it; done is called once. */
typedef void treeop_self(
	struct cop_op *t, const struct cop_op_request *request, cop_op_done *done, void *arg);
/* Asks the subtree of rank or, if that node is dead, the subtrees of its children. self: called
 * when the node that asks is reached on the way. done is called once, even if memory is short. */
void cop_op_fan_out(struct cop_op *t, const struct cop_op_request *request, uint32_t rank,
	treeop_self *self, cop_op_done *done, void *arg);
/* Asks the subtrees of all children of this node, but not this node. */
void cop_op_fan_out_below(
	struct cop_op *t, const struct cop_op_request *request, cop_op_done *done, void *arg);

/* ---- request.c: one operation on this node, and what came of it ---- */
struct request {
	struct cop_op *treeop;
	struct cop_op_request what; /* its argument is below */
	bool local;                 /* this node only, not those below */
	bool untold;                /* invalidate: this node's kernel could not be told */
	cop_op_done *done;
	void *arg;
	struct cop_list link; /* in stop_requests */
	struct cop_op_sum sum;
	struct cop_deferred work; /* report.c: this node's part, */
	struct cop_op_sum own;    /* its result, */
	_Atomic unsigned
		parts; /* and how many of the two parts are left; the last one finishes it */
	char argument[];
};
/* NULL: out of memory. The request stays inside the gate until it ends. */
struct request *cop_op_request_new(struct cop_op *t, const struct cop_op_request *what, bool local,
	cop_op_done *done, void *arg);
/* Answers with the request's own sum, and ends the request. */
void cop_op_request_finish(struct request *q);
/* Answers with this sum, which stays the caller's, and ends the request. */
void cop_op_request_answer(struct request *q, struct cop_op_sum *sum);

/* ---- stop.c ---- */
/* Asks the nodes below to stop, then stops this one. */
void cop_op_stop(struct request *q);
/* Whether this node has ended without having been asked to stop those below. */
bool cop_op_has_ended_alone(struct cop_op *t);

/* ---- confirm.c ---- */
/* Both times are set at the beginning; from then on confirm.c updates them. */
struct awaited {
	uint64_t began_ms,
		there_ms;      /* there: when a requester was last known or assumed to be alive */
	uint32_t rank[ASKERS]; /* the requesters that have not confirmed the answer, */
	unsigned count;        /* how many of them */
};
/* Main thread, called repeatedly. Whether this node must stay for a requester of the stop. */
bool cop_op_is_awaited(struct cop_op *t, struct awaited *w, uint64_t now_ms);

/* ---- release.c ---- */
/* Answers whether this node and those below are still needed. */
void cop_op_released(struct request *q);
/* Called when this rank and all nodes below it were released; again: they had reported that before,
 * and one of them was held meanwhile. */
void cop_op_released_below(struct cop_op *t, uint32_t rank, bool again);

/* ---- report.c: snapshot and reset ---- */
void cop_op_report(struct request *q);

#endif
