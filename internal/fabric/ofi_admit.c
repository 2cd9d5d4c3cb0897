/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may connect at all. The tcp provider speaks with everyone who reaches its port, before anybody proves anything, and a stranger who
 * knows its protocol can end this process. So it never gets to see a connection that does not come from a host that was
 * admitted: one that has proved the job's secret at the rendezvous, or that this node itself connects to. Nodes connect from
 * the very address that they tell others (the provider binds to it).
 *
 * The provider calls accept(), which is ours: a stranger's connection is closed there, unread. Where the kernel lets us it drops strangers
 * before that, by a filter on the listening socket; newer kernels (6.18 with stable fixes) want CAP_NET_ADMIN for one on TCP.
 *
 * Source: classic BPF on sockets, Documentation/networking/filter.rst of Linux. */
#include "fabric/ofi_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/log.h"

#define SOURCE_OF_IPV4 (SKF_NET_OFF + 12)

/* The endpoints that let in only the admitted. One lock for all of them, since accept() is told nothing but a descriptor. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ofi *guarded;

/* Drops everything but packets from the admitted. */
static int attach(const struct ofi *o)
{
	unsigned n = o->admitted_count;
	struct sock_filter code[COP_OFI_FILTER_MAX + 3];
	struct sock_fprog prog = {.len = (unsigned short)(n + 3), .filter = code};

	if (n > COP_OFI_FILTER_MAX)
		return -E2BIG;
	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SOURCE_OF_IPV4);
	for (unsigned i = 0; i < n; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(o->admitted[i].s_addr), (uint8_t)(n - i), 0);
	code[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	code[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return setsockopt(o->listener, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

static void detach(struct ofi *o)
{
	int ignored = 0;

	setsockopt(o->listener, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof(ignored));
	o->filters = false;
}

/* An older filter would keep out who was admitted since. */
static void filter(struct ofi *o)
{
	int rc = o->filters ? attach(o) : 0;

	if (!rc)
		return;
	detach(o);
	cop_log_info("strangers' connections are closed, not dropped: %s", rc == -E2BIG ? "so many hosts fit no filter" : strerror(-rc));
}

static bool is_admitted(const struct ofi *o, struct in_addr host)
{
	for (unsigned i = 0; i < o->admitted_count; i++)
		if (o->admitted[i].s_addr == host.s_addr)
			return true;
	return false;
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

/* Rather open to all than closed to a node of the job. */
static void open_to_all(struct ofi *o)
{
	detach(o);
	unguard(o);
	cop_log_warn("connections are taken from every host: out of memory");
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
			filter(o);
		} else {
			open_to_all(o);
		}
	}
	pthread_mutex_unlock(&lock);
}

static bool may_enter(int listener, int fd)
{
	struct sockaddr_in from = {0};
	socklen_t len = sizeof(from);
	bool may = true;

	pthread_mutex_lock(&lock);
	for (const struct ofi *o = guarded; o; o = o->guarded_next)
		if (o->listener == listener)
			may = getpeername(fd, (struct sockaddr *)&from, &len) == 0 && from.sin_family == AF_INET && is_admitted(o, from.sin_addr);
	pthread_mutex_unlock(&lock);
	return may;
}

/* In place of the C library's, for libfabric, whether it is linked statically or not. A name without cop_ for that reason. The provider goes on
 * as it does when who connected has left again. */
int accept(int listener, __SOCKADDR_ARG at, socklen_t *restrict len)
{
	int fd = accept4(listener, at, len, 0);

	if (fd < 0 || may_enter(listener, fd))
		return fd;
	close(fd);
	errno = EAGAIN;
	return -1;
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

static bool listens_at(int fd, const struct sockaddr_in *own)
{
	struct sockaddr_in at = {0};
	socklen_t at_len = sizeof(at), len = sizeof(int);
	int listens = 0;

	return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens &&
		getsockname(fd, (struct sockaddr *)&at, &at_len) == 0 && at.sin_family == AF_INET && at.sin_port == own->sin_port &&
		(at.sin_addr.s_addr == own->sin_addr.s_addr || !at.sin_addr.s_addr);
}

static int find_listener(const struct sockaddr_in *own)
{
	DIR *fds = opendir("/proc/self/fd");
	struct dirent *e;
	int found = -1;

	while (fds && found < 0 && (e = readdir(fds)))
		if (e->d_name[0] != '.' && listens_at(atoi(e->d_name), own))
			found = atoi(e->d_name);
	if (fds)
		closedir(fds);
	return found;
}

void cop_fabric_ofi_admit_init(struct ofi *o)
{
	struct sockaddr_in own = {0};

	memcpy(&own, o->naming.own, COP_MIN(sizeof(own), o->naming.own_len));
	if (o->naming.form != COP_FABRIC_FORM_IP || own.sin_family != AF_INET)
		return;
	pthread_mutex_lock(&lock);
	o->listener = find_listener(&own);
	if (o->listener >= 0) { /* else it is not a provider over TCP */
		o->guarded_next = guarded;
		guarded = o;
		o->filters = true;
		filter(o);
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
