/* SPDX-License-Identifier: BSD-3-Clause */
/* op.c dispatches the operations; stop.c and report.c run those that need the main thread,
 * release.c decides whether the tree is still needed. request.c runs an operation on this node,
 * fanout.c in a subtree; confirm.c ends a node after its answer to a stop. Each of these files
 * calls only those named after it; results return through callbacks.
 *
 * `lock` protects the state of the stop (the list of requests, the sum, and the flags) and of the
 * release. Nothing is called with it held. After the node has ended, the sum may be read without
 * it. All other members belong to the main thread. */
#ifndef COP_TREE_OP_PRIV_H
#define COP_TREE_OP_PRIV_H

#include <stdatomic.h>

#include "tree/op/op.h"

#define ASKERS 16

/* A node that requested the stop and has not confirmed the answer. */
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
	bool stop_asked, stop_answered; /* stop_asked: the stop was sent to the nodes below, once
					   for all requesters; stop_answered: they have answered,
					   and stop_sum is their sum */
	bool ending; /* this node has unmounted and no longer waits for the nodes below; set only by
			the main thread */
	bool ended;  /* stop_sum is final and covers all nodes */
	char last_reset[COP_OP_ARGUMENT_SIZE]; /* main thread: the last reset that this node did */
	_Atomic bool released; /* changes only under the lock, as do the six fields below */
	bool again;            /* this node or one below was held after reporting its release */
	uint64_t promised_until_ms; /* until then, cop_op_hold fails */
	bool look_now;              /* check early: a report arrived from below, or a late answer */
	uint64_t complete_children; /* bit mask of the children that are released with all nodes
				       below them */
	uint64_t look_at_ms;
	uint32_t look_wait_ms;      /* 0: not released */
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
/* Encodes the body of an answer, at most COP_RPC_BODY_MAX bytes, into an empty out; omits the text
 * if the body would be longer. Returns 0 or -ENOMEM. */
int cop_op_sum_encode(const struct cop_op_sum *s, struct cop_buf *out);

/* ---- lost.c: nodes that did not answer ---- */
enum lost_kind {
	LOST_DEAD,
	LOST_REFUSED, /* different secret or options */
	LOST_FAILED,
};
struct lost {
	enum lost_kind kind;
	uint32_t rank, below; /* below: number of nodes below that are missing with it */
	const char *host, *reason;
};
/* Appends the missing node in the form of the operation's text. A dead node gets no sentence here,
 * because cop_op_say_silent generates it from the sum's silent ranks. */
void cop_op_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out);

/* ---- fanout.c: one operation on every node of a subtree ---- */
/* Runs the operation on this node and everything below it; done is called once. */
typedef void treeop_self(
	struct cop_op *t, const struct cop_op_request *request, cop_op_done *done, void *arg);
/* Sends the operation to the subtree of rank or, if this node is dead, to those of its children.
 * self: called when the requesting node itself is reached. done is called once, even if memory is
 * short. */
void cop_op_fan_out(struct cop_op *t, const struct cop_op_request *request, uint32_t rank,
	treeop_self *self, cop_op_done *done, void *arg);
/* Sends the operation to the subtrees of all children, but not to this node. */
void cop_op_fan_out_below(
	struct cop_op *t, const struct cop_op_request *request, cop_op_done *done, void *arg);

/* ---- request.c: one operation on this node, and its result ---- */
struct request {
	struct cop_op *treeop;
	struct cop_op_request what; /* the argument is below */
	bool local;                 /* this node only, not those below */
	bool untold;                /* invalidate: this node's kernel could not be notified */
	cop_op_done *done;
	void *arg;
	struct cop_list link; /* in stop_requests */
	struct cop_op_sum sum;
	struct cop_deferred work; /* report.c: this node's part */
	struct cop_op_sum own;    /* result of this part */
	_Atomic unsigned parts;   /* number of outstanding parts, at most two; the last one finishes
				     the request */
	char argument[];
};
/* NULL: out of memory. The request stays inside the gate until it ends. */
struct request *cop_op_request_new(struct cop_op *t, const struct cop_op_request *what, bool local,
	cop_op_done *done, void *arg);
/* Answers with the request's own sum and ends the request. */
void cop_op_request_finish(struct request *q);
/* Answers with this sum, which the caller still owns, and ends the request. */
void cop_op_request_answer(struct request *q, struct cop_op_sum *sum);

/* ---- stop.c ---- */
/* Asks the nodes below to stop, then stops this one. */
void cop_op_stop(struct request *q);
/* Whether this node has ended without a stop request to forward. */
bool cop_op_has_ended_alone(struct cop_op *t);

/* ---- confirm.c ---- */
/* The caller sets both times at the beginning; confirm.c updates them afterwards. */
struct awaited {
	uint64_t began_ms, there_ms; /* when a requester was last known or assumed to be alive */
	uint32_t rank[ASKERS];       /* requesters that have yet to confirm the answer */
	unsigned count;              /* how many of them */
};
/* Main thread, called repeatedly. Whether this node must wait for a requester of the stop. */
bool cop_op_is_awaited(struct cop_op *t, struct awaited *w, uint64_t now_ms);

/* ---- release.c ---- */
/* Answers whether this node and all nodes below are still needed. */
void cop_op_released(struct request *q);
/* This rank and all nodes below it are released. again: they had reported that before, and one of
 * them was held in between. */
void cop_op_released_below(struct cop_op *t, uint32_t rank, bool again);

/* ---- report.c: snapshot and reset ---- */
void cop_op_report(struct request *q);

#endif
