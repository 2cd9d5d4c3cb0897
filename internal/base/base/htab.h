/* SPDX-License-Identifier: BSD-3-Clause */
/* A hash table of entries that carry their own link: chains, as in Knuth, The Art of Computer
 * Programming, volume 3, section 6.4. It allocates the heads of its chains and nothing else, copies
 * no key and compares none: the caller hashes (cop_hash64, which is XXH3, or any number whose low
 * bits differ from key to key) and looks through the entries of one hash. It has no lock.
 *
 *	for (l = cop_htab_first(t, hash); l && !is_mine(l); l = cop_htab_next(l))
 *		;
 *
 * The heads double whenever there is an entry for each, up to COP_HTAB_HEADS_MAX; every entry moves
 * then, at once. From there on, or if memory for more heads is short, chains only become longer, so
 * that an entry can always be added. The heads never become fewer before cop_htab_fini.
 */
#ifndef COP_BASE_HTAB_H
#define COP_BASE_HTAB_H

#include "base/base/base.h"

#define COP_HTAB_HEADS_MAX ((size_t)1 << 27)

struct cop_hlink {
	struct cop_hlink *next; /* in its chain */
	uint64_t hash;
};

/* Zeroed memory is an empty table. */
struct cop_htab {
	struct cop_hlink **head; /* NULL: `one` is all there is */
	struct cop_hlink *one;
	size_t mask, count;
};

void cop_htab_add(struct cop_htab *t, struct cop_hlink *l, uint64_t hash);
/* Removes the entry, which must be in the table. Its link is free for other uses afterwards. */
void cop_htab_remove(struct cop_htab *t, struct cop_hlink *l);
/* Walks the table in its own order: l NULL gives the first entry, else the one after l; NULL at the
 * end. l may be removed once its successor is known. An entry that is added meanwhile may or may
 * not be visited; if adding it doubles the heads, other entries may be visited twice or not at
 * all. */
struct cop_hlink *cop_htab_after(const struct cop_htab *t, const struct cop_hlink *l);
/* Frees the heads and leaves the table empty; the entries are the caller's. */
void cop_htab_fini(struct cop_htab *t);

static inline struct cop_hlink **cop_htab_head(const struct cop_htab *t, uint64_t hash)
{
	return t->head ? &t->head[hash & t->mask] : (struct cop_hlink **)&t->one;
}
static inline struct cop_hlink *cop_htab_match(struct cop_hlink *l, uint64_t hash)
{
	while (l && l->hash != hash)
		l = l->next;
	return l;
}
/* The first entry with this hash, which is the one added last; NULL if there is none. */
static inline struct cop_hlink *cop_htab_first(const struct cop_htab *t, uint64_t hash)
{
	return cop_htab_match(*cop_htab_head(t, hash), hash);
}
/* The next entry with the same hash. */
static inline struct cop_hlink *cop_htab_next(const struct cop_hlink *l)
{
	return cop_htab_match(l->next, l->hash);
}

#endif
