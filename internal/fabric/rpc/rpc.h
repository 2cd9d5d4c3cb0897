/* SPDX-License-Identifier: BSD-3-Clause */
/* rpc: requests and replies between ranks over fabric: request ids, mutual authentication, replay
 * protection, dead-peer detection, bulk bytes by RMA. Operations and the tree belong to fetch.
 *
 * A call ends exactly once: with the peer's reply, or with
 * -EHOSTDOWN: the peer is dead, or has another secret: it does not reply, but logs and counts this;
 * -EACCES: a process at its address replied without proof of the job's secret;
 * -EPROTO: the peer was started with another config hash;
 * -ETIMEDOUT: the peer lags, and the call has a late callback;
 * -ECANCELED: this node is closing;
 * or, for this one call, -EINVAL, -ENOMEM, -EMSGSIZE (the body is longer than the call's body_max;
 * its length is in body_len), or -EBADMSG (the body could not be written, or its checksum was
 * wrong).
 *
 * A call has no deadline: a peer that replies to pings is alive, however slow its storage is. A
 * peer that answers neither calls nor pings for half of peer_timeout_ms is looked up again. It is
 * declared dead after peer_timeout_ms unless the look-up has found its process alive. If the
 * process exists but its machine is too busy for it to answer, pings and look-ups continue for
 * COP_RPC_PATIENCE times as long before the peer is declared dead. Calls to a dead peer fail at
 * once during a back-off that grows from 1 s to 10 s; the first call after the back-off resolves
 * the address again and retries. Any sign of life from the peer ends the back-off.
 *
 * Sessions: before the first request, the two sides authenticate each other by challenge and
 * response (wire.h) and derive a key per direction; each message then carries a counter and a tag.
 * Messages that do not verify are dropped and counted (fabric.rejected). */
#ifndef COP_FABRIC_RPC_H
#define COP_FABRIC_RPC_H

#include "base/base/base.h"
#include "fabric/endpoint/endpoint.h"
#include "prof/stats/stats.h"
#include "fabric/wire/wire.h"

#define COP_RPC_HEAD_MAX 256     /* maximum bytes of a reply's head */
#define COP_RPC_PAYLOAD_MAX 8192 /* maximum bytes of a request's payload */
/* How long an existing process may be silent, as a multiple of peer_timeout_ms. */
#define COP_RPC_PATIENCE 10
#define COP_RPC_BODY_MAX (64 * COP_MIB) /* maximum bytes of a reply's body */

struct cop_rpc;
struct cop_rpc_req;

struct cop_rpc_conf {
	uint32_t rank, nodes;
	struct cop_wire_secret secret; /* job secret; all zero with --insecure */
	uint64_t config_hash;     /* a hash of the settings that all nodes must share; nodes with
				     different hashes exchange no requests */
	uint32_t peer_timeout_ms; /* default 3000 */
	struct cop_stats *stats;
	void *ctx; /* first argument of the callbacks below */
	/* Progress thread. Resolves the address of this rank; call cop_rpc_resolved with the
	 * result, now or later, from any thread. silent: the peer is silent and may have been
	 * restarted elsewhere; the look-up also checks whether it is alive. Must not block. */
	void (*resolve)(void *ctx, uint32_t rank, bool silent);
	/* Progress thread. A request from an authenticated peer; reply exactly once with
	 * cop_rpc_reply, now or later, from any thread. Must not block. */
	void (*serve)(void *ctx, struct cop_rpc_req *req);
	/* Progress thread; may be NULL. A node that has the secret and claims this rank (any
	 * number) was refused because its config hash differs. */
	void (*mismatch)(void *ctx, uint32_t rank);
	/* Progress thread; may be NULL. A connected node has died, or a dead node has reconnected.
	 * Must not block. */
	void (*peer_changed)(void *ctx, uint32_t rank, bool lives);
	/* Progress thread; may be NULL. lags true: the node was silent for silent_ms and is not
	 * used for now; calls to it that have a late callback end with -ETIMEDOUT. lags false: it
	 * has replied to pings for 10 s and is used again. Must not block. */
	void (*peer_lags)(void *ctx, uint32_t rank, bool lags, uint64_t silent_ms);
	/* Progress thread; may be NULL. Called about every 100 ms while requests from other nodes
	 * are open. now_ms is on the clock that all deadlines here use, which does not count
	 * a suspension of the process. Must not block. */
	void (*tick)(void *ctx, uint64_t now_ms);
};

/* Fills fabric_conf.events and ignores its stats (rpc counts bytes itself); the caller sets all
 * other fields. serve may be called before this returns; *out is set by then. */
int cop_rpc_open(const struct cop_rpc_conf *conf, const struct cop_endpoint_conf *fabric_conf,
	struct cop_rpc **out, struct cop_err *err);
/* The same over a fake network. */
int cop_rpc_open_fake(const struct cop_rpc_conf *conf, struct cop_endpoint_net *net,
	const char *name, struct cop_rpc **out);
/* Ends open calls with -ECANCELED, releases the bodies of unsent replies and discards replies to
 * open requests. Before calling it, stop everything that holds such requests. */
void cop_rpc_close(struct cop_rpc *r);
/* Ends this node's current and later calls with -ECANCELED; other nodes are still served. After it
 * returns, no callback that began before it is running. Not on the progress thread. */
void cop_rpc_quiet(struct cop_rpc *r);
struct cop_endpoint *cop_rpc_fabric(struct cop_rpc *r);

/* Any thread. address NULL: the address is currently unresolvable (calls waiting for it end with
 * -EHOSTDOWN). lives: the look-up found, without the fabric, that the process exists (it replied,
 * or its kernel accepted a connection for it). */
void cop_rpc_resolved(struct cop_rpc *r, uint32_t rank, const char *address, bool lives);

/* ---- calls ---- */

struct cop_rpc_result {
	int status;    /* 0 or -errno: the peer's status, or why it sent none (see above) */
	bool answered; /* the status came from the peer */
	bool unable; /* status says why the peer could not produce a reply; another node may be able
			to */
	const void *head;
	size_t head_len;
	/* The body: in the call's landing buffer if there is one and the body fitted; else in
	 * memory that is valid only during done, unless done sets *body_kept and takes ownership
	 * (and frees it). NULL if the body is empty. */
	void *body;
	size_t body_len;
	bool in_landing;
	bool *body_kept;
};

/* Progress thread (or inside cop_rpc_call if it fails immediately). */
typedef void cop_rpc_done(void *arg, const struct cop_rpc_result *result);

struct cop_rpc_call {
	uint32_t rank;
	uint8_t op;
	const void *payload; /* copied */
	size_t payload_len;
	void *landing; /* target of bulk bytes, written by RMA; may be NULL. Must stay valid until
			  done. */
	size_t landing_len;
	size_t body_max;  /* longest body to fetch if it does not fit the landing buffer; 0:
			     COP_RPC_BODY_MAX */
	bool checks_body; /* done checks the body itself, with a keyed checksum in the head */
	cop_rpc_done *done;
	/* Progress thread; may be NULL. The request was sent or resent at at_ns (cop_now_ns) or
	 * shortly after. id: equals cop_rpc_req_id at the receiver. */
	void (*sent)(void *arg, uint64_t id, uint64_t at_ns);
	/* Progress thread, at most once; NULL unless another node can serve the call. The peer is
	 * silent (lag.c), and the caller may send the request to that node too; returns whether it
	 * does. This call continues, but may now end with -ETIMEDOUT. */
	bool (*late)(void *arg);
	void *arg;
};

/* Any thread. Calls done exactly once. */
void cop_rpc_call(struct cop_rpc *r, const struct cop_rpc_call *call);
/* Progress thread. The open call to this rank with this arg ends in done(done_arg) instead, perhaps
 * before this returns. Its reply is discarded, but its landing buffer may be written to until
 * done. */
void cop_rpc_abandon(
	struct cop_rpc *r, uint32_t rank, const void *arg, cop_rpc_done *done, void *done_arg);
/* Progress thread. Whether a call to this rank with a late callback would fail immediately. */
bool cop_rpc_lags(const struct cop_rpc *r, uint32_t rank);
/* Calls made by this thread between cork and uncork are sent together: up to 64 calls to one rank
 * in one message, as many as fit. In every other respect they are separate calls. Corks nest. The
 * progress thread needs no cork: calls that it makes during one event are sent together. */
void cop_rpc_cork(struct cop_rpc *r);
void cop_rpc_uncork(struct cop_rpc *r);

/* ---- served requests ---- */

uint32_t cop_rpc_req_rank(const struct cop_rpc_req *q);
uint8_t cop_rpc_req_op(const struct cop_rpc_req *q);
/* A number below 2^53, also passed to the caller's sent callback, that is almost always unique in a
 * tree. Only inside serve. */
uint64_t cop_rpc_req_id(const struct cop_rpc_req *q);
/* Valid until the reply. */
const void *cop_rpc_req_payload(const struct cop_rpc_req *q, size_t *len);

struct cop_rpc_answer {
	int status;       /* 0 or -errno */
	bool unable;      /* status says why this node cannot reply: it lacks memory, descriptors or
			     buffers, or is shutting down. head and body are empty. */
	const void *head; /* copied, at most COP_RPC_HEAD_MAX */
	size_t head_len;
	const void *body; /* not copied: must stay valid until release is called (on any thread) */
	size_t body_len;
	bool has_sum; /* the caller set checks_body: rpc computes no checksum */
	bool confirm; /* keep the reply and resend it until the caller's rpc confirms it; see
			 cop_rpc_unconfirmed */
	void (*release)(void *arg); /* may be NULL */
	void *release_arg;
};

/* Any thread; consumes req. A small body is sent inline; a body that fits the caller's landing
 * buffer is written there by RMA; for a larger body only the size is announced, and the caller
 * allocates a buffer and pulls the body into it. */
void cop_rpc_reply(struct cop_rpc_req *q, const struct cop_rpc_answer *answer);

/* Any thread. Returns the number of ranks that have yet to confirm a reply sent with `confirm`, and
 * stores up to max of them in ranks. A reply is abandoned after two minutes without confirmation,
 * and immediately when its caller opens a new session. */
unsigned cop_rpc_unconfirmed(struct cop_rpc *r, uint32_t *ranks, unsigned max);

/* ---- current activity, for cache-stats ---- */

/* Any thread. 1 + the rank most recently set aside for being silent; 0: none. */
uint32_t cop_rpc_lagged(const struct cop_rpc *r);

/* Appends a JSON array, one object per active peer:
 * {"rank":0,"state":"up|connecting|dead","calls":2,"oldest_ms":130,"left":false,"lags":0,
 *  "waits_for":"answer|address|session"}. */
void cop_rpc_peers_json(struct cop_rpc *r, struct cop_buf *out);

#endif
