/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may connect at all. The tcp provider speaks with everyone who reaches its port, before anybody proves anything, and a stranger who
 * knows its protocol can end this process. So the kernel drops, by a filter on the listening socket, what does not come from
 * a host that was admitted: one that has proved the job's secret at the rendezvous, or that this node itself connects to. Nodes connect from
 * the very address that they tell others (the provider binds to it).
 *
 * Source: classic BPF on sockets, Documentation/networking/filter.rst of Linux. */
#include "fabric/ofi_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "log/log.h"

#define SOURCE_OF_IPV4 (SKF_NET_OFF + 12)

/* Drops everything but packets from the admitted. A jump reaches 255 instructions far, which is why there are no more of them. */
static int attach(const struct ofi *o)
{
	unsigned n = o->admitted_count;
	struct sock_filter code[COP_OFI_ADMITTED_MAX + 3];
	struct sock_fprog prog = {.len = (unsigned short)(n + 3), .filter = code};

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)SOURCE_OF_IPV4);
	for (unsigned i = 0; i < n; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ntohl(o->admitted[i].s_addr), (uint8_t)(n - i), 0);
	code[n + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, 0);
	code[n + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, UINT32_MAX);
	return setsockopt(o->listener, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) ? -errno : 0;
}

/* Rather open to all than closed to a node of the job. */
static void open_to_all(struct ofi *o, int rc)
{
	int ignored = 0;

	setsockopt(o->listener, SOL_SOCKET, SO_DETACH_FILTER, &ignored, sizeof(ignored));
	o->listener = -1;
	cop_log_warn("connections are taken from every host: %s", rc == -E2BIG ? "so many hosts fit no filter" : strerror(-rc));
}

static bool is_admitted(const struct ofi *o, struct in_addr host)
{
	for (unsigned i = 0; i < o->admitted_count; i++)
		if (o->admitted[i].s_addr == host.s_addr)
			return true;
	return false;
}

static void admit(struct ofi *o, struct in_addr host)
{
	int rc = 0;

	pthread_mutex_lock(&o->admit_lock);
	if (o->listener >= 0 && !is_admitted(o, host)) {
		if (o->admitted_count == COP_OFI_ADMITTED_MAX) {
			rc = -E2BIG;
		} else {
			o->admitted[o->admitted_count++] = host;
			rc = attach(o);
		}
	}
	if (rc)
		open_to_all(o, rc);
	pthread_mutex_unlock(&o->admit_lock);
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
		getsockname(fd, (struct sockaddr *)&at, &at_len) == 0 && at.sin_family == AF_INET && at.sin_port == own->sin_port;
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
	struct pollfd waiting = {.events = POLLIN};
	int rc;

	memcpy(&own, o->naming.own, COP_MIN(sizeof(own), o->naming.own_len));
	if (o->naming.form != COP_FABRIC_FORM_IP || own.sin_family != AF_INET)
		return;
	o->listener = find_listener(&own);
	if (o->listener < 0)
		return; /* not a provider over TCP */
	rc = attach(o);
	if (rc)
		open_to_all(o, rc);
	/* Who was quicker than that is a stranger: nobody has been told the address yet. */
	waiting.fd = o->listener;
	while (!rc && poll(&waiting, 1, 0) > 0 && (rc = accept4(o->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
		rc = close(rc);
}

/* The provider is about to close the socket, and its number will be another's. */
void cop_fabric_ofi_admit_fini(struct ofi *o)
{
	pthread_mutex_lock(&o->admit_lock);
	o->listener = -1;
	pthread_mutex_unlock(&o->admit_lock);
}
