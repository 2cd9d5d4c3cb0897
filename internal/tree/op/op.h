/* SPDX-License-Identifier: BSD-3-Clause */
/* tree/op: sends an operation down the tree to all nodes and sums the answers on the way up: stop,
 * statistics, the table of nodes, invalidate, snapshot, reset, and release (whether the tree is
 * still needed).
 *
 * A node forwards the request to its children, does its own part, and answers with the sum of both.
 * A node that is dead or refuses is bypassed: its children are contacted directly, so only that
 * node is missing. Nodes that did not answer are listed and counted by reason. Repeated requests to
 * stop a node all receive the same sum, and a node that has answered a stop does not exit until its
 * answer has arrived.
 *
 * The node's own part (its statistics, its mount, its files) is implemented by the callbacks in
 * struct cop_op_ops. Commands and sockets are outside this module: its caller handles the user.
 *
 * Threads: requests and answers arrive on rpc's progress thread, commands on any other; functions
 * that must run on the main thread are marked. No callback is called with the lock held. */
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

/* The operations, by rpc number. */
enum {
	COP_OP_STOP = 35,  /* stop the nodes below, then this node */
	COP_OP_STATS,      /* text: a JSON object per node, separated by commas */
	COP_OP_INVALIDATE, /* argument: a path below the source to drop, first on this node, then on
			      the nodes below */
	COP_OP_TABLE,      /* text: a line per node (nodeline), separated by newlines */
	COP_OP_SNAPSHOT,   /* write the current reports */
	COP_OP_RESET, /* the same, then reset the counters; the argument identifies the command, so
			 a repeated request resets only once */
	COP_OP_RELEASED = 42,  /* number of nodes that are no longer needed */
	COP_OP_RELEASED_BELOW, /* from a node: it and all nodes below are no longer needed; with any
				  payload: a node was held after an earlier report */
	COP_OP_TELEMETRY = 45, /* numeric statistics without text, for any number of nodes */
};

/* Size of an argument including its NUL. */
#define COP_OP_ARGUMENT_SIZE 4096

struct cop_op_request {
	uint8_t op;
	const char *argument; /* "" for none; copied */
};

/* ---- sums ---- */

/* Maximum number of missing ranks in lost; all are counted. */
#define COP_OP_NAMED 16
#define COP_OP_SENTENCE 384
/* Maximum length of the text, because a control socket sends it in one reply. */
#define COP_OP_TEXT_MAX (240 * COP_MIB)
/* Maximum number of silent ranks in a sum: all ranks of the longest host list. */
#define COP_OP_SILENT_MAX 200000

/* Processor time and resident memory: the total of all nodes and the maximum per node. */
struct cop_op_machine {
	uint64_t cpu_us, cpu_us_most;
	uint64_t resident_bytes, resident_bytes_most;
};

/* How the commands of copper run ended on these nodes. */
struct cop_op_exits {
	uint32_t commands; /* started; the outcome of those not counted below is unknown */
	uint32_t running, good, failed;
	uint32_t worst; /* of the failed commands; a wait(2) status */
	uint32_t rank;  /* where worst occurred */
};
/* Counts a finished command. */
void cop_op_exits_count(struct cop_op_exits *e, uint32_t rank, int status);
void cop_op_exits_add(struct cop_op_exits *into, const struct cop_op_exits *from);

/* The combined answers of a subtree. All zero: no request was sent, because memory was short. */
struct cop_op_sum {
	uint32_t nodes;                 /* answered */
	uint32_t dead, refused, failed; /* did not answer, by reason */
	uint32_t missing; /* all of these, plus the nodes below failed ones, whose state is unknown
			   */
	uint32_t lost[COP_OP_NAMED]; /* the first missing ranks */
	struct cop_buf silent;       /* dead ranks, as uint32_t; see cop_op_sum_silent */
	uint32_t mounted;            /* nodes that could not unmount and left a dead mount */
	uint32_t unwritten;          /* nodes that could not write their final files */
	char why_unwritten[COP_OP_SENTENCE]; /* "HOST: sentence" of one of them */
	uint32_t released;                   /* released nodes */
	uint32_t fell_back; /* nodes that read the storage instead of using an ancestor's cache */
	uint64_t cache_needed; /* maximum over the nodes: bytes needed to cache everything;
				  data_bytes and memory_bytes: as in struct cop_advice_facts */
	uint64_t data_bytes, memory_bytes;
	uint32_t cut; /* nodes whose part of the text was too long and was omitted */
	struct cop_stats stats;
	struct cop_cache_usage usage;
	struct cop_op_exits exits;     /* stop: the commands on these nodes */
	struct cop_op_machine machine; /* set only if the operation counts it */
	struct cop_machine_sum hosts;  /* set likewise: load of the nodes' hosts */
	struct cop_buf text; /* JSON objects, node lines, or sentences, separated by newlines */
	struct cop_prof_sum *prof;           /* stop: profile of these nodes, or NULL */
	struct cop_telemetry_sum *telemetry; /* stop: time series of these nodes, or NULL */
};

/* Frees the members and empties the sum. */
void cop_op_sum_free(struct cop_op_sum *s);
/* Counts a node that could not write its final files; why is the reason. */
void cop_op_sum_unwritten(struct cop_op_sum *s, const char *host, const char *why);
/* Appends one such reason, then a line with the number of nodes; appends nothing if all files were
 * written. */
void cop_op_sum_say_unwritten(const struct cop_op_sum *s, struct cop_buf *out);
/* Number of silent ranks in the sum, and one of them. The rank comes from another process and may
 * be out of range. */
uint32_t cop_op_sum_silents(const struct cop_op_sum *s);
uint32_t cop_op_sum_silent(const struct cop_op_sum *s, uint32_t i);
/* Adds the resource usage of this process. */
void cop_op_sum_machine(struct cop_op_sum *s);
/* Adds from; the caller still owns its text, silent, prof and telemetry. separator is inserted
 * between the two texts. If memory is short, prof and telemetry are dropped and a line is logged.
 */
void cop_op_sum_add(struct cop_op_sum *into, const struct cop_op_sum *from, char separator);
/* Moves text, silent, prof and telemetry to an empty sum, and copies all other fields. */
void cop_op_sum_move(struct cop_op_sum *into, struct cop_op_sum *from);
/* Decodes the body of an answer into an empty s, which the caller must free in any case. Returns 0,
 * -EBADMSG or -ENOMEM. A damaged profile or telemetry is dropped and a line is logged. */
int cop_op_sum_decode(const void *body, size_t len, struct cop_op_sum *s);

/* ---- a node's part ---- */

/* Callbacks for the node's own part; ctx is the one from the configuration. */
struct cop_op_ops {
	/* Any thread. NULL: this is the only node. */
	struct cop_rpc *(*rpc)(void *ctx);
	/* Any thread. The hostname of a rank, which must outlive the cop_op. */
	const char *(*host)(void *ctx, uint32_t rank);
	/* Any thread. Fills an empty sum with this node's statistics: nodes is 1, and text is this
	 * node's line, its JSON object, or empty, depending on the operation. */
	void (*own)(void *ctx, struct cop_op_sum *own, uint8_t op);
	/* Any thread. Drops a path and everything below it. 0: then is called once, on any thread,
	 * before or after this returns; -ENOMEM: the kernel was not notified, and then is not
	 * called. */
	int (*forget)(void *ctx, const char *path, void (*then)(void *arg), void *arg);
	/* Main thread. report writes the current reports; reset also clears the counters. Returns
	 * 0, -ENOENT if this node writes none, or another error with a sentence in err. */
	int (*report)(void *ctx, struct cop_err *err);
	int (*reset)(void *ctx, struct cop_err *err);
	/* Any thread; may be called repeatedly. Shuts this node down: it unmounts and calls
	 * cop_op_ended. */
	void (*end)(void *ctx);
	/* Main thread, inside cop_op_ended, once all nodes below have answered a stop. Adds this
	 * node's own counts to sum; a root writes the sum and takes its prof and telemetry. Returns
	 * 0, or an error with a sentence in err if files could not be written. */
	int (*complete_sum)(void *ctx, struct cop_op_sum *sum, struct cop_err *err);
};

struct cop_op_conf {
	struct cop_topo topo;
	uint32_t rank; /* a rank beyond the topology is a client, not a node: only rpc and host of
			  ops are called, deferred is NULL, and alive_op is 0 */
	uint32_t peer_timeout_ms;
	uint8_t alive_op; /* an rpc operation that every node answers immediately */
	const struct cop_op_ops *ops;
	void *ctx;
	struct cop_gate *gate; /* entered by operations in progress */
	struct cop_defer *deferred;
};

struct cop_op;

/* NULL: out of memory. Everything in conf must outlive the object. */
struct cop_op *cop_op_new(const struct cop_op_conf *conf);
/* Main thread, after draining the gate and closing rpc. t may be NULL. */
void cop_op_free(struct cop_op *t);

/* ---- operations ---- */

/* Called once, on any thread, possibly before the starting function returns. The contents of sum
 * are freed afterwards. The sum from cop_op_all may be moved (cop_op_sum_move); the one from
 * cop_op_here is read-only, because all requesters of a stop share it. */
typedef void cop_op_done(void *arg, struct cop_op_sum *sum);

/* Any thread, inside the gate. Runs the operation on every node, starting at the root. */
void cop_op_all(
	struct cop_op *t, const struct cop_op_request *request, cop_op_done *done, void *arg);
/* Runs it on this node alone (not for invalidate), or on this node and all nodes below. */
void cop_op_here(struct cop_op *t, const struct cop_op_request *request, bool below,
	cop_op_done *done, void *arg);
/* Progress thread, inside the gate. Serves another node's request for one of these operations on
 * this node and all nodes below, and answers it. Also works after this node has ended, because the
 * parent may have died after receiving the first answer. */
void cop_op_serve(struct cop_op *t, struct cop_rpc_req *req);

/* Any thread, inside the gate. This node is no longer needed on its host. If no live ancestor can
 * end the tree and a check is due, queries all nodes and passes their sum to done; otherwise passes
 * an empty sum (nodes 0). Call repeatedly with the time of a monotonic clock; most calls send
 * nothing. */
void cop_op_release(struct cop_op *t, uint64_t now_ms, cop_op_done *done, void *arg);
/* A caller whose sum shows all nodes released must stop the tree within this time after the call,
 * or else query again: cop_op_release_again makes the next call due. */
#define COP_OP_RELEASED_MS 1500
void cop_op_release_again(struct cop_op *t);
/* Any thread. This node is needed on its host again. -EAGAIN: the node has just reported its
 * release, so the tree may be stopping; retry until this succeeds or the node ends. */
int cop_op_hold(struct cop_op *t, uint64_t now_ms);
/* Appends a line per silent rank of the tree: "HOST (rank N) did not answer". */
void cop_op_say_silent(const struct cop_op *t, const struct cop_op_sum *sum, struct cop_buf *out);
/* Whether, according to sum, the whole tree is released. */
bool cop_op_all_released(const struct cop_op_sum *sum);

/* ---- the end ---- */

/* Any thread. Whether the nodes below have been asked to stop. */
bool cop_op_is_stopping(struct cop_op *t);
/* Any thread. The same, or this node has ended for another reason: some nodes may have sent their
 * final numbers by now. */
bool cop_op_is_ending(struct cop_op *t);
/* Main thread; only the first call has an effect. The node has unmounted: adds its part to the sums
 * from below and answers all current and later stop requests. remark: a line for the user who ran
 * the command, or NULL; unwritten: why the node's final files are missing, or NULL; mounted: its
 * mount is still there. */
void cop_op_ended(struct cop_op *t, const char *remark, const char *unwritten, bool mounted);
/* Main thread, after cop_op_ended. Returns when every requester of the stop has the answer or is
 * dead, but after two minutes at most. */
void cop_op_await_confirmed(struct cop_op *t);

/* nodeline: a node's row in the table of all nodes, used by cache-stats --all and --watch. It is a
 * struct here and a line of text on its way up the tree. Tabs separate the fields of the line;
 * control characters in the hostname or the reason are escaped. This code neither sums nor prints.
 */

enum cop_nodeline_state {
	COP_NODELINE_OK,
	COP_NODELINE_DEAD,
	COP_NODELINE_REFUSED, /* different secret or options */
	COP_NODELINE_FAILED,
	COP_NODELINE_STATES
};

/* Values of a node that answered; all but the first four are counters that grow until a reset. */
enum cop_nodeline_value {
	COP_NODELINE_USED_BYTES, /* of the budget */
	COP_NODELINE_LIMIT_BYTES,
	COP_NODELINE_WAITING,   /* requests of programs currently waiting */
	COP_NODELINE_UPTIME_MS, /* the node's uptime when these values were taken */
	COP_NODELINE_WAIT_US,   /* total wait of programs' requests, including pending ones */
	COP_NODELINE_REQUESTS,  /* programs' requests, received from the kernel */
	COP_NODELINE_BYTES,     /* read by programs */
	COP_NODELINE_SENT,      /* requests to parents and other nodes */
	COP_NODELINE_SERVED,    /* requests answered for children */
	COP_NODELINE_ORIGIN_OPERATIONS,
	COP_NODELINE_ORIGIN_BYTES,
	COP_NODELINE_FAILOVERS,
	COP_NODELINE_REJECTED,
	COP_NODELINE_LAGGED,    /* last rank abandoned for silence, plus one; 0: none */
	COP_NODELINE_OLDEST_MS, /* wait so far for the request in `reason`; 0: none to report */
	COP_NODELINE_VALUES
};

struct cop_nodeline {
	uint32_t rank;
	enum cop_nodeline_state state;
	const char *host;
	uint64_t value[COP_NODELINE_VALUES]; /* 0 without an answer */
	const char *reason; /* why a node refused or failed; for a node that answered, the request
			       that has waited longest; else "" */
	uint32_t below;     /* for a node that refused or failed: number of nodes below it that are
			       missing as a result */
};

/* "ok", "dead", "refused", "failed" */
const char *cop_nodeline_word(enum cop_nodeline_state state);
/* Appends the line without newline. */
void cop_nodeline_write(const struct cop_nodeline *n, struct cop_buf *out);
/* Parses a line without newline. Modifies the line: host and reason point into it. 0 or -EBADMSG.
 * */
int cop_nodeline_read(char *line, struct cop_nodeline *out);

#endif
