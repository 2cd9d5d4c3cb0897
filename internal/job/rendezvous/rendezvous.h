/* SPDX-License-Identifier: BSD-3-Clause */
/* rendezvous: an authenticated exchange over TCP, by which nodes ask each other for their fabric
 * addresses before they can send messages. */
#ifndef COP_JOB_RENDEZVOUS_H
#define COP_JOB_RENDEZVOUS_H

#include "job/hosts/hosts.h"

struct cop_rendezvous;

/* A hash keyed with the job's secret. */
typedef void cop_rendezvous_mac(void *ctx, const void *data, size_t len, uint8_t out[32]);
/* The node with this fabric address has proved that it knows the secret, and is about to receive
 * our address. Called on the rendezvous thread; must not block. */
typedef void cop_rendezvous_met(void *ctx, const char *address);
/* A peer was refused: -ETIMEDOUT (sent nothing), -EBADMSG (malformed), -EACCES (wrong proof),
 * -EALREADY (replay). Called on the rendezvous thread. */
typedef void cop_rendezvous_refused(void *ctx, int rc);

struct cop_rendezvous_conf {
	const struct cop_job_host *self; /* the address to listen on; port 0: the kernel chooses */
	bool at_second_port;             /* listen on the second port; other nodes try both */
	const char *fabric_address;      /* the address to send to others, 1 to 255 bytes */
	cop_rendezvous_mac *mac;
	cop_rendezvous_met *met;         /* may be NULL */
	cop_rendezvous_refused *refused; /* may be NULL */
	void *ctx;                       /* passed to all three */
};

/* Listens, and sends this node's fabric address to peers that prove they know the secret. Serves at
 * most 64 connections of 2 s each. Runs one named thread, which sleeps when idle. Copies everything
 * that conf points to. Returns 0, or -EADDRINUSE etc. with err set, naming address and port. */
int cop_rendezvous_start(
	const struct cop_rendezvous_conf *conf, struct cop_rendezvous **out, struct cop_err *err);
/* Joins the thread; open requests end with NULL, on the caller's thread. A name lookup that is
 * still running after a second is abandoned, with a log message. r may be NULL. */
void cop_rendezvous_stop(struct cop_rendezvous *r);
/* The port we listen on, which the kernel chose if self->port was 0. */
uint16_t cop_rendezvous_port(const struct cop_rendezvous *r);

/* Finds which process has a listening socket that blocks this port at this host's address: "process
 * 1234 (copper)", or "a process of user 1001". False if none is visible to us. */
bool cop_job_port_owner(const char *host, uint16_t port, char *out, size_t size);

/* Asks a node for its address, asynchronously. found is called once, on the rendezvous thread, with
 * the address (at most 255 bytes, verified with the secret), or with NULL if no answer arrived
 * within timeout_ms; *why is then the reason. lives: the node answered, or something listens there
 * and is silent, like a stopped or starved process. A port that refuses, an unreachable host or a
 * closed connection is no sign of life. Any thread; at most 1,024 requests at a time (-EBUSY). */
typedef void cop_rendezvous_found(void *arg, const char *address, bool lives, const char *why);
int cop_rendezvous_ask(struct cop_rendezvous *r, const struct cop_job_host *host,
	uint32_t timeout_ms, cop_rendezvous_found *found, void *arg);
/* Ends requests that are open now after at most timeout_ms: a node that is not up yet is not
 * expected soon. */
void cop_rendezvous_end_asks(struct cop_rendezvous *r, uint32_t timeout_ms);

#endif
