/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/rpc/rpc_priv.h"

int cop_rpc_open_fake(const struct cop_rpc_conf *conf, struct cop_endpoint_net *net,
	const char *name, struct cop_rpc **out)
{
	struct cop_endpoint_conf fc = {0};
	struct cop_endpoint *fabric;
	struct cop_rpc *r = cop_rpc_new(conf, 0);
	int rc;

	if (!r)
		return -ENOMEM;
	r->fake = true;
	fc.events = cop_rpc_events(r);
	rc = cop_endpoint_fake_open(net, name, &fc, &fabric);
	if (rc) {
		cop_rpc_unref(r);
		return rc;
	}
	atomic_store_explicit(&r->fabric, fabric, memory_order_release);
	*out = r;
	return 0;
}
