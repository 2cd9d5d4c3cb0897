/* SPDX-License-Identifier: BSD-3-Clause */
/* hash: XXH3, sets of hashes, and a window of recent random numbers. */
#ifndef COP_BASE_HASH_H
#define COP_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t cop_hash64(const void *data, size_t len, uint64_t seed);

/* ---- hashes seen before (seen.c) ---- */

/* A set of hashes that does not store the hashed objects; objects with equal hashes count as one.
 * (base/htab.h is for entries that embed a link.) Zeroed memory is an empty set. */
struct cop_seen {
	uint64_t *hash; /* open addressing, at most half full; 0: free slot */
	size_t slots, count;
};

enum cop_seen_result {
	COP_SEEN_NEW,
	COP_SEEN_BEFORE,
	COP_SEEN_FULL, /* not added: the set has reached its maximum size, or memory is short */
};

enum cop_seen_result cop_seen_add(struct cop_seen *s, uint64_t hash, size_t most);
bool cop_seen_has(const struct cop_seen *s, uint64_t hash);
/* Frees the memory; the set is then empty. */
void cop_seen_forget(struct cop_seen *s);

/* ---- recent random numbers ---- */

#define COP_RECENT 1024

/* The last COP_RECENT numbers, identified by their first 8 bytes; empty if zeroed. */
struct cop_recent {
	uint64_t first[COP_RECENT];
	unsigned next;
};

bool cop_recent_has(const struct cop_recent *r, const void *number);
void cop_recent_add(struct cop_recent *r, const void *number);

#endif
