/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of unverified peers. Any peer that reaches the port of a provider over TCP can
 * connect, and the provider keeps an accepted connection until the other end closes it: a few
 * hundred silent connections would exhaust this process's descriptors. A node of the job sends its
 * request with the connection. So the sockets accepted at that port are checked at intervals, and
 * those without received bytes are shut down, which makes the provider close them. */
#include "fabric/endpoint/ofi_priv.h"

#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* The kernel's value, which linux/tcp.h does not define; netinet/tcp.h cannot be included here. */
#define ESTABLISHED 1

/* The kernel fills in the fields it supports, so a shorter result is from a kernel before 4.1. */
#define INFO_NEEDED (offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(uint64_t))

#define LOOK_MS 1000
#define LOOK_OFTEN_MS 50
#define SILENT_MS 2000
/* With this many silent connections the time limit is shortened. */
#define SILENT_MAX 32u
#define SILENT_MANY_MS 20

static in_port_t port_of(const struct sockaddr_storage *at)
{
	if (at->ss_family == AF_INET)
		return ((const struct sockaddr_in *)at)->sin_port;
	return at->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)at)->sin6_port : 0;
}

/* How long a connection accepted at this port has been silent; -1: another connection, or bytes
 * have arrived. */
static long silent_ms(int fd, in_port_t port)
{
	struct sockaddr_storage at = {0};
	socklen_t at_len = sizeof(at), len = sizeof(struct tcp_info);
	struct tcp_info info = {0};

	if (getsockname(fd, (struct sockaddr *)&at, &at_len) || port_of(&at) != port ||
		getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) || len < INFO_NEEDED)
		return -1;
	if (info.tcpi_state != ESTABLISHED || info.tcpi_bytes_received)
		return -1;
	return (long)info.tcpi_last_data_recv;
}

static void report_silent(const struct ofi *o, int fd)
{
	struct sockaddr_storage at = {0};
	socklen_t len = sizeof(at);

	getpeername(fd, (struct sockaddr *)&at, &len);
	cop_endpoint_ofi_refused(o->base.rejected, &at, -ETIMEDOUT);
}

/* Shuts down connections that have been silent for too long; returns the number of silent ones. */
static unsigned cut_silent(struct ofi *o, in_port_t port, long patience_ms)
{
	unsigned silent = 0;
	struct dirent *e;

	rewinddir(o->own_fds);
	while ((e = readdir(o->own_fds))) {
		int fd = atoi(e->d_name);
		long ms = e->d_name[0] == '.' ? -1 : silent_ms(fd, port);

		silent += ms >= 0;
		if (ms >= patience_ms) {
			report_silent(o, fd);
			shutdown(fd, SHUT_RDWR);
		}
	}
	return silent;
}

void cop_endpoint_ofi_unverified(struct ofi *o)
{
	struct sockaddr_storage own = {0};
	uint64_t now = cop_now_ms();

	if (!o->own_fds || now < o->next_look_ms)
		return;
	memcpy(&own, o->naming.own, COP_MIN(sizeof(own), o->naming.own_len));
	o->silent =
		cut_silent(o, port_of(&own), o->silent > SILENT_MAX ? SILENT_MANY_MS : SILENT_MS);
	o->next_look_ms = now + (o->silent > SILENT_MAX ? LOOK_OFTEN_MS : LOOK_MS);
}

void cop_endpoint_ofi_unverified_init(struct ofi *o)
{
	if (o->naming.form == COP_ENDPOINT_FORM_IP && !o->portguard)
		o->own_fds = opendir("/proc/self/fd");
}

void cop_endpoint_ofi_unverified_fini(struct ofi *o)
{
	if (o->own_fds)
		closedir(o->own_fds);
}
