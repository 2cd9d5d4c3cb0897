/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/ip.h"
#include "base/base/sock.h"

#include <string.h>
#include <unistd.h>

#define PORT_OF_NOBODY 9 /* the discard port; any other would do */

/* Where the four bytes of an IPv4 address begin. */
#define FOUR_AT 12

struct cop_ip cop_ip_of4(struct in_addr four)
{
	struct cop_ip ip = {.six.s6_addr = {[10] = 0xff, [11] = 0xff}};

	memcpy(&ip.six.s6_addr[FOUR_AT], &four, sizeof(four));
	return ip;
}

bool cop_ip_parse(const char *text, struct cop_ip *out)
{
	struct in_addr four;

	*out = (struct cop_ip){0};
	if (inet_pton(AF_INET, text, &four) == 1) {
		*out = cop_ip_of4(four);
		return true;
	}
	return inet_pton(AF_INET6, text, &out->six) == 1;
}

const char *cop_ip_print(const struct cop_ip *ip, char text[COP_IP_TEXT_SIZE])
{
	bool six = cop_ip_family(ip) == AF_INET6;

	inet_ntop(six ? AF_INET6 : AF_INET, &ip->six.s6_addr[six ? 0 : FOUR_AT], text,
		COP_IP_TEXT_SIZE);
	return text;
}

bool cop_ip_of_socket(const struct sockaddr *at, struct cop_ip *out, in_port_t *port)
{
	struct sockaddr_in6 six = {0};
	struct sockaddr_in four = {0};

	*out = (struct cop_ip){0};
	if (at->sa_family == AF_INET) {
		memcpy(&four, at, sizeof(four));
		*out = cop_ip_of4(four.sin_addr);
	} else if (at->sa_family == AF_INET6) {
		memcpy(&six, at, sizeof(six));
		out->six = six.sin6_addr;
	} else {
		return false;
	}
	if (port)
		*port = at->sa_family == AF_INET ? four.sin_port : six.sin6_port;
	return true;
}

socklen_t cop_ip_to_socket(const struct cop_ip *ip, uint16_t port, struct sockaddr_storage *out)
{
	struct sockaddr_in6 six = {
		.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = ip->six};
	struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port)};
	bool is_six = cop_ip_family(ip) == AF_INET6;

	memcpy(&four.sin_addr, &ip->six.s6_addr[FOUR_AT], sizeof(four.sin_addr));
	*out = (struct sockaddr_storage){0};
	memcpy(out, is_six ? (void *)&six : (void *)&four, is_six ? sizeof(six) : sizeof(four));
	return is_six ? sizeof(six) : sizeof(four);
}

int cop_ip_family(const struct cop_ip *ip)
{
	return IN6_IS_ADDR_V4MAPPED(&ip->six) ? AF_INET : AF_INET6;
}

bool cop_ip_is_none(const struct cop_ip *ip)
{
	return IN6_IS_ADDR_UNSPECIFIED(&ip->six);
}

bool cop_ip_same(const struct cop_ip *a, const struct cop_ip *b)
{
	return IN6_ARE_ADDR_EQUAL(&a->six, &b->six);
}

bool cop_ip_is_loopback(const struct cop_ip *ip)
{
	return cop_ip_family(ip) == AF_INET ? ip->six.s6_addr[FOUR_AT] == 127
					    : IN6_IS_ADDR_LOOPBACK(&ip->six);
}

bool cop_ip_is_link_local(const struct cop_ip *ip)
{
	return IN6_IS_ADDR_LINKLOCAL(&ip->six);
}

bool cop_ip_same_net(const struct cop_ip *a, const struct cop_ip *b, const struct cop_ip *mask)
{
	if (cop_ip_family(a) != cop_ip_family(b))
		return false;
	for (size_t i = 0; i < sizeof(a->six.s6_addr); i++)
		if ((a->six.s6_addr[i] ^ b->six.s6_addr[i]) & mask->six.s6_addr[i])
			return false;
	return true;
}

/* ---- queries to the kernel ---- */

bool cop_ip_way(const struct cop_ip *to, struct cop_ip *from)
{
	struct sockaddr_storage at, self = {0};
	socklen_t len = cop_ip_to_socket(to, PORT_OF_NOBODY, &at), size = sizeof(self);
	int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && cop_sock_connect(fd, (struct sockaddr *)&at, len) == 0 &&
		  getsockname(fd, (struct sockaddr *)&self, &size) == 0 &&
		  cop_ip_of_socket((struct sockaddr *)&self, from, NULL);

	if (fd >= 0)
		close(fd);
	return ok;
}

bool cop_ip_is_here(const struct cop_ip *ip)
{
	struct sockaddr_storage at;
	socklen_t len = cop_ip_to_socket(ip, 0, &at);
	int fd = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool here = fd >= 0 && bind(fd, (struct sockaddr *)&at, len) == 0;

	if (fd >= 0)
		close(fd);
	return here;
}
