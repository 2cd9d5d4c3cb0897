/* SPDX-License-Identifier: BSD-3-Clause */
/* IPv4 and IPv6 addresses as a single type, so that other code need not tell them apart. Names (see
 * cop_host_address) and scopes are out of scope: a link-local address (fe80::/10) means a different
 * machine on each interface, so it has no place in a host list. */
#ifndef COP_BASE_IP_H
#define COP_BASE_IP_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* IPv4 addresses are stored as ::ffff:1.2.3.4 (RFC 4291, 2.5.5.2); all zeros means none. */
struct cop_ip {
	struct in6_addr six;
};

#define COP_IP_TEXT_SIZE INET6_ADDRSTRLEN

/* The end of an error message about a link-local address. */
#define COP_IP_LINK_LOCAL                                                                          \
	"is a link-local address, which means another host on each interface: give the host's other address (see 'ip address'), or a name that has one"

/* Parses "1.2.3.4" or "fd77::1", without brackets, port or scope; "::ffff:1.2.3.4" yields 1.2.3.4.
 * For anything else, returns false and sets *out to none. */
bool cop_ip_parse(const char *text, struct cop_ip *out);
/* Formats ip according to RFC 5952; returns text. */
const char *cop_ip_print(const struct cop_ip *ip, char text[COP_IP_TEXT_SIZE]);

struct cop_ip cop_ip_of4(struct in_addr four);
/* Extracts the address from a socket address of either family, and the port unless port is NULL.
 * For any other family, returns false and sets *out to none. */
bool cop_ip_of_socket(const struct sockaddr *at, struct cop_ip *out, in_port_t *port);
/* Converts ip to a socket address of its own family and returns the length; port is in host
 * order. */
socklen_t cop_ip_to_socket(const struct cop_ip *ip, uint16_t port, struct sockaddr_storage *out);

/* AF_INET or AF_INET6. */
int cop_ip_family(const struct cop_ip *ip);
bool cop_ip_is_none(const struct cop_ip *ip);
bool cop_ip_same(const struct cop_ip *a, const struct cop_ip *b);
/* 127.0.0.0/8 or ::1. */
bool cop_ip_is_loopback(const struct cop_ip *ip);
/* fe80::/10. IPv4's 169.254.0.0/16 does not count, because it needs no scope. */
bool cop_ip_is_link_local(const struct cop_ip *ip);
/* Whether a and b are of the same family and agree in the bits set in the netmask: "255.255.255.0",
 * "ffff:ffff:ffff:ffff::". */
bool cop_ip_same_net(const struct cop_ip *a, const struct cop_ip *b, const struct cop_ip *mask);

/* Finds the source address that this machine would use to reach `to`, without sending anything.
 * False if there is no route. */
bool cop_ip_way(const struct cop_ip *to, struct cop_ip *from);
/* Whether the address belongs to this machine, i.e. a socket can be bound to it. */
bool cop_ip_is_here(const struct cop_ip *ip);

#endif
