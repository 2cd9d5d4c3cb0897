/* SPDX-License-Identifier: BSD-3-Clause */
/* tree/op: sends an operation down the tree to every node, and adds up the answers on the way up:
 * stop, statistics, the table of all nodes, invalidate, snapshot, reset, and whether the tree is
 * still needed.
 *
 * A node asks its children, does its own part and answers with the sum of both. A node that is dead
 * or refuses is bypassed: its children are asked directly, so only that node is missing. Nodes that
 * did not answer are counted by reason, and named. Every request to stop a node gets the same sum,
 * however many there are, and a node that has answered a stop stays until its answer has arrived.
 *
 * The node's own part (its statistics, its mount, its files) comes from struct cop_op_ops, given at
 * the start. The module does not know commands and sockets: the caller knows who asks and what to
 * tell the user.
 *
 * Threads: requests and answers come on rpc's progress thread, commands on any other; the functions
 * that belong to the main thread say so. No callback is called under the lock. */
#ifndef COP_TREE_OP_H
#define COP_TREE_OP_H

#include "base/base/base.h"
#include "base/loop/loop.h"
#include "cache/cache/cache.h"
#include "fabric/rpc/rpc.h"
#include "job/topo/topo.h"
#include "prof/machine/machine.h"
#include "prof/profile/profile.h"
#include "prof/stats/stats.h"
#include "prof/telemetry/telemetry.h"

/* The operations, by their numbers in rpc. */
enum {
	COP_OP_STOP = 35,  /* stops the nodes below, then this node */
	COP_OP_STATS,      /* text: a JSON object for each node, separated by commas */
	COP_OP_INVALIDATE, /* argument: a path below the source, which is forgotten here, then
				  below */
	COP_OP_TABLE,      /* text: a line for each node (nodeline), separated by newlines */
	COP_OP_SNAPSHOT,   /* writes the current reports */
	COP_OP_RESET,      /* the same, then counts from zero; the argument identifies the command,
				  so that a node that is asked twice does it once */
	COP_OP_RELEASED = 42,  /* how many nodes are no longer needed */
	COP_OP_RELEASED_BELOW, /* from a node: it and all below it are no longer needed; with any
				  payload: again */
	COP_OP_TELEMETRY =
		45, /* the numbers of the statistics, without text however many nodes there are */
};

/* The size of an argument, with its NUL. */
#define COP_OP_ARGUMENT_SIZE 4096

struct cop_op_request {
	uint8_t op;
	const char *argument; /* "" if there is none; copied */
};

/* ---- sums ---- */

/* How many ranks without an answer are named; the others are counted. */
#define COP_OP_NAMED 16
#define COP_OP_SENTENCE 384
/* The longest text: a control socket carries it in one reply. */
#define COP_OP_TEXT_MAX (240 * COP_MIB)
/* How many silent ranks a sum holds: every rank of the longest host list. */
#define COP_OP_SILENT_MAX 200000

/* Processor time and resident memory: of all nodes together, and the most of any one. */
struct cop_op_machine {
	uint64_t cpu_us, cpu_us_most;
	uint64_t resident_bytes, resident_bytes_most;
};

/* The answers of a subtree. All zero: nobody was asked, because memory was short. */
/* How the commands of copper run ended on these nodes. */
struct cop_op_exits {
	uint32_t commands; /* that were started; what is in none of the next three has an unknown
			      end */
	uint32_t running, good, failed;
	uint32_t worst; /* of the failed ones, as wait(2) has it */
	uint32_t rank;  /* where that was */
};
/* Counts the end of one command. */
void cop_op_exits_count(struct cop_op_exits *e, uint32_t rank, int status);
void cop_op_exits_add(struct cop_op_exits *into, const struct cop_op_exits *from);

struct cop_op_sum {
	uint32_t nodes;                 /* nodes that have answered */
	uint32_t dead, refused, failed; /* nodes that have not, by reason */
	uint32_t missing; /* those, and the nodes below failed ones, of which nothing is known */
	uint32_t lost[COP_OP_NAMED]; /* the first of the missing ranks */
	struct cop_buf silent;       /* the dead ranks, each a uint32_t; cop_op_sum_silent */
	uint32_t mounted;   /* how many of the nodes could not unmount and left a dead mount */
	uint32_t unwritten; /* how many of the nodes could not write their final files */
	char why_unwritten[COP_OP_SENTENCE]; /* "HOST: sentence" of one of them */
	uint32_t released;                   /* how many of the nodes were released */
	uint32_t fell_back;    /* how many of the nodes read the storage in place of a node above */
	uint64_t cache_needed; /* bytes that would have held everything, on the node that needs
				  most; the next two as in struct cop_advice_facts */
	uint64_t data_bytes, memory_bytes;
	uint32_t cut; /* nodes whose part of the text did not fit and was left out */
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_op_exits exits;     /* stop: of the commands on these nodes */
	struct cop_op_machine machine; /* of those nodes, if the operation counts it */
	struct cop_machine_sum hosts;  /* the same: how busy their hosts are */
	struct cop_buf text; /* JSON objects, lines of nodes, or sentences with newlines between
			      */
	struct cop_prof_sum *prof;           /* stop: what these nodes counted; NULL: nothing */
	struct cop_telemetry_sum *telemetry; /* stop: what they did and when; NULL: nothing */
};

/* Frees what it holds; it is empty afterwards. */
void cop_op_sum_free(struct cop_op_sum *s);
/* Records that the final files of one more node are missing; why says why. */
void cop_op_sum_unwritten(struct cop_op_sum *s, const char *host, const char *why);
/* Appends one such sentence to out, then a line with the number of nodes; appends nothing if all
 * files were written. */
void cop_op_sum_say_unwritten(const struct cop_op_sum *s, struct cop_buf *out);
/* How many silent ranks the sum holds, and one of them. A rank is another process's word for it: it
 * may be larger than any rank of the tree. */
uint32_t cop_op_sum_silents(const struct cop_op_sum *s);
uint32_t cop_op_sum_silent(const struct cop_op_sum *s, uint32_t i);
/* Adds this process's own use of its machine. */
void cop_op_sum_machine(struct cop_op_sum *s);
/* Adds from; the caller keeps its text, silent, prof and telemetry. separator goes between the two
 * texts. prof and telemetry are left out if memory is short, which is logged. */
void cop_op_sum_add(struct cop_op_sum *into, const struct cop_op_sum *from, char separator);
/* Moves text, silent, prof and telemetry, and copies the rest, to an empty sum. */
void cop_op_sum_move(struct cop_op_sum *into, struct cop_op_sum *from);
/* Decodes the body of an answer into an empty s, which the caller frees in any case. Returns 0,
 * -EBADMSG or -ENOMEM. A damaged profile or telemetry is left out, which is
 * logged. */
int cop_op_sum_decode(const void *body, size_t len, struct cop_op_sum *s);

/* ---- a node's part ---- */

/* What the node does itself; ctx is the one from the configuration. */
struct cop_op_ops {
	/* Any thread. NULL: this is the only node. */
	struct cop_rpc *(*rpc)(void *ctx);
	/* Any thread. The name of a rank's host, which must outlive the treeop. */
	const char *(*host)(void *ctx, uint32_t rank);
	/* Any thread. Fills an empty sum with this node's statistics: nodes is 1, and text is this
	 * node's part for the operation: its line of the table, its JSON object, or nothing. */
	void (*own)(void *ctx, struct cop_op_sum *own, uint8_t op);
	/* Any thread. Forgets a path and everything below it. 0: calls then once, now or later and
	 * on any thread; -ENOMEM: the kernel could not be told, and then is not called. */
	int (*forget)(void *ctx, const char *path, void (*then)(void *arg), void *arg);
	/* Main thread. report writes the current reports; reset also sets the counters to zero. 0;
	 * -ENOENT: this node writes none; else err has a sentence. */
	int (*report)(void *ctx, struct cop_err *err);
	int (*reset)(void *ctx, struct cop_err *err);
	/* Any thread; may be called several times. Makes this node end: it unmounts and then calls
	 * cop_op_ended. */
	void (*end)(void *ctx);
	/* Main thread, inside cop_op_ended. All nodes below have answered a stop: adds what
	 * this node has counted to sum; a root writes the sum and takes prof and telemetry out of
	 * it. 0; otherwise files could not be written, and err has a sentence. */
	int (*complete_sum)(void *ctx, struct cop_op_sum *sum, struct cop_err *err);
};

struct cop_op_conf {
	struct cop_topo topo;
	uint32_t rank; /* a rank after those of the topology is not a node and only asks; then only
			  rpc and host of ops are used, deferred is NULL, and alive_op is 0 */
	uint32_t peer_timeout_ms;
	uint8_t alive_op; /* an rpc operation that every node answers at once */
	const struct cop_op_ops *ops;
	void *ctx;
	struct cop_gate *gate; /* operations in progress are inside it */
	struct cop_defer *deferred;
};

struct cop_op;

/* NULL: out of memory. What conf points to must outlive the object. */
struct cop_op *cop_op_new(const struct cop_op_conf *conf);
/* Main thread, after the gate has been drained and rpc is closed. NULL is fine. */
void cop_op_free(struct cop_op *t);

/* ---- operations ---- */

/* Called once, on any thread or inside the function that started the operation. What sum holds is
 * freed afterwards. A sum of cop_op_all may be moved to another (cop_op_sum_move); one of
 * cop_op_here may only be read, because every requester of a stop gets the same sum. */
typedef void cop_op_done(void *arg, struct cop_op_sum *sum);

/* Any thread, from inside the gate. Runs the operation on every node of the tree, beginning at its
 * root. */
void cop_op_all(
	struct cop_op *t, const struct cop_op_request *request, cop_op_done *done, void *arg);
/* Runs it on this node alone (not for invalidate), or on it and all nodes below it. */
void cop_op_here(struct cop_op *t, const struct cop_op_request *request, bool below,
	cop_op_done *done, void *arg);
/* Progress thread, from inside the gate. Serves another node's request for one of these operations,
 * on this node and all nodes below it, and answers it. This works even when this node has ended,
 * because the node above may have died with the first answer. */
void cop_op_serve(struct cop_op *t, struct cop_rpc_req *req);

/* Any thread, from inside the gate. This node is no longer needed on its machine. If no living node
 * above can end the tree, and there is a reason to ask now, asks all nodes, and done gets their
 * sum; otherwise done gets an empty one (nodes 0). Called repeatedly with the time of a steady
 * clock; most calls send nothing. */
void cop_op_release(struct cop_op *t, uint64_t now_ms, cop_op_done *done, void *arg);
/* Whoever gets a sum that says that all are released must stop the tree within this time after the
 * call, or ask again. */
#define COP_OP_RELEASED_MS 1500
/* Any thread. This node is needed on its machine again. -EAGAIN: it has just reported that it is
 * not, and the tree may be stopped on that ground; try again, or hear that the node ends. */
int cop_op_hold(struct cop_op *t, uint64_t now_ms);
/* Appends a line for each silent rank of the tree: "HOST (rank N) did not answer". */
void cop_op_say_silent(const struct cop_op *t, const struct cop_op_sum *sum, struct cop_buf *out);
/* Whether that sum says that nobody needs the tree any more. */
bool cop_op_all_released(const struct cop_op_sum *sum);

/* ---- the end ---- */

/* Any thread. Whether the nodes below have been asked to stop. */
bool cop_op_is_stopping(struct cop_op *t);
/* Any thread. The same, or this node has ended without being asked: some nodes may have given their
 * last numbers by now. */
bool cop_op_is_ending(struct cop_op *t);
/* Main thread; only the first call counts. The node has unmounted: adds its part to the sums from
 * below and answers everyone who asked it to stop, now and later. remark: a line for the user who
 * gave the command, or NULL; unwritten: why its final files are missing, or NULL; mounted: its
 * mount is left. */
void cop_op_ended(struct cop_op *t, const char *remark, const char *unwritten, bool mounted);
/* Main thread, after cop_op_ended. Returns when every requester of the stop has the answer or
 * is gone, after two minutes at most. */
void cop_op_await_confirmed(struct cop_op *t);

/* nodeline: what a node reports about itself for a table of all nodes: a struct, and the line in
 * which it travels up the tree. Both the table of cache-stats --all and the screen of --watch are
 * made of it. A line has fields separated by tabs and no other control character, whatever the
 * host's name and the reason contain. This module neither adds up nor prints. */

enum cop_nodeline_state {
	COP_NODELINE_OK,
	COP_NODELINE_DEAD,
	COP_NODELINE_REFUSED, /* it has another secret or other options */
	COP_NODELINE_FAILED,
	COP_NODELINE_STATES
};

/* Values of a node that answered; all but the first four grow until a reset. */
enum cop_nodeline_value {
	COP_NODELINE_USED_BYTES, /* of the budget */
	COP_NODELINE_LIMIT_BYTES,
	COP_NODELINE_WAITING,   /* requests of programs that are waiting now */
	COP_NODELINE_UPTIME_MS, /* when this was measured, by the node's own clock */
	COP_NODELINE_WAIT_US,   /* how long requests of programs have waited, including those that
				   wait now */
	COP_NODELINE_REQUESTS,  /* by programs, that is, by the kernel */
	COP_NODELINE_BYTES,     /* read by programs */
	COP_NODELINE_SENT,      /* requests to parents and other nodes */
	COP_NODELINE_SERVED,    /* requests answered for children */
	COP_NODELINE_ORIGIN_OPERATIONS,
	COP_NODELINE_ORIGIN_BYTES,
	COP_NODELINE_FAILOVERS,
	COP_NODELINE_REJECTED,
	COP_NODELINE_LAGGED,    /* the rank that was left last for being silent, and one; 0: none */
	COP_NODELINE_OLDEST_MS, /* how long the node has waited for what `reason` names; 0: for
				   nothing that is worth a line */
	COP_NODELINE_VALUES
};

struct cop_nodeline {
	uint32_t rank;
	enum cop_nodeline_state state;
	const char *host;
	uint64_t value[COP_NODELINE_VALUES]; /* 0 if the node did not answer */
	const char *reason; /* why a node refused or failed; of one that answered, what it has
			       waited for the longest; else "" */
	uint32_t below; /* for such a node: how many nodes below it are missing as a consequence */
};

/* "ok", "dead", "refused", "failed" */
const char *cop_nodeline_word(enum cop_nodeline_state state);
/* Appends the line without its newline. */
void cop_nodeline_write(const struct cop_nodeline *n, struct cop_buf *out);
/* Reads a line without its newline. Changes the line: host and reason point into it. 0 or
 * -EBADMSG. */
int cop_nodeline_read(char *line, struct cop_nodeline *out);

#endif
