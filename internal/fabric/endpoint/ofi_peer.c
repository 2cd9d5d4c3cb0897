/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer table: maps address text to a slot, and a slot to the provider's address. An id consists
 * of slot and generation: a stale id of a dropped peer never matches another peer. */
#include "fabric/endpoint/ofi_priv.h"

#include <assert.h>

static struct ofi_peer *peer_of(struct cop_hlink *l)
{
	return l ? COP_CONTAINER_OF(l, struct ofi_peer, link) : NULL;
}

static uint64_t text_hash(const char *address)
{
	return cop_hash64(address, strlen(address), 0);
}

static struct ofi_peer *find_peer(struct ofi *o, const char *address)
{
	struct cop_hlink *l = cop_htab_first(&o->peers_by_text, text_hash(address));

	while (l && strcmp(peer_of(l)->address, address) != 0)
		l = cop_htab_next(l);
	return peer_of(l);
}

static int grow_peers(struct ofi *o)
{
	uint32_t cap = o->peers_cap ? 2 * o->peers_cap : 64;
	void *peers, *generation, *slots;

	if (cap > COP_OFI_PEERS_MAX)
		return -ENOSPC;
	peers = realloc(o->peers, cap * sizeof(*o->peers));
	if (!peers)
		return -ENOMEM;
	o->peers = peers;
	generation = realloc(o->generation, cap * sizeof(*o->generation));
	if (!generation)
		return -ENOMEM;
	o->generation = generation;
	slots = realloc(o->free_slots, cap * sizeof(*o->free_slots));
	if (!slots)
		return -ENOMEM;
	o->free_slots = slots;
	memset(o->peers + o->peers_cap, 0, (cap - o->peers_cap) * sizeof(*o->peers));
	memset(o->generation + o->peers_cap, 0, (cap - o->peers_cap) * sizeof(*o->generation));
	o->peers_cap = cap;
	return 0;
}

static int alloc_slot(struct ofi *o, uint32_t *slot)
{
	int rc;

	if (o->free_count) {
		*slot = o->free_slots[--o->free_count];
		return 0;
	}
	if (o->peers_count == o->peers_cap && (rc = grow_peers(o)))
		return rc;
	*slot = o->peers_count++;
	return 0;
}

static int insert_peer(struct ofi *o, const char *address, const void *raw, struct ofi_peer **out)
{
	struct ofi_peer *p = calloc(1, sizeof(*p));
	uint32_t slot;
	int rc;

	if (!p)
		return -ENOMEM;
	rc = fi_av_insert(o->av, raw, 1, &p->addr, 0, NULL);
	if (rc != 1) {
		free(p);
		return rc < 0 ? cop_endpoint_ofi_errno(rc) : -EINVAL;
	}
	rc = alloc_slot(o, &slot);
	if (rc) {
		fi_av_remove(o->av, &p->addr, 1, 0);
		free(p);
		return rc;
	}
	p->id = (uint64_t)++o->generation[slot] << 32 | slot;
	snprintf(p->address, sizeof(p->address), "%s", address);
	cop_list_init(&p->busy);
	cop_list_init(&p->sends);
	cop_list_init(&p->writes);
	cop_htab_add(&o->peers_by_text, &p->link, text_hash(address));
	o->peers[slot] = p;
	*out = p;
	return 0;
}

/* All spellings of an address map to one peer: the key is our canonical spelling. */
int cop_endpoint_ofi_peer(struct cop_endpoint *f, const char *address, cop_endpoint_peer_t *peer)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	char own[COP_ENDPOINT_TEXT_MAX];
	_Alignas(16) unsigned char raw[COP_ENDPOINT_RAW_MAX] = {0};
	struct ofi_peer *p;
	size_t raw_len;
	int rc;

	assert(cop_endpoint_ofi_on_thread(o));
	if (o->stopping)
		return -ESHUTDOWN;
	rc = cop_endpoint_address_parse(&o->naming, address, raw, &raw_len);
	if (rc == 0)
		rc = cop_endpoint_address_print(&o->naming, raw, raw_len, own, sizeof(own));
	if (rc)
		return rc;
	p = find_peer(o, own);
	if (!p) {
		cop_endpoint_ofi_admit_raw(o, raw, raw_len);
		rc = o->key.mac ? cop_portguard_peer(&o->key, o->base.rejected, raw, raw_len) : 0;
		if (rc == 0)
			rc = insert_peer(o, own, raw, &p);
		if (rc)
			return rc;
	}
	*peer = p->id;
	return 0;
}

struct ofi_peer *cop_endpoint_ofi_peer_get(struct ofi *o, cop_endpoint_peer_t id)
{
	uint32_t slot = (uint32_t)id;

	if (slot >= o->peers_count || !o->peers[slot] || o->peers[slot]->id != id)
		return NULL;
	return o->peers[slot];
}

void cop_endpoint_ofi_peer_free_if_unused(struct ofi_peer *p)
{
	if (p->dropped && p->flying == 0)
		free(p);
}

void cop_endpoint_ofi_peer_drop(struct cop_endpoint *f, cop_endpoint_peer_t peer)
{
	struct ofi *o = cop_endpoint_ofi_of(f);
	struct ofi_peer *p = cop_endpoint_ofi_peer_get(o, peer);
	uint32_t slot = (uint32_t)peer;

	assert(cop_endpoint_ofi_on_thread(o));
	if (!p)
		return;
	cop_htab_remove(&o->peers_by_text, &p->link);
	o->peers[slot] = NULL;
	o->free_slots[o->free_count++] = slot;
	/* Counts as an operation in flight: done may drop the peer. */
	p->flying++;
	p->dropped = true;
	/* After a failed connection (no route, host powered off), rxm of libfabric 1.17 keeps a
	 * connection without an endpoint, and removing its address crashes the process. So the
	 * address stays, and the next peer with that address uses it. With operations in flight
	 * there is an endpoint, and removal ends them. */
	if (o->av && (p->connected || p->sends_flying || p->parts))
		fi_av_remove(o->av, &p->addr, 1, 0);
	cop_endpoint_ofi_cancel(p, -ECANCELED);
	p->flying--;
	cop_endpoint_ofi_peer_free_if_unused(p);
}

void cop_endpoint_ofi_peers_fini(struct ofi *o)
{
	for (uint32_t i = 0; i < o->peers_count; i++)
		free(o->peers[i]);
	free(o->peers);
	free(o->generation);
	free(o->free_slots);
	cop_htab_fini(&o->peers_by_text);
}
