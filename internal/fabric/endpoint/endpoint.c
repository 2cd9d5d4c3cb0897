/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions, each calling the endpoint's implementation. */
#include "fabric/endpoint/endpoint_priv.h"

void cop_endpoint_close(struct cop_endpoint *f)
{
	if (f)
		f->ops->close(f);
}

const char *cop_endpoint_address(const struct cop_endpoint *f)
{
	return f->address;
}

const char *cop_endpoint_provider(const struct cop_endpoint *f)
{
	return f->provider;
}

const char *cop_endpoint_network(const struct cop_endpoint *f)
{
	return f->network;
}

const char *cop_endpoint_net_device(const char *net_type)
{
	const char *sep = net_type ? strstr(net_type, "://") : NULL;
	const char *card = net_type && !sep ? cop_endpoint_bare_card(net_type) : NULL;

	return sep ? sep + 3 : card ? card : "";
}

void cop_endpoint_networks(const struct cop_endpoint *f, struct cop_buf *out)
{
	if (f->ops->networks)
		f->ops->networks(f, out);
}

void cop_endpoint_near_cpus(const struct cop_endpoint *f, struct cop_buf *out)
{
	if (f->ops->near_cpus)
		f->ops->near_cpus(f, out);
}

int cop_endpoint_post_all(struct cop_endpoint *f, struct cop_list *works)
{
	return f->ops->post(f, works);
}

int cop_endpoint_post(struct cop_endpoint *f, struct cop_endpoint_work *w)
{
	struct cop_list works;

	cop_list_init(&works);
	cop_list_push_back(&works, &w->link);
	return f->ops->post(f, &works);
}

void cop_endpoint_keep_ticking(struct cop_endpoint *f, bool on)
{
	f->ops->keep_ticking(f, on);
}

void cop_endpoint_admit(struct cop_endpoint *f, const char *address)
{
	if (f->ops->admit)
		f->ops->admit(f, address);
}

int cop_endpoint_peer(struct cop_endpoint *f, const char *address, cop_endpoint_peer_t *peer)
{
	return f->ops->peer(f, address, peer);
}

void cop_endpoint_peer_drop(struct cop_endpoint *f, cop_endpoint_peer_t peer)
{
	f->ops->peer_drop(f, peer);
}

int cop_endpoint_send(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *msg, size_t len,
	cop_endpoint_done *done, void *arg)
{
	return f->ops->send(f, peer, msg, len, done, arg);
}

int cop_endpoint_write(struct cop_endpoint *f, cop_endpoint_peer_t peer, const void *buf,
	size_t len, uint64_t remote_addr, uint64_t remote_key, cop_endpoint_done *done, void *arg)
{
	return f->ops->write(f, peer, buf, len, remote_addr, remote_key, done, arg);
}

int cop_endpoint_reg(struct cop_endpoint *f, void *buf, size_t len, struct cop_endpoint_mr **mr,
	uint64_t *addr, uint64_t *key)
{
	return f->ops->reg(f, buf, len, mr, addr, key);
}

void cop_endpoint_unreg(struct cop_endpoint_mr *mr)
{
	if (mr)
		mr->fabric->ops->unreg(mr);
}
