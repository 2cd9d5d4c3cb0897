/* SPDX-License-Identifier: BSD-3-Clause */
/* Absent names. A complete listing proves that a name is absent while the directory is unchanged.
 * This file decides how long such a proof is valid. */
#include "tree/fetch/fetch_priv.h"

/* The TTL grows with the time that the directory has been unchanged: a new directory is probably
 * still changing, and a program that polls for a name there must see it soon.
 *
 * The TTL grows only in this daemon; the kernel and the nodes above use the fixed TTL. Growth would
 * add up from node to node, and the kernel cannot be told to forget its negative dentries, because
 * nothing lists them. */
uint32_t cop_fetch_absent_ms(const struct cop_fetch *c, const struct cop_obj *listing)
{
	/* At least 1 ms, so that a listing that has just arrived is not checked. */
	uint64_t least = COP_MAX(c->conf.enoent_ttl_ms, 1), now_ms = cop_now_ms();
	uint64_t checked_ms = atomic_load(&listing->stamp_ms);
	uint64_t same_ms = checked_ms - COP_MIN(listing->came_ms, checked_ms);
	uint64_t until_ms = checked_ms + COP_MAX(least, COP_MIN(same_ms, c->conf.enoent_most_ms));

	return until_ms > now_ms ? (uint32_t)(until_ms - now_ms) : 0;
}

uint32_t cop_fetch_missed_ms(struct cop_fetch *c, struct cop_obj *listing)
{
	cop_guess_missed(c->guess, listing);
	return cop_fetch_absent_ms(c, listing);
}

/* The storage reported this name absent while the directory had the names that are in this node's
 * listing. The caller has already validated the listing, or received it together with this answer.
 */
bool cop_fetch_is_absent_still(struct cop_fetch *c, const struct cop_obj *absent)
{
	struct cop_fetch_name at = cop_fetch_split(absent->key.path);
	struct cop_key key = {.table = COP_TABLE_TREE, .path = at.path, .path_len = at.dir_len};
	struct cop_obj *listing = cop_cache_peek(c->conf.cache, &key);
	struct cop_listing_entry e;
	bool still;

	if (!listing)
		return false;
	still = !listing->error && !atomic_load(&listing->disproved) &&
		(cop_listing_flags(listing->data) & COP_LISTING_COMPLETE) &&
		listing->came_ms <= absent->completed_ms &&
		!cop_listing_find(listing->data, at.name, at.name_len, &e);
	cop_obj_put(c->conf.cache, listing);
	return still;
}

bool cop_fetch_was_checked(struct cop_fetch *c, const struct cop_ask *ask, bool local)
{
	struct cop_obj *listing;
	bool checked;

	if (ask->kind != COP_ASK_CHECK)
		return false;
	if (!local)
		return cop_fetch_fresh(c, ask);
	listing = cop_fetch_listing_of(c, ask->path, ask->version);
	checked = listing && cop_fetch_absent_ms(c, listing);
	if (listing)
		cop_obj_put(c->conf.cache, listing);
	return checked;
}

bool cop_fetch_fresh(struct cop_fetch *c, const struct cop_ask *check)
{
	struct cop_obj *obj = cop_fetch_listing_of(c, check->path, check->version);
	bool fresh;

	if (!obj)
		return false;
	fresh = cop_now_ms() - atomic_load(&obj->stamp_ms) <= c->conf.enoent_ttl_ms;
	cop_obj_put(c->conf.cache, obj);
	return fresh;
}
