/* SPDX-License-Identifier: BSD-3-Clause */
#include "fabric/rpc/rpc_priv.h"

struct link *cop_rpc_link_get(struct cop_rpc *r, const char *text, size_t len)
{
	uint64_t hash = cop_hash64(text, len, 0);
	struct cop_hlink *same = cop_htab_first(&r->links, hash);
	cop_endpoint_peer_t fpeer;
	struct link *l;

	if (same) {
		l = COP_CONTAINER_OF(same, struct link, by_text);
		/* If two addresses have the same hash, the second is refused, which affects only
		 * its owner. */
		if (l->len != len || memcmp(l->text, text, len))
			return NULL;
		l->refs++;
		return l;
	}
	l = calloc(1, sizeof(*l) + len + 1);
	if (!l)
		return NULL;
	memcpy(l->text, text, len);
	l->len = len;
	l->refs = 1;
	if (cop_rpc_link_open(r, l, &fpeer)) {
		free(l);
		return NULL;
	}
	cop_htab_add(&r->links, &l->by_text, hash);
	return l;
}

void cop_rpc_link_put(struct cop_rpc *r, struct link *l)
{
	if (!l || --l->refs)
		return;
	cop_htab_remove(&r->links, &l->by_text);
	cop_rpc_link_reset(r, l);
	free(l);
}

void cop_rpc_link_reset(struct cop_rpc *r, struct link *l)
{
	if (!l || !l->open)
		return;
	l->open = false;
	cop_endpoint_peer_drop(r->fabric, l->fpeer);
}

int cop_rpc_link_open(struct cop_rpc *r, struct link *l, cop_endpoint_peer_t *fpeer)
{
	int rc;

	if (!l->open) {
		rc = cop_endpoint_peer(r->fabric, l->text, &l->fpeer);
		if (rc)
			return rc;
		l->open = true;
	}
	*fpeer = l->fpeer;
	return 0;
}

int cop_rpc_link_reopen(struct cop_rpc *r, struct link *l, cop_endpoint_peer_t *fpeer)
{
	l->open = false;
	return cop_rpc_link_open(r, l, fpeer);
}

int cop_rpc_link_send(struct cop_rpc *r, struct link *l, const void *msg, size_t len)
{
	cop_endpoint_peer_t fpeer;
	int rc = len ? cop_rpc_link_open(r, l, &fpeer) : -EMSGSIZE;

	if (rc)
		return rc;
	/* The peer's reply or silence shows whether it arrived. */
	rc = cop_endpoint_send(r->fabric, fpeer, msg, len, NULL, NULL);
	if (rc == -ENOENT && !cop_rpc_link_reopen(r, l, &fpeer))
		rc = cop_endpoint_send(r->fabric, fpeer, msg, len, NULL, NULL);
	if (!rc)
		cop_stats_add(r->conf.stats, COP_FABRIC_BYTES_OUT, len);
	return rc;
}

bool cop_rpc_may_retry(int rc)
{
	return rc == -EAGAIN || rc == -ENOBUFS || rc == -ENOMEM;
}

int cop_rpc_link_send_sealed(struct cop_rpc *r, struct link *l, struct cop_frame_tx *tx,
	const struct cop_frame *f, const void *payload, size_t len)
{
	uint8_t msg[COP_FRAME_OVERHEAD + 8 * PING_IDS];
	struct cop_wr w = cop_frame_begin(msg, sizeof(msg), f);

	cop_wr_bytes(&w, payload, len);
	return cop_rpc_link_send(r, l, msg, cop_frame_seal(tx, &w));
}
