/* SPDX-License-Identifier: BSD-3-Clause */
/* Maps users' names of networks to libfabric's. */
#include "fabric/endpoint/endpoint_priv.h"

#include <rdma/fabric.h>

#include "base/base/compat.h"

static const struct family {
	const char *scheme, *provider;
	enum cop_endpoint_form form;
} families[] = {
	{"tcp", "tcp;ofi_rxm", COP_ENDPOINT_FORM_IP},
	{"verbs", "verbs;ofi_rxm", COP_ENDPOINT_FORM_IP},
	{"net", "net;ofi_rxm", COP_ENDPOINT_FORM_IP},
	{"udp", "udp;ofi_rxd", COP_ENDPOINT_FORM_IP},
	{"sockets", "sockets", COP_ENDPOINT_FORM_IP},
	{"shm", "shm", COP_ENDPOINT_FORM_STR},
	{"cxi", "cxi", COP_ENDPOINT_FORM_CXI},
};

static void set_env(void)
{
	/* Without it rxm keeps the connection of a removed address, and operations waiting on it
	 * end only at TCP's timeout. */
	setenv("FI_AV_REMOVE_CLEANUP", "1", 0);
	/* Off by default in some versions; see ofi_open.c for its use. */
	setenv("FI_OFI_RXM_ENABLE_PASSTHRU", "1", 0);
	/* Polling interval of connection events (microseconds) while completions are read; the
	 * provider's default of 10 ms would be most of the latency of a first message. */
	setenv("FI_OFI_RXM_CM_PROGRESS_INTERVAL", "200", 0);
}

void cop_endpoint_prepare_env(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, set_env);
}

/* A provider that is not in the table is requested by its own name. */
static void fill_family(struct cop_endpoint_net_type *out)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(families); i++) {
		if (strcmp(out->scheme, families[i].scheme) != 0)
			continue;
		snprintf(out->provider, sizeof(out->provider), "%s", families[i].provider);
		out->form = families[i].form;
		return;
	}
	snprintf(out->provider, sizeof(out->provider), "%s", out->scheme);
	out->form = COP_ENDPOINT_FORM_RAW;
}

/* "tcp://[fd77::1]" means the same as "tcp://fd77::1". */
static void parse_device(const char *text, struct cop_endpoint_net_type *out)
{
	size_t len = strlen(text);

	if (len > 2 && text[0] == '[' && text[len - 1] == ']')
		snprintf(out->device, sizeof(out->device), "%.*s", (int)len - 2, text + 1);
	else
		snprintf(out->device, sizeof(out->device), "%s", text);
}

/* "cxi1", as in job scripts for Copper 1.0, is cxi://cxi1. */
const char *cop_endpoint_bare_card(const char *text)
{
	size_t digits;

	if (strncmp(text, "ofi+", 4) == 0)
		text += 4;
	digits = strncmp(text, "cxi", 3) == 0 ? strspn(text + 3, "0123456789") : 0;
	return digits && !text[3 + digits] ? text : NULL;
}

int cop_endpoint_net_type_parse(const char *text, struct cop_endpoint_net_type *out)
{
	const char *sep, *layer, *end;
	size_t len;

	memset(out, 0, sizeof(*out));
	if (!text)
		text = "tcp";
	if (strncmp(text, "ofi+", 4) == 0)
		text += 4;
	sep = strstr(text, "://");
	end = sep ? sep : text + strlen(text);
	/* "tcp;ofi_rxm" is what cop_endpoint_provider prints; the layer is implied. */
	layer = memchr(text, ';', (size_t)(end - text));
	len = (size_t)((layer ? layer : end) - text);
	if (cop_endpoint_bare_card(text) && strlen(text) < sizeof(out->device)) {
		snprintf(out->device, sizeof(out->device), "%s", text);
		len = strlen("cxi");
	}
	if (len == 0 || len >= sizeof(out->scheme))
		return -EINVAL;
	memcpy(out->scheme, text, len);
	if (strspn(out->scheme, "abcdefghijklmnopqrstuvwxyz0123456789_") != len)
		return -EINVAL;
	if (sep) {
		if (strlen(sep + 3) >= sizeof(out->device))
			return -EINVAL;
		parse_device(sep + 3, out);
	}
	fill_family(out);
	return 0;
}

/* Appends name unless the list already has it or it does not fit. */
static void add_name(char *out, size_t size, const char *name)
{
	size_t used = strlen(out), len = strlen(name);
	const char *p = out;

	while ((p = strstr(p, name))) {
		if ((p == out || p[-1] == ' ') && (p[len] == ',' || p[len] == '\0'))
			return;
		p += len;
	}
	if (used + len + 3 <= size)
		snprintf(out + used, size - used, "%s%s", used ? ", " : "", name);
}

void cop_endpoint_list_providers(char *out, size_t size)
{
	struct fi_info *hints, *list = NULL;

	if (size == 0)
		return;
	out[0] = '\0';
	cop_endpoint_prepare_env();
	hints = fi_allocinfo();
	if (!hints)
		return;
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_MSG | FI_RMA;
	hints->mode = ~0ULL;
	hints->domain_attr->mr_mode = ~(COP_FI_MR_BASIC | COP_FI_MR_SCALABLE);
	if (fi_getinfo(FI_VERSION(1, 15), NULL, NULL, 0, hints, &list) == 0) {
		for (struct fi_info *i = list; i; i = i->next)
			add_name(out, size, i->fabric_attr->prov_name);
		fi_freeinfo(list);
	}
	fi_freeinfo(hints);
}
