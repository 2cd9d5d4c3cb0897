/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc/rpc_priv.h"

static struct idnode **bucket_of(struct idmap *m, uint64_t id)
{
	return &m->bucket[id % IDMAP_BUCKETS];
}

void cop_rpc_idmap_put(struct idmap *m, struct idnode *n, uint64_t id)
{
	struct idnode **b = bucket_of(m, id);

	n->id = id;
	n->next = *b;
	*b = n;
	m->count++;
}

struct idnode *cop_rpc_idmap_get(const struct idmap *m, uint64_t id)
{
	struct idnode *n = m->bucket[id % IDMAP_BUCKETS];

	while (n && n->id != id)
		n = n->next;
	return n;
}

void cop_rpc_idmap_remove(struct idmap *m, struct idnode *n)
{
	struct idnode **at = bucket_of(m, n->id);

	while (*at && *at != n)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = n->next;
	m->count--;
}
