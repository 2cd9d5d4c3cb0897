/* SPDX-License-Identifier: BSD-3-Clause */
/* host: host names and addresses. */
#ifndef COP_BASE_HOST_H
#define COP_BASE_HOST_H

#include "base/base/err.h"

#include <stdbool.h>

struct cop_ip;

/* The address that a host name resolves to on its own machine if Debian's installer put it in
 * /etc/hosts, or if no name service knows it. Every machine uses the same one, so it identifies
 * none of them. */
#define COP_OWN_NAME_ADDRESS 0x7f000101u

/* Resolves name, which may be a numeric address; the system's name service may take many seconds.
 * If there are several addresses, prefers one that this machine has a route to, then IPv4; never
 * returns a link-local IPv6 address. Returns 0, or -EHOSTUNREACH with err set to a phrase that
 * reads well after the host's name and a colon. */
int cop_host_address(const char *name, struct cop_ip *out, struct cop_err *err);
/* Whether the names are equal, or one is the short form of the other: "n1" and "n1.cluster.org",
 * never "n1.a" and "n1.b". */
bool cop_same_host(const char *a, const char *b);

#endif
