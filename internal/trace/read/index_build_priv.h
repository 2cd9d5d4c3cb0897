/* SPDX-License-Identifier: BSD-3-Clause */
/* An index while it is made: index_build.c reads the file, index_put.c writes what was found. */
#ifndef COP_TRACE_READ_INDEX_BUILD_PRIV_H
#define COP_TRACE_READ_INDEX_BUILD_PRIV_H

#include "base/base/grow.h"
#include "trace/read/index_priv.h"

/* A word as it is being counted. */
struct entry {
	struct cop_hlink link;
	struct index_word word;
	uint32_t id;
	size_t chunk;  /* the last one that has it, and one more */
	uint64_t kept; /* bytes */
	bool common;
	char bytes[];
};
/* A kept event: this, then its text. */
struct kept {
	size_t chunk, len;
	uint32_t name; /* UINT32_MAX: metadata */
	uint8_t kind;
};
struct build {
	struct sink sink; /* first */
	struct block block;
	struct source *s;
	int fd; /* the index */
	double share;
	uint64_t at, windows, file_size, chunk_bytes;
	int rc;
	struct index x;
	size_t point_cap, chunk_cap, id_cap, group_cap;
	struct cop_htab table[COP_TRACE_WORDS];
	struct entry **entry[COP_TRACE_WORDS], *last[COP_TRACE_WORDS];
	size_t entry_cap[COP_TRACE_WORDS];
	struct cop_buf kept;
	uint64_t kept_most;
	uint64_t events;
	struct {
		uint32_t *at;
		size_t n, cap;
	} now[COP_TRACE_WORDS]; /* of the chunk */
};

/* COP_GROW; without memory the build fails. */
#define GROW(b, array, n, cap)                                                                     \
	({                                                                                         \
		void *room = COP_GROW(array, n, cap);                                              \
		if (!room)                                                                         \
			(b)->rc = -ENOMEM;                                                         \
		room;                                                                              \
	})

/* ---- index_build.c ---- */

/* Names of which more than most bytes are kept are common from now on. */
void cop_index_make_common(struct build *b, uint64_t most);
/* Drops the kept events of names that are common. */
void cop_index_squeeze(struct build *b);

/* ---- index_put.c ---- */

/* Writes everything but the head's place. 0, -E2BIG: the index would be too large, or -errno. */
int cop_index_put_all(struct build *b, const struct index_key *key);

#endif
