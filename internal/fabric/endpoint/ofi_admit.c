/* SPDX-License-Identifier: BSD-3-Clause */
/* Filters connections by host. The tcp provider accepts data from every peer that reaches its
 * port, without authentication, and an unverified peer that speaks its protocol can crash this
 * process. So the provider never receives a connection from a host that was not admitted. A host
 * is admitted if it proved the job's secret at the rendezvous, or if this node connects to it.
 * Nodes connect from the address that they publish (the provider binds to it).
 *
 * The provider's calls of accept() resolve to ours (portguard_in.c), which closes the connection
 * of an unverified peer unread. A filter on the listening socket (SO_ATTACH_FILTER) would be the
 * kernel's own way, but newer kernels let only root filter TCP. */
#include "fabric/endpoint/ofi_priv.h"

#include <sys/socket.h>

#include "base/log/log.h"

/* The endpoints that accept only admitted hosts. One lock for all of them, because accept()
 * receives only a descriptor. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofi *guarded;

static bool is_admitted(const struct ofi *o, const struct cop_ip *host)
{
	for (unsigned i = 0; i < o->admitted_count; i++)
		if (cop_ip_same(&o->admitted[i], host))
			return true;
	return false;
}

void cop_endpoint_ofi_refused(struct cop_stats *stats, const struct sockaddr_storage *from, int rc)
{
	const char *why = rc == -ETIMEDOUT      ? "it said nothing"
			  : rc == -EHOSTUNREACH ? "its host has not proved the job's secret"
			  : rc == -EACCES       ? "it does not prove the job's secret"
						: "it is not from Copper";
	char text[COP_IP_TEXT_SIZE];
	struct cop_ip ip;

	cop_ip_of_socket((const struct sockaddr *)from, &ip, NULL);
	cop_stats_rejected(stats, rc, 1);
	cop_log_refused("connection", why, cop_ip_print(&ip, text));
}

static void stop_portguard(struct ofi *o)
{
	struct ofi **at = &guarded;

	while (*at && *at != o)
		at = &(*at)->guarded_next;
	if (*at)
		*at = o->guarded_next;
	o->listener = -1;
}

static void admit_host(struct ofi *o, const struct cop_ip *host)
{
	struct cop_ip *more;

	pthread_mutex_lock(&lock);
	if (o->listener >= 0 && !is_admitted(o, host)) {
		more = realloc(o->admitted, (o->admitted_count + 1) * sizeof(*more));
		if (more) {
			o->admitted = more;
			o->admitted[o->admitted_count++] = *host;
		} else {
			cop_log_warn("a host of the job cannot connect: out of memory");
		}
	}
	pthread_mutex_unlock(&lock);
}

bool cop_endpoint_ofi_may_enter(int listener, int fd)
{
	struct sockaddr_storage at = {0};
	struct cop_ip from;
	socklen_t len = sizeof(at);
	struct cop_stats *stats = NULL;
	bool may = true;

	pthread_mutex_lock(&lock);
	for (const struct ofi *o = guarded; o; o = o->guarded_next)
		if (o->listener == listener) {
			may = getpeername(fd, (struct sockaddr *)&at, &len) == 0 &&
			      cop_ip_of_socket((struct sockaddr *)&at, &from, NULL) &&
			      is_admitted(o, &from);
			stats = o->base.rejected;
		}
	pthread_mutex_unlock(&lock);
	if (!may)
		cop_endpoint_ofi_refused(stats, &at, -EHOSTUNREACH);
	return may;
}

/* The address in the provider's format; it may be of another kind of network. */
static bool read_raw(const struct ofi *o, const void *raw, size_t raw_len, struct cop_ip *out)
{
	struct sockaddr_storage at = {0};

	memcpy(&at, raw, COP_MIN(sizeof(at), raw_len));
	return o->naming.form == COP_ENDPOINT_FORM_IP &&
	       cop_ip_of_socket((struct sockaddr *)&at, out, NULL);
}

void cop_endpoint_ofi_admit_raw(struct ofi *o, const void *raw, size_t raw_len)
{
	struct cop_ip ip;

	if (read_raw(o, raw, raw_len, &ip))
		admit_host(o, &ip);
}

void cop_endpoint_ofi_admit(struct cop_endpoint *f, const char *address)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	_Alignas(16) unsigned char raw[COP_ENDPOINT_RAW_MAX] = {0};
	size_t len;

	if (cop_endpoint_address_parse(&o->naming, address, raw, &len) == 0)
		cop_endpoint_ofi_admit_raw(o, raw, len);
}

/* ---- the listening socket ---- */

void cop_endpoint_ofi_admit_init(struct ofi *o)
{
	struct cop_ip own;

	if (!read_raw(o, o->naming.own, o->naming.own_len, &own))
		return;
	pthread_mutex_lock(&lock);
	o->listener = o->listening;
	if (o->listener >= 0) { /* otherwise the provider does not run over TCP */
		o->guarded_next = guarded;
		guarded = o;
	}
	pthread_mutex_unlock(&lock);
}

/* The provider is about to close the socket; its number will be reused. */
void cop_endpoint_ofi_admit_fini(struct ofi *o)
{
	pthread_mutex_lock(&lock);
	stop_portguard(o);
	free(o->admitted);
	o->admitted = NULL;
	o->admitted_count = 0;
	pthread_mutex_unlock(&lock);
}
