/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening an endpoint: hints to fi_getinfo, the first offer that works, objects in libfabric's
 * order, receive buffers, thread. */
#include "fabric/endpoint/ofi_priv.h"

#include <sys/eventfd.h>

#include "base/log/log.h"

#define API_VERSION FI_VERSION(1, 15)
#define CQ_SIZE (COP_OFI_RX_COUNT + COP_OFI_SENDS_ALL + COP_OFI_PARTS_ALL)

static const struct cop_endpoint_ops ofi_ops = {
	.close = cop_endpoint_ofi_close,
	.post = cop_endpoint_ofi_post,
	.keep_ticking = cop_endpoint_ofi_keep_ticking,
	.admit = cop_endpoint_ofi_admit,
	.peer = cop_endpoint_ofi_peer,
	.peer_drop = cop_endpoint_ofi_peer_drop,
	.send = cop_endpoint_ofi_send,
	.write = cop_endpoint_ofi_write,
	.reg = cop_endpoint_ofi_reg,
	.unreg = cop_endpoint_ofi_unreg,
	.networks = cop_endpoint_ofi_networks,
	.near_cpus = cop_endpoint_ofi_near_cpus,
};

/* ---- what to ask for ---- */

/* A write must be in the target's memory when it completes. FI_DELIVERY_COMPLETE guarantees
 * this; for a provider without it (verbs), in-order delivery of sends after writes
 * (FI_ORDER_SAW) is equivalent.
 *
 * Over tcp, rxm has a pass-through mode without its own protocol and bounce buffers
 * (FI_PROTO_RXM_TCP): 1.5 MiB of resident memory for an endpoint instead of 70, and a first
 * message after 3 ms instead of 18 (libfabric 1.17). Only tcp has that protocol. */
static const struct demand {
	uint64_t op_flags, order;
	uint32_t protocol;
} demands[] = {
	{FI_DELIVERY_COMPLETE, FI_ORDER_SAS, FI_PROTO_RXM_TCP},
	{FI_DELIVERY_COMPLETE, FI_ORDER_SAS, FI_PROTO_UNSPEC},
	{FI_TRANSMIT_COMPLETE, FI_ORDER_SAS | FI_ORDER_SAW, FI_PROTO_UNSPEC},
};

static struct fi_info *make_hints(
	const struct cop_endpoint_net_type *net, const struct demand *d, int mr_mode)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		return NULL;
	h->caps = FI_MSG | FI_RMA;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->ep_attr->protocol = d->protocol;
	h->tx_attr->op_flags = d->op_flags;
	h->tx_attr->msg_order = d->order;
	h->rx_attr->msg_order = d->order;
	h->domain_attr->mr_mode = mr_mode;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->data_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->fabric_attr->prov_name = strdup(net->provider);
	if (!h->fabric_attr->prov_name) {
		fi_freeinfo(h);
		return NULL;
	}
	return h;
}

struct bind_to {
	char node[COP_ENDPOINT_DEVICE_MAX], service[16];
};

/* libfabric accepts a name too, but resolves it several times. The host's name may resolve locally
 * to an address that other hosts cannot reach. */
static int make_numeric(const struct cop_endpoint_conf *conf,
	const struct cop_endpoint_net_type *net, struct bind_to *b, struct cop_err *err)
{
	const struct cop_ip own_name = cop_ip_of4((struct in_addr){htonl(COP_OWN_NAME_ADDRESS)});
	struct cop_ip found, numeric;
	struct cop_err why = {0};

	if (!b->node[0])
		return 0;
	if (cop_host_address(b->node, &found, &why))
		return cop_err_set(err, why.code,
			"cannot open an endpoint for net type \"%s\" on %s: %s",
			conf->net_type ? conf->net_type : "tcp", b->node, why.text);
	if (!net->device[0] && cop_ip_same(&found, &own_name) && !cop_ip_parse(b->node, &numeric) &&
		cop_endpoint_outside_address(b->node))
		return 0;
	cop_ip_print(&found, b->node);
	return 0;
}

/* An interface named by the user takes precedence over the resolved host name. */
static int choose_ip(const struct cop_endpoint_conf *conf, const struct cop_endpoint_net_type *net,
	struct bind_to *b, struct cop_err *err)
{
	const char *from = conf->host ? conf->host : net->device;
	struct cop_ip numeric;
	char address[64];

	if (net->device[0] && cop_endpoint_interface_address(net->device, conf->host, address))
		from = address;
	else if (net->device[0] && conf->host && !cop_ip_parse(net->device, &numeric))
		return cop_err_set(err, ENODEV,
			"net type \"%s\": this machine has no interface %s that is up and has an address that is not link-local "
			"(see 'ip address')",
			conf->net_type, net->device);
	snprintf(b->node, sizeof(b->node), "%s", from);
	return make_numeric(conf, net, b, err);
}

static int choose_bind(const struct cop_endpoint_conf *conf,
	const struct cop_endpoint_net_type *net, struct bind_to *b, struct cop_err *err)
{
	const char *from = net->device;

	if (conf->port_low && net->form != COP_ENDPOINT_FORM_IP)
		return cop_err_set(err, EINVAL,
			"net type \"%s\" has no ports to choose from: leave --fabric-port out",
			conf->net_type);
	if (conf->address && net->form != COP_ENDPOINT_FORM_STR) {
		if (cop_endpoint_address_split(net, conf->address, b->node, b->service) == 0)
			return net->form == COP_ENDPOINT_FORM_IP ? make_numeric(conf, net, b, err)
								 : 0;
		return cop_err_set(err, EINVAL,
			"cannot bind to \"%s\": not an address of %s, such as "
			"ofi+%s://%s",
			conf->address, net->scheme, net->scheme,
			net->form == COP_ENDPOINT_FORM_CXI ? "0x00916600" : "10.0.0.1:7720");
	}
	if (net->form == COP_ENDPOINT_FORM_STR)
		return 0;
	if (conf->port_low || (net->form == COP_ENDPOINT_FORM_IP && (*from || conf->host)))
		snprintf(b->service, sizeof(b->service), "%u", conf->port_low);
	if (net->form == COP_ENDPOINT_FORM_IP && (*from || conf->host))
		return choose_ip(conf, net, b, err);
	snprintf(b->node, sizeof(b->node), "%s", from);
	return 0;
}

static int ask_providers(const struct cop_endpoint_net_type *net, const struct demand *d,
	int mr_mode, const struct bind_to *b, struct fi_info **list)
{
	struct fi_info *hints = make_hints(net, d, mr_mode);
	const char *node = b->node[0] ? b->node : NULL,
		   *service = b->service[0] ? b->service : NULL;
	int rc;

	if (!hints)
		return -ENOMEM;
	/* Other providers name their devices as domains. */
	if (net->form == COP_ENDPOINT_FORM_RAW && node) {
		hints->domain_attr->name = strdup(node);
		node = service = NULL;
	}
	rc = cop_endpoint_ofi_errno(fi_getinfo(
		API_VERSION, node, service, node || service ? FI_SOURCE : 0, hints, list));
	fi_freeinfo(hints);
	return rc;
}

/* FI_MR_LOCAL is offered last: without it the provider manages this side's buffers. */
static int get_info(struct ofi *o, const struct bind_to *b, int mr_mode)
{
	int rc = -ENODATA;

	for (int local = 0; local <= 1 && rc; local++) {
		int mode = local ? mr_mode : mr_mode & ~FI_MR_LOCAL;

		if (local && !(mr_mode & FI_MR_LOCAL))
			break;
		for (size_t i = 0; i < COP_ARRAY_SIZE(demands) && rc; i++) {
			rc = ask_providers(&o->net, &demands[i], mode, b, &o->info);
			o->write_flags = demands[i].op_flags | FI_COMPLETION;
		}
	}
	return rc;
}

/* ---- objects ---- */

static int open_cq(struct ofi *o)
{
	struct fi_cq_attr attr = {
		.size = CQ_SIZE, .format = FI_CQ_FORMAT_MSG, .wait_obj = FI_WAIT_FD};
	int rc = fi_cq_open(o->domain, &attr, &o->cq, NULL);

	o->cq_fd = -1;
	if (rc == 0)
		return fi_control(&o->cq->fid, FI_GETWAIT, &o->cq_fd);
	attr.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(o->domain, &attr, &o->cq, NULL);
}

static int open_objects(struct ofi *o)
{
	struct fi_av_attr av = {.type = FI_AV_UNSPEC, .count = 256};
	int rc;

	/* Only writes request delivery completion; a message is done once the provider has it. */
	o->info->tx_attr->op_flags = 0;
	if ((rc = fi_fabric(o->info->fabric_attr, &o->fabric, NULL)) ||
		(rc = fi_domain(o->fabric, o->info, &o->domain, NULL)) || (rc = open_cq(o)))
		return cop_endpoint_ofi_errno(rc);
	rc = fi_av_open(o->domain, &av, &o->av, NULL);
	if (rc) {
		av.type = FI_AV_MAP;
		rc = fi_av_open(o->domain, &av, &o->av, NULL);
	}
	if (rc || (rc = fi_endpoint(o->domain, o->info, &o->ep, NULL)) ||
		(rc = fi_ep_bind(o->ep, &o->av->fid, 0)) ||
		(rc = fi_ep_bind(o->ep, &o->cq->fid, FI_TRANSMIT | FI_RECV)) ||
		(rc = fi_enable(o->ep)))
		return cop_endpoint_ofi_errno(rc);
	o->part_size = COP_MIN(COP_OFI_PART_SIZE, o->info->ep_attr->max_msg_size);
	return o->info->ep_attr->max_msg_size < COP_ENDPOINT_MSG_MAX ? -EMSGSIZE : 0;
}

static int read_name(struct ofi *o)
{
	size_t len = sizeof(o->naming.own);
	int rc = fi_getname(&o->ep->fid, o->naming.own, &len);

	if (rc)
		return cop_endpoint_ofi_errno(rc);
	o->naming.own_len = len;
	return cop_endpoint_address_print(
		&o->naming, o->naming.own, len, o->base.address, sizeof(o->base.address));
}

static int start_rx(struct ofi *o)
{
	int rc;

	o->rx = calloc(COP_OFI_RX_COUNT, sizeof(*o->rx));
	o->rx_slab = calloc(COP_OFI_RX_COUNT, COP_OFI_RX_SIZE);
	if (!o->rx || !o->rx_slab)
		return -ENOMEM;
	rc = cop_endpoint_ofi_reg_local(
		o, o->rx_slab, COP_OFI_RX_COUNT * COP_OFI_RX_SIZE, FI_RECV, &o->rx_mr);
	for (size_t i = 0; i < COP_OFI_RX_COUNT; i++) {
		o->rx[i].buf = o->rx_slab + i * COP_OFI_RX_SIZE;
		o->rx[i].ctx.kind = OFI_RX;
		cop_list_push_back(&o->rx_idle, &o->rx[i].ctx.link);
	}
	if (rc == 0)
		rc = cop_endpoint_ofi_post_rx(o);
	return rc == -EAGAIN ? 0 : rc;
}

static void shut_one(struct fid *fid)
{
	int rc = fid ? fi_close(fid) : 0;

	if (rc)
		cop_log_warn("fi_close class=%zu error=%d", fid->fclass, rc);
}

/* Memory is closed first: with FI_MR_ENDPOINT it is bound to the endpoint. */
void cop_endpoint_ofi_shut(struct ofi *o)
{
	cop_endpoint_ofi_admit_fini(o);
	for (struct cop_list *i = o->mrs.next; i != &o->mrs; i = i->next) {
		struct ofi_mr *m = COP_CONTAINER_OF(i, struct ofi_mr, link);

		shut_one(m->mr ? &m->mr->fid : NULL);
		m->mr = NULL;
	}
	shut_one(o->ep ? &o->ep->fid : NULL);
	o->ep = NULL;
	cop_portguard_stop(o->portguard);
	o->portguard = NULL;
	if (o->key.mac)
		cop_portguard_forget(&o->key);
	shut_one(o->av ? &o->av->fid : NULL);
	o->av = NULL;
	shut_one(o->cq ? &o->cq->fid : NULL);
	o->cq = NULL;
	shut_one(o->domain ? &o->domain->fid : NULL);
	o->domain = NULL;
	shut_one(o->fabric ? &o->fabric->fid : NULL);
	o->fabric = NULL;
}

/* ---- open ---- */

static struct ofi *ofi_new(const struct cop_endpoint_conf *conf)
{
	struct ofi *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (o->wake_fd < 0) {
		free(o);
		return NULL;
	}
	o->cq_fd = o->listener = o->listening = -1;
	pthread_mutex_init(&o->lock, NULL);
	cop_list_init(&o->posts);
	cop_list_init(&o->busy);
	cop_list_init(&o->flying);
	cop_list_init(&o->mrs);
	cop_list_init(&o->rx_idle);
	o->base.ops = &ofi_ops;
	o->base.stats = conf->stats;
	o->base.rejected = conf->rejected;
	o->base.events = conf->events;
	o->base.tick_ms = conf->tick_ms ? conf->tick_ms : 100;
	return o;
}

/* Whether the list contains the provider, alone or under the requested layer. */
static bool is_listed(const char *list, const char *provider)
{
	size_t len = strcspn(provider, ";");

	for (const char *at = list; *at; at += strspn(at, ", ")) {
		if (strncmp(at, provider, len) == 0 && strchr(";,", at[len]))
			return true;
		at += strcspn(at, ",");
	}
	return false;
}

/* The reason behind libfabric's "no data available". */
static const char *bind_failure(bool listed, const struct bind_to *b, int rc)
{
	if (rc != -FI_ENODATA)
		return fi_strerror(-rc);
	if (!listed)
		return "this libfabric has no such provider";
	return b->node[0] ? "this machine has no such address or device"
			  : "no network here that it can use";
}

/* Explains a failure to bind a port that the user chose. */
static int fail_port(
	const struct cop_endpoint_conf *conf, const struct bind_to *b, int rc, struct cop_err *err)
{
	const char *at = b->node[0] ? b->node : "this host";

	if (rc == -EACCES)
		return cop_err_set(err, EACCES,
			"cannot listen on %s port %s for the fabric: only root may use a port as low as that (net.ipv4.ip_unprivileged_port_start); give --fabric-port a port of 1024 or above",
			at, b->service);
	if (conf->port_low == conf->port_high)
		return cop_err_set(err, EADDRINUSE,
			"cannot listen on %s port %u for the fabric: another program has it ('ss -ltnp' shows which); give another --fabric-port, or a range such as --fabric-port %u-%u",
			at, conf->port_low, conf->port_low, COP_MIN(conf->port_low + 15u, 65535u));
	return cop_err_set(err, EADDRINUSE,
		"cannot listen on %s for the fabric: all ports from %u to %u are taken ('ss -ltnp' shows by whom); give a longer range with --fabric-port",
		at, conf->port_low, conf->port_high);
}

static int fail_open(const struct cop_endpoint_conf *conf, const struct ofi *o,
	const struct bind_to *b, int rc, struct cop_err *err)
{
	char have[512];
	bool listed;

	if (conf->port_low && (rc == -EADDRINUSE || rc == -EACCES))
		return fail_port(conf, b, rc, err);
	if (rc == -EADDRNOTAVAIL && b->node[0])
		return cop_err_set(err, EADDRNOTAVAIL,
			"%s is not an address of this machine: check the host list or the address book, and --rank",
			b->node);
	cop_endpoint_list_providers(have, sizeof(have));
	listed = is_listed(have, o->net.provider);
	return cop_err_set(err, -rc,
		"cannot open an endpoint for net type \"%s\" (provider %s%s%s%s%s): "
		"%s; providers here: %s%s",
		conf->net_type ? conf->net_type : "tcp", o->net.provider, b->node[0] ? " on " : "",
		b->node, b->service[0] ? " port " : "", b->service, bind_failure(listed, b, rc),
		have[0] ? have : "none",
		listed || !strstr(cop_build, "static")
			? ""
			: " (this program is linked statically; one built with 'make FABRIC=shared' has those of the site)");
}

/* The provider's listening socket is the one opened in the meantime. */
static int prepare_bind(struct ofi *o, const struct bind_to *b, int mr_mode)
{
	int rc = get_info(o, b, mr_mode);

	if (rc)
		return rc;
	cop_portguard_watch(true);
	rc = open_objects(o);
	o->listening = cop_portguard_watch(false);
	if (rc || (rc = read_name(o)) || (rc = start_rx(o)))
		return rc;
	snprintf(o->base.provider, sizeof(o->base.provider), "%s", o->info->fabric_attr->prov_name);
	cop_endpoint_ofi_name_network(o);
	return 0;
}

/* With a range of ports, takes the first free one. */
static int open_on_port(
	struct ofi *o, const struct cop_endpoint_conf *conf, struct bind_to *b, int mr_mode)
{
	int rc = prepare_bind(o, b, mr_mode);

	for (uint32_t port = conf->port_low + 1u; rc == -EADDRINUSE && port <= conf->port_high;
		port++) {
		cop_endpoint_ofi_shut(o);
		fi_freeinfo(o->info);
		o->info = NULL;
		snprintf(b->service, sizeof(b->service), "%u", port);
		rc = prepare_bind(o, b, mr_mode);
	}
	return rc;
}

static bool is_on(const char *name)
{
	static const char *const words[] = {"1", "yes", "true", "on"};
	const char *value = getenv(name);
	bool on = false;

	for (size_t i = 0; value && i < COP_ARRAY_SIZE(words); i++)
		on |= strcasecmp(value, words[i]) == 0;
	return on;
}

/* With io_uring the provider accepts connections without calling accept. */
static bool can_be_guarded(const struct ofi *o)
{
	size_t len = strcspn(o->net.provider, ";");
	bool tcp = len == 3 && (strncmp(o->net.provider, "tcp", 3) == 0 ||
				       strncmp(o->net.provider, "net", 3) == 0);

	return tcp && !is_on("FI_TCP_IO_URING") && !is_on("FI_NET_IO_URING");
}

static int start_portguard(struct ofi *o, const struct cop_endpoint_conf *conf, struct cop_err *err)
{
	int rc = 0;

	if (conf->mac && can_be_guarded(o)) {
		o->key = (struct cop_greet_key){conf->mac, conf->mac_ctx};
		rc = o->listening < 0 ? -EPROTONOSUPPORT
				      : cop_portguard_start(o->listening, &o->key, conf->rejected,
						&o->portguard);
		if (rc)
			return cop_err_set(err, -rc,
				"the port of libfabric's provider %s cannot be guarded (%s), and anyone who reaches it could end this process; use another "
				"--net-type, or --insecure if nobody else can reach it",
				o->base.provider,
				o->listening < 0 ? "it was not seen to listen" : strerror(-rc));
	} else if (conf->mac && o->net.form == COP_ENDPOINT_FORM_IP) {
		cop_log_warn(
			"not guarded provider=%s: anyone who reaches its port speaks with libfabric before the secret is checked; block it for all but the hosts of the job",
			o->base.provider);
	}
	if (conf->admitted_only)
		cop_endpoint_ofi_admit_init(o);
	cop_endpoint_ofi_unverified_init(o);
	cop_portguard_none(o->listening);
	return 0;
}

/* out is set before the thread starts, whose first callback may be immediate. */
static int start_progress(struct ofi *o, struct cop_endpoint **out)
{
	int rc;

	*out = &o->base;
	rc = cop_thread_start(&o->thread, "cop-fabric", cop_endpoint_ofi_main, o);
	o->thread_started = rc == 0;
	return rc;
}

/* The libfabric at run time may differ from the one at link time. */
static int check_version(uint32_t found, struct cop_err *err)
{
	if (FI_VERSION_GE(found, API_VERSION))
		return 0;
	return cop_err_set(err, ENOSYS,
		"libfabric %u.%u, which this program found when it started, is too old: it needs 1.15 or newer; put the directory of a newer one into LD_LIBRARY_PATH, or load "
		"the site's module",
		FI_MAJOR(found), FI_MINOR(found));
}

int cop_endpoint_ofi_open(const struct cop_endpoint_conf *conf, int mr_mode,
	struct cop_endpoint **out, struct cop_err *err)
{
	struct bind_to b = {0};
	struct ofi *o;
	int rc;

	cop_endpoint_prepare_env();
	rc = check_version(fi_version(), err);
	if (rc)
		return rc;
	o = ofi_new(conf);
	if (!o)
		return cop_err_set(
			err, ENOMEM, "cannot open an endpoint: out of memory or of descriptors");
	rc = cop_endpoint_net_type_parse(conf->net_type, &o->net);
	if (rc) {
		rc = cop_err_set(err, EINVAL,
			"\"%s\" is not a net type; give a provider, such as tcp, shm or cxi, and where it matters the device, such as tcp://eth0",
			conf->net_type);
	} else {
		o->naming.scheme = o->net.scheme;
		o->naming.form = o->net.form;
		rc = choose_bind(conf, &o->net, &b, err);
		if (rc == 0 && (rc = open_on_port(o, conf, &b, mr_mode)))
			rc = fail_open(conf, o, &b, rc, err);
		else if (rc == 0 && (rc = start_portguard(o, conf, err)) == 0 &&
			 (rc = start_progress(o, out)))
			rc = fail_open(conf, o, &b, rc, err);
	}
	if (rc) {
		*out = NULL;
		cop_endpoint_ofi_close(&o->base);
		return rc;
	}
	cop_log_info("fabric address=%s provider=%s", o->base.address, o->base.provider);
	return 0;
}

int cop_endpoint_open(
	const struct cop_endpoint_conf *conf, struct cop_endpoint **out, struct cop_err *err)
{
	return cop_endpoint_ofi_open(conf,
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT,
		out, err);
}
