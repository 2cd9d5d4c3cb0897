/* SPDX-License-Identifier: BSD-3-Clause */
/* The rendezvous' inside.
 *
 * One thread polls everything: the listener, at most RDV_SERVED_MAX connections of askers, at
 * most RDV_OPEN_MAX connections of its own asks. Other threads reach it through two lists
 * under the lock (new asks from cop_rendezvous_ask, names looked up by the resolver) and an
 * eventfd. What is marked [thread] belongs to the thread and needs no lock. The lock is never
 * held across a system call, a callback or the name service.
 *
 * A name is looked up by a second thread, the resolver, started with the first ask that needs
 * it: the name service may take seconds, and askers must be answered meanwhile. */
#ifndef COP_RDV_PRIV_H
#define COP_RDV_PRIV_H

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>

#include "job/job_priv.h"

#define RDV_SERVED_MAX 64
#define RDV_OPEN_MAX 64
#define RDV_ASKS_MAX 1024
#define RDV_CONNECTION_MS 2000
#define RDV_PATIENCE_MS_FIRST 500
#define RDV_FIRST_TRY_MS                                                                           \
	500 /* at least; on a busy machine the time of an ask may be over before this thread runs  \
	     */
#define RDV_RETRY_MS_FIRST 50
#define RDV_RETRY_MS_MOST 500

/* ---- messages (rdv_msg.c)
 * --------------------------------------------------------------------------
 *
 *     ask      "COPR" version kind=1 n 0   nonce[32]  mac[32]  address[n]
 *     answer   "COPR" version kind=2 n 0   nonce[32]  mac[32]  address[n]
 *
 * Each tells the fabric address of its sender. The tag of an ask is over its kind, its nonce, the
 * "name:port" of who is asked and the address; that of an answer over these and the nonce of the
 * ask: an answer cannot be replayed, nor can one host's answer be passed off as another's. An ask
 * that came lately is refused; an older one, or one to the process that was here before, tells what
 * it told then. */
#define RDV_NONCE 32
#define RDV_MAC 32
#define RDV_HEAD 8
#define RDV_FIXED (RDV_HEAD + RDV_NONCE + RDV_MAC)
#define RDV_MESSAGE_MAX (RDV_FIXED + COP_JOB_ADDRESS_MAX)

struct rdv_key {
	cop_rendezvous_mac *mac;
	void *ctx;
};

/* Makes an ask of the host with this identity ("name:port"), from a node with this address; its
 * nonce is what checks the answer. Returns the length or -errno. */
int cop_rdv_ask_build(const struct rdv_key *key, const char *identity, const char *address,
	uint8_t nonce[RDV_NONCE], uint8_t out[RDV_MESSAGE_MAX]);
/* The message's length once all of it is there, and then its sender's address, terminated; 0 while
 * bytes are missing, -EBADMSG, -EACCES when the tag is wrong. */
int cop_rdv_ask_check(const struct rdv_key *key, const char *identity, const uint8_t *data,
	size_t len, char address[COP_JOB_ADDRESS_MAX + 1]);
/* Answers a checked ask. Returns the length or -errno. */
int cop_rdv_answer_build(const struct rdv_key *key, const char *identity, const uint8_t *ask,
	const char *address, uint8_t out[RDV_MESSAGE_MAX]);
/* As cop_rdv_ask_check. */
int cop_rdv_answer_check(const struct rdv_key *key, const char *identity,
	const uint8_t nonce[RDV_NONCE], const uint8_t *data, size_t len,
	char address[COP_JOB_ADDRESS_MAX + 1]);

/* ---- state ---- */

#define RDV_IDENTITY (COP_JOB_NAME_MAX + 8)

/* A connection of an asker. [thread] */
struct rdv_conn {
	int fd; /* -1: free */
	struct in_addr from;
	uint64_t deadline_ms;
	uint8_t in[RDV_MESSAGE_MAX];
	size_t in_len;
	uint8_t out[RDV_MESSAGE_MAX];
	size_t out_len, out_done; /* out_len 0: still reading */
};

enum rdv_step {
	RDV_NEEDS_NAME, /* no address yet; to be given to the resolver when its pause is over */
	RDV_AT_RESOLVER,
	RDV_WAITS, /* for its next try, or for a free connection */
	RDV_CONNECTS,
	RDV_SENDS,
	RDV_RECEIVES,
};

struct rdv_ask {
	struct cop_list link; /* in asks, or in new_asks before */
	char *name;
	uint16_t port, second_port;
	bool second; /* this try is at the second port, at once after one at the first */
	char identity[RDV_IDENTITY];
	uint64_t timeout_ms, deadline_ms, next_ms, attempt_end_ms;
	uint32_t pause_ms;
	uint32_t patience_ms; /* with one try: short at first where there is a second port, for
				 somebody else may sit at the first and be silent */
	enum rdv_step step;
	struct sockaddr_in to;
	struct rdv_lookup *lookup; /* while at the resolver */
	int fd;
	uint8_t nonce[RDV_NONCE];
	uint8_t out[RDV_MESSAGE_MAX], in[RDV_MESSAGE_MAX];
	size_t out_len, out_done, in_len;
	char problem[160]; /* what the last try ran into */
	bool tried;        /* at least once */
	bool silent; /* in the last try, at either port, the connection was taken and nothing said
		      */
	cop_rendezvous_found *found;
	void *arg;
};

/* A name for the resolver. It outlives its ask only while it runs. */
struct rdv_lookup {
	struct cop_list link; /* in todo or done, under the lock */
	struct rdv_ask *ask;  /* under the lock; NULL: nobody waits any more */
	bool running;         /* under the lock */
	char *name;
	struct sockaddr_in found; /* port 0 */
	int verdict;              /* 0, or why not */
	struct cop_err problem;
};

struct rdv_resolver {
	pthread_t thread;
	bool started; /* [thread] */
	pthread_cond_t more;
	struct cop_list todo, done; /* under the rendezvous' lock */
};

struct cop_rendezvous {
	struct rdv_key key;
	cop_rendezvous_met *met;
	cop_rendezvous_refused *refused;
	char address[COP_JOB_ADDRESS_MAX + 1];
	char identity[RDV_IDENTITY];
	struct sockaddr_in self; /* where asks come from; port 0 */
	bool bind_asks;
	uint16_t port;
	int listen_fd, wake_fd;
	pthread_t thread;
	_Atomic uint64_t unverified;
	_Atomic uint64_t end_asks_ms; /* asks that are open end by then; 0: as they like */

	pthread_mutex_t lock;
	bool stopping;            /* under the lock */
	uint32_t asked;           /* under the lock: asks that have not ended */
	struct cop_list new_asks; /* under the lock */
	struct rdv_resolver resolver;

	struct cop_list asks;     /* [thread] */
	uint32_t open_asks;       /* [thread] asks with a connection */
	uint64_t accept_after_ms; /* [thread] 0, or no descriptors were left: try again then */
	struct cop_recent heard;  /* [thread] the nonces of asks */
	struct rdv_conn conn[RDV_SERVED_MAX]; /* [thread] */
};

/* Counts and logs somebody who did not prove the secret. rc: as for cop_rendezvous_refused. */
void cop_rdv_refused(struct cop_rendezvous *r, const char *what, struct in_addr from, int rc);

/* rdv_serve.c [thread]. accept takes what waits; serve goes on with one connection (events of
 * poll, 0 for a check of its deadline). */
void cop_rdv_accept(struct cop_rendezvous *r, uint64_t now_ms);
void cop_rdv_serve(struct cop_rendezvous *r, struct rdv_conn *c, short events, uint64_t now_ms);
short cop_rdv_serve_wants(const struct rdv_conn *c);

/* rdv_ask.c [thread]. step goes on with one ask and may free it. */
void cop_rdv_step(struct cop_rendezvous *r, struct rdv_ask *a, short events, uint64_t now_ms);
short cop_rdv_step_wants(const struct rdv_ask *a);
/* When the ask has to be looked at again though nothing happened. */
uint64_t cop_rdv_step_when(const struct rdv_ask *a, bool room);
/* Calls found and frees. */
void cop_rdv_ask_end(
	struct cop_rendezvous *r, struct rdv_ask *a, const char *address, const char *why);

/* [thread] The resolver is done with this ask's name (lookup is freed there). */
void cop_rdv_resolved(struct cop_rendezvous *r, struct rdv_ask *a, uint64_t now_ms);

/* rdv_resolve.c [thread]. drop: the ask ends before its lookup did. */
int cop_rdv_resolve_give(struct cop_rendezvous *r, struct rdv_ask *a);
void cop_rdv_resolve_drop(struct cop_rendezvous *r, struct rdv_ask *a);
void cop_rdv_lookup_free(struct rdv_lookup *l);
/* After the thread is gone. */
void cop_rdv_resolve_stop(struct cop_rendezvous *r);
/* Any thread. */
void cop_rdv_wake(struct cop_rendezvous *r);

#endif
