/* SPDX-License-Identifier: BSD-3-Clause */
/* Absent names. A complete listing proves them, as long as the directory is unchanged; how long
 * that is taken for granted. */
#include "coop/coop_priv.h"

/* A directory that was found unchanged is believed as long again as it has been the same: what has
 * just been made is still being changed, and whoever waits for a name there sees it soon.
 *
 * Only this node believes for longer. Its kernel and the nodes above keep to the TTL: times that
 * grew at each of them would add up, and a kernel cannot be told to forget what it takes for
 * absent, because nobody has a list of that. */
uint32_t cop_coop_absent_ms(const struct cop_coop *c, const struct cop_obj *listing)
{
	/* What came this very millisecond is not checked. */
	uint64_t least = COP_MAX(c->conf.enoent_ttl_ms, 1), now_ms = cop_now_ms();
	uint64_t checked_ms = atomic_load(&listing->stamp_ms);
	uint64_t same_ms = checked_ms - COP_MIN(listing->came_ms, checked_ms);
	uint64_t until_ms = checked_ms + COP_MAX(least, COP_MIN(same_ms, c->conf.enoent_most_ms));

	return until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0;
}
