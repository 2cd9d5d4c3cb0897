/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_NODE_NET_PRIV_H
#define COP_NODE_NET_PRIV_H

#include "net.h"

struct cop_net {
	struct cop_net_conf conf;
	struct cop_reach *reach;
	struct cop_fetch *fetch; /* constant once the gate is open */
};

/* On the progress thread: serves a request of another node. net is a struct cop_net. */
void cop_net_serve(void *net, struct cop_rpc_req *req);

#endif
