/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous: the authenticated exchange over TCP in which nodes request each other's fabric
 * addresses before any message is sent. */
#ifndef COP_JOB_RENDEZVOUS_H
#define COP_JOB_RENDEZVOUS_H

#include "job/hosts/hosts.h"

struct cop_rendezvous;

/* A keyed hash; the key is the job's secret. */
typedef void cop_rendezvous_mac(void *ctx, const void *data, size_t len, uint8_t out[32]);
/* The node with this fabric address has proved the secret and is about to receive ours. On the
 * rendezvous thread; must not block. */
typedef void cop_rendezvous_met(void *ctx, const char *address);
/* A peer was refused: -ETIMEDOUT (silent), -EBADMSG (malformed), -EACCES (wrong proof), -EALREADY
 * (replay). On the rendezvous thread. */
typedef void cop_rendezvous_refused(void *ctx, int rc);

struct cop_rendezvous_conf {
	const struct cop_job_host *self; /* listening address; port 0: the kernel's choice */
	bool at_second_port;             /* listen on the second port; others try both */
	const char *fabric_address;      /* the address sent to others, 1 to 255 bytes */
	cop_rendezvous_mac *mac;
	cop_rendezvous_met *met;         /* may be NULL */
	cop_rendezvous_refused *refused; /* may be NULL */
	void *ctx;                       /* for all three */
};

/* Listens, and sends this node's fabric address to peers that prove the secret; limited to 64
 * connections of 2 s each. -EADDRINUSE etc. with a sentence that names address and port. One named
 * thread; sleeps when idle. Copies everything that conf points to. */
int cop_rendezvous_start(
	const struct cop_rendezvous_conf *conf, struct cop_rendezvous **out, struct cop_err *err);
/* Joins the thread; open requests end with NULL, on the caller's thread. A running name lookup is
 * abandoned after a second, with a log message. NULL is fine. */
void cop_rendezvous_stop(struct cop_rendezvous *r);
/* The listening port, if self->port was 0 and the kernel chose. */
uint16_t cop_rendezvous_port(const struct cop_rendezvous *r);

/* Finds the process whose listening socket blocks this port at this host's address: "process 1234
 * (copper)", or "a process of user 1001". False if none is visible. */
bool cop_job_port_owner(const char *host, uint16_t port, char *out, size_t size);

/* Requests a node's address asynchronously; found is called once, on the rendezvous thread, with
 * the address (at most 255 bytes, verified with the secret), or with NULL if no answer arrived
 * within timeout_ms; *why then has the reason. lives: the node answered, or something listens there
 * and is silent, like a stopped or starved process. A refusing port, an unreachable host and a
 * closed connection are not signs of life. Any thread; at most 1,024 at a time (-EBUSY). */
typedef void cop_rendezvous_found(void *arg, const char *address, bool lives, const char *why);
int cop_rendezvous_ask(struct cop_rendezvous *r, const struct cop_job_host *host,
	uint32_t timeout_ms, cop_rendezvous_found *found, void *arg);
/* Currently open requests end after timeout_ms at the latest: a node that is not up yet is not
 * expected soon. */
void cop_rendezvous_end_asks(struct cop_rendezvous *r, uint32_t timeout_ms);

#endif
