/* SPDX-License-Identifier: BSD-3-Clause */
/* The links between nodes. With as many trees as nodes, any two nodes may need a link, but a run
 * uses few of them. They are stored in an open-addressing hash table that is keyed by the pair of
 * nodes and at most half full. */
#include "sim.h"

#define LEAST_SLOTS 1024u

static struct sim_link *slot_of(struct sim_link *slot, size_t slots, uint64_t pair)
{
	size_t at = cop_hash64(&pair, sizeof(pair), 0) & (slots - 1);

	while (slot[at].pair && slot[at].pair != pair)
		at = (at + 1) & (slots - 1);
	return &slot[at];
}

static void grow(struct sim *s)
{
	size_t slots = s->links.slots ? 2 * s->links.slots : LEAST_SLOTS;
	struct sim_link *slot = cop_sim_alloc(slots, sizeof(*slot));

	for (size_t i = 0; i < s->links.slots; i++)
		if (s->links.slot[i].pair)
			*slot_of(slot, slots, s->links.slot[i].pair) = s->links.slot[i];
	free(s->links.slot);
	s->links.slot = slot;
	s->links.slots = slots;
}

struct sim_link *cop_sim_link(struct sim *s, uint32_t a, uint32_t b)
{
	uint64_t pair = (uint64_t)COP_MAX(a, b) << 32 | COP_MIN(a, b);
	struct sim_link *link;

	if (2 * s->links.used >= s->links.slots)
		grow(s);
	link = slot_of(s->links.slot, s->links.slots, pair);
	s->links.used += !link->pair;
	link->pair = pair;
	return link;
}

void cop_sim_links_free(struct sim *s)
{
	free(s->links.slot);
}
