/* SPDX-License-Identifier: BSD-3-Clause */
/* rpc: requests and replies between ranks over fabric: request ids, mutual authentication, replay
 * protection, dead-peer detection, bulk bytes by RMA. It does not know what the operations mean,
 * nor who is whose parent (that is coop).
 *
 * A call ends exactly once: with the peer's reply, or -EHOSTDOWN when the peer is dead, or -EACCES
 * when something at its address answered and could not prove the job's secret, or -EPROTO when the
 * peer was started with another config hash (a peer that holds another secret does not answer at
 * all: -EHOSTDOWN here, a warning and a count there), or -ECANCELED at close, or for one call
 * -EINVAL, -ENOMEM, -EMSGSIZE (the body is longer than the call's body_max: its length stands in
 * body_len), -EBADMSG (the body could not be written or its checksum was wrong). A call has no
 * deadline of its own: a peer that answers pings is alive, however long its storage takes. A peer
 * that answers neither for half of peer_timeout_ms is looked up again; when peer_timeout_ms are
 * over and the look-up has not found its process alive, it is dead. One whose process is there, on
 * a machine that is too busy to let it answer, is asked and looked up for COP_RPC_PATIENCE times as
 * long before it counts as dead; calls to it fail at once until a pause has passed (growing from 1
 * s to 10 s), then the next call tries it again with its address resolved afresh. A sign of life
 * from it ends the pause. Calls whose request or reply was lost, and calls to a peer that
 * restarted, are sent again by rpc itself (fabric.retries): what is asked must be idempotent, and a
 * server may see it twice.
 *
 * Sessions: before the first request of a pair, the two prove the secret to each other by challenge
 * and response (wire.h) and derive a key per direction; each message then carries a counter and a
 * tag. What does not verify is dropped and counted (fabric.rejected). */
#ifndef COP_RPC_H
#define COP_RPC_H

#include "base/base.h"
#include "fabric/fabric.h"
#include "stats/stats.h"
#include "wire/wire.h"

#define COP_RPC_HEAD_MAX 256     /* bytes of a reply's head */
#define COP_RPC_PAYLOAD_MAX 8192 /* bytes of a request's payload */
#define COP_RPC_PATIENCE                                                                           \
	10 /* times peer_timeout_ms: how long a process that is there may be silent */
#define COP_RPC_BODY_MAX (64 * COP_MIB) /* bytes of a reply's body */

struct cop_rpc;
struct cop_rpc_req;

struct cop_rpc_conf {
	uint32_t rank, nodes;
	struct cop_wire_secret secret; /* job secret; all zero with --insecure */
	uint64_t config_hash; /* a hash of what all nodes must have been started with; nothing is
			   asked or served across a difference */
	uint32_t peer_timeout_ms; /* 3000 */
	struct cop_stats *stats;
	void *ctx; /* first argument of the callbacks below */
	/* Progress thread. The address of this rank is wanted; silent: again, of a peer that says
	 * nothing and may have been restarted elsewhere, and whether it lives. Answer, now or later
	 * and from any thread, with cop_rpc_resolved. Must not block. */
	void (*resolve)(void *ctx, uint32_t rank, bool silent);
	/* Progress thread. A request came from an authenticated peer; answer exactly once, now or
	 * later and from any thread, with cop_rpc_reply. Must not block. */
	void (*serve)(void *ctx, struct cop_rpc_req *req);
	/* Progress thread; may be NULL. A holder of the secret that says it is this rank (any
	 * number) came with another config hash, and was refused. */
	void (*mismatch)(void *ctx, uint32_t rank);
	/* Progress thread; may be NULL. About every 100 ms while requests of others are not
	 * answered yet, by the same clock as all deadlines here: a pause of the whole process does
	 * not count. Must not block. */
	void (*tick)(void *ctx, uint64_t now_ms);
};

/* fabric_conf.events is filled by this function, and its stats are not used (rpc counts bytes
 * itself); everything else is the caller's. serve may be called before this returns; *out is set by
 * then. */
int cop_rpc_open(const struct cop_rpc_conf *conf, const struct cop_fabric_conf *fabric_conf,
	struct cop_rpc **out, struct cop_err *err);
/* The same over a fake network. */
int cop_rpc_open_fake(const struct cop_rpc_conf *conf, struct cop_fabric_net *net, const char *name,
	struct cop_rpc **out);
/* Ends open calls with -ECANCELED; releases the bodies of unsent replies; requests that were not
 * answered yet may still be answered (into nothing) until they are all gone: the caller stops
 * whoever holds them before. */
void cop_rpc_close(struct cop_rpc *r);
/* Ends the calls of this node with -ECANCELED, those under way and those to come; others are served
 * as before. When it returns, no callback runs any more that began before it. Not on the progress
 * thread. */
void cop_rpc_quiet(struct cop_rpc *r);
struct cop_fabric *cop_rpc_fabric(struct cop_rpc *r);

/* Any thread. address NULL: could not be resolved now (calls waiting for it end with -EHOSTDOWN).
 * lives: whoever looked it up saw, by another way than the fabric, that the process is there (it
 * answered, or its kernel took a connection for it). */
void cop_rpc_resolved(struct cop_rpc *r, uint32_t rank, const char *address, bool lives);

/* ---- calls ---- */

struct cop_rpc_result {
	int status;    /* 0 or -errno: the peer's own answer, or why there is none (see above) */
	bool answered; /* the status is the peer's own */
	bool unable;   /* and it says why the peer could not find an answer: somebody else may */
	const void *head;
	size_t head_len;
	/* Where the body is: the landing buffer of the call if one was given and it fitted;
	 * else memory that is valid during done only, unless done takes it by setting *body_taken
	 * (then done owns it and calls free()). NULL if the body is empty. */
	void *body;
	size_t body_len;
	bool in_landing;
	bool *body_taken;
};

/* Progress thread (or inside cop_rpc_call if it fails at once). */
typedef void cop_rpc_done(void *arg, const struct cop_rpc_result *result);

struct cop_rpc_call {
	uint32_t rank;
	uint8_t op;
	const void *payload; /* copied */
	size_t payload_len;
	void *landing; /* bulk bytes land here, by RMA; may be NULL. Stays until done. */
	size_t landing_len;
	size_t body_max;  /* a longer body that fits no landing buffer is left where it is; 0:
			     COP_RPC_BODY_MAX */
	bool checks_body; /* done checks the body itself, by a sum in the head that is keyed as well
			     as rpc's own */
	cop_rpc_done *done;
	void *arg;
};

/* Any thread. Ends in exactly one done. */
void cop_rpc_call(struct cop_rpc *r, const struct cop_rpc_call *call);

/* ---- served requests ---- */

uint32_t cop_rpc_req_rank(const struct cop_rpc_req *q);
uint8_t cop_rpc_req_op(const struct cop_rpc_req *q);
/* Valid until the reply. */
const void *cop_rpc_req_payload(const struct cop_rpc_req *q, size_t *len);

struct cop_rpc_answer {
	int status;       /* 0 or -errno */
	bool unable;      /* status is no answer but why there is none: this node lacks memory,
			     descriptors or buffers, or ends. No head, no body. */
	const void *head; /* copied, at most COP_RPC_HEAD_MAX */
	size_t head_len;
	const void *body; /* not copied: stays until release is called (on any thread) */
	size_t body_len;
	bool has_sum; /* the caller gave checks_body: rpc makes no sum of its own */
	bool confirm; /* kept, and sent again, until the caller's rpc has said that it came:
			 cop_rpc_unconfirmed */
	void (*release)(void *arg); /* may be NULL */
	void *release_arg;
};

/* Any thread; takes req. A body that is small travels inline; one that fits the caller's landing
 * buffer is written there by RMA; any other is announced with its size and pulled by the caller
 * into a buffer made for it. */
void cop_rpc_reply(struct cop_rpc_req *q, const struct cop_rpc_answer *answer);

/* Any thread. How many ranks have not confirmed an answer of this node that was given with confirm;
 * up to max of them into ranks. An answer that is never confirmed is given up after two minutes,
 * and at once when its caller opens a new session. */
unsigned cop_rpc_unconfirmed(struct cop_rpc *r, uint32_t *ranks, unsigned max);

/* ---- what is going on, for cache-stats ---- */

/* Appends a JSON array, one object per peer with something to say:
 * {"rank":0,"state":"up|connecting|dead","calls":2,"oldest_ms":130,"waits_for":"answer|address|session"}.
 */
void cop_rpc_peers_json(struct cop_rpc *r, struct cop_buf *out);

#endif
