/* SPDX-License-Identifier: BSD-3-Clause */
/* How rpc works inside.
 *
 * Threads. All state lives on fabric's progress thread and needs no lock. Other threads post
 * items to its only queue (cop_endpoint_post). Every callback of fabric is bracketed by
 * cop_rpc_enter and cop_rpc_leave. Work created by a user's callback in between (a call from
 * inside serve, a reply from inside done) waits in the list `later` and runs in leave: right
 * after the event, never inside a list traversal. Calls are sent after all posted items have
 * been processed, so calls to one peer share a message.
 *
 * Time. r->now_ms advances only with ticks, and by at most a sixth of the peer timeout per tick. A
 * process that was stopped or starved therefore does not declare all its peers dead before it has
 * read their messages.
 *
 * Sessions. A session belongs to the side that opened it and carries that side's requests and the
 * replies to them. Two nodes that call each other have two independent sessions. struct peer holds
 * the session that this node opened to a rank and points to the one that the rank opened to this
 * node (struct session). The receiver of a session's messages chooses its id. The low half of the
 * id is the other side's rank and the high half is random, so finding a session needs no search.
 *
 * A restarted peer has lost our session and ignores our messages, as it ignores any unverified
 * peer. After half the timeout in silence we send a HELLO that names our session; the peer replies
 * only if it does not have that session. The reply is authenticated and fresh, so no other process
 * can end a live session. Outstanding calls are then sent again over the new session.
 *
 * A HELLO that has already opened a session is refused by its nonce. A process started later does
 * not know the nonce, so a replayed HELLO opens a half-open session there; the WELCOME goes to the
 * address of the true sender, which did not ask for it. Such a session that ends unused is counted
 * as fabric.dropped and not as fabric.rejected, because a node may have been killed at this point.
 *
 * A restarted peer may have another address, so it is resolved again at the same time; if it
 * differs, the calls are sent there over a new session.
 *
 * Dead or slow. Silence alone does not distinguish a process that has ended from one that is not
 * running (stopped, or sharing a core with a hundred others). The look-up does: another thread of
 * the peer serves it, and the peer's kernel accepts the connection for a stopped process and
 * refuses it if there is no process. A peer is declared dead after it was silent for the timeout if
 * the look-up has found no node, or after COP_RPC_PATIENCE times the timeout. If a look-up is
 * inconclusive, only silence decides.
 *
 * Lost messages. A connection that breaks can lose messages without killing either side. A ping
 * lists old requests. The pong lists the requests among them that the server has never received
 * or has already answered. Messages of a pair arrive in order, so these are lost and are resent
 * (requests are idempotent). For a request with an announced body or an unconfirmed reply the
 * server resends its last message instead.
 *
 * Bodies by RMA are written in pieces of at most PIECE bytes, and at most OUTSTANDING bytes at a
 * time are in flight to one peer, which bounds the delay of a pong. */
#ifndef COP_FABRIC_RPC_PRIV_H
#define COP_FABRIC_RPC_PRIV_H

#include <stdatomic.h>

#include "base/base/htab.h"
#include "base/log/log.h"
#include "fabric/rpc/rpc.h"

#define PEER_WINDOW 1024 /* outstanding requests of one session */
#define SERVED_MAX                                                                                 \
	(2 * PEER_WINDOW) /* the server's limit, which includes bodies that stay pinned because    \
			     the PULL was lost */
#define HALF_OPEN_MAX 256
#define PIECE COP_MIB
#define OUTSTANDING (8 * COP_MIB)
#define PIN_MS 30000      /* time limit for a body to be pulled, or for a write to advance */
#define CONFIRM_MS 120000 /* time limit for the confirmation of a reply */
#define SAY_AGAIN_MS 1000 /* how often an unconfirmed reply is resent */
#define RESOLVE_MS 120000 /* safety net: resolvers have their own time limits */
#define PAUSE_MIN_MS 1000
#define PAUSE_MAX_MS 10000
#define PING_IDS 128

/* ---- work for the progress thread ---- */

struct item {
	struct cop_endpoint_work work;
	struct cop_rpc *r;
	void (*run)(struct cop_rpc *r, struct item *item);
};

/* ---- an address, shared by the sessions over it ---- */

struct link {
	struct cop_hlink by_text;
	unsigned refs;
	bool open; /* fpeer is valid; false from a reset to the next send */
	cop_endpoint_peer_t fpeer;
	size_t len;
	char text[];
};

/* ---- a session that another node opened to this one ---- */

struct session {
	struct cop_list at; /* in r->halves while half-open, in r->serving while it has requests,
			       else unlinked */
	bool half, refused; /* refused: stays half-open so that the refusal can be sent */
	uint32_t rank;
	uint64_t sid, remote_sid;
	struct cop_frame_keys keys;
	struct link *link;
	uint8_t nonce[COP_HELLO_NONCE]; /* of the HELLO that opened it */
	uint8_t welcome[COP_WELCOME_LEN];
	uint64_t made_ms, welcomed_ms, advanced_ms;
	struct cop_htab by_id; /* requests by their id */
	struct cop_list reqs;  /* all requests, by session_at */
	struct cop_list ready; /* outgoing replies, by ready_at, in the order they became ready */
	size_t outstanding;    /* bytes handed to fabric and not yet acknowledged */
};

/* ---- another node, as this one calls it ---- */

enum peer_state { PEER_IDLE, PEER_RESOLVING, PEER_CONNECTING, PEER_UP, PEER_DEAD };

/* Our HELLO that has had no WELCOME yet, sent while connecting or to probe a silent session. */
struct greeting {
	uint64_t sid; /* 0: none pending */
	uint64_t sent_ms;
	size_t len;
	uint8_t hello[COP_HELLO_MAX];
};

/* A request's id for traces, computable at both ends from the session and the request number. */
static inline uint64_t cop_rpc_trace_id(uint64_t sid, uint64_t request)
{
	const uint64_t both[2] = {sid, request};

	return cop_hash64(both, sizeof(both), 0) >> 11;
}

#define LAG_RTTS 100
#define LAG_SECONDS 60

/* Silence of a peer (lag.c). */
struct lag {
	unsigned watched;              /* open calls with a late callback */
	unsigned in_a_row;             /* ticks of silence since its last message */
	bool left;                     /* set aside: calls with a late callback end immediately */
	unsigned times;                /* how many times it was set aside */
	uint64_t heard_ms;             /* on the clock awake_ms, as is pinged_ms */
	uint64_t ping;                 /* number of the oldest unanswered ping; 0: none */
	uint64_t pinged_ms, pinged_ns; /* send time of that ping */
	uint64_t well_ms; /* a peer that was set aside has replied since then; 0: silent */
	unsigned rtts;
	uint16_t rtt[LAG_RTTS]; /* round trips of pings in ms */
};

struct peer {
	struct cop_list at;     /* r->peers_used */
	struct cop_list active; /* in r->active while the tick has work for it */
	struct cop_list caller; /* in r->callers while it has new calls */
	uint32_t rank;
	enum peer_state state;
	uint64_t since_ms; /* when it entered the state */
	uint64_t heard_ms, pinged_ms;
	uint64_t pause_ms; /* how long to stay dead; 0 after a success */
	bool refused;      /* a sender without the secret replied */
	bool looked_up;    /* its address look-up is pending */
	bool lives;        /* silent, but the last look-up found its process alive */
	bool lost;         /* it was up and has died since */
	uint64_t looked_up_ms;
	struct link *link;
	uint64_t sid, remote_sid; /* valid while PEER_UP */
	struct cop_frame_keys keys;
	struct greeting greeting;
	struct lag lag;
	struct cop_htab by_id;
	struct cop_list inflight; /* calls on the wire, least recently confirmed first */
	struct cop_list waiting;  /* calls not on the wire */
	struct session *in;
};

/* ---- one call ---- */

struct call {
	struct item item;
	struct cop_list at; /* the peer's inflight or waiting */
	struct cop_hlink by_id;
	struct peer *peer;
	uint64_t started_ms, checked_ms;
	bool counted, on_wire;
	bool hedged;                /* late was called */
	bool unwanted;              /* abandoned by its caller */
	struct cop_rpc_call ask;    /* payload points to the bytes below */
	struct cop_endpoint_mr *mr; /* the landing buffer's or the body's */
	uint64_t addr, key;
	void *body; /* allocated for an announced body */
	size_t body_len;
	uint8_t payload[];
};

/* ---- one served request ---- */

enum msg_mode {
	MODE_INLINE,   /* the body is in the message */
	MODE_LANDED,   /* written to the buffer named in the request or the PULL */
	MODE_ANNOUNCE, /* only the length is sent: the caller allocates a buffer and sends PULL */
	MODE_FAILED,   /* it could not be written */
	MODE_UNABLE,   /* no reply; the status says why */
	MODES
};

enum req_state {
	REQ_SERVING, /* the user has it, or its reply is posted; only its owner reads it */
	REQ_READY,   /* in session->ready */
	REQ_PINNED,  /* announced, waits for PULL */
	REQ_SENT,    /* replied, waits for the caller's confirmation */
};

struct cop_rpc_req {
	struct item item;
	struct cop_rpc *r;
	struct session *session; /* NULL once the session has ended */
	struct cop_list session_at, ready_at;
	struct cop_hlink by_id;
	enum req_state state;
	uint32_t rank;
	uint8_t op;
	uint64_t body_seed;
	uint64_t land_addr, land_key, land_len;
	uint64_t since_ms, said_ms; /* since_ms: in this state; said_ms, in REQ_SENT: when the last
				       message was sent */
	struct cop_rpc_answer answer;
	bool is_inline;
	enum msg_mode final; /* REQ_SENT: of the last message */
	uint64_t body_hash;
	size_t posted, acked; /* bytes of the body */
	int write_rc;
	uint8_t head[COP_RPC_HEAD_MAX];
	size_t payload_len;
	uint8_t payload[];
};

struct cop_rpc {
	struct cop_rpc_conf conf;
	struct cop_endpoint
		*_Atomic fabric; /* NULL until open has finished: earlier events are ignored */
	bool fake;
	_Atomic uint64_t refs;    /* one for the owner and one per live request */
	_Atomic bool closed;      /* posts are refused from now on */
	_Atomic unsigned posting; /* threads that may be posting */
	/* progress thread */
	struct cop_list later;         /* items to run in leave */
	struct cop_endpoint_work more; /* runs leave again */
	bool has_more;                 /* `more` is posted */
	bool torn;                     /* closing: events are ignored */
	bool quiet;                    /* new calls fail */
	bool ticking;
	uint64_t now_ms, last_tick_ms, tick_cap_ms;
	uint64_t awake_ms, tick_ms; /* lag.c */
	_Atomic uint32_t lagged;    /* 1 + the most recently left rank; 0: none */
	struct {
		uint64_t second; /* the last second counted */
		unsigned sent, hedged, sent_in[LAG_SECONDS], hedged_in[LAG_SECONDS];
	} minute; /* calls of the last minute */
	uint64_t next_request, pings;
	struct peer **peers; /* by rank */
	struct cop_list peers_used, active, halves, serving;
	struct cop_list callers; /* peers with new calls */
	unsigned half_count;
	struct cop_recent hellos; /* nonces of HELLOs that opened sessions */
	struct cop_htab links;
};

/* ---- rpc.c: the frame around all callbacks; open.c ---- */

/* Returns false if r is not open yet or is closing; do not call leave then. */
bool cop_rpc_enter(struct cop_rpc *r, struct cop_rpc **outer);
void cop_rpc_leave(struct cop_rpc *r, struct cop_rpc *outer);
/* Whether this thread is handling an event of r. */
bool cop_rpc_inside(const struct cop_rpc *r);
/* Any thread. Queues the item for the progress thread. False: closed; it will not run. */
bool cop_rpc_push(struct cop_rpc *r, struct item *item);
/* Queues several items back to back. The list is empty on success, unchanged on failure. */
struct items {
	struct cop_list list;
};
void cop_rpc_items_add(struct cop_rpc *r, struct items *items, struct item *item);
struct item *cop_rpc_items_pop(struct items *items);
bool cop_rpc_push_all(struct cop_rpc *r, struct items *items);
/* Inside: runs the items that wait for leave; returns whether there were any. */
bool cop_rpc_drain(struct cop_rpc *r);
struct cop_endpoint_events cop_rpc_events(struct cop_rpc *r);
/* Inside: runs the item in leave, even while closing. */
void cop_rpc_queue(struct cop_rpc *r, struct item *item);
/* One reference, no endpoint yet; tick_ms 0: 100. NULL: out of memory. */
struct cop_rpc *cop_rpc_new(const struct cop_rpc_conf *conf, unsigned tick_ms);
void cop_rpc_ref(struct cop_rpc *r);
void cop_rpc_unref(struct cop_rpc *r);
/* Runs the function on the progress thread and returns after it has finished. Not on the progress
 * thread, except with the fake. */
void cop_rpc_run_on_thread(struct cop_rpc *r, void (*run)(struct cop_rpc *r));
/* Call it when there is a new deadline. */
void cop_rpc_wake(struct cop_rpc *r);
/* Counts and logs a message that is not from this job or violates the protocol. Messages dropped
 * for lack of memory or buffers are not counted here. */
void cop_rpc_reject(struct cop_rpc *r, const char *what, uint32_t rank, int rc);
/* Counts a message of this job that is late or cannot be stored. */
void cop_rpc_drop(struct cop_rpc *r, const char *what, uint32_t rank, int rc);

/* ---- link.c ---- */

/* A reference to the link of an address; NULL if the address is invalid or memory is short. */
struct link *cop_rpc_link_get(struct cop_rpc *r, const char *text, size_t len);
void cop_rpc_link_put(struct cop_rpc *r, struct link *l);
/* Drops the connection; the next use reconnects. Operations queued on it end with -ECANCELED. */
void cop_rpc_link_reset(struct cop_rpc *r, struct link *l);
int cop_rpc_link_open(struct cop_rpc *r, struct link *l, cop_endpoint_peer_t *fpeer);
/* After -ENOENT: a link to the same endpoint, under another spelling of its address, was reset. */
int cop_rpc_link_reopen(struct cop_rpc *r, struct link *l, cop_endpoint_peer_t *fpeer);
int cop_rpc_link_send(struct cop_rpc *r, struct link *l, const void *msg, size_t len);
/* Whether a send that failed with rc may succeed later. */
bool cop_rpc_may_retry(int rc);
/* Seals and sends a message whose payload is contiguous. */
int cop_rpc_link_send_sealed(struct cop_rpc *r, struct link *l, struct cop_frame_tx *tx,
	const struct cop_frame *f, const void *payload, size_t len);

/* ---- peer.c: sessions that this node opens ---- */

struct peer *cop_rpc_peer(struct cop_rpc *r, uint32_t rank);
/* Call it after adding a call to p->waiting. */
void cop_rpc_peer_work(struct cop_rpc *r, struct peer *p);
void cop_rpc_peer_resolved(struct cop_rpc *r, struct peer *p, const char *address, bool lives);
void cop_rpc_peer_welcome(
	struct cop_rpc *r, const void *msg, size_t len, const struct cop_frame *f);
/* Call it when the peer has shown in the other direction that it is alive. */
void cop_rpc_peer_alive(struct cop_rpc *r, struct peer *p, bool restarted);
/* Ends every call of the peer with rc and starts the pause before the next attempt. */
void cop_rpc_peer_dead(struct cop_rpc *r, struct peer *p, int rc);
void cop_rpc_peer_pong(struct cop_rpc *r, struct peer *p, const struct cop_frame *f);
void cop_rpc_peers_tick(struct cop_rpc *r);
/* Moves calls on the wire back to the waiting list, in the order they were sent. */
void cop_rpc_requeue_calls(struct cop_rpc *r, struct peer *p);
void cop_rpc_peer_free(struct cop_rpc *r, struct peer *p);
/* An unused session id for messages of this rank. */
uint64_t cop_rpc_make_sid(struct cop_rpc *r, uint32_t rank);

/* ---- call.c ---- */

/* Call it when all posted items have been processed: their calls may be sent. */
void cop_rpc_calls_start(struct cop_rpc *r);
/* Sends as many waiting calls as the window and fabric allow, several per message. */
void cop_rpc_calls_send(struct cop_rpc *r, struct peer *p);
void cop_rpc_call_reply(struct cop_rpc *r, struct peer *p, const struct cop_frame *f);
/* Resets the call and puts it at the head of the waiting list. */
void cop_rpc_call_again(struct cop_rpc *r, struct call *c);
/* Ends every call with rc. */
void cop_rpc_calls_fail(struct cop_rpc *r, struct peer *p, int rc);
bool cop_rpc_calls_any(const struct peer *p);

/* Ends one call with rc; the call may be linked or not. */
void cop_rpc_call_fail(struct call *c, int rc);
/* Whether bytes of a reply may still be written into memory that is released with a call. */
bool cop_rpc_may_be_written(const struct peer *p);

/* ---- lag.c: peers that are silent but not dead ---- */

/* One tick, delta_ms after the last. */
void cop_rpc_lag_clock(struct cop_rpc *r, uint64_t delta_ms);
/* A call was sent for the first time. */
void cop_rpc_lag_sent(struct cop_rpc *r);
/* Restarts the silence: a message from the peer arrived, or its first open request was sent. */
void cop_rpc_lag_heard(struct cop_rpc *r, struct peer *p);
void cop_rpc_lag_pinged(struct cop_rpc *r, struct peer *p);
void cop_rpc_lag_ponged(struct cop_rpc *r, struct peer *p, uint64_t ping);
bool cop_rpc_lag_wants_ping(const struct cop_rpc *r, const struct peer *p);
void cop_rpc_lag_tick(struct cop_rpc *r, struct peer *p);
/* If the peer is set aside, ends waiting calls that another node can serve. */
void cop_rpc_lag_refuse(struct peer *p);

/* ---- session.c: sessions that others open ---- */

void cop_rpc_hello(struct cop_rpc *r, const void *msg, size_t len);
struct session *cop_rpc_half_find(struct cop_rpc *r, uint64_t sid);
/* The other side has proved the secret: the session replaces the rank's earlier one. -ENOMEM. */
int cop_rpc_session_promote(struct cop_rpc *r, struct session *s);
/* Replies to its open requests are dropped. */
void cop_rpc_session_free(struct cop_rpc *r, struct session *s);
void cop_rpc_sessions_tick(struct cop_rpc *r);

/* ---- serve.c ---- */

void cop_rpc_serve_frame(struct cop_rpc *r, struct session *s, const struct cop_frame *f);
void cop_rpc_serve_tick(struct cop_rpc *r, struct session *s);

/* ---- answer.c ---- */

/* Detaches all requests from their session and frees the unused ones. */
void cop_rpc_reqs_orphan(struct session *s);
/* Ends the request and releases its body. */
void cop_rpc_req_free(struct cop_rpc_req *q);
/* Resends the announcement or reply of a request: the caller has reported it missing. */
void cop_rpc_req_again(struct cop_rpc_req *q);
/* The reply may be sent as soon as the limit on outstanding bytes allows. */
void cop_rpc_req_ready(struct cop_rpc_req *q);
/* Sends as many ready replies as fabric and the limit on outstanding bytes allow. */
void cop_rpc_session_send(struct session *s);

/* ---- msg.c: payloads ---- */

struct msg_request {
	uint8_t op;
	uint64_t land_addr, land_key, land_len;
	const void *payload;
	size_t payload_len;
};
struct msg_reply {
	int status;
	uint8_t mode;
	bool confirm; /* the caller confirms the reply, by a PULL of length 0 */
	uint64_t body_len, body_hash;
	const void *head, *body; /* body: MODE_INLINE */
	size_t head_len;
};
struct msg_pull {
	uint64_t addr, key, len; /* len 0: the caller has the reply, or no longer wants it */
};
/* Bytes of the header of one request in a message of several: its id and the length of the rest. */
#define MSG_MEMBER_FIXED 10
#define MSG_MEMBERS_MAX 64
#define MSG_REQUEST_FIXED 25
#define MSG_REPLY_FIXED 24
/* Maximum bytes of head and body in one message. */
#define MSG_INLINE_MAX (COP_ENDPOINT_MSG_MAX - COP_FRAME_OVERHEAD - MSG_REPLY_FIXED)
void cop_rpc_msg_put_request(struct cop_wr *w, const struct msg_request *m);
void cop_rpc_msg_put_reply(struct cop_wr *w, const struct msg_reply *m);
void cop_rpc_msg_put_pull(struct cop_wr *w, const struct msg_pull *m);
/* 0, or -EBADMSG unless every length is within its limits. */
int cop_rpc_msg_get_request(const struct cop_frame *f, struct msg_request *m);
/* Appends one request to a message of several; the receiver checks every length. */
void cop_rpc_msg_put_member(struct cop_wr *w, uint64_t id, const struct msg_request *m);
/* Builds a frame for the next request of the message; the request itself is not decoded yet. 0 or
 * -EBADMSG. */
int cop_rpc_msg_next_member(struct cop_rd *r, const struct cop_frame *f, struct cop_frame *member);
int cop_rpc_msg_get_reply(const struct cop_frame *f, struct msg_reply *m);
int cop_rpc_msg_get_pull(const struct cop_frame *f, struct msg_pull *m);

#endif
