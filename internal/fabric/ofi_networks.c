/* SPDX-License-Identifier: BSD-3-Clause */
/* Which networks this machine has for the provider, which of them the endpoint is on, and which
 * processors are near its card. IP networks are the interfaces that are up; others are the domains
 * that the provider offers. */
#include "fabric/ofi_priv.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compat.h"

/* ---- IP ---- */

static bool is_ip4(const struct ifaddrs *i, struct in_addr *addr, struct in_addr *mask)
{
	struct sockaddr_in sin;

	if (!(i->ifa_flags & IFF_UP) || !i->ifa_addr || i->ifa_addr->sa_family != AF_INET ||
		!i->ifa_netmask)
		return false;
	memcpy(&sin, i->ifa_addr, sizeof(sin));
	*addr = sin.sin_addr;
	memcpy(&sin, i->ifa_netmask, sizeof(sin));
	*mask = sin.sin_addr;
	return true;
}

static bool same_net(struct in_addr a, struct in_addr b, struct in_addr mask)
{
	return ((a.s_addr ^ b.s_addr) & mask.s_addr) == 0;
}

bool cop_fabric_interface_address(const char *name, const char *host, char node[64])
{
	struct in_addr addr, mask, own;
	struct ifaddrs *list = NULL;
	bool found = false, numeric = host && inet_pton(AF_INET, host, &own) == 1;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		bool better;

		if (!is_ip4(i, &addr, &mask) || strcmp(i->ifa_name, name) != 0)
			continue;
		better = numeric && same_net(addr, own, mask);
		if (better || !found)
			found = inet_ntop(AF_INET, better ? &own : &addr, node, 64) != NULL;
		if (better)
			break;
	}
	freeifaddrs(list);
	return found;
}

bool cop_fabric_outside_address(char node[64])
{
	struct in_addr addr, mask;
	struct ifaddrs *list = NULL;
	bool found = false;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		bool running = i->ifa_flags & IFF_RUNNING;

		if (!is_ip4(i, &addr, &mask) || (i->ifa_flags & IFF_LOOPBACK) ||
			(found && !running))
			continue;
		found = inet_ntop(AF_INET, &addr, node, 64) != NULL;
		if (running)
			break;
	}
	freeifaddrs(list);
	return found;
}

/* The interface of an address: the one that has it, else the one whose network it is in. */
static void name_ip(const struct ofi *o, char *name, size_t size)
{
	struct in_addr addr, mask;
	struct sockaddr_in own;
	struct ifaddrs *list = NULL;

	if (o->naming.own_len != sizeof(own) || getifaddrs(&list))
		return;
	memcpy(&own, o->naming.own, sizeof(own));
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!is_ip4(i, &addr, &mask) || !same_net(addr, own.sin_addr, mask))
			continue;
		if (!*name || addr.s_addr == own.sin_addr.s_addr)
			snprintf(name, size, "%s", i->ifa_name);
	}
	freeifaddrs(list);
}

static bool is_listed(const struct cop_buf *out, const char *name)
{
	size_t len = strlen(name);
	const char *p = out->data;

	for (; p && *p; p = strchr(p, '\n') + 1)
		if (strncmp(p, name, len) == 0 && p[len] == ' ')
			return true;
	return false;
}

static void list_ip(const struct ofi *o, struct cop_buf *out)
{
	struct in_addr addr, mask;
	struct ifaddrs *list = NULL;
	unsigned count = 1;
	char text[64];

	if (getifaddrs(&list))
		return;
	for (struct ifaddrs *i = list; i && count < COP_FABRIC_NETWORKS_MAX && !out->failed;
		i = i->ifa_next) {
		if (!is_ip4(i, &addr, &mask) || is_listed(out, i->ifa_name) ||
			!inet_ntop(AF_INET, &addr, text, sizeof(text)))
			continue;
		cop_buf_printf(out, "%s ofi+%s://%s\n", i->ifa_name, o->net.scheme, text);
		count++;
	}
	freeifaddrs(list);
}

/* ---- others: the provider's domains ---- */

static void list_domains(const struct ofi *o, struct cop_buf *out)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	char text[COP_FABRIC_TEXT_MAX];
	unsigned count = 1;

	if (!hints)
		return;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = ~0ULL;
	hints->ep_attr->type = FI_EP_RDM;
	hints->domain_attr->mr_mode = ~(COP_FI_MR_BASIC | COP_FI_MR_SCALABLE);
	hints->fabric_attr->prov_name = strdup(o->net.provider);
	if (hints->fabric_attr->prov_name &&
		fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &list) == 0)
		for (struct fi_info *i = list; i && count < COP_FABRIC_NETWORKS_MAX && !out->failed;
			i = i->next) {
			const char *name = i->domain_attr->name;

			if (!name || strlen(name) >= COP_FABRIC_NETWORK_MAX ||
				is_listed(out, name) || !i->src_addr ||
				cop_fabric_address_print(&o->naming, i->src_addr, i->src_addrlen,
					text, sizeof(text)))
				continue;
			cop_buf_printf(out, "%s %s\n", name, text);
			count++;
		}
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* ---- both ---- */

void cop_fabric_ofi_name_network(struct ofi *o)
{
	const char *domain = o->info->domain_attr->name;

	if (o->net.form == COP_FABRIC_FORM_IP)
		name_ip(o, o->base.network, sizeof(o->base.network));
	else if (domain && strlen(domain) < sizeof(o->base.network))
		snprintf(o->base.network, sizeof(o->base.network), "%s", domain);
}

void cop_fabric_ofi_networks(const struct cop_fabric *f, struct cop_buf *out)
{
	const struct ofi *o = COP_CONTAINER_OF(f, struct ofi, base);

	cop_buf_printf(out, "%s %s\n", f->network[0] ? f->network : o->net.scheme, f->address);
	if (o->net.form == COP_FABRIC_FORM_IP)
		list_ip(o, out);
	else if (o->net.form == COP_FABRIC_FORM_CXI)
		list_domains(o, out);
}

/* ---- the card ---- */

static bool add_file(const char *path, struct cop_buf *out)
{
	char *text;
	size_t len;

	if (cop_read_file(path, 65536, &text, &len))
		return false;
	len = strcspn(text, "\n");
	cop_buf_add(out, text, len);
	free(text);
	return len > 0;
}

/* The card as libfabric knows it, else the device behind the network's name, or the bus that a
 * virtual one hangs on. */
void cop_fabric_ofi_near_cpus(const struct cop_fabric *f, struct cop_buf *out)
{
	static const char *const places[] = {"/sys/class/net/%s/device/local_cpulist",
		"/sys/class/net/%s/device/../local_cpulist",
		"/sys/class/cxi/%s/device/local_cpulist"};
	const struct ofi *o = COP_CONTAINER_OF(f, struct ofi, base);
	const struct fi_bus_attr *bus = o->info->nic ? o->info->nic->bus_attr : NULL;
	char path[160];

	if (bus && bus->bus_type == FI_BUS_PCI) {
		const struct fi_pci_attr *pci = &bus->attr.pci;

		snprintf(path, sizeof(path), "/sys/bus/pci/devices/%04x:%02x:%02x.%x/local_cpulist",
			pci->domain_id, pci->bus_id, pci->device_id, pci->function_id);
		if (add_file(path, out))
			return;
	}
	if (!f->network[0] || strchr(f->network, '/') || f->network[0] == '.')
		return;
	for (size_t i = 0; i < COP_ARRAY_SIZE(places); i++) {
		size_t len = (size_t)(strstr(places[i], "%s") - places[i]);

		snprintf(path, sizeof(path), "%.*s%s%s", (int)len, places[i], f->network,
			places[i] + len + 2);
		if (add_file(path, out))
			return;
	}
}
