/* SPDX-License-Identifier: BSD-3-Clause */
/* How the rendezvous works inside.
 *
 * One thread polls everything: the listener, at most RDV_SERVED_MAX incoming connections, and at
 * most RDV_OPEN_MAX connections of its own requests (asks). Other threads reach it through two
 * lists under the lock (new asks from cop_rendezvous_ask, names resolved by the resolver) and an
 * eventfd. Fields marked [thread] belong to the thread and need no lock. The lock is never held
 * across a system call, a callback or the name service.
 *
 * A second thread, the resolver, looks up names. It starts with the first ask that needs it: the
 * name service may take seconds, during which incoming requests must be answered. */
#ifndef COP_JOB_RDV_PRIV_H
#define COP_JOB_RDV_PRIV_H

#include <poll.h>
#include <stdatomic.h>

#include "job/rendezvous/rendezvous.h"

#define RDV_SERVED_MAX 64
#define RDV_OPEN_MAX 64
#define RDV_ASKS_MAX 1024
#define RDV_CONNECTION_MS 2000
#define RDV_PATIENCE_MS_FIRST 500
#define RDV_FIRST_TRY_MS                                                                           \
	500 /* minimum; on a busy machine an ask may expire before this thread runs  \ */
#define RDV_RETRY_MS_FIRST 50
#define RDV_RETRY_MS_MOST 500

/* ---- messages (rdv_msg.c)
 * --------------------------------------------------------------------------
 *
 *     ask      "COPR" version kind=1 n 0   nonce[32]  mac[32]  address[n]
 *     answer   "COPR" version kind=2 n 0   nonce[32]  mac[32]  address[n]
 *
 * Each carries the fabric address of its sender. The tag of an ask covers its kind, its nonce,
 * the "name:port" of the target node and the address; the tag of an answer also covers the nonce
 * of the ask: an answer can neither be replayed nor be passed off as another host's. A recent
 * ask that is repeated is refused; replaying an older one, or one to an earlier process, reveals
 * nothing new. */
#define RDV_NONCE 32
#define RDV_MAC 32
#define RDV_HEAD 8
#define RDV_FIXED (RDV_HEAD + RDV_NONCE + RDV_MAC)
#define RDV_MESSAGE_MAX (RDV_FIXED + COP_JOB_ADDRESS_MAX)

struct rdv_key {
	cop_rendezvous_mac *mac;
	void *ctx;
};

/* Builds an ask for the host with this identity ("name:port") from a node with this address; its
 * nonce verifies the answer. Returns the length or -errno. */
int cop_rdv_ask_build(const struct rdv_key *key, const char *identity, const char *address,
	uint8_t nonce[RDV_NONCE], uint8_t out[RDV_MESSAGE_MAX]);
/* The message's length once it is complete, with its sender's address, terminated; 0 while bytes
 * are missing; -EBADMSG; -EACCES if the tag is wrong. */
int cop_rdv_ask_check(const struct rdv_key *key, const char *identity, const uint8_t *data,
	size_t len, char address[COP_JOB_ADDRESS_MAX + 1]);
/* Builds the answer to a checked ask. Returns the length or -errno. */
int cop_rdv_answer_build(const struct rdv_key *key, const char *identity, const uint8_t *ask,
	const char *address, uint8_t out[RDV_MESSAGE_MAX]);
/* Like cop_rdv_ask_check. */
int cop_rdv_answer_check(const struct rdv_key *key, const char *identity,
	const uint8_t nonce[RDV_NONCE], const uint8_t *data, size_t len,
	char address[COP_JOB_ADDRESS_MAX + 1]);

/* ---- state ---- */

#define RDV_IDENTITY COP_JOB_LABEL_SIZE

/* An incoming connection. [thread] */
struct rdv_conn {
	int fd; /* -1: free */
	struct cop_ip from;
	uint64_t deadline_ms;
	uint8_t in[RDV_MESSAGE_MAX];
	size_t in_len;
	uint8_t out[RDV_MESSAGE_MAX];
	size_t out_len, out_done; /* out_len 0: still reading */
};

enum rdv_step {
	RDV_NEEDS_NAME, /* no address yet; passed to the resolver after its pause */
	RDV_AT_RESOLVER,
	RDV_WAITS, /* waits for its next attempt, or for a free connection */
	RDV_CONNECTS,
	RDV_SENDS,
	RDV_RECEIVES,
};

struct rdv_ask {
	struct cop_list link; /* in asks, initially in new_asks */
	char *name;
	uint16_t port, second_port;
	bool second; /* this attempt is at the second port, right after one at the first */
	char identity[RDV_IDENTITY];
	uint64_t timeout_ms, deadline_ms, next_ms, attempt_end_ms;
	uint32_t pause_ms;
	uint32_t patience_ms; /* of one attempt: initially short if there is a second port, because
				 another program may use the first and be silent */
	enum rdv_step step;
	struct cop_ip to;          /* none until known */
	struct rdv_lookup *lookup; /* while the name is being resolved */
	int fd;
	uint8_t nonce[RDV_NONCE];
	uint8_t out[RDV_MESSAGE_MAX], in[RDV_MESSAGE_MAX];
	size_t out_len, out_done, in_len;
	char problem[160]; /* reason of the last failure */
	bool tried;        /* at least one attempt was made */
	bool silent; /* in the last attempt, at either port, the connection was accepted but nothing
			arrived */
	cop_rendezvous_found *found;
	void *arg;
};

/* A name for the resolver. It outlives its ask only during its look-up. */
struct rdv_lookup {
	struct cop_list link; /* in todo or done, under the lock */
	struct rdv_ask *ask;  /* under the lock; NULL: its ask has ended */
	char *name;
	struct cop_ip found;
	int verdict; /* 0 or -errno */
	struct cop_err problem;
};

struct rdv_resolver {
	pthread_t thread;
	bool started; /* [thread] */
	pthread_cond_t more;
	/* under the rendezvous's lock: */
	struct cop_list todo, done;
	struct rdv_lookup *running;
	bool ended, left; /* left: the thread frees the rendezvous at its end */
};

struct cop_rendezvous {
	struct rdv_key key;
	cop_rendezvous_met *met;
	cop_rendezvous_refused *refused;
	char address[COP_JOB_ADDRESS_MAX + 1];
	char identity[RDV_IDENTITY];
	struct cop_ip self; /* source address of asks; none: any */
	uint16_t port;
	int listen_fd, wake_fd;
	pthread_t thread;
	_Atomic uint64_t end_asks_ms; /* open asks end by then; 0: each at its own deadline */

	pthread_mutex_t lock;
	bool stopping;            /* under the lock */
	uint32_t asked;           /* under the lock: number of open asks */
	struct cop_list new_asks; /* under the lock */
	struct rdv_resolver resolver;

	struct cop_list asks;     /* [thread] */
	uint32_t open_asks;       /* [thread] asks with a connection */
	uint64_t accept_after_ms; /* [thread] 0, or when to accept again after running out of
				     descriptors */
	struct cop_recent heard;  /* [thread] nonces of earlier asks */
	struct rdv_conn conn[RDV_SERVED_MAX]; /* [thread] */
};

/* Counts and logs a peer that did not prove the secret. rc: as for cop_rendezvous_refused. */
void cop_rdv_refused(struct cop_rendezvous *r, const char *what, const struct cop_ip *from, int rc);

/* rdv_serve.c [thread]. accept takes waiting connections; serve continues one (events from poll, 0
 * to check its deadline). */
void cop_rdv_accept(struct cop_rendezvous *r, uint64_t now_ms);
void cop_rdv_serve(struct cop_rendezvous *r, struct rdv_conn *c, short events, uint64_t now_ms);
short cop_rdv_serve_wants(const struct rdv_conn *c);

/* rdv_ask.c [thread]. step continues one ask and may free it. */
void cop_rdv_step(struct cop_rendezvous *r, struct rdv_ask *a, short events, uint64_t now_ms);
short cop_rdv_step_wants(const struct rdv_ask *a);
/* When the ask must be stepped without an event. */
uint64_t cop_rdv_step_when(const struct rdv_ask *a, bool may_connect);
/* Calls found and frees. */
void cop_rdv_ask_end(
	struct cop_rendezvous *r, struct rdv_ask *a, const char *address, const char *why);

/* [thread] The look-up of this ask's name is finished (frees lookup). */
void cop_rdv_resolved(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms);

/* rdv_resolve.c [thread]. drop: the ask ends before its look-up. */
int cop_rdv_resolve_give(struct cop_rendezvous *r, struct rdv_ask *a);
void cop_rdv_resolve_drop(struct cop_rendezvous *r, struct rdv_ask *a);
void cop_rdv_lookup_free(struct rdv_lookup *l);
/* Call it after the thread has ended. False: the name service is hanging; the resolver frees the
 * rendezvous later with cop_rdv_free. */
bool cop_rdv_resolve_stop(struct cop_rendezvous *r);
void cop_rdv_free(struct cop_rendezvous *r);
/* Any thread. */
void cop_rdv_wake(struct cop_rendezvous *r);

#endif
