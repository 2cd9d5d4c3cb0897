/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

#define FIRST_SLOTS ((size_t)64)

/* The slot that holds hash, or the free slot where it belongs. */
static size_t slot_of(const uint64_t *slot, size_t slots, uint64_t hash)
{
	size_t at = hash & (slots - 1);

	while (slot[at] && slot[at] != hash)
		at = (at + 1) & (slots - 1);
	return at;
}

/* Maps hash 0 to another value, because 0 marks a free slot. */
static uint64_t as_kept(uint64_t hash)
{
	return hash + !hash;
}

static bool grow(struct cop_seen *s)
{
	size_t slots = s->slots ? 2 * s->slots : FIRST_SLOTS;
	uint64_t *slot = calloc(slots, sizeof(*slot));

	if (!slot)
		return false;
	for (size_t i = 0; i < s->slots; i++)
		if (s->hash[i])
			slot[slot_of(slot, slots, s->hash[i])] = s->hash[i];
	free(s->hash);
	s->hash = slot;
	s->slots = slots;
	return true;
}

bool cop_seen_has(const struct cop_seen *s, uint64_t hash)
{
	hash = as_kept(hash);
	return s->slots && s->hash[slot_of(s->hash, s->slots, hash)] == hash;
}

enum cop_seen_result cop_seen_add(struct cop_seen *s, uint64_t hash, size_t most)
{
	if (cop_seen_has(s, hash))
		return COP_SEEN_BEFORE;
	if (s->count >= most || (2 * (s->count + 1) > s->slots && !grow(s)))
		return COP_SEEN_FULL;
	hash = as_kept(hash);
	s->hash[slot_of(s->hash, s->slots, hash)] = hash;
	s->count++;
	return COP_SEEN_NEW;
}

void cop_seen_forget(struct cop_seen *s)
{
	free(s->hash);
	*s = (struct cop_seen){0};
}
