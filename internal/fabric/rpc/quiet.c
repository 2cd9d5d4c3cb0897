/* SPDX-License-Identifier: BSD-3-Clause */
/* Cancels all of this node's calls before the memory for their results is freed, while this node
 * may still serve other nodes. */
#include "fabric/rpc/rpc_priv.h"

bool cop_rpc_may_be_written(const struct peer *p)
{
	for (const struct cop_list *at = p->inflight.next; at != &p->inflight; at = at->next)
		if (COP_CONTAINER_OF(at, struct call, at)->mr)
			return true;
	return false;
}

/* Calls made by the callbacks wait for leave, and are cancelled there. */
static void make_quiet(struct cop_rpc *r)
{
	struct cop_rpc *outer;

	cop_rpc_enter(r, &outer);
	r->quiet = true;
	for (struct cop_list *at = r->peers_used.next; at != &r->peers_used; at = at->next) {
		struct peer *p = COP_CONTAINER_OF(at, struct peer, at);

		if (cop_rpc_may_be_written(p))
			cop_rpc_link_reset(r, p->link);
		cop_rpc_calls_fail(r, p, -ECANCELED);
	}
	cop_rpc_leave(r, outer);
}

void cop_rpc_quiet(struct cop_rpc *r)
{
	cop_rpc_run_on_thread(r, make_quiet);
}
