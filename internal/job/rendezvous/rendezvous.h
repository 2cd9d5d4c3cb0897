/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous: "what is your fabric address?" over TCP. The small authenticated exchange through
 * which nodes learn each other's fabric addresses before any message flows. */
#ifndef COP_JOB_RENDEZVOUS_H
#define COP_JOB_RENDEZVOUS_H

#include "job/hosts/hosts.h"

struct cop_rendezvous;

/* A keyed hash; the key is the job's secret. */
typedef void cop_rendezvous_mac(void *ctx, const void *data, size_t len, uint8_t out[32]);
/* The node of this fabric address has proved the secret and is about to receive ours. On the
 * rendezvous thread; must not wait. */
typedef void cop_rendezvous_met(void *ctx, const char *address);
/* A peer was refused: -ETIMEDOUT (it said nothing), -EBADMSG (malformed), -EACCES (a wrong proof),
 * -EALREADY (received before). On the rendezvous thread. */
typedef void cop_rendezvous_refused(void *ctx, int rc);

struct cop_rendezvous_conf {
	const struct cop_job_host *self; /* where it listens; port 0: the kernel's choice */
	bool at_second_port;             /* use the second port; askers try both */
	const char *fabric_address;      /* the address that it gives out, 1 to 255 bytes */
	cop_rendezvous_mac *mac;
	cop_rendezvous_met *met;         /* may be NULL */
	cop_rendezvous_refused *refused; /* may be NULL */
	void *ctx;                       /* of all three */
};

/* Listens, and answers askers that prove the secret with this node's fabric address; bounded: 64
 * connections, 2 s each. -EADDRINUSE and so on with a sentence naming address and port. One named
 * thread; sleeps when idle. What conf points to is copied. */
int cop_rendezvous_start(
	const struct cop_rendezvous_conf *conf, struct cop_rendezvous **out, struct cop_err *err);
/* Joins the thread; open requests end with NULL, on the caller's thread. A name lookup that is
 * running is given a second and then abandoned, which is logged. NULL is fine. */
void cop_rendezvous_stop(struct cop_rendezvous *r);
/* The port listened on, where self->port was 0 and the kernel chose. */
uint16_t cop_rendezvous_port(const struct cop_rendezvous *r);

/* Finds the process that listens on this port of this machine and so prevents others from listening
 * there at this host's address: "process 1234 (copper)", or "a process of user 1001". False if none
 * is visible. */
bool cop_job_port_owner(const char *host, uint16_t port, char *out, size_t size);

/* Asks asynchronously, on the rendezvous thread; found is called once there, with the address (at
 * most 255 bytes, checked against the secret) or NULL when no answer came within timeout_ms; *why
 * then says it in a sentence. lives: the node answered, or something listens there and keeps
 * silent, like a process that is stopped or gets no processor. A port that refuses, a host that
 * cannot be reached and a connection that is closed are not signs of life. Any thread; at most
 * 1,024 at a time (-EBUSY). */
typedef void cop_rendezvous_found(void *arg, const char *address, bool lives, const char *why);
int cop_rendezvous_ask(struct cop_rendezvous *r, const struct cop_job_host *host,
	uint32_t timeout_ms, cop_rendezvous_found *found, void *arg);
/* Requests that are open now end after timeout_ms at the latest: a node that has not come up by now
 * is not about to. */
void cop_rendezvous_end_asks(struct cop_rendezvous *r, uint32_t timeout_ms);

#endif
