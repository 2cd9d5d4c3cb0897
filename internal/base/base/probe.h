/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes a TCP port by opening and closing a connection. Nothing blocks except cop_probe_wait: the
 * caller checks again later, or polls the descriptor. */
#ifndef COP_BASE_PROBE_H
#define COP_BASE_PROBE_H

#include "base/base/base.h"
#include "base/base/ip.h"

enum cop_probe_state {
	COP_PROBE_WAITS,
	COP_PROBE_OPEN,    /* a process is listening */
	COP_PROBE_CLOSED,  /* the host itself refused: no listener, but the network path works */
	COP_PROBE_REFUSED, /* a firewall refused, or there is no route; see `error` */
	COP_PROBE_SILENT,  /* timed out: a firewall drops packets, or the host is down */
	COP_PROBE_FAILED,  /* this process could not try; see `error` */
};

struct cop_probe {
	int fd; /* becomes writable when a reply arrives; -1 once the result is known */
	enum cop_probe_state state;
	int error; /* a positive errno value */
	uint64_t end_ms;
};

/* Starts to connect. The result is known by end_ms (on the clock of cop_now_ms) at the latest. */
void cop_probe_begin(struct cop_probe *p, const struct cop_ip *ip, uint16_t port, uint64_t end_ms);
/* Same, but connects from this local address; from any if it is NULL or no longer local. */
void cop_probe_begin_from(struct cop_probe *p, const struct cop_ip *from, const struct cop_ip *ip,
	uint16_t port, uint64_t end_ms);
/* Checks for a result. */
enum cop_probe_state cop_probe_look(struct cop_probe *p, uint64_t now_ms);
/* Waits for the result. */
enum cop_probe_state cop_probe_wait(struct cop_probe *p);
/* Cancels the probe. */
void cop_probe_end(struct cop_probe *p);
/* Describes the state, as the end of a sentence about a port that does not respond. */
const char *cop_probe_why(const struct cop_probe *p);

/* Extracts host and port from a TCP fabric address: "ofi+tcp://1.2.3.4:5", "ofi+tcp://[fd77::1]:5".
 * False for any other address. */
bool cop_probe_address(const char *address, struct cop_ip *ip, uint16_t *port);

#endif
