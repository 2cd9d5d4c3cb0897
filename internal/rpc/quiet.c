/* SPDX-License-Identifier: BSD-3-Clause */
/* Taking back all questions, before what their answers would touch is freed, while others may still
 * hear answers of this node. */
#include "rpc/rpc_priv.h"

#include <errno.h>

/* Bytes of an answer may be on their way into memory that goes back to its owner with the call. */
static bool may_be_written(const struct peer *p)
{
	for (const struct cop_list *at = p->inflight.next; at != &p->inflight; at = at->next)
		if (COP_CONTAINER_OF(at, struct call, at)->mr)
			return true;
	return false;
}

/* What the callbacks ask next goes to the inbox, and from there the same way. */
static void quiet(struct cop_rpc *r)
{
	struct cop_rpc *outer;

	cop_rpc_enter(r, &outer);
	r->quiet = true;
	for (struct cop_list *at = r->peers_used.next; at != &r->peers_used; at = at->next) {
		struct peer *p = COP_CONTAINER_OF(at, struct peer, at);

		if (may_be_written(p))
			cop_rpc_link_reset(r, p->link);
		cop_rpc_calls_fail(r, p, -ECANCELED);
	}
	cop_rpc_leave(r, outer);
}

void cop_rpc_quiet(struct cop_rpc *r)
{
	cop_rpc_there(r, quiet);
}
