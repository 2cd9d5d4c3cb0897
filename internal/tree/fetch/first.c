/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries with the first bytes of a file.
 *
 * If a directory's listing has no attributes, reading a small file takes two sequential requests:
 * one for its entry, which has the version and size, and one for its bytes. If the file will
 * probably be read, a single request fetches both. It is a request for the entry and uses the
 * entry's flight, so later requests for the same entry join it.
 *
 * The serving node fetches the entry and then the chunk, as it would for two requests; at a root,
 * the second read follows the first without a round trip. The answer carries the entry in its head
 * and the bytes in its body. If anything about the bytes is in doubt, the answer is just the entry,
 * because the flag is only a hint. The requester validates the two parts like two separate answers,
 * and caches the chunk under the key derived from the entry before the entry becomes visible.
 *
 * Nothing reads the bytes yet, so an answer that contradicts the name has no effect (names.c), and
 * nothing is evicted to make room for them. guess selects the lookups that request first bytes. */
#include "tree/fetch/fetch_priv.h"

#include <sys/stat.h>

bool cop_fetch_first_of(const struct cop_fetch *c, const struct cop_obj *entry, struct cop_ask *ask)
{
	struct cop_attr attr;

	if (entry->error)
		return false;
	cop_entry_get(entry->data, &attr, NULL, NULL);
	*ask = (struct cop_ask){.kind = COP_ASK_CHUNK,
		.path = entry->key.path,
		.version = attr.version,
		.size = attr.size};
	/* The same conditions as for siblings: a file without blocks may be on tape, and a young
	 * version may still change. */
	return S_ISREG(attr.mode) && attr.size > 0 && attr.size <= cop_fetch_largest_small(c) &&
	       attr.blocks > 0 && !cop_version_is_young(attr.version);
}

/* ---- the requester ---- */

static bool asks_nobody(const struct flight *f)
{
	return !f->fetch->conf.rpc || cop_fetch_is_root(f);
}

bool cop_fetch_follows(const struct flight *f)
{
	return cop_fetch_wants_first(&f->ask) && (f->ask.along || asks_nobody(f));
}

/* Maximum number of first bytes. */
static size_t most_bytes(const struct cop_fetch *c)
{
	return COP_MIN((size_t)COP_GUESS_FILE_BYTES, c->conf.chunk_bytes);
}

static bool has_headroom(const struct cop_fetch *c)
{
	return cop_cache_has_headroom(c->conf.cache, COP_FETCH_ENTRY_BYTES + most_bytes(c));
}

size_t cop_fetch_first_reservation(struct flight *f)
{
	const struct cop_fetch *c = f->fetch;

	if (!f->ask.first)
		return 0;
	f->ask.first = !asks_nobody(f) && has_headroom(c);
	return f->ask.first ? most_bytes(c) : 0;
}

/* ---- output ---- */

static bool are_valid(
	const struct flight *f, const struct cop_attr *attr, const struct cop_completion *l)
{
	if (!S_ISREG(attr->mode) || !attr->size || attr->size > most_bytes(f->fetch) ||
		cop_hash64(l->data, l->len, f->fetch->conf.sum_seed) != l->sum)
		return false;
	return l->packed ? cop_pack_check(l->data, l->len, (size_t)attr->size) == 0
			 : l->len == attr->size;
}

/* Leads a flight for the bytes, with its part of the reservation; NULL if the bytes are cached or
 * in flight, or if memory is short. */
static struct flight *lead_bytes(struct flight *f, const struct cop_ask *ask, size_t len)
{
	struct cop_fetch *c = f->fetch;
	struct cop_key key = cop_fetch_key(ask);
	struct flight *g = NULL;
	struct cop_obj *obj = NULL;

	cop_fetch_lock_groups(c);
	/* group_lock excludes other leaders. */
	if (!cop_cache_has(c->conf.cache, &key) &&
		cop_cache_find(c->conf.cache, &key, NULL, &obj) == COP_FOUND_LEAD)
		g = cop_fetch_new_flight(c, ask, obj, f->local);
	cop_fetch_unlock_groups(c);
	if (g) {
		g->upstream = f->upstream;
		cop_cache_share_reservation(c->conf.cache, f->obj, obj, len);
		f->reserved -= len;
	} else if (obj) {
		cop_cache_complete(c->conf.cache, obj, &(struct cop_completion){.rc = -ENOMEM});
	}
	return g;
}

static void keep_bytes(
	struct flight *f, const struct cop_attr *attr, const struct cop_completion *bytes)
{
	struct cop_fetch *c = f->fetch;
	struct cop_ask ask = {.kind = COP_ASK_CHUNK,
		.path = f->ask.path,
		.version = attr->version,
		.size = attr->size,
		.background = true,
		.along = f->local,
		.first = !f->ask.along,
		.mentioned = f->ask.mentioned,
		.from = f->ask.from};
	struct flight *g =
		attr->size <= cop_fetch_largest_small(c) ? lead_bytes(f, &ask, bytes->len) : NULL;

	if (!g) {
		free(bytes->data);
		return;
	}
	if (f->local)
		cop_guess_came(c->guess, f->ask.path, attr->size, !f->ask.along);
	cop_fetch_complete(g, bytes);
}

bool cop_fetch_take_first(struct flight *f, struct cop_rd *head, struct cop_completion *l)
{
	struct cop_completion bytes = *l;
	struct cop_attr attr;
	size_t len;
	const void *blob = cop_rd_rest(head, &len);
	void *entry;

	if (!cop_fetch_wants_first(&f->ask) || !blob || cop_entry_check(blob, len))
		return false;
	cop_entry_get(blob, &attr, NULL, NULL);
	if (!are_valid(f, &attr, l))
		return false;
	entry = malloc(len);
	*l = (struct cop_completion){
		.rc = entry ? 0 : -ENOMEM, .data = entry, .len = entry ? len : 0};
	if (entry)
		memcpy(entry, blob, len);
	keep_bytes(f, &attr, &bytes);
	return true;
}

/* ---- answers without first bytes ---- */

bool cop_fetch_follow_first(
	struct cop_fetch *c, const struct cop_obj *entry, bool read_soon, bool mentioned)
{
	struct cop_obj *obj;
	struct cop_ask ask;
	int rc;

	if (!cop_fetch_first_of(c, entry, &ask))
		return false;
	if (cop_fetch_has(c, &ask) || !cop_cache_has_headroom(c->conf.cache, ask.size))
		return false;
	ask.background = true;
	ask.along = true;
	ask.first = read_soon;
	ask.mentioned = mentioned;
	rc = cop_fetch_get_for(c, &ask, NULL, true, &obj);
	if (rc == 1)
		cop_obj_put(c->conf.cache, obj);
	if (rc == 0)
		cop_guess_came(c->guess, ask.path, ask.size, read_soon);
	return rc == 0;
}

bool cop_fetch_ask_first(struct cop_fetch *c, const char *path, bool mentioned)
{
	struct cop_ask ask = {.kind = COP_ASK_ENTRY,
		.path = path,
		.background = true,
		.along = true,
		.first = true,
		.mentioned = mentioned};
	struct cop_key key = cop_fetch_key(&ask);
	struct cop_obj *obj;
	enum cop_held held;
	bool began = false;
	int rc;

	if (!c->conf.bundle || !cop_guess_may_come(c->guess) || !has_headroom(c))
		return false;
	held = cop_cache_look(c->conf.cache, &key, &obj);
	if (obj) {
		began = cop_fetch_follow_first(c, obj, false, mentioned);
		cop_obj_put(c->conf.cache, obj);
	}
	if (held != COP_HELD_NOT)
		return began;
	rc = cop_fetch_get_for(c, &ask, NULL, true, &obj);
	if (rc == 1)
		cop_obj_put(c->conf.cache, obj);
	return rc == 0;
}

bool cop_fetch_has_first(struct cop_fetch *c, const char *path)
{
	struct cop_ask ask = {.kind = COP_ASK_ENTRY, .path = path};
	struct cop_key key = cop_fetch_key(&ask);
	struct cop_obj *entry;
	enum cop_held held = cop_cache_look(c->conf.cache, &key, &entry);
	bool has;

	if (!entry)
		return held == COP_HELD_FLYING;
	has = !cop_fetch_first_of(c, entry, &ask) || cop_fetch_has(c, &ask);
	cop_obj_put(c->conf.cache, entry);
	return has;
}

void cop_fetch_raise_first(struct cop_fetch *c, const struct cop_ask *entry)
{
	struct cop_obj *obj = cop_fetch_peek(c, entry);
	struct cop_ask ask;

	if (!obj)
		return;
	if (cop_fetch_first_of(c, obj, &ask))
		cop_fetch_raise_priority(c, &ask, true);
	cop_obj_put(c->conf.cache, obj);
}
