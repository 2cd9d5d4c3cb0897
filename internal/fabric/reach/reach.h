/* SPDX-License-Identifier: BSD-3-Clause */
/* reach: opens this process's network and finds the other ranks. It opens rpc, authenticated by
 * the job's secret, and resolves addresses for rpc from the facility's address book or with
 * requests to the other machines (the rendezvous of job). It sends its own address on request
 * and detects a duplicate of this rank.
 *
 * It knows nothing of the tree or of what requests mean; it passes requests to the caller. Commands
 * that are not nodes use it as clients; client ranks follow the node ranks. */
#ifndef COP_FABRIC_REACH_H
#define COP_FABRIC_REACH_H

#include "base/base/base.h"
#include "fabric/rpc/rpc.h"
#include "fabric/wire/wire.h"
#include "job/hosts/hosts.h"
#include "job/topo/topo.h"
#include "prof/stats/stats.h"

/* Client ranks, after the node ranks, for commands that talk to a tree. */
#define COP_REACH_CLIENTS 64
/* A node that has just stopped may have unmounted but not yet closed its sockets. */
#define COP_REACH_FREE_MS 3000

struct cop_reach;

struct cop_reach_conf {
	uint32_t rank, nodes;              /* rank >= nodes: a client */
	const struct cop_job_hosts *hosts; /* owned by the caller; must outlive the object */
	const char *net_type;              /* read when cop_reach_open is called */
	uint16_t port_low, port_high; /* the fabric's port range, as in cop_endpoint_conf; 0: the
					 kernel chooses */
	const char *job_dir; /* for the error message if this rank is already running; may be "" */
	bool insecure;
	const struct cop_wire_secret *secret; /* owned by the caller; zeros: insecure */
	uint64_t config_hash;
	uint32_t peer_timeout_ms;
	struct cop_stats *stats;
	struct cop_rpc **rpc; /* the caller's variable for rpc, set before the first callback; the
				 caller closes rpc before cop_reach_free */
	void *ctx;            /* first argument of the callbacks */
	/* As in rpc: on the progress thread; reply exactly once. */
	void (*serve)(void *ctx, struct cop_rpc_req *req);
	/* Progress thread; NULL for a client. Another node (any rank, but not a client) has a
	 * different config hash. */
	void (*mismatch)(void *ctx, uint32_t rank);
	/* Any thread; may be NULL. The two nodes can never connect; why is a sentence. */
	void (*no_way)(void *ctx, uint32_t rank, const char *why);
	/* As in rpc: progress thread, about every 100 ms while requests from other nodes are open;
	 * may be NULL. */
	void (*tick)(void *ctx, uint64_t now_ms);
	/* As in rpc: progress thread; may be NULL. */
	void (*peer_changed)(void *ctx, uint32_t rank, bool lives);
	void (*peer_lags)(void *ctx, uint32_t rank, bool lags, uint64_t silent_ms);
	/* Any thread. The result of looking up a node: its fabric address, or NULL and a sentence
	 * in why, which may be NULL. Must not block. */
	void (*looked)(void *ctx, uint32_t rank, const char *address, const char *why);
};

/* A hash of the version and of the settings that determine parents and object owners. All nodes of
 * a tree must agree on it. It does not change within a version. */
uint64_t cop_reach_config_hash(const struct cop_topo *topo, uint64_t chunk_bytes,
	const char *source, const struct cop_job_hosts *hosts);
/* A public name shared by exactly the nodes of one tree. */
#define COP_REACH_TREE_SIZE 40
void cop_reach_tree_name(
	const struct cop_wire_secret *secret, uint64_t config_hash, char out[COP_REACH_TREE_SIZE]);

/* Copies conf but not the objects it points to, which are used from cop_reach_open on. Returns NULL
 * if out of memory. */
struct cop_reach *cop_reach_new(const struct cop_reach_conf *conf);
/* Call it after rpc is closed. NULL is fine. */
void cop_reach_free(struct cop_reach *r);

/* The main thread calls these in this order, each at most once; cop_reach_open may be called again
 * after it failed. */

/* Reads all addresses from a book, by host and, if the book has several networks, by network (NULL:
 * the first). 0 or -errno with a sentence. */
int cop_reach_use_book(
	struct cop_reach *r, const char *path, const char *network, struct cop_err *err);
/* Opens rpc on this host, or at this rank's address in the book. 0 or -errno with a sentence. */
int cop_reach_open(struct cop_reach *r, const char *host, struct cop_err *err);
/* For a node: listens on its port in the host list or on the second port, and sends its address on
 * request. With a book the port only shows that the node is alive, so failure to listen is not
 * an error. Waits up to COP_REACH_FREE_MS for a port that another process is closing. 0, or
 * -EADDRINUSE etc. with a sentence. */
int cop_reach_listen(struct cop_reach *r, struct cop_err *err);
/* For a client: sends requests from this local address. */
int cop_reach_listen_as_client(struct cop_reach *r, const char *address, struct cop_err *err);
/* Whether cop_reach_listen failed because this rank is already running: the process on the port
 * proved with the job's secret that it is this rank of this tree. In that case do not report a
 * failure to the other nodes, since the node they wait for exists; advise the user to stop the
 * tree. If another program has the port, advise the user to choose another port. */
bool cop_reach_is_duplicate(const struct cop_reach *r);

/* Any thread. Call it when the barrier has ended. Nodes that are not up by then are unlikely to
 * appear soon, so pending look-ups end early and, if ready, so do later ones. */
void cop_reach_barrier_ended(struct cop_reach *r, bool ready);

/* A node's address in the book, valid while the object exists; NULL without a book. Any thread. */
const char *cop_reach_in_book(const struct cop_reach *r, uint32_t rank);

/* ---- leaving, on the main thread ---- */

/* Stops all look-ups of other nodes: unknown addresses resolve to "not found". */
void cop_reach_close_door(struct cop_reach *r);
/* Ends this process's own requests and calls. Replies already given are still sent, and requests
 * from other nodes are still served. No callback of a cancelled request runs after it returns. */
void cop_reach_cancel(struct cop_reach *r);

/* skew: the offset of this node's clock from rank 0's, to align the traces of several nodes. A node
 * requests the time from its parent in the first tree a few times and uses the shortest round trip.
 * The other node is assumed to read its clock halfway through (Cristian, Distributed Computing 3,
 * 1989), so the error is at most half the round trip. The parent adds its own offset, so only rank
 * 0's children query rank 0. A parent that does not support this request, or has no offset, is
 * skipped.
 *
 * It never sets a clock; only traces use the result. */

/* Operation number in rpc. */
#define COP_SKEW_OP 44

#define COP_SKEW_SAMPLES 8u
#define COP_SKEW_EVERY_MS 60000u

struct cop_skew;

struct cop_skew_conf {
	struct cop_topo topo;
	uint32_t rank;
	bool asks; /* cop_skew_tick will be called; if false, this node can reply only as rank 0 */
	/* The clock, in microseconds since 1970. Any thread. */
	int64_t (*now_us)(void *ctx);
	/* Progress thread. A measurement has completed. */
	void (*measured)(void *ctx, int64_t offset_us, int64_t rtt_us);
	void *ctx;
};

/* NULL: out of memory. */
struct cop_skew *cop_skew_new(const struct cop_skew_conf *conf);
/* No call may be outstanding. NULL is fine. */
void cop_skew_free(struct cop_skew *s);
/* One thread at a time, about every second: starts a measurement when one is due. rpc NULL: the
 * node is alone. */
void cop_skew_tick(struct cop_skew *s, struct cop_rpc *rpc, uint64_t now_ms);
/* Replies to another node's time request. */
void cop_skew_serve(struct cop_skew *s, struct cop_rpc_req *req);

/* ---- the arithmetic ---- */

struct cop_skew_sample {
	int64_t left_us, came_us; /* on the requesting node's clock */
	int64_t there_us;         /* on the other node's clock, in between */
	int64_t there_offset_us;  /* offset of the other node's clock from rank 0's */
};
/* False: impossible times. */
bool cop_skew_is_valid(const struct cop_skew_sample *s);
int64_t cop_skew_rtt_us(const struct cop_skew_sample *s);
/* Offset of the requesting node's clock from rank 0's; valid samples only. */
int64_t cop_skew_offset_us(const struct cop_skew_sample *s);

#endif
