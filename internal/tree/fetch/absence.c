/* SPDX-License-Identifier: BSD-3-Clause */
/* Absent names. A complete listing proves that a name is absent, as long as the directory is
 * unchanged. This file decides how long that is believed. */
#include "tree/fetch/fetch_priv.h"

/* A directory that was found unchanged is believed for as long again as it has been unchanged: a
 * new directory is still being changed, and whoever waits for a name there sees it soon.
 *
 * Only this node believes for longer. Its kernel and the nodes above keep to the TTL. Times that
 * grew at each of them would add up, and a kernel cannot be told to forget the names that it takes
 * for absent, because nobody has a list of them. */
uint32_t cop_fetch_absent_ms(const struct cop_fetch *c, const struct cop_obj *listing)
{
	/* A listing that arrived in this very millisecond is not checked. */
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

/* The storage was asked for this name when the directory had the names that it has now, as far as
 * this node knows. Who looks for a name has checked that the listing is right, or got it together
 * with this answer. */
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
