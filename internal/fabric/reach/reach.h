/* SPDX-License-Identifier: BSD-3-Clause */
/* reach: opens this process's network and finds the other ranks. It opens rpc, protected by the
 * job's secret. It resolves addresses for rpc, from the facility's address book or by asking the
 * other machines (the rendezvous of job). It sends its own address to nodes that ask, and detects
 * that this rank already runs.
 *
 * It does not know the relations between ranks or the meaning of requests, which it passes to the
 * caller. Commands that are not nodes of the tree use it as clients, with ranks after those of the
 * nodes. */
#ifndef COP_FABRIC_REACH_H
#define COP_FABRIC_REACH_H

#include "base/base/base.h"
#include "fabric/rpc/rpc.h"
#include "fabric/wire/wire.h"
#include "job/hosts/hosts.h"
#include "job/topo/topo.h"
#include "prof/stats/stats.h"

/* Ranks after those of the nodes, for commands that talk to a tree without being nodes of it. */
#define COP_REACH_CLIENTS 64
/* A node that was stopped a moment ago has unmounted, and may not have closed its sockets yet. */
#define COP_REACH_FREE_MS 3000

struct cop_reach;

struct cop_reach_conf {
	uint32_t rank, nodes;              /* rank >= nodes: a client */
	const struct cop_job_hosts *hosts; /* the caller's, while the object lives */
	const char *net_type;              /* its value when cop_reach_open is called */
	uint16_t port_low, port_high;      /* where the fabric listens, as cop_endpoint_conf has it;
					      0: the kernel chooses */
	const char *job_dir;               /* for the message if this rank already runs; or "" */
	bool insecure;
	const struct cop_wire_secret *secret; /* the caller's; zeros: insecure */
	uint64_t config_hash;
	uint32_t peer_timeout_ms;
	struct cop_stats *stats;
	struct cop_rpc **rpc; /* the caller's variable for rpc, filled before the first callback;
				 the caller closes rpc before cop_reach_free */
	void *ctx;            /* first argument of the callbacks */
	/* As rpc has it: progress thread, answer exactly once. */
	void (*serve)(void *ctx, struct cop_rpc_req *req);
	/* Progress thread; may be NULL, as with a client. Another node (any number, but no client)
	 * has another config hash. */
	void (*mismatch)(void *ctx, uint32_t rank);
	/* Any thread; may be NULL. This node and that one can never meet; why: a sentence. */
	void (*no_way)(void *ctx, uint32_t rank, const char *why);
	/* As rpc has it: progress thread, about every 100 ms while requests of others are not
	 * answered yet; may be NULL. */
	void (*tick)(void *ctx, uint64_t now_ms);
	/* As rpc has it: progress thread; may be NULL. */
	void (*peer_changed)(void *ctx, uint32_t rank, bool lives);
	void (*peer_lags)(void *ctx, uint32_t rank, bool lags, uint64_t silent_ms);
	/* Any thread. The result of looking up a node: its fabric address, or NULL; why: a sentence
	 * if it was not found, or NULL. Must not block. */
	void (*looked)(void *ctx, uint32_t rank, const char *address, const char *why);
};

/* A hash of the settings that all nodes of a tree must share, because each node computes from them
 * the parents and the owners of objects: these settings and the version. It never changes within a
 * version. */
uint64_t cop_reach_config_hash(const struct cop_topo *topo, uint64_t chunk_bytes,
	const char *source, const struct cop_job_hosts *hosts);
/* A name that only the nodes of one tree have in common, and that may be shown. */
#define COP_REACH_TREE_SIZE 40
void cop_reach_tree_name(
	const struct cop_wire_secret *secret, uint64_t config_hash, char out[COP_REACH_TREE_SIZE]);

/* Copies conf, but not what it points to, which is read from cop_reach_open on. NULL if out of
 * memory. */
struct cop_reach *cop_reach_new(const struct cop_reach_conf *conf);
/* Call it when rpc is closed. NULL is fine. */
void cop_reach_free(struct cop_reach *r);

/* The main thread calls these in this order, each at most once; cop_reach_open may be called again
 * after it failed. */

/* Takes all addresses from a book, by host and, if the book has several networks, by network (NULL:
 * the first). 0 or -errno with a sentence. */
int cop_reach_use_book(
	struct cop_reach *r, const char *path, const char *network, struct cop_err *err);
/* Opens rpc on this host, or at the address that the book has for this rank. 0 or -errno with a
 * sentence. */
int cop_reach_open(struct cop_reach *r, const char *host, struct cop_err *err);
/* For a node: listens and sends its address to the others, on its port of the host list or the
 * second port. With a book, the port only shows that the node is alive, if it can listen. Waits for
 * a port that another process is just leaving, COP_REACH_FREE_MS at most. 0, or -EADDRINUSE and so
 * on with a sentence. */
int cop_reach_listen(struct cop_reach *r, struct cop_err *err);
/* For a client: sends requests from this address of the machine. */
int cop_reach_listen_as_client(struct cop_reach *r, const char *address, struct cop_err *err);
/* Whether cop_reach_listen failed because this rank already runs. The process that has the port
 * proved it: only this rank of this tree answers to this name with the job's secret. In that
 * case the other nodes have the node that they wait for and must not hear of a failure, and the
 * user is told to stop the tree. If another program has the port, the user is told to choose
 * another port. */
bool cop_reach_is_duplicate(const struct cop_reach *r);

/* Any thread. The barrier has ended: a node that is not up by now will not be up soon, so open
 * requests end soon; with ready, later ones do, too. */
void cop_reach_barrier_ended(struct cop_reach *r, bool ready);

/* The address that the book has for a rank below nodes, valid while the object lives; NULL without
 * a book. Any thread. */
const char *cop_reach_in_book(const struct cop_reach *r, uint32_t rank);

/* ---- leaving, on the main thread ---- */

/* From now on no node is asked: addresses that are not known are not found. */
void cop_reach_close_door(struct cop_reach *r);
/* Ends this process's own requests and calls; replies given so far are still sent, and others are
 * served as before. When it returns, no callback of those requests runs any more. */
void cop_reach_cancel(struct cop_reach *r);

/* skew: how far this node's clock is ahead of rank 0's, so that traces of several nodes can be laid
 * over each other. A node asks its parent in the first tree for the time a few times and takes the
 * quickest round trip. It assumes that the answer was made halfway through (Cristian, Distributed
 * Computing 3, 1989), so the error is at most half the round trip. The parent adds its own offset,
 * so that only rank 0's children ask rank 0. A parent that does not know this question, or has no
 * offset of its own, is skipped.
 *
 * It sets no clock, and only the trace depends on its result. */

/* The operation, by its number in rpc. */
#define COP_SKEW_OP 44

#define COP_SKEW_SAMPLES 8u
#define COP_SKEW_EVERY_MS 60000u

struct cop_skew;

struct cop_skew_conf {
	struct cop_topo topo;
	uint32_t rank;
	bool asks; /* it will be ticked; otherwise only rank 0 has answers */
	/* The clock, in microseconds since 1970. Any thread. */
	int64_t (*now_us)(void *ctx);
	/* Progress thread. Called when a measurement has ended. */
	void (*measured)(void *ctx, int64_t offset_us, int64_t rtt_us);
	void *ctx;
};

/* NULL: out of memory. */
struct cop_skew *cop_skew_new(const struct cop_skew_conf *conf);
/* No call may be outstanding. NULL is fine. */
void cop_skew_free(struct cop_skew *s);
/* One thread at a time, about every second: begins a measurement when one is due. rpc NULL: the
 * node is alone. */
void cop_skew_tick(struct cop_skew *s, struct cop_rpc *rpc, uint64_t now_ms);
/* Answers another node's request for the time. */
void cop_skew_serve(struct cop_skew *s, struct cop_rpc_req *req);

/* ---- the arithmetic ---- */

struct cop_skew_sample {
	int64_t left_us, came_us; /* by the clock of the asking node */
	int64_t there_us;         /* by the clock of the other node, in between */
	int64_t there_offset_us;  /* how far the other node's clock is ahead of rank 0's */
};
/* False: no clock shows such times. */
bool cop_skew_is_valid(const struct cop_skew_sample *s);
int64_t cop_skew_rtt_us(const struct cop_skew_sample *s);
/* How far the asking node's clock is ahead of rank 0's; for valid samples only. */
int64_t cop_skew_offset_us(const struct cop_skew_sample *s);

#endif
