/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions: each calls the implementation behind the endpoint. */
#include "fabric/fabric/fabric_priv.h"

#include <string.h>

void cop_fabric_close(struct cop_fabric *f)
{
	if (f)
		f->ops->close(f);
}

const char *cop_fabric_address(const struct cop_fabric *f)
{
	return f->address;
}

const char *cop_fabric_provider(const struct cop_fabric *f)
{
	return f->provider;
}

const char *cop_fabric_network(const struct cop_fabric *f)
{
	return f->network;
}

const char *cop_fabric_net_device(const char *net_type)
{
	const char *sep = net_type ? strstr(net_type, "://") : NULL;
	const char *card = net_type && !sep ? cop_fabric_bare_card(net_type) : NULL;

	return sep ? sep + 3 : card ? card : "";
}

void cop_fabric_networks(const struct cop_fabric *f, struct cop_buf *out)
{
	if (f->ops->networks)
		f->ops->networks(f, out);
}

void cop_fabric_near_cpus(const struct cop_fabric *f, struct cop_buf *out)
{
	if (f->ops->near_cpus)
		f->ops->near_cpus(f, out);
}

int cop_fabric_post(struct cop_fabric *f, void (*fn)(void *arg), void *arg)
{
	return f->ops->post(f, fn, arg);
}

void cop_fabric_keep_ticking(struct cop_fabric *f, bool on)
{
	f->ops->keep_ticking(f, on);
}

void cop_fabric_admit(struct cop_fabric *f, const char *address)
{
	if (f->ops->admit)
		f->ops->admit(f, address);
}

int cop_fabric_peer(struct cop_fabric *f, const char *address, cop_fabric_peer_t *peer)
{
	return f->ops->peer(f, address, peer);
}

void cop_fabric_peer_drop(struct cop_fabric *f, cop_fabric_peer_t peer)
{
	f->ops->peer_drop(f, peer);
}

int cop_fabric_send(struct cop_fabric *f, cop_fabric_peer_t peer, const void *msg, size_t len,
	cop_fabric_done *done, void *arg)
{
	return f->ops->send(f, peer, msg, len, done, arg);
}

int cop_fabric_write(struct cop_fabric *f, cop_fabric_peer_t peer, const void *buf, size_t len,
	uint64_t remote_addr, uint64_t remote_key, cop_fabric_done *done, void *arg)
{
	return f->ops->write(f, peer, buf, len, remote_addr, remote_key, done, arg);
}

int cop_fabric_reg(struct cop_fabric *f, void *buf, size_t len, struct cop_fabric_mr **mr,
	uint64_t *addr, uint64_t *key)
{
	return f->ops->reg(f, buf, len, mr, addr, key);
}

void cop_fabric_unreg(struct cop_fabric_mr *mr)
{
	if (mr)
		mr->fabric->ops->unreg(mr);
}
