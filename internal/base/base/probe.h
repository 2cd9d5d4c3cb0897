/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether connections to a TCP port get through, found out by opening one and closing it at once.
 * Nothing here waits: the caller looks at it again, or polls the descriptor. */
#ifndef COP_BASE_PROBE_H
#define COP_BASE_PROBE_H

#include "base/base/base.h"
#include "base/base/ip.h"

enum cop_probe_state {
	COP_PROBE_WAITS,
	COP_PROBE_OPEN,    /* somebody listens there */
	COP_PROBE_CLOSED,  /* the host itself refused: nobody listens, and the way is free */
	COP_PROBE_REFUSED, /* a firewall refused, or there is no way: `error` says what was told */
	COP_PROBE_SILENT,  /* no answer in time: a firewall drops it, or the host is down */
	COP_PROBE_FAILED,  /* this process could not try: `error` */
};

struct cop_probe {
	int fd; /* becomes writable when there is an answer; -1 once there is a result */
	enum cop_probe_state state;
	int error; /* a positive errno */
	uint64_t end_ms;
};

/* Begins to connect; by end_ms of the steady clock there is a result. */
void cop_probe_begin(struct cop_probe *p, const struct cop_ip *ip, uint16_t port, uint64_t end_ms);
/* The same from this address of this host; from any if it is NULL or not of the host any more. */
void cop_probe_begin_from(struct cop_probe *p, const struct cop_ip *from, const struct cop_ip *ip,
	uint16_t port, uint64_t end_ms);
/* Looks whether there is a result. */
enum cop_probe_state cop_probe_look(struct cop_probe *p, uint64_t now_ms);
/* The same, but waits for the result. */
enum cop_probe_state cop_probe_wait(struct cop_probe *p);
/* Ends it without a result. */
void cop_probe_end(struct cop_probe *p);
/* What a state means, as the rest of a sentence about a port that does not answer. */
const char *cop_probe_why(const struct cop_probe *p);

/* The host and port in an address of TCP: "ofi+tcp://1.2.3.4:5", "ofi+tcp://[fd77::1]:5". False for
 * other addresses. */
bool cop_probe_address(const char *address, struct cop_ip *ip, uint16_t *port);

#endif
