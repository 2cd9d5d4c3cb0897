/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the networks of this machine that the provider can use, the endpoint's network, and the
 * processors near its card. IP networks are the interfaces that are up; other networks are the
 * provider's domains. */
#include "fabric/endpoint/ofi_priv.h"

#include <ifaddrs.h>
#include <net/if.h>

#include "base/base/compat.h"

/* ---- IP ---- */

/* An address usable from other machines: excludes IPv6 link-local addresses. */
static bool has_ip(const struct ifaddrs *i, struct cop_ip *addr, struct cop_ip *mask)
{
	return (i->ifa_flags & IFF_UP) && i->ifa_addr && i->ifa_netmask &&
	       cop_ip_of_socket(i->ifa_addr, addr, NULL) && !cop_ip_is_link_local(addr) &&
	       cop_ip_of_socket(i->ifa_netmask, mask, NULL);
}

#define SUITS_WELL 5u

/* How well an address of the interface matches the host: by network, else by family. */
static unsigned suitability(
	const struct cop_ip *addr, const struct cop_ip *mask, const struct cop_ip *host)
{
	if (cop_ip_is_none(host))
		return 1 + (cop_ip_family(addr) == AF_INET);
	if (cop_ip_same_net(addr, host, mask))
		return SUITS_WELL;
	return 1 + (cop_ip_family(addr) == AF_INET) +
	       2 * (cop_ip_family(addr) == cop_ip_family(host));
}

bool cop_endpoint_interface_address(const char *name, const char *host, char node[64])
{
	struct cop_ip addr, mask, own = {0}, best_of = {0};
	struct ifaddrs *list = NULL;
	unsigned best = 0;

	if (host)
		cop_ip_parse(host, &own);
	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		unsigned is;

		if (!has_ip(i, &addr, &mask) || strcmp(i->ifa_name, name) != 0)
			continue;
		is = suitability(&addr, &mask, &own);
		if (is <= best)
			continue;
		best_of = is == SUITS_WELL ? own : addr;
		best = is;
	}
	freeifaddrs(list);
	if (best)
		cop_ip_print(&best_of, node);
	return best > 0;
}

/* Prefers running interfaces, then IPv4. */
bool cop_endpoint_outside_address(char node[64])
{
	struct ifaddrs *list = NULL;
	struct cop_ip addr, mask;
	unsigned best = 0;

	if (getifaddrs(&list))
		return false;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		unsigned is;

		if (!has_ip(i, &addr, &mask) || (i->ifa_flags & IFF_LOOPBACK))
			continue;
		is = 1 + (cop_ip_family(&addr) == AF_INET) + 2 * !!(i->ifa_flags & IFF_RUNNING);
		if (is <= best)
			continue;
		cop_ip_print(&addr, node);
		best = is;
	}
	freeifaddrs(list);
	return best > 0;
}

/* The interface of an address: the one that has it, else one whose network contains it. */
static void name_ip(const struct ofi *o, char *name, size_t size)
{
	struct ifaddrs *list = NULL;
	struct sockaddr_storage at = {0};
	struct cop_ip addr, mask, own;

	memcpy(&at, o->naming.own, COP_MIN(sizeof(at), o->naming.own_len));
	if (!cop_ip_of_socket((struct sockaddr *)&at, &own, NULL) || getifaddrs(&list))
		return;
	for (struct ifaddrs *i = list; i; i = i->ifa_next) {
		if (!has_ip(i, &addr, &mask) || !cop_ip_same_net(&addr, &own, &mask))
			continue;
		if (!*name || cop_ip_same(&addr, &own))
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

/* The addresses of the endpoint's family, at which it could be reachable. */
static void list_ip(const struct ofi *o, struct cop_buf *out)
{
	bool six = o->naming.own_len == sizeof(struct sockaddr_in6);
	struct ifaddrs *list = NULL;
	struct cop_ip addr, mask;
	unsigned count = 1;
	char text[COP_IP_TEXT_SIZE];

	if (getifaddrs(&list))
		return;
	for (struct ifaddrs *i = list; i && count < COP_ENDPOINT_NETWORKS_MAX && !out->failed;
		i = i->ifa_next) {
		if (!has_ip(i, &addr, &mask) || (cop_ip_family(&addr) == AF_INET6) != six ||
			is_listed(out, i->ifa_name))
			continue;
		cop_buf_printf(out, six ? "%s ofi+%s://[%s]\n" : "%s ofi+%s://%s\n", i->ifa_name,
			o->net.scheme, cop_ip_print(&addr, text));
		count++;
	}
	freeifaddrs(list);
}

/* ---- others: the provider's domains ---- */

static void list_domains(const struct ofi *o, struct cop_buf *out)
{
	struct fi_info *hints = fi_allocinfo(), *list = NULL;
	char text[COP_ENDPOINT_TEXT_MAX];
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
		for (struct fi_info *i = list;
			i && count < COP_ENDPOINT_NETWORKS_MAX && !out->failed; i = i->next) {
			const char *name = i->domain_attr->name;

			if (!name || strlen(name) >= COP_ENDPOINT_NETWORK_MAX ||
				is_listed(out, name) || !i->src_addr ||
				cop_endpoint_address_print(&o->naming, i->src_addr, i->src_addrlen,
					text, sizeof(text)))
				continue;
			cop_buf_printf(out, "%s %s\n", name, text);
			count++;
		}
	fi_freeinfo(list);
	fi_freeinfo(hints);
}

/* ---- both ---- */

void cop_endpoint_ofi_name_network(struct ofi *o)
{
	const char *domain = o->info->domain_attr->name;

	if (o->net.form == COP_ENDPOINT_FORM_IP)
		name_ip(o, o->base.network, sizeof(o->base.network));
	else if (domain && strlen(domain) < sizeof(o->base.network))
		snprintf(o->base.network, sizeof(o->base.network), "%s", domain);
}

void cop_endpoint_ofi_networks(const struct cop_endpoint *f, struct cop_buf *out)
{
	const struct ofi *o = COP_CONTAINER_OF(f, struct ofi, base);

	cop_buf_printf(out, "%s %s\n", f->network[0] ? f->network : o->net.scheme, f->address);
	if (o->net.form == COP_ENDPOINT_FORM_IP)
		list_ip(o, out);
	else if (o->net.form == COP_ENDPOINT_FORM_CXI)
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

/* The card according to libfabric, else the device behind the network's name, or the bus of a
 * virtual device. */
void cop_endpoint_ofi_near_cpus(const struct cop_endpoint *f, struct cop_buf *out)
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
