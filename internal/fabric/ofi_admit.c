/* SPDX-License-Identifier: BSD-3-Clause */
/* Which hosts may connect at all. The tcp provider speaks with everyone who reaches its port,
 * before anybody proves anything, and an unverified peer who knows its protocol can end this
 * process. So it never gets to see a connection that does not come from a host that was admitted:
 * one that has proved the job's secret at the rendezvous, or that this node itself connects to.
 * Nodes connect from the very address that they tell others (the provider binds to it).
 *
 * The provider calls accept(), which is ours (guard_in.c): an unverified peer's connection is
 * closed there, unread. A filter on the listening socket (SO_ATTACH_FILTER) would be the kernel's
 * own way, but newer kernels let only root filter TCP. */
#include "fabric/ofi_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/log.h"

/* The endpoints that let in only the admitted. One lock for all of them, since accept() is told
 * nothing but a descriptor. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofi *guarded;

static bool is_admitted(const struct ofi *o, struct in_addr host)
{
	for (unsigned i = 0; i < o->admitted_count; i++)
		if (o->admitted[i].s_addr == host.s_addr)
			return true;
	return false;
}

void cop_fabric_ofi_refused(struct cop_stats *stats, const struct sockaddr_storage *from, int rc)
{
	const char *why = rc == -ETIMEDOUT      ? "it said nothing"
			  : rc == -EHOSTUNREACH ? "its host has not proved the job's secret"
			  : rc == -EACCES       ? "it does not prove the job's secret"
						: "it is not from Copper";
	char text[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 six;
	struct sockaddr_in four;

	memcpy(&four, from, sizeof(four));
	memcpy(&six, from, sizeof(six));
	inet_ntop(from->ss_family,
		from->ss_family == AF_INET6 ? (void *)&six.sin6_addr : (void *)&four.sin_addr, text,
		sizeof(text));
	cop_stats_rejected(stats, rc, 1);
	cop_log_refused("connection", why, text);
}

static void unguard(struct ofi *o)
{
	struct ofi **at = &guarded;

	while (*at && *at != o)
		at = &(*at)->guarded_next;
	if (*at)
		*at = o->guarded_next;
	o->listener = -1;
}

static void admit(struct ofi *o, struct in_addr host)
{
	struct in_addr *more;

	pthread_mutex_lock(&lock);
	if (o->listener >= 0 && !is_admitted(o, host)) {
		more = realloc(o->admitted, (o->admitted_count + 1) * sizeof(*more));
		if (more) {
			o->admitted = more;
			o->admitted[o->admitted_count++] = host;
		} else {
			cop_log_warn("a host of the job cannot connect: out of memory");
		}
	}
	pthread_mutex_unlock(&lock);
}

bool cop_fabric_ofi_may_enter(int listener, int fd)
{
	struct sockaddr_storage at = {0};
	struct sockaddr_in from;
	socklen_t len = sizeof(at);
	struct cop_stats *stats = NULL;
	bool may = true;

	pthread_mutex_lock(&lock);
	for (const struct ofi *o = guarded; o; o = o->guarded_next)
		if (o->listener == listener) {
			may = getpeername(fd, (struct sockaddr *)&at, &len) == 0 &&
			      at.ss_family == AF_INET;
			memcpy(&from, &at, sizeof(from));
			may = may && is_admitted(o, from.sin_addr);
			stats = o->base.rejected;
		}
	pthread_mutex_unlock(&lock);
	if (!may)
		cop_fabric_ofi_refused(stats, &at, -EHOSTUNREACH);
	return may;
}

void cop_fabric_ofi_admit_raw(struct ofi *o, const void *raw, size_t raw_len)
{
	struct sockaddr_in at;

	if (o->naming.form != COP_FABRIC_FORM_IP || raw_len < sizeof(at))
		return;
	memcpy(&at, raw, sizeof(at));
	if (at.sin_family == AF_INET)
		admit(o, at.sin_addr);
}

void cop_fabric_ofi_admit(struct cop_fabric *f, const char *address)
{
	struct ofi *o = cop_fabric_ofi_of(f);
	_Alignas(16) unsigned char raw[COP_FABRIC_RAW_MAX] = {0};
	size_t len;

	if (cop_fabric_address_parse(&o->naming, address, raw, &len) == 0)
		cop_fabric_ofi_admit_raw(o, raw, len);
}

/* ---- the listening socket ---- */

void cop_fabric_ofi_admit_init(struct ofi *o)
{
	struct sockaddr_in own = {0};

	memcpy(&own, o->naming.own, COP_MIN(sizeof(own), o->naming.own_len));
	if (o->naming.form != COP_FABRIC_FORM_IP || own.sin_family != AF_INET)
		return;
	pthread_mutex_lock(&lock);
	o->listener = o->listening;
	if (o->listener >= 0) { /* else it is not a provider over TCP */
		o->guarded_next = guarded;
		guarded = o;
	}
	pthread_mutex_unlock(&lock);
}

/* The provider is about to close the socket, and its number will be another's. */
void cop_fabric_ofi_admit_fini(struct ofi *o)
{
	pthread_mutex_lock(&lock);
	unguard(o);
	free(o->admitted);
	o->admitted = NULL;
	o->admitted_count = 0;
	pthread_mutex_unlock(&lock);
}
