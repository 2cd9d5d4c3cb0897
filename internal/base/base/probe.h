/* SPDX-License-Identifier: BSD-3-Clause */
/* Probes a TCP port by opening and closing a connection. Non-blocking: the caller checks again
 * later, or polls the descriptor. */
#ifndef COP_BASE_PROBE_H
#define COP_BASE_PROBE_H

#include "base/base/base.h"
#include "base/base/ip.h"

enum cop_probe_state {
	COP_PROBE_WAITS,
	COP_PROBE_OPEN,    /* a process is listening */
	COP_PROBE_CLOSED,  /* refused by the host itself: no listener, but the path is open */
	COP_PROBE_REFUSED, /* refused by a firewall, or no route: `error` has the reason */
	COP_PROBE_SILENT,  /* timeout: dropped by a firewall, or the host is down */
	COP_PROBE_FAILED,  /* this process could not try: `error` */
};

struct cop_probe {
	int fd; /* becomes writable when a reply arrives; -1 once there is a result */
	enum cop_probe_state state;
	int error; /* a positive errno */
	uint64_t end_ms;
};

/* Starts to connect; there is a result by end_ms of the steady clock. */
void cop_probe_begin(struct cop_probe *p, const struct cop_ip *ip, uint16_t port, uint64_t end_ms);
/* The same from this local address; from any if it is NULL or no longer local. */
void cop_probe_begin_from(struct cop_probe *p, const struct cop_ip *from, const struct cop_ip *ip,
	uint16_t port, uint64_t end_ms);
/* Checks for a result. */
enum cop_probe_state cop_probe_look(struct cop_probe *p, uint64_t now_ms);
/* Waits for the result. */
enum cop_probe_state cop_probe_wait(struct cop_probe *p);
/* Cancels the probe. */
void cop_probe_end(struct cop_probe *p);
/* The meaning of a state, as the rest of a sentence about an unresponsive port. */
const char *cop_probe_why(const struct cop_probe *p);

/* The host and port of a TCP address: "ofi+tcp://1.2.3.4:5", "ofi+tcp://[fd77::1]:5". False for
 * other addresses. */
bool cop_probe_address(const char *address, struct cop_ip *ip, uint16_t *port);

#endif
