/* SPDX-License-Identifier: BSD-3-Clause */
/* An intrusive hash table with chaining, as in Knuth, The Art of Computer Programming, volume 3,
 * section 6.4. It allocates only the heads of its chains, and neither copies nor compares keys:
 * the caller computes the hash (cop_hash64, which is XXH3, or any number with well distributed
 * low bits) and searches the entries with that hash. It has no lock.
 *
 * 	for (l = cop_htab_first(t, hash); l && !is_mine(l); l = cop_htab_next(l))
 * 		;
 *
 * The number of heads doubles when it equals the number of entries, up to COP_HTAB_HEADS_MAX;
 * all entries are moved then. At the maximum, or if memory is short, chains only grow longer, so
 * adding an entry never fails. The number of heads never shrinks before cop_htab_fini. */
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
	struct cop_hlink **head; /* NULL: `one` is the only head */
	struct cop_hlink *one;
	size_t mask, count;
};

void cop_htab_add(struct cop_htab *t, struct cop_hlink *l, uint64_t hash);
/* Removes the entry, which must be in the table. Its link may be reused afterwards. */
void cop_htab_remove(struct cop_htab *t, struct cop_hlink *l);
/* Iterates in table order: the first entry if l is NULL, else the entry after l; NULL at the
 * end. l may be removed once its successor is known. Entries added during the iteration may or
 * may not be visited; if the heads double, other entries may be visited twice or not at all. */
struct cop_hlink *cop_htab_after(const struct cop_htab *t, const struct cop_hlink *l);
/* Frees the heads; the table is empty afterwards, and the entries are the caller's. */
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
/* The most recently added entry with this hash; NULL if there is none. */
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
