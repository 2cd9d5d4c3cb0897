/* SPDX-License-Identifier: BSD-3-Clause */
/* How rpc works inside.
 *
 * Threads. All state lives on fabric's progress thread and needs no lock. Other threads post items
 * to that thread, through the only queue that it has (cop_endpoint_post). Every callback of fabric
 * is bracketed by cop_rpc_enter and cop_rpc_leave. What a user's callback does in between (a call
 * from inside serve, a reply from inside done) waits in the list `later` and runs in leave: right
 * after the event, and never inside code that is walking a list. Calls leave once everything that
 * was posted has been looked at, so that those to one peer share a message.
 *
 * Time. r->now_ms advances only with ticks, and by at most a sixth of the peer timeout per tick. A
 * process that was stopped or starved therefore does not declare all its peers dead before it has
 * read their messages.
 *
 * Sessions. A session belongs to the side that opened it and carries that side's requests and the
 * replies to them. Two nodes that call each other have two independent sessions. struct peer holds
 * the session that this node opened to a rank and points to the one that the rank opened to this
 * node (struct session). A session id is made by the node that receives the messages with it. The
 * low half is the other side's rank and the high half is random, so that finding a session is
 * arithmetic.
 *
 * A peer that restarted does not know our session any more and keeps silent, as to any unverified
 * peer. After half the timeout in silence we send it a HELLO that names our session; it answers
 * only if it does not know that one. The answer is authenticated and fresh, so no other process can
 * end a live session. Outstanding calls are then sent again over the new session.
 *
 * A HELLO that opened a session before is refused by its nonce. A process that was started later
 * does not know the nonce. It makes a half-open session, whose WELCOME goes to the address of the
 * true sender, who did not ask for it. When such a session ends unused, it is counted as
 * fabric.dropped and not as an attempt, because a node may have been killed at this very point.
 *
 * A restarted peer may have another address. Therefore its address is resolved once more at the
 * same time, and if it differs, the calls go there over a new session.
 *
 * Dead or slow. Silence alone does not distinguish a process that has ended from one that gets no
 * processor (stopped, or among a hundred others on a core). The look-up does: it goes to another
 * thread of the peer, and the kernel of its machine accepts the connection for a process that does
 * not run and refuses it if there is none. So a peer is dead when it was silent for the timeout and
 * the look-up has found no node, or when it was silent for COP_RPC_PATIENCE times the timeout. If a
 * look-up cannot tell, silence alone decides.
 *
 * Lost messages. A connection that breaks can lose messages without killing either side. A ping
 * names the requests that have waited long. The pong lists those that the server has never seen
 * or has already answered. Because messages of a pair arrive in order, those are lost and are sent
 * again (requests are idempotent). For a request whose body the server has announced, or whose
 * answer it wants confirmed, the server sends its last message again instead.
 *
 * Bodies by RMA are written in pieces of at most PIECE bytes, with at most OUTSTANDING bytes at a
 * time to one peer, so that a pong never waits behind more than that. */
#ifndef COP_FABRIC_RPC_PRIV_H
#define COP_FABRIC_RPC_PRIV_H

#include <stdatomic.h>

#include "base/base/htab.h"
#include "base/log/log.h"
#include "fabric/rpc/rpc.h"

#define PEER_WINDOW 1024 /* outstanding requests of one session */
#define SERVED_MAX                                                                                 \
	(2 * PEER_WINDOW) /* the server's limit: bodies pinned for a lost PULL count too */
#define HALF_OPEN_MAX 256
#define PIECE COP_MIB
#define OUTSTANDING (8 * COP_MIB)
#define PIN_MS 30000      /* how long a body waits to be pulled, or a write to advance */
#define CONFIRM_MS 120000 /* how long an answer waits for its confirmation, */
#define SAY_AGAIN_MS 1000 /* and how often it is sent again */
#define RESOLVE_MS 120000 /* backstop: resolvers answer on their own */
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
			       else alone */
	bool half,
		refused; /* refused: it stays half-open until its refusal has certainly been sent */
	uint32_t rank;
	uint64_t sid, remote_sid;
	struct cop_frame_keys keys;
	struct link *link;
	uint8_t nonce[COP_HELLO_NONCE]; /* of the HELLO that opened it */
	uint8_t welcome[COP_WELCOME_LEN];
	uint64_t made_ms, welcomed_ms, advanced_ms;
	struct cop_htab by_id; /* requests by their id */
	struct cop_list reqs;  /* every request by session_at */
	struct cop_list
		ready; /* outgoing answers, by ready_at, in the order in which they became ready */
	size_t outstanding; /* bytes handed to fabric and not acknowledged */
};

/* ---- another node, as this one calls it ---- */

enum peer_state { PEER_IDLE, PEER_RESOLVING, PEER_CONNECTING, PEER_UP, PEER_DEAD };

/* A HELLO of ours that waits for its WELCOME: while connecting, or to probe a silent session. */
struct greeting {
	uint64_t sid; /* 0: none is waiting */
	uint64_t sent_ms;
	size_t len;
	uint8_t hello[COP_HELLO_MAX];
};

/* A request's number for traces: both ends know the session and the number in it. */
static inline uint64_t cop_rpc_trace_id(uint64_t sid, uint64_t request)
{
	const uint64_t both[2] = {sid, request};

	return cop_hash64(both, sizeof(both), 0) >> 11;
}

#define LAG_RTTS 100
#define LAG_SECONDS 60

/* What is known of a peer's silence (lag.c). */
struct lag {
	unsigned watched;              /* calls that have late and have not ended */
	unsigned in_a_row;             /* how often it was found silent since its last message */
	bool left;                     /* calls that have late end at once */
	unsigned times;                /* how often it was left */
	uint64_t heard_ms;             /* on the clock awake_ms, as is pinged_ms */
	uint64_t ping;                 /* number of the oldest ping without an answer; 0: none */
	uint64_t pinged_ms, pinged_ns; /* when that was sent */
	uint64_t well_ms;              /* since when a left peer answers; 0: it does not */
	unsigned rtts;
	uint16_t rtt[LAG_RTTS]; /* ms from a ping to its answer */
};

struct peer {
	struct cop_list at;     /* r->peers_used */
	struct cop_list active; /* in r->active while the tick has work for it */
	struct cop_list caller; /* in r->callers while it has new calls */
	uint32_t rank;
	enum peer_state state;
	uint64_t since_ms; /* of the state */
	uint64_t heard_ms, pinged_ms;
	uint64_t pause_ms; /* how long to stay dead; 0 after a success */
	bool refused;      /* an answer came from a sender without the secret */
	bool looked_up;    /* its address was asked for and has not come yet */
	bool lives;        /* it is silent, but the last look-up found its process alive */
	bool lost;         /* it was up once and has died since */
	uint64_t looked_up_ms;
	struct link *link;
	uint64_t sid, remote_sid; /* valid while PEER_UP */
	struct cop_frame_keys keys;
	struct greeting greeting;
	struct lag lag;
	struct cop_htab by_id;
	struct cop_list inflight; /* calls on the wire; the first was confirmed longest ago */
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
	bool unwanted;              /* its caller has abandoned it */
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
	MODE_LANDED,   /* it was written where the request or the PULL said */
	MODE_ANNOUNCE, /* its length: the caller allocates a buffer and sends PULL */
	MODE_FAILED,   /* it could not be written */
	MODE_UNABLE,   /* there is no answer: the status says what the server lacks */
	MODES
};

enum req_state {
	REQ_SERVING, /* the user has it, or its answer is posted; other threads never read the
			state */
	REQ_READY,   /* in session->ready */
	REQ_PINNED,  /* announced, waits for PULL */
	REQ_SENT,    /* answered, waits for the caller's confirmation */
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
	uint64_t since_ms, said_ms; /* since_ms: of the state; said_ms, in REQ_SENT: when the last
				       message went out */
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
		*_Atomic fabric; /* NULL until open has finished: events before that are ignored */
	bool fake;
	_Atomic uint64_t refs;    /* one for the owner and one per request not yet freed */
	_Atomic bool closed;      /* nothing more is posted */
	_Atomic unsigned posting; /* threads that may be posting */
	/* progress thread */
	struct cop_list later;         /* items for leave */
	struct cop_endpoint_work more; /* runs leave again */
	bool has_more;                 /* that is posted */
	bool torn;                     /* closing: events are ignored */
	bool quiet;                    /* new calls fail */
	bool ticking;
	uint64_t now_ms, last_tick_ms, tick_cap_ms;
	uint64_t awake_ms, tick_ms; /* lag.c */
	_Atomic uint32_t lagged;    /* the rank that was left last, and one; 0: none */
	struct {
		uint64_t second; /* the last one that was counted */
		unsigned sent, hedged, sent_in[LAG_SECONDS], hedged_in[LAG_SECONDS];
	} minute; /* calls of the last minute */
	uint64_t next_request, pings;
	struct peer **peers; /* by rank */
	struct cop_list peers_used, active, halves, serving;
	struct cop_list callers; /* peers with calls that have just been made */
	unsigned half_count;
	struct cop_recent hellos; /* nonces of the HELLOs that opened sessions */
	struct cop_htab links;
};

/* ---- rpc.c: the frame that everything runs in; open.c ---- */

/* False: not open yet or closing; leave must not be called then. */
bool cop_rpc_enter(struct cop_rpc *r, struct cop_rpc **outer);
void cop_rpc_leave(struct cop_rpc *r, struct cop_rpc *outer);
/* Whether this thread is handling an event of r. */
bool cop_rpc_inside(const struct cop_rpc *r);
/* Any thread: the item will run on the progress thread. False: closed, and it will not. */
bool cop_rpc_push(struct cop_rpc *r, struct item *item);
/* The same for several in a row; the list is empty afterwards, or as it was. */
struct items {
	struct cop_list list;
};
void cop_rpc_items_add(struct cop_rpc *r, struct items *items, struct item *item);
struct item *cop_rpc_items_pop(struct items *items);
bool cop_rpc_push_all(struct cop_rpc *r, struct items *items);
/* Inside: runs what waits for leave now; returns whether there was anything. */
bool cop_rpc_drain(struct cop_rpc *r);
struct cop_endpoint_events cop_rpc_events(struct cop_rpc *r);
/* Inside: runs the item in leave, even while closing. */
void cop_rpc_queue(struct cop_rpc *r, struct item *item);
/* One reference, and no endpoint yet; tick_ms 0: 100. NULL: no memory. */
struct cop_rpc *cop_rpc_new(const struct cop_rpc_conf *conf, unsigned tick_ms);
void cop_rpc_ref(struct cop_rpc *r);
void cop_rpc_unref(struct cop_rpc *r);
/* Runs the function on the progress thread and returns when it has finished. The caller must not be
 * that thread, except with the fake. */
void cop_rpc_run_on_thread(struct cop_rpc *r, void (*run)(struct cop_rpc *r));
/* Called when there is a new deadline. */
void cop_rpc_wake(struct cop_rpc *r);
/* Counts and logs a message that is not from this job or does not follow its protocol. A message
 * that is dropped for lack of memory or buffers is not counted here. */
void cop_rpc_reject(struct cop_rpc *r, const char *what, uint32_t rank, int rc);
/* Counts a message of this job that comes too late or cannot be stored. */
void cop_rpc_drop(struct cop_rpc *r, const char *what, uint32_t rank, int rc);

/* ---- link.c ---- */

/* A reference to the link of an address; NULL if the address is invalid or memory is short. */
struct link *cop_rpc_link_get(struct cop_rpc *r, const char *text, size_t len);
void cop_rpc_link_put(struct cop_rpc *r, struct link *l);
/* Drops the connection; the next use makes a new one. What was queued on it ends with
 * -ECANCELED. */
void cop_rpc_link_reset(struct cop_rpc *r, struct link *l);
int cop_rpc_link_open(struct cop_rpc *r, struct link *l, cop_endpoint_peer_t *fpeer);
/* After -ENOENT: a link to the same endpoint, under another spelling of its address, was reset. */
int cop_rpc_link_reopen(struct cop_rpc *r, struct link *l, cop_endpoint_peer_t *fpeer);
int cop_rpc_link_send(struct cop_rpc *r, struct link *l, const void *msg, size_t len);
/* Whether a send that failed with rc may succeed later. */
bool cop_rpc_may_retry(int rc);
/* Seals and sends a message whose payload is already in one piece. */
int cop_rpc_link_send_sealed(struct cop_rpc *r, struct link *l, struct cop_frame_tx *tx,
	const struct cop_frame *f, const void *payload, size_t len);

/* ---- peer.c: sessions that this node opens ---- */

struct peer *cop_rpc_peer(struct cop_rpc *r, uint32_t rank);
/* Called when a call was added to p->waiting. */
void cop_rpc_peer_work(struct cop_rpc *r, struct peer *p);
void cop_rpc_peer_resolved(struct cop_rpc *r, struct peer *p, const char *address, bool lives);
void cop_rpc_peer_welcome(
	struct cop_rpc *r, const void *msg, size_t len, const struct cop_frame *f);
/* Called when the peer has proved in the other direction that it is alive. */
void cop_rpc_peer_alive(struct cop_rpc *r, struct peer *p, bool restarted);
/* Ends every call of the peer with rc; the peer is not tried again until a pause has passed. */
void cop_rpc_peer_dead(struct cop_rpc *r, struct peer *p, int rc);
void cop_rpc_peer_pong(struct cop_rpc *r, struct peer *p, const struct cop_frame *f);
void cop_rpc_peers_tick(struct cop_rpc *r);
/* Puts calls on the wire back among the waiting ones, in the order in which they were sent. */
void cop_rpc_requeue_calls(struct cop_rpc *r, struct peer *p);
void cop_rpc_peer_free(struct cop_rpc *r, struct peer *p);
/* A session id for messages of this rank that is not in use. */
uint64_t cop_rpc_make_sid(struct cop_rpc *r, uint32_t rank);

/* ---- call.c ---- */

/* Called when everything that was posted has been looked at: its calls may leave. */
void cop_rpc_calls_start(struct cop_rpc *r);
/* Sends as many waiting calls as the window and fabric allow, several in one message. */
void cop_rpc_calls_send(struct cop_rpc *r, struct peer *p);
void cop_rpc_call_reply(struct cop_rpc *r, struct peer *p, const struct cop_frame *f);
/* Resets the call and puts it in front of the waiting ones. */
void cop_rpc_call_again(struct cop_rpc *r, struct call *c);
/* Ends every call with rc. */
void cop_rpc_calls_fail(struct cop_rpc *r, struct peer *p, int rc);
bool cop_rpc_calls_any(const struct peer *p);

/* Ends one call with rc; it was taken from its list, or is in it. */
void cop_rpc_call_fail(struct call *c, int rc);
/* Bytes of an answer may be on their way into memory that is released with a call. */
bool cop_rpc_may_be_written(const struct peer *p);

/* ---- lag.c: peers that are silent but not dead ---- */

/* A tick; delta_ms since the last one. */
void cop_rpc_lag_clock(struct cop_rpc *r, uint64_t delta_ms);
/* A call has left for the first time. */
void cop_rpc_lag_sent(struct cop_rpc *r);
/* A message from the peer, or it has something to answer from now on. */
void cop_rpc_lag_heard(struct cop_rpc *r, struct peer *p);
void cop_rpc_lag_pinged(struct cop_rpc *r, struct peer *p);
void cop_rpc_lag_ponged(struct cop_rpc *r, struct peer *p, uint64_t ping);
bool cop_rpc_lag_wants_ping(const struct cop_rpc *r, const struct peer *p);
void cop_rpc_lag_tick(struct cop_rpc *r, struct peer *p);
/* Ends waiting calls that another node can answer, if the peer is left. */
void cop_rpc_lag_refuse(struct peer *p);

/* ---- session.c: sessions that others open ---- */

void cop_rpc_hello(struct cop_rpc *r, const void *msg, size_t len);
struct session *cop_rpc_half_find(struct cop_rpc *r, uint64_t sid);
/* The other side has proved that it knows the secret: the session replaces the earlier one of this
 * rank. -ENOMEM. */
int cop_rpc_session_promote(struct cop_rpc *r, struct session *s);
/* Answers to its outstanding requests are dropped. */
void cop_rpc_session_free(struct cop_rpc *r, struct session *s);
void cop_rpc_sessions_tick(struct cop_rpc *r);

/* ---- serve.c ---- */

void cop_rpc_serve_frame(struct cop_rpc *r, struct session *s, const struct cop_frame *f);
void cop_rpc_serve_tick(struct cop_rpc *r, struct session *s);

/* ---- answer.c ---- */

/* Detaches every request from its session and frees those that are unused. */
void cop_rpc_reqs_orphan(struct session *s);
/* Ends the request: its body is released. */
void cop_rpc_req_free(struct cop_rpc_req *q);
/* The caller asks about a request whose announcement or answer it should have, so sends that
 * again. */
void cop_rpc_req_again(struct cop_rpc_req *q);
/* The answer may be sent as soon as the limit on outstanding bytes allows. */
void cop_rpc_req_ready(struct cop_rpc_req *q);
/* Sends as much of what is ready as fabric and the limit on outstanding bytes allow. */
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
	bool confirm; /* the caller confirms the answer, by a PULL of length 0 */
	uint64_t body_len, body_hash;
	const void *head, *body; /* body: MODE_INLINE */
	size_t head_len;
};
struct msg_pull {
	uint64_t addr, key, len; /* len 0: the caller has the answer, or no longer wants it */
};
/* The head of one request among several in a message: its id, and the length of what follows. */
#define MSG_MEMBER_FIXED 10
#define MSG_MEMBERS_MAX 64
#define MSG_REQUEST_FIXED 25
#define MSG_REPLY_FIXED 24
/* How many bytes of head and body fit into one message. */
#define MSG_INLINE_MAX (COP_ENDPOINT_MSG_MAX - COP_FRAME_OVERHEAD - MSG_REPLY_FIXED)
void cop_rpc_msg_put_request(struct cop_wr *w, const struct msg_request *m);
void cop_rpc_msg_put_reply(struct cop_wr *w, const struct msg_reply *m);
void cop_rpc_msg_put_pull(struct cop_wr *w, const struct msg_pull *m);
/* 0, or -EBADMSG unless every length is within its limits. */
int cop_rpc_msg_get_request(const struct cop_frame *f, struct msg_request *m);
/* Appends one request among several: the receiver checks every length. */
void cop_rpc_msg_put_member(struct cop_wr *w, uint64_t id, const struct msg_request *m);
/* Makes a frame of the next of them, whose request has yet to be decoded. 0 or -EBADMSG. */
int cop_rpc_msg_next_member(struct cop_rd *r, const struct cop_frame *f, struct cop_frame *member);
int cop_rpc_msg_get_reply(const struct cop_frame *f, struct msg_reply *m);
int cop_rpc_msg_get_pull(const struct cop_frame *f, struct msg_pull *m);

#endif
