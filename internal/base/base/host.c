/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolves host names through the C library. A statically linked program uses only the hosts file
 * and DNS (static_link.c); a dynamically linked one follows the site's nsswitch.conf.
 *
 * Often only a module of the shared C library (nss-myhostname) knows a machine's own name, and a
 * static program must not load that. The name then gets the address that Debian's installer would
 * assign. */
#include "base/base/base.h"

#include "base/base/ip.h"

#include <netdb.h>
#include <strings.h>

bool cop_same_host(const char *a, const char *b)
{
	size_t la = strcspn(a, "."), lb = strcspn(b, ".");

	if (!strcasecmp(a, b))
		return true;
	return la && la == lb && !strncasecmp(a, b, la) && (!a[la] || !b[lb]);
}

static bool means_here(const char *name, struct cop_ip *out)
{
	char own[256] = "";
	bool local = !strcasecmp(name, "localhost");

	*out = cop_ip_of4((struct in_addr){htonl(local ? INADDR_LOOPBACK : COP_OWN_NAME_ADDRESS)});
	return local || (!gethostname(own, sizeof(own) - 1) && cop_same_host(name, own));
}

static const char *who_was_asked(void)
{
	if (!strstr(cop_build, ", static"))
		return "";
	return " (only /etc/hosts and DNS were asked; for names in LDAP and the like, give an address book: -F)";
}

/* Ranks an address from 0 to 4. If both families work, all nodes must choose the same one: IPv4, as
 * in earlier versions. */
static int preference(const struct cop_ip *ip)
{
	struct cop_ip from;

	if (cop_ip_is_link_local(ip))
		return 0;
	return 1 + (cop_ip_family(ip) == AF_INET) + 2 * cop_ip_way(ip, &from);
}

/* Keeps the best-ranked address if it beats *best; returns getaddrinfo's result. */
static int look_up(const char *name, int family, struct cop_ip *out, int *best)
{
	struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_STREAM}, *list = NULL;
	int rc = getaddrinfo(name, NULL, &hints, &list);

	for (const struct addrinfo *i = list; !rc && i; i = i->ai_next) {
		struct cop_ip ip;
		int is = cop_ip_of_socket(i->ai_addr, &ip, NULL) ? preference(&ip) : -1;

		if (is <= *best)
			continue;
		*out = ip;
		*best = is;
	}
	if (!rc)
		freeaddrinfo(list);
	return rc;
}

static int refuse_link_local(const struct cop_ip *ip, struct cop_err *err)
{
	char text[COP_IP_TEXT_SIZE];

	return cop_err_set(err, EHOSTUNREACH, "%s " COP_IP_LINK_LOCAL, cop_ip_print(ip, text));
}

int cop_host_address(const char *name, struct cop_ip *out, struct cop_err *err)
{
	struct cop_ip found;
	int rc, best = -1;

	if (cop_ip_parse(name, out))
		return cop_ip_is_link_local(out) ? refuse_link_local(out, err) : 0;
	rc = look_up(name, AF_UNSPEC, &found, &best);
	/* If the hosts file has an address in only one family, the C library does not ask DNS for
	 * the other. */
	if (rc == 0 && best < 2)
		look_up(name, AF_INET, &found, &best);
	if (best > 0) {
		*out = found;
		return 0;
	}
	if (means_here(name, out))
		return 0;
	if (best == 0)
		return refuse_link_local(&found, err);
	return cop_err_set(
		err, EHOSTUNREACH, "its name is unknown: %s%s", gai_strerror(rc), who_was_asked());
}
