/* SPDX-License-Identifier: BSD-3-Clause */
/* treeop: an operation on every node of the tree, down the tree, and one sum of all answers, up the
 * tree: stop, statistics, the table of all nodes, invalidate, snapshot, reset.
 *
 * A node asks its children, does its own part and answers with the sum of both. A node that is dead
 * or refuses is passed over: its children are asked in its place, so that one node less is one node
 * less. Who did not answer is counted by what became of it, and named. Everybody who asks a node to
 * stop gets the same sum, however often and whenever it is asked, and a node that has answered a
 * stop stays until that answer has arrived.
 *
 * What a node's own part is (its statistics, its mount, its files) is not known here: that is in
 * struct cop_treeop_ops, given at the start. It refuses to know commands and sockets: who asks, and
 * what is said to the user, is above it.
 *
 * Threads: requests and answers come on rpc's progress thread, commands on any other; the functions
 * that belong to the main thread say so. No callback is called under the lock. */
#ifndef COP_TREEOP_H
#define COP_TREEOP_H

#include "base/base.h"
#include "cache/cache.h"
#include "defer/defer.h"
#include "gate/gate.h"
#include "prof/prof.h"
#include "rpc/rpc.h"
#include "stats/stats.h"
#include "topo/topo.h"

/* The operations, by their numbers in rpc. */
enum {
	COP_TREEOP_STOP = 35,  /* those below, then this node */
	COP_TREEOP_STATS,      /* the text: a JSON object of each node, commas between */
	COP_TREEOP_INVALIDATE, /* argument: a path below the source; forgotten here, then below */
	COP_TREEOP_TABLE,      /* the text: a line of each node, newlines between */
	COP_TREEOP_SNAPSHOT,   /* write the reports of this moment */
	COP_TREEOP_RESET, /* the same, and count from zero; argument: of this one command, so that
			     a node that is asked twice does it once */
};

/* Bytes of an argument, with the null at its end. */
#define COP_TREEOP_ARGUMENT_SIZE 4096

struct cop_treeop_request {
	uint8_t op;
	const char *argument; /* "" where there is none; copied */
};

/* ---- sums ---- */

/* Ranks without an answer that are named; the others are counted. */
#define COP_TREEOP_NAMED 16
#define COP_TREEOP_SENTENCE 384
/* Bytes of a text: a control socket carries it in one reply. */
#define COP_TREEOP_TEXT_MAX (240 * COP_MIB)
/* What a text says of a dead node, but in statistics and the table: its host and rank. */
#define COP_TREEOP_SILENT_LINE "%s (rank %" PRIu32 ") did not answer"

/* What a subtree has answered. All zero: nobody was asked, since there was no memory. */
struct cop_treeop_sum {
	uint32_t nodes;                 /* that have answered */
	uint32_t dead, refused, failed; /* that have not, by what became of it */
	uint32_t missing; /* these and, with those that failed, the nodes below them: nothing is
			     known of them */
	uint32_t lost[COP_TREEOP_NAMED]; /* the first of the missing ranks */
	uint32_t unwritten; /* of nodes: those whose final files could not be written */
	char why_unwritten[COP_TREEOP_SENTENCE]; /* "HOST: sentence" of one of them */
	uint32_t
		cut; /* of nodes: those whose part of the text was left out, since it did not fit */
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_buf text; /* JSON objects, lines of a table, or sentences with newlines between
			      */
	struct cop_prof_sum *prof; /* stop: what these nodes have counted; NULL: nothing */
};

/* What it holds; it is empty then. */
void cop_treeop_sum_free(struct cop_treeop_sum *s);
/* One more node's final files are not there, because of why. */
void cop_treeop_sum_unwritten(struct cop_treeop_sum *s, const char *host, const char *why);
/* Adds one such sentence to out, then a line that says of how many nodes; nothing if there is none.
 */
void cop_treeop_sum_say_unwritten(const struct cop_treeop_sum *s, struct cop_buf *out);
/* Adds from, whose text and prof are left to the caller; separator: what stands between two texts.
 * Without memory for the profiles they are left out, which is logged. */
void cop_treeop_sum_add(
	struct cop_treeop_sum *into, const struct cop_treeop_sum *from, char separator);
/* Moves text and prof, and copies the rest, to an empty one. */
void cop_treeop_sum_move(struct cop_treeop_sum *into, struct cop_treeop_sum *from);
/* The body of an answer into an empty s, which is the caller's to free whatever is returned: 0,
 * -EBADMSG, -ENOMEM. A profile that is damaged is left out, which is logged. */
int cop_treeop_sum_decode(const void *body, size_t len, struct cop_treeop_sum *s);

/* ---- a node's part ---- */

/* What the node does itself; ctx is that of the configuration. */
struct cop_treeop_ops {
	/* Any thread. NULL: this is the only node. */
	struct cop_rpc *(*rpc)(void *ctx);
	/* Any thread. The name of a rank's host, which outlives the treeop. */
	const char *(*host)(void *ctx, uint32_t rank);
	/* Any thread. This node's statistics into an empty sum, with nodes 1 and as text its line
	 * of the table, or the JSON object. */
	void (*own)(void *ctx, struct cop_treeop_sum *own, bool table);
	/* Any thread. Forgets a path and what is below it. 0: calls then once, here or later and on
	 * any thread; -ENOMEM: its kernel could not be told, and then is not called. */
	int (*forget)(void *ctx, const char *path, void (*then)(void *arg), void *arg);
	/* Main thread. Writes the reports of this moment, or those and counts from zero. 0;
	 * -ENOENT: this node writes none; else err has a sentence. */
	int (*report)(void *ctx, struct cop_err *err);
	int (*reset)(void *ctx, struct cop_err *err);
	/* Any thread; may be called several times. This node is to end: to unmount, and then to
	 * call cop_treeop_ended. */
	void (*end)(void *ctx);
	/* Main thread, inside cop_treeop_ended. All below have answered a stop: adds to sum what
	 * this node has counted; a root writes it, and takes prof out of it. 0; else files could
	 * not be written, and err has a sentence. */
	int (*complete_sum)(void *ctx, struct cop_treeop_sum *sum, struct cop_err *err);
};

struct cop_treeop_conf {
	struct cop_topo topo;
	uint32_t rank; /* one behind those of the topology: no node, which only asks; then of ops
			  only rpc and host are used, and deferred is NULL, alive_op 0 */
	uint32_t peer_timeout_ms;
	uint8_t alive_op; /* an rpc operation that every node answers at once */
	const struct cop_treeop_ops *ops;
	void *ctx;
	struct cop_gate *gate; /* what is under way is inside of it */
	struct cop_defer *deferred;
};

struct cop_treeop;

/* NULL: out of memory. What conf points to outlives it. */
struct cop_treeop *cop_treeop_new(const struct cop_treeop_conf *conf);
/* Main thread, when the gate has been drained and rpc is closed. NULL is fine. */
void cop_treeop_free(struct cop_treeop *t);

/* ---- operations ---- */

/* Any thread, or inside the function that started the operation; once. What sum holds is freed
 * after it. Of cop_treeop_all it may be moved to another (cop_treeop_sum_move); of cop_treeop_here
 * it is only read, since whoever asks for a stop gets the same. */
typedef void cop_treeop_done(void *arg, struct cop_treeop_sum *sum);

/* Any thread, from inside the gate. On every node of the tree, beginning at its root. */
void cop_treeop_all(struct cop_treeop *t, const struct cop_treeop_request *request,
	cop_treeop_done *done, void *arg);
/* The same on this node alone (not invalidate), or on it and all below it. */
void cop_treeop_here(struct cop_treeop *t, const struct cop_treeop_request *request, bool below,
	cop_treeop_done *done, void *arg);
/* Progress thread, from inside the gate. A request of another node for one of these operations, on
 * this node and all below it; it is answered here: also when this node has ended, for the one above
 * it may have died with the first answer. */
void cop_treeop_serve(struct cop_treeop *t, struct cop_rpc_req *req);

/* ---- the end ---- */

/* Any thread. Whether the nodes below were asked to stop. */
bool cop_treeop_is_stopping(struct cop_treeop *t);
/* Main thread; what comes after the first time is ignored. The node has unmounted: adds its part to
 * what came from below and answers everyone who asked it to stop, now and from now on. remark: a
 * line for the one who gave the command, or NULL; unwritten: why its final files are not there, or
 * NULL. */
void cop_treeop_ended(struct cop_treeop *t, const char *remark, const char *unwritten);
/* Main thread, after cop_treeop_ended. Returns when whoever asked for the stop has the answer, or
 * is gone, and after two minutes at the latest. */
void cop_treeop_await_confirmed(struct cop_treeop *t);

#endif
