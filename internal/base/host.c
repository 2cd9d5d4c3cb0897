/* SPDX-License-Identifier: BSD-3-Clause */
/* What the name of a host means. The C library is asked, in one place: a program that is linked
 * statically has its hosts file and its DNS and nothing else (static_link.c), one with a shared C
 * library has all that the site set up in nsswitch.conf.
 *
 * A machine's own name is often known to nobody but a module of that C library (nss-myhostname),
 * which a static program must not load. It then means here what Debian's installer lets it mean. */
#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

bool cop_same_host(const char *a, const char *b)
{
	size_t la = strcspn(a, "."), lb = strcspn(b, ".");

	if (!strcasecmp(a, b))
		return true;
	return la && la == lb && !strncasecmp(a, b, la) && (!a[la] || !b[lb]);
}

static bool means_here(const char *name, struct in_addr *out)
{
	char own[256] = "";

	out->s_addr = htonl(INADDR_LOOPBACK);
	if (!strcasecmp(name, "localhost"))
		return true;
	out->s_addr = htonl(COP_OWN_NAME_ADDRESS);
	return !gethostname(own, sizeof(own) - 1) && cop_same_host(name, own);
}

static const char *who_was_asked(void)
{
	if (!strstr(cop_build, ", static"))
		return "";
	return " (only /etc/hosts and DNS were asked; for names in LDAP and the like, give an address book: -F)";
}

/* "fd77::1" of a name that has no IPv4 address. */
static bool has_only_ip6(const char *name, char out[INET6_ADDRSTRLEN])
{
	struct addrinfo hints = {.ai_family = AF_INET6, .ai_socktype = SOCK_STREAM}, *list = NULL;
	struct sockaddr_in6 first;

	if (inet_pton(AF_INET6, name, &first.sin6_addr) != 1) {
		if (getaddrinfo(name, NULL, &hints, &list))
			return false;
		memcpy(&first, list->ai_addr, sizeof(first));
		freeaddrinfo(list);
	}
	return inet_ntop(AF_INET6, &first.sin6_addr, out, INET6_ADDRSTRLEN) != NULL;
}

int cop_host_address(const char *name, struct in_addr *out, struct cop_err *err)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *list = NULL;
	struct sockaddr_in first;
	char ip6[INET6_ADDRSTRLEN];
	int rc;

	if (inet_pton(AF_INET, name, out) == 1)
		return 0;
	rc = getaddrinfo(name, NULL, &hints, &list);
	if (rc == 0) {
		memcpy(&first, list->ai_addr, sizeof(first));
		freeaddrinfo(list);
		*out = first.sin_addr;
		return 0;
	}
	if (means_here(name, out))
		return 0;
	if (has_only_ip6(name, ip6))
		return cop_err_set(err, EHOSTUNREACH,
			"it has only an IPv6 address (%s), and nodes use IPv4: give an IPv4 address, or a name that has one",
			ip6);
	return cop_err_set(
		err, EHOSTUNREACH, "its name is unknown: %s%s", gai_strerror(rc), who_was_asked());
}
