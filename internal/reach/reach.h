/* SPDX-License-Identifier: BSD-3-Clause */
/* reach: this process's end of the network and where the other ranks are. It opens rpc, with the
 * guards that the job's secret gives; it answers rpc's questions for addresses, from the facility's
 * address book or by asking the other machines (the rendezvous of job); it tells its own address to
 * those that ask, and finds out that this very rank runs already.
 *
 * It refuses to know what ranks are to each other and what they ask: requests go to the caller as
 * they come. Commands that are no nodes of the tree use it as guests, under ranks behind those of
 * the nodes. */
#ifndef COP_REACH_H
#define COP_REACH_H

#include "base/base.h"
#include "job/job.h"
#include "rpc/rpc.h"
#include "stats/stats.h"
#include "topo/topo.h"
#include "wire/wire.h"

/* Ranks after those of the nodes, for commands that speak with a tree and are none of its nodes. */
#define COP_REACH_GUESTS 64
/* A node that was stopped a moment ago has unmounted, and may not have closed its sockets yet. */
#define COP_REACH_FREE_MS 3000

struct cop_reach;

struct cop_reach_conf {
	uint32_t rank, nodes;              /* rank >= nodes: a guest */
	const struct cop_job_hosts *hosts; /* the caller's, while the object lives */
	const char *net_type;              /* as it stands when cop_reach_open is called */
	const char *job_dir;               /* for what is said when this rank runs already; or "" */
	bool insecure;
	const struct cop_wire_secret *secret; /* the caller's; zeros: insecure */
	uint64_t config_hash;
	uint32_t peer_timeout_ms;
	struct cop_stats *stats;
	struct cop_rpc **rpc; /* the caller's place for it, filled before the first callback; the
				 caller closes it, before cop_reach_free */
	void *ctx;            /* first argument of the callbacks */
	/* As rpc has it: progress thread, answer exactly once. */
	void (*serve)(void *ctx, struct cop_rpc_req *req);
	/* Progress thread; may be NULL, as with a guest. Another node (any number, but no guest)
	 * has another config hash. */
	void (*mismatch)(void *ctx, uint32_t rank);
	/* As rpc has it: progress thread, about every 100 ms while requests of others are not
	 * answered yet; may be NULL. */
	void (*tick)(void *ctx, uint64_t now_ms);
	/* Any thread. A node's machine was asked where it is; why: a sentence if it is not found,
	 * or NULL. Must not block. */
	void (*looked)(void *ctx, uint32_t rank, bool found, const char *why);
};

/* A hash of what all nodes of a tree must have been started with, since each computes from it who
 * is whose parent and what is asked of whom: these, and the version. Never changes within one. */
uint64_t cop_reach_config_hash(const struct cop_topo *topo, uint64_t chunk_bytes,
	const char *source, const struct cop_job_hosts *hosts);
/* What only the nodes of one tree have in common, in a form that may be shown. */
#define COP_REACH_TREE_SIZE 40
void cop_reach_tree_name(
	const struct cop_wire_secret *secret, uint64_t config_hash, char out[COP_REACH_TREE_SIZE]);

/* conf is copied, but for what it points to: that is looked at from cop_reach_open on. NULL without
 * memory. */
struct cop_reach *cop_reach_new(const struct cop_reach_conf *conf);
/* When rpc is closed. NULL is fine. */
void cop_reach_free(struct cop_reach *r);

/* The main thread calls these, each once at most, in this order; but cop_reach_open again after it
 * has failed. */

/* Takes all addresses from a book: its text is by host, and by network where it has several (NULL:
 * the first). 0 or -errno with a sentence. */
int cop_reach_use_book(
	struct cop_reach *r, const char *path, const char *network, struct cop_err *err);
/* Opens rpc at this host, or where the book says that this rank is. 0 or -errno with a sentence. */
int cop_reach_open(struct cop_reach *r, const char *host, struct cop_err *err);
/* A node: tells its address to the others, at its port of the host list or the second one; with a
 * book it is only seen to live there, if it can be. Waits for a port that was just left,
 * COP_REACH_FREE_MS at most. 0, or -EADDRINUSE and so on with a sentence. */
int cop_reach_listen(struct cop_reach *r, struct cop_err *err);
/* A guest: asks from this address of the machine. */
int cop_reach_listen_as_guest(struct cop_reach *r, const char *address, struct cop_err *err);
/* Whether cop_reach_listen has failed because this very rank runs already: the others have it. */
bool cop_reach_is_duplicate(const struct cop_reach *r);

/* Any thread. The barrier has ended: who has not come up by now is not about to, so questions that
 * are under way end soon; ready: and those to come do. */
void cop_reach_barrier_ended(struct cop_reach *r, bool ready);

/* The address of the book for a rank below nodes, valid while the object lives; NULL without a
 * book. Any thread. */
const char *cop_reach_in_book(const struct cop_reach *r, uint32_t rank);
bool cop_reach_has_book(const struct cop_reach *r);

/* ---- leaving, on the main thread ---- */

/* Nobody is asked any more: what is not known is not found. */
void cop_reach_close_door(struct cop_reach *r);
/* Ends this process's own questions and calls, with what has been answered so far on its way;
 * others are served as before. When it returns, no callback of theirs runs any more. */
void cop_reach_take_back(struct cop_reach *r);

#endif
