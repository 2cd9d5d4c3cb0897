/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/probe.h"

#include <errno.h>
#include <linux/errqueue.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/base/sock.h"

static void finish(struct cop_probe *p, enum cop_probe_state state, int error)
{
	cop_probe_end(p);
	p->state = state;
	p->error = error;
}

/* Many firewalls refuse with an ICMP message, which yields the same ECONNREFUSED as the host's own
 * refusal. IP_RECVERR keeps that message (ip(7)). */
static bool is_from_icmp(int fd)
{
	char control[512];
	struct sockaddr_storage from;
	struct msghdr m = {.msg_name = &from,
		.msg_namelen = sizeof(from),
		.msg_control = control,
		.msg_controllen = sizeof(control)};

	if (recvmsg(fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
		return false;
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
		struct sock_extended_err e;

		if (c->cmsg_len < CMSG_LEN(sizeof(e)))
			continue;
		memcpy(&e, CMSG_DATA(c), sizeof(e));
		if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVERR) ||
			(c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVERR))
			return e.ee_origin == SO_EE_ORIGIN_ICMP ||
			       e.ee_origin == SO_EE_ORIGIN_ICMP6;
	}
	return false;
}

static void judge(struct cop_probe *p, int error)
{
	if (!error)
		finish(p, COP_PROBE_OPEN, 0);
	else if (error == ECONNREFUSED && !is_from_icmp(p->fd))
		finish(p, COP_PROBE_CLOSED, error);
	else
		finish(p, error == ETIMEDOUT ? COP_PROBE_SILENT : COP_PROBE_REFUSED, error);
}

void cop_probe_begin(struct cop_probe *p, const struct cop_ip *ip, uint16_t port, uint64_t end_ms)
{
	cop_probe_begin_from(p, NULL, ip, port, end_ms);
}

void cop_probe_begin_from(struct cop_probe *p, const struct cop_ip *from, const struct cop_ip *ip,
	uint16_t port, uint64_t end_ms)
{
	struct sockaddr_storage at, own;
	socklen_t len = cop_ip_to_socket(ip, port, &at);
	const int on = 1;

	*p = (struct cop_probe){.end_ms = end_ms,
		.fd = socket(at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)};
	if (p->fd < 0) {
		finish(p, COP_PROBE_FAILED, errno);
		return;
	}
	/* Without this, a firewall's refusal looks like the host's own. */
	(void)setsockopt(p->fd, at.ss_family == AF_INET6 ? IPPROTO_IPV6 : IPPROTO_IP,
		at.ss_family == AF_INET6 ? IPV6_RECVERR : IP_RECVERR, &on, sizeof(on));
	if (from)
		(void)bind(p->fd, (struct sockaddr *)&own, cop_ip_to_socket(from, 0, &own));
	if (!cop_sock_connect(p->fd, (struct sockaddr *)&at, len))
		judge(p, 0);
	else if (errno != EINPROGRESS)
		judge(p, errno);
}

enum cop_probe_state cop_probe_look(struct cop_probe *p, uint64_t now_ms)
{
	struct pollfd answer = {.fd = p->fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	if (p->state != COP_PROBE_WAITS)
		return p->state;
	if (poll(&answer, 1, 0) == 1)
		judge(p, getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &size) ? errno : error);
	else if (now_ms >= p->end_ms)
		judge(p, ETIMEDOUT);
	return p->state;
}

enum cop_probe_state cop_probe_wait(struct cop_probe *p)
{
	uint64_t now = cop_now_ms();
	struct pollfd answer = {.fd = p->fd, .events = POLLOUT};

	while (cop_probe_look(p, now) == COP_PROBE_WAITS) {
		(void)poll(&answer, 1, (int)(p->end_ms - now));
		now = cop_now_ms();
	}
	return p->state;
}

void cop_probe_end(struct cop_probe *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

const char *cop_probe_why(const struct cop_probe *p)
{
	switch (p->state) {
	case COP_PROBE_OPEN:
		return "answers";
	case COP_PROBE_CLOSED:
		return "refused by the host: nobody listens there";
	case COP_PROBE_SILENT:
		return "silent: a firewall drops the connection, or the host is down";
	case COP_PROBE_REFUSED:
		if (p->error == ENETUNREACH)
			return "no route leads to that network from here";
		if (p->error == EHOSTUNREACH)
			return "no route to the host: a firewall refuses the connection, or the host is down";
		return "refused on the way: a firewall blocks the port";
	default:
		return strerror(p->error);
	}
}

bool cop_probe_address(const char *address, struct cop_ip *ip, uint16_t *port)
{
	char name[COP_IP_TEXT_SIZE];

	_Static_assert(sizeof(name) > 45, "the formats below read 45 characters");
	return (sscanf(address, "ofi+tcp://[%45[^]]]:%hu", name, port) == 2 ||
		       sscanf(address, "ofi+tcp://%45[^:[]:%hu", name, port) == 2) &&
	       cop_ip_parse(name, ip);
}
