/* SPDX-License-Identifier: BSD-3-Clause */
/* treeop.c says what becomes of each operation; stop.c and report.c do those that need the main
 * thread, and release.c the one that asks whether the tree is needed; request.c is one operation
 * under way on this node, fanout.c one under way in a subtree, confirm.c the end of a node that has
 * answered a stop. Calls go from the first of these to the last; what comes back comes by a
 * function that was handed down.
 *
 * `lock` guards the state of the stop: the list of requests, the sum, and the flags. Nothing is
 * called under it. The sum may be read without it when the node has ended. The others are the main
 * thread's. */
#ifndef COP_TREEOP_PRIV_H
#define COP_TREEOP_PRIV_H

#include <inttypes.h>
#include <stdatomic.h>

#include "treeop/treeop.h"

#define ASKERS 16

/* Who asked for the stop and has not said that it has the answer. */
struct asker {
	uint32_t rank;
	uint64_t asked_ms;
	_Atomic bool heard, gone;
};

struct cop_treeop {
	struct cop_treeop_conf conf;
	pthread_mutex_t lock;
	struct cop_list stop_requests; /* who wants to know that this node has ended */
	struct cop_treeop_sum stop_sum;
	bool stop_asked, stop_answered; /* the nodes below were, once, whoever asks again; they
					   have, and stop_sum is what they said */
	bool ending; /* this node has unmounted, and waits for those below no longer; only the main
			thread sets it */
	bool ended;  /* stop_sum is of all of them, and does not change any more */
	char last_reset[COP_TREEOP_ARGUMENT_SIZE]; /* main thread: the last one that was done here
						    */
	_Atomic bool released;
	struct asker asker[ASKERS]; /* main thread */
	unsigned askers;
};

static inline const char *host_of(const struct cop_treeop *t, uint32_t rank)
{
	return t->conf.ops->host(t->conf.ctx, rank);
}

/* ---- sum.c ---- */
/* One more rank is missing. */
void cop_treeop_sum_lose(struct cop_treeop_sum *s, uint32_t rank);
/* The body of an answer, at most COP_RPC_BODY_MAX long, added to an empty out; a text that makes it
 * longer is left out. 0, -ENOMEM. */
int cop_treeop_sum_encode(const struct cop_treeop_sum *s, struct cop_buf *out);

/* ---- lost.c: a node without an answer ---- */
enum lost_kind {
	LOST_DEAD,
	LOST_REFUSED, /* of another secret or other options */
	LOST_FAILED,
};
struct lost {
	enum lost_kind kind;
	uint32_t rank, below; /* below: how many nodes are missing with it */
	const char *host, *reason;
};
/* Says so in the form of the operation's text. */
void cop_treeop_lost_text(uint8_t op, const struct lost *l, struct cop_buf *out);

/* ---- fanout.c: one operation on every node of a subtree ---- */
/* Does the operation on this node and everything below it; done is called once. */
typedef void treeop_self(struct cop_treeop *t, const struct cop_treeop_request *request,
	cop_treeop_done *done, void *arg);
/* Asks the subtree of rank or, if that node is dead, those of its children; self: where this node
 * is met on the way. done is called once, also without memory. */
void cop_treeop_fan_out(struct cop_treeop *t, const struct cop_treeop_request *request,
	uint32_t rank, treeop_self *self, cop_treeop_done *done, void *arg);
/* The same for the subtrees of all children of this node, not itself. */
void cop_treeop_fan_out_below(struct cop_treeop *t, const struct cop_treeop_request *request,
	cop_treeop_done *done, void *arg);

/* ---- request.c: one operation on this node, and what came of it ---- */
struct request {
	struct cop_treeop *treeop;
	struct cop_treeop_request what; /* its argument is below */
	bool local;                     /* not the nodes below */
	bool untold;                    /* invalidate: the kernel of this node could not be told */
	cop_treeop_done *done;
	void *arg;
	struct cop_list link; /* in stop_requests */
	struct cop_treeop_sum sum;
	struct cop_deferred work;  /* report.c: this node's part, and */
	struct cop_treeop_sum own; /* what came of it; */
	_Atomic unsigned parts;    /* the last of both finishes */
	char argument[];
};
/* NULL: out of memory. It is inside the gate until it ends. */
struct request *cop_treeop_request_new(struct cop_treeop *t, const struct cop_treeop_request *what,
	bool local, cop_treeop_done *done, void *arg);
/* Ends it with its sum. */
void cop_treeop_request_finish(struct request *q);
/* Ends it with this sum, which stays the caller's. */
void cop_treeop_request_answer(struct request *q, struct cop_treeop_sum *sum);

/* ---- stop.c ---- */
/* Asks the nodes below to stop, then this one does. */
void cop_treeop_stop(struct request *q);
/* It has ended, and was not asked to pass that on. */
bool cop_treeop_has_ended_alone(struct cop_treeop *t);

/* ---- confirm.c ---- */
/* The two times are those of the beginning, and from then on this file's. */
struct awaited {
	uint64_t began_ms, there_ms; /* there: somebody who asked was, or may have been */
	uint32_t rank[ASKERS];       /* who has not confirmed the answer, */
	unsigned count;              /* of so many */
};
/* Main thread, now and then. Whether this node still stays for somebody who asked for the stop. */
bool cop_treeop_is_awaited(struct cop_treeop *t, struct awaited *w, uint64_t now_ms);

/* ---- release.c ---- */
/* Whether this node and those below are needed. */
void cop_treeop_released(struct request *q);

/* ---- report.c: snapshot and reset ---- */
void cop_treeop_report(struct request *q);

#endif
