/* SPDX-License-Identifier: BSD-3-Clause */
/* portguard: guards a port on which libfabric listens. libfabric receives no byte of a connection
 * before the other end, whatever its host and user, has proved that it knows the job's secret.
 *
 *     listener     "COPG" version kind=1 0 0   nonce[32]
 *     connector    "COPG" version kind=2 0 0   nonce[32]  mac[32]
 *     listener     "COPG" version kind=3 0 0   mac[32]
 *
 * Each mac covers its kind, both nonces and the listening address as each side sees it: no
 * greeting can be replayed, not even at another port. libfabric's own bytes follow these
 * messages, which cost one round trip.
 *
 * The guard is transparent to libfabric: its calls of listen, accept, connect, send and recv
 * resolve to our functions (portguard_in.c, portguard_out.c). accept holds a connection back until
 * it is authenticated and until then reports that there is no connection. send holds back the first
 * bytes of a new connection, and recv reports no data until the greeting has finished. The provider
 * handles both because its sockets are non-blocking. */
#ifndef COP_FABRIC_ENDPOINT_PORTGUARD_PRIV_H
#define COP_FABRIC_ENDPOINT_PORTGUARD_PRIV_H

#include <netinet/in.h>
#include <sys/socket.h>

#include "fabric/endpoint/endpoint_priv.h"

#define COP_GREET_HEAD 8
#define COP_GREET_NONCE 32
#define COP_GREET_MAC 32
#define COP_GREET_CHALLENGE (COP_GREET_HEAD + COP_GREET_NONCE)
#define COP_GREET_ANSWER (COP_GREET_HEAD + COP_GREET_NONCE + COP_GREET_MAC)
#define COP_GREET_PROOF (COP_GREET_HEAD + COP_GREET_MAC)

/* Maximum unauthenticated connections at one port; beyond it the oldest is closed. */
#define COP_PORTGUARD_PENDING_MAX 256
#define COP_PORTGUARD_PENDING_MS 10000

struct cop_greet_key {
	cop_endpoint_mac *mac;
	void *ctx;
};

/* ---- the messages (greet.c) ---- */

/* 0 or -EIO: no random bytes. */
int cop_endpoint_greet_challenge(uint8_t out[COP_GREET_CHALLENGE]);
/* at: the listening address. -EBADMSG: not a challenge. -EIO. */
int cop_endpoint_greet_answer(const struct cop_greet_key *key, const uint8_t *challenge,
	const struct sockaddr_storage *at, uint8_t out[COP_GREET_ANSWER]);
/* 0, -EBADMSG or -EACCES. proof is the reply to a correct answer. */
int cop_endpoint_greet_check_answer(const struct cop_greet_key *key, const uint8_t *challenge,
	const struct sockaddr_storage *at, const uint8_t *answer, uint8_t proof[COP_GREET_PROOF]);
/* 0, -EBADMSG or -EACCES. */
int cop_endpoint_greet_check_proof(const struct cop_greet_key *key, const uint8_t *challenge,
	const struct sockaddr_storage *at, const uint8_t *answer, const uint8_t *proof);

/* ---- the guard of one endpoint (portguard_in.c) ---- */

struct cop_portguard;

/* on: records the sockets on which this thread calls listen, until the call with false, which
 * returns the last one or -1. */
int cop_portguard_watch(bool on);
/* No connection is accepted at listener until this function or cop_portguard_start is called. */
void cop_portguard_none(int listener);
/* Guards the listening socket. On -errno the endpoint must not be opened. */
int cop_portguard_start(int listener, const struct cop_greet_key *key, struct cop_stats *rejected,
	struct cop_portguard **out);
/* Call it before the provider closes its socket. */
void cop_portguard_stop(struct cop_portguard *g);
/* Continues pending greetings without blocking. Returns whether a connection was admitted. */
bool cop_portguard_turn(struct cop_portguard *g);
/* Readable when a greeting can continue. */
int cop_portguard_fd(const struct cop_portguard *g);

/* ---- connections that this process makes (portguard_out.c) ---- */

/* Greets connections to this address with this key. -ENOMEM. */
int cop_portguard_peer(const struct cop_greet_key *key, struct cop_stats *rejected, const void *raw,
	size_t raw_len);
/* Forgets all addresses of this key. */
void cop_portguard_forget(const struct cop_greet_key *key);

#endif
