/* SPDX-License-Identifier: BSD-3-Clause */
/* How the rendezvous works internally.
 *
 * One thread polls everything: the listener, at most RDV_SERVED_MAX incoming connections, and at
 * most RDV_OPEN_MAX connections for its own requests (asks). Other threads reach it through an
 * eventfd and two lists under the lock: new asks from cop_rendezvous_ask, and names that the
 * resolver has resolved. Fields marked [thread] belong to the thread and need no lock. The lock is
 * never held across a system call, a callback or a name lookup.
 *
 * A second thread, the resolver, looks up names. It starts with the first ask that needs it: the
 * name service may take seconds, and incoming requests must be answered meanwhile. */
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
	500 /* minimum; on a busy machine an ask may expire before this thread runs */
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

/* Builds an ask to the host with this identity ("name:port") from the node with this address. The
 * nonce in it verifies the answer. Returns the length or -errno. */
int cop_rdv_ask_build(const struct rdv_key *key, const char *identity, const char *address,
	uint8_t nonce[RDV_NONCE], uint8_t out[RDV_MESSAGE_MAX]);
/* Once the message is complete, returns its length and the sender's address, NUL-terminated.
 * Returns 0 while bytes are missing, -EBADMSG if it is malformed, -EACCES if the tag is wrong. */
int cop_rdv_ask_check(const struct rdv_key *key, const char *identity, const uint8_t *data,
	size_t len, char address[COP_JOB_ADDRESS_MAX + 1]);
/* Builds the answer to an ask that has been checked. Returns the length or -errno. */
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
	int fd; /* -1: unused */
	struct cop_ip from;
	uint64_t deadline_ms;
	uint8_t in[RDV_MESSAGE_MAX];
	size_t in_len;
	uint8_t out[RDV_MESSAGE_MAX];
	size_t out_len, out_done; /* out_len is 0 while we are still reading */
};

enum rdv_step {
	RDV_NEEDS_NAME, /* no address yet; goes to the resolver after its pause */
	RDV_AT_RESOLVER,
	RDV_WAITS, /* waiting for its next attempt, or for a free connection */
	RDV_CONNECTS,
	RDV_SENDS,
	RDV_RECEIVES,
};

struct rdv_ask {
	struct cop_list link; /* in asks; at first in new_asks */
	char *name;
	uint16_t port, second_port;
	bool second; /* this attempt uses the second port, right after one at the first */
	char identity[RDV_IDENTITY];
	uint64_t timeout_ms, deadline_ms, next_ms, attempt_end_ms;
	uint32_t pause_ms;
	uint32_t patience_ms; /* time limit of an attempt; short at first if there is a second port,
				 because another program may be using the first port and stay silent
			       */
	enum rdv_step step;
	struct cop_ip to;          /* all zeros until known */
	struct rdv_lookup *lookup; /* while the name is being resolved */
	int fd;
	uint8_t nonce[RDV_NONCE];
	uint8_t out[RDV_MESSAGE_MAX], in[RDV_MESSAGE_MAX];
	size_t out_len, out_done, in_len;
	char problem[160]; /* why the last attempt failed */
	bool tried;        /* we have made at least one attempt */
	bool silent; /* in the last attempt, a connection to either port was accepted but nothing
			arrived */
	cop_rendezvous_found *found;
	void *arg;
};

/* A name for the resolver to look up. It outlives its ask only during the lookup. */
struct rdv_lookup {
	struct cop_list link; /* in todo or done, under the lock */
	struct rdv_ask *ask;  /* under the lock; NULL once its ask has ended */
	char *name;
	struct cop_ip found;
	int verdict; /* 0 or -errno */
	struct cop_err problem;
};

struct rdv_resolver {
	pthread_t thread;
	bool started; /* [thread] */
	pthread_cond_t more;
	/* Under the rendezvous's lock: */
	struct cop_list todo, done;
	struct rdv_lookup *running;
	bool ended, left; /* left: the resolver thread frees the rendezvous when it ends */
};

struct cop_rendezvous {
	struct rdv_key key;
	cop_rendezvous_met *met;
	cop_rendezvous_refused *refused;
	char address[COP_JOB_ADDRESS_MAX + 1];
	char identity[RDV_IDENTITY];
	struct cop_ip self; /* source address of our asks; all zeros: any */
	uint16_t port;
	int listen_fd, wake_fd;
	pthread_t thread;
	_Atomic uint64_t end_asks_ms; /* open asks end by then; 0: each has its own deadline */

	pthread_mutex_t lock;
	bool stopping;            /* under the lock */
	uint32_t asked;           /* under the lock: how many asks are open */
	struct cop_list new_asks; /* under the lock */
	struct rdv_resolver resolver;

	struct cop_list asks;     /* [thread] */
	uint32_t open_asks;       /* [thread] how many asks have a connection */
	uint64_t accept_after_ms; /* [thread] 0, or when to accept again after we ran out of
				     descriptors */
	struct cop_recent heard;  /* [thread] nonces of recent asks */
	struct rdv_conn conn[RDV_SERVED_MAX]; /* [thread] */
};

/* Counts and logs a peer that failed to prove the secret. rc is as for cop_rendezvous_refused. */
void cop_rdv_refused(struct cop_rendezvous *r, const char *what, const struct cop_ip *from, int rc);

/* rdv_serve.c [thread]. accept takes waiting connections; serve advances one of them (events come
 * from poll; 0 just checks its deadline). */
void cop_rdv_accept(struct cop_rendezvous *r, uint64_t now_ms);
void cop_rdv_serve(struct cop_rendezvous *r, struct rdv_conn *c, short events, uint64_t now_ms);
short cop_rdv_serve_wants(const struct rdv_conn *c);

/* rdv_ask.c [thread]. Advances an ask, and may free it. */
void cop_rdv_step(struct cop_rendezvous *r, struct rdv_ask *a, short events, uint64_t now_ms);
short cop_rdv_step_wants(const struct rdv_ask *a);
/* When the ask must be stepped even if no event arrives. */
uint64_t cop_rdv_step_when(const struct rdv_ask *a, bool may_connect);
/* Calls the ask's found and frees the ask. */
void cop_rdv_ask_end(
	struct cop_rendezvous *r, struct rdv_ask *a, const char *address, const char *why);

/* [thread] Call this when the lookup of the ask's name has finished. Frees the lookup. */
void cop_rdv_resolved(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms);

/* rdv_resolve.c [thread]. give hands an ask's name to the resolver; drop is for an ask that ends
 * before its lookup does. */
int cop_rdv_resolve_give(struct cop_rendezvous *r, struct rdv_ask *a);
void cop_rdv_resolve_drop(struct cop_rendezvous *r, struct rdv_ask *a);
void cop_rdv_lookup_free(struct rdv_lookup *l);
/* Call this after the thread has ended. On false, the name service is hanging, and the resolver
 * will free the rendezvous later with cop_rdv_free. */
bool cop_rdv_resolve_stop(struct cop_rendezvous *r);
void cop_rdv_free(struct cop_rendezvous *r);
/* Any thread. */
void cop_rdv_wake(struct cop_rendezvous *r);

#endif
