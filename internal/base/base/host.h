/* SPDX-License-Identifier: BSD-3-Clause */
/* host: host names and addresses. */
#ifndef COP_BASE_HOST_H
#define COP_BASE_HOST_H

#include "base/base/err.h"

#include <stdbool.h>

struct cop_ip;

/* The address of a host's own name as set up by Debian's installer or if no name service has the
 * host. All machines share it, so it identifies none. */
#define COP_OWN_NAME_ADDRESS 0x7f000101u

/* The address of a host, from its text or else from the system's name service, which may take
 * many seconds. Among several it prefers one with a route from this machine, then IPv4; it never
 * returns a link-local IPv6 address. Returns 0, or -EHOSTUNREACH with a sentence to print after
 * the host's name and a colon. */
int cop_host_address(const char *name, struct cop_ip *out, struct cop_err *err);
/* Whether the names are equal, or one is the short form of the other: "n1" and "n1.cluster.org",
 * never "n1.a" and "n1.b". */
bool cop_same_host(const char *a, const char *b);

#endif
