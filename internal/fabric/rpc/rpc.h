/* SPDX-License-Identifier: BSD-3-Clause */
/* rpc: requests and replies between ranks over fabric: request ids, mutual authentication, replay
 * protection, dead-peer detection, bulk bytes by RMA. It does not know what the operations mean or
 * which node is whose parent (fetch does).
 *
 * A call ends exactly once: with the peer's reply, or with
 * -EHOSTDOWN: the peer is dead, or has another secret: then it does not answer at all, which is
 *  a warning and a count on its side;
 * -EACCES: something at its address answered and could not prove the job's secret;
 * -EPROTO: the peer was started with another config hash;
 * -ETIMEDOUT: the peer lags, and the call has late;
 * -ECANCELED: this node closes;
 * or, for this one call, -EINVAL, -ENOMEM, -EMSGSIZE (the body is longer than the call's body_max;
 * its length is in body_len), or -EBADMSG (the body could not be written, or its checksum was
 * wrong).
 *
 * A call has no deadline of its own: a peer that answers pings is alive, however long its storage
 * takes. A peer that answers neither calls nor pings for half of peer_timeout_ms is looked up
 * again. When peer_timeout_ms is over and the look-up has not found its process alive, it is dead.
 * If its process exists but the machine is too busy to let it answer, it is asked and looked up for
 * COP_RPC_PATIENCE times as long before it counts as dead. Calls to a dead peer fail at once until
 * a pause has passed (growing from 1 s to 10 s); then the next call resolves its address again and
 * retries. A sign of life from the peer ends the pause. rpc itself sends calls again whose request
 * or reply was lost, and calls to a peer that restarted (fabric.retries): requests must be
 * idempotent, because a server may see them twice.
 *
 * Sessions: before the first request of a pair, the two prove the secret to each other by challenge
 * and response (wire.h) and derive a key per direction; each message then carries a counter and a
 * tag. Messages that do not verify are dropped and counted (fabric.rejected). */
#ifndef COP_FABRIC_RPC_H
#define COP_FABRIC_RPC_H

#include "base/base/base.h"
#include "fabric/endpoint/endpoint.h"
#include "prof/stats/stats.h"
#include "fabric/wire/wire.h"

#define COP_RPC_HEAD_MAX 256     /* bytes of a reply's head */
#define COP_RPC_PAYLOAD_MAX 8192 /* bytes of a request's payload */
/* Times peer_timeout_ms: how long an existing process may be silent. */
#define COP_RPC_PATIENCE 10
#define COP_RPC_BODY_MAX (64 * COP_MIB) /* bytes of a reply's body */

struct cop_rpc;
struct cop_rpc_req;

struct cop_rpc_conf {
	uint32_t rank, nodes;
	struct cop_wire_secret secret; /* job secret; all zero with --insecure */
	uint64_t config_hash;     /* a hash of the settings that all nodes must share; nodes with
				     different hashes exchange no requests */
	uint32_t peer_timeout_ms; /* 3000 */
	struct cop_stats *stats;
	void *ctx; /* first argument of the callbacks below */
	/* Progress thread. Requests the address of this rank. silent: this looks up again a peer
	 * that says nothing and may have been restarted elsewhere; the look-up also asks whether
	 * the peer is alive. Answer with cop_rpc_resolved, now or later and from any thread. Must
	 * not block. */
	void (*resolve)(void *ctx, uint32_t rank, bool silent);
	/* Progress thread. A request came from an authenticated peer; answer exactly once, now or
	 * later and from any thread, with cop_rpc_reply. Must not block. */
	void (*serve)(void *ctx, struct cop_rpc_req *req);
	/* Progress thread; may be NULL. A node that proved the secret and says that it is this rank
	 * (any number) has another config hash, and was refused. */
	void (*mismatch)(void *ctx, uint32_t rank);
	/* Progress thread; may be NULL. A node that was connected has died, or one that had died is
	 * connected again. Must not block. */
	void (*peer_changed)(void *ctx, uint32_t rank, bool lives);
	/* Progress thread; may be NULL. A node that was silent for this long is left: its calls
	 * that have late end with -ETIMEDOUT; or it has answered pings for 10 s, and is used again.
	 * Must not block. */
	void (*peer_lags)(void *ctx, uint32_t rank, bool lags, uint64_t silent_ms);
	/* Progress thread; may be NULL. About every 100 ms while requests of others are not
	 * answered yet, by the same clock as all deadlines here: a pause of the whole process does
	 * not count. Must not block. */
	void (*tick)(void *ctx, uint64_t now_ms);
};

/* This function fills fabric_conf.events and does not use its stats (rpc counts bytes itself);
 * everything else is the caller's. serve may be called before this returns; *out is set by then. */
int cop_rpc_open(const struct cop_rpc_conf *conf, const struct cop_endpoint_conf *fabric_conf,
	struct cop_rpc **out, struct cop_err *err);
/* The same over a fake network. */
int cop_rpc_open_fake(const struct cop_rpc_conf *conf, struct cop_endpoint_net *net,
	const char *name, struct cop_rpc **out);
/* Ends open calls with -ECANCELED, releases the bodies of unsent replies, and discards replies to
 * requests that are still open. The caller first stops everyone who has such a request. */
void cop_rpc_close(struct cop_rpc *r);
/* Ends the current and all later calls of this node with -ECANCELED; others are served as before.
 * When it returns, no callback that began before it is still running. Not on the progress thread.
 */
void cop_rpc_quiet(struct cop_rpc *r);
struct cop_endpoint *cop_rpc_fabric(struct cop_rpc *r);

/* Any thread. address NULL: it could not be resolved now (calls waiting for it end with
 * -EHOSTDOWN). lives: the look-up found, without the fabric, that the process exists (it answered,
 * or its kernel accepted a connection for it). */
void cop_rpc_resolved(struct cop_rpc *r, uint32_t rank, const char *address, bool lives);

/* ---- calls ---- */

struct cop_rpc_result {
	int status;    /* 0 or -errno: the peer's own answer, or why there is none (see above) */
	bool answered; /* the status is the peer's own */
	bool unable; /* status says why the peer could not find an answer; another node may find one
		      */
	const void *head;
	size_t head_len;
	/* Where the body is: in the landing buffer of the call if one was given and the body
	 * fitted; else in memory that is valid during done only, unless done takes it by setting
	 * *body_kept (done then owns it and frees it). NULL if the body is empty. */
	void *body;
	size_t body_len;
	bool in_landing;
	bool *body_kept;
};

/* Progress thread (or inside cop_rpc_call if it fails at once). */
typedef void cop_rpc_done(void *arg, const struct cop_rpc_result *result);

struct cop_rpc_call {
	uint32_t rank;
	uint8_t op;
	const void *payload; /* copied */
	size_t payload_len;
	void *landing; /* where bulk bytes are written, by RMA; may be NULL. Must stay valid until
			  done. */
	size_t landing_len;
	size_t body_max;  /* a longer body that does not fit the landing buffer is not fetched; 0:
			     COP_RPC_BODY_MAX */
	bool checks_body; /* done checks the body itself, by a sum in the head that is keyed like
			     rpc's own */
	cop_rpc_done *done;
	/* Progress thread; may be NULL. The request has left this node, for the first time or
	 * again, not before at_ns (cop_now_ns). id: what cop_rpc_req_id says at the other end. */
	void (*sent)(void *arg, uint64_t id, uint64_t at_ns);
	/* Progress thread, once; NULL unless another node can answer. The peer is silent (lag.c),
	 * and the caller may ask that node as well; returns whether it does. This call remains, but
	 * may end with -ETIMEDOUT from now on. */
	bool (*late)(void *arg);
	void *arg;
};

/* Any thread. Ends in exactly one done. */
void cop_rpc_call(struct cop_rpc *r, const struct cop_rpc_call *call);
/* Progress thread. The call to this rank with this arg, which has not ended, ends in done(done_arg)
 * instead, perhaps before this returns. Its answer is not used, but until then bytes may be written
 * to its landing buffer. */
void cop_rpc_abandon(
	struct cop_rpc *r, uint32_t rank, const void *arg, cop_rpc_done *done, void *done_arg);
/* Progress thread. Whether a call to this rank that has late would end at once. */
bool cop_rpc_lags(const struct cop_rpc *r, uint32_t rank);
/* What this thread calls between the two leaves together afterwards: up to 64 calls to one rank in
 * one message, as many as fit. In every other respect they are separate calls. Corks nest. The
 * progress thread needs neither: what it calls during one event leaves together. */
void cop_rpc_cork(struct cop_rpc *r);
void cop_rpc_uncork(struct cop_rpc *r);

/* ---- served requests ---- */

uint32_t cop_rpc_req_rank(const struct cop_rpc_req *q);
uint8_t cop_rpc_req_op(const struct cop_rpc_req *q);
/* A number below 2^53 that the calling node knows, too (sent), and that hardly ever occurs twice in
 * a tree. Only inside serve. */
uint64_t cop_rpc_req_id(const struct cop_rpc_req *q);
/* Valid until the reply. */
const void *cop_rpc_req_payload(const struct cop_rpc_req *q, size_t *len);

struct cop_rpc_answer {
	int status;  /* 0 or -errno */
	bool unable; /* status is not an answer but says why there is none: this node lacks memory,
			descriptors or buffers, or is ending. No head, no body. */
	const void *head; /* copied, at most COP_RPC_HEAD_MAX */
	size_t head_len;
	const void *body; /* not copied: must stay valid until release is called (on any thread) */
	size_t body_len;
	bool has_sum; /* the caller set checks_body, so rpc computes no checksum of its own */
	bool confirm; /* kept, and sent again, until the caller's rpc has confirmed it:
			 cop_rpc_unconfirmed */
	void (*release)(void *arg); /* may be NULL */
	void *release_arg;
};

/* Any thread; takes req. A small body is sent inline; one that fits the caller's landing buffer is
 * written there by RMA; any other is announced with its size, and the caller pulls it into a buffer
 * that it allocates. */
void cop_rpc_reply(struct cop_rpc_req *q, const struct cop_rpc_answer *answer);

/* Any thread. How many ranks have not confirmed an answer that this node gave with confirm; stores
 * up to max of them in ranks. An answer that is never confirmed is abandoned after two minutes, and
 * at once when its caller opens a new session. */
unsigned cop_rpc_unconfirmed(struct cop_rpc *r, uint32_t *ranks, unsigned max);

/* ---- current activity, for cache-stats ---- */

/* Any thread. The rank that was left last for being silent, and one; 0: none was. */
uint32_t cop_rpc_lagged(const struct cop_rpc *r);

/* Appends a JSON array, with one object per active peer:
 * {"rank":0,"state":"up|connecting|dead","calls":2,"oldest_ms":130,"left":false,"lags":0,"waits_for":"answer|address|session"}.
 */
void cop_rpc_peers_json(struct cop_rpc *r, struct cop_buf *out);

#endif
