/* SPDX-License-Identifier: BSD-3-Clause */
/* State of an index build. index_build.c reads the file; index_put.c writes the result. */
#ifndef COP_TRACE_READ_INDEX_BUILD_PRIV_H
#define COP_TRACE_READ_INDEX_BUILD_PRIV_H

#include "base/base/grow.h"
#include "trace/read/index_priv.h"

/* A word and what is known about it so far. */
struct entry {
	struct cop_hlink link;
	struct index_word word;
	uint32_t id;
	size_t chunk;  /* last chunk that has this word, plus one */
	uint64_t kept; /* total bytes of its kept events */
	bool common;
	char bytes[];
};
/* Header of a kept event; the event's text follows. */
struct kept {
	size_t chunk, len;
	uint32_t name; /* UINT32_MAX: metadata */
	uint8_t kind;
};
struct build {
	struct sink sink; /* must be first */
	struct block block;
	struct source *s;
	int fd; /* of the index file */
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
	} now[COP_TRACE_WORDS]; /* ids of the words in the current chunk */
};

/* COP_GROW that fails the build if memory runs out. */
#define GROW(b, array, n, cap)                                                                     \
	({                                                                                         \
		void *room = COP_GROW(array, n, cap);                                              \
		if (!room)                                                                         \
			(b)->rc = -ENOMEM;                                                         \
		room;                                                                              \
	})

/* ---- index_build.c ---- */

/* Marks the names with the most kept bytes as common, until those of the others total at most
 * `most`. */
void cop_index_make_common(struct build *b, uint64_t most);
/* Drops the kept events of common names. */
void cop_index_squeeze(struct build *b);

/* ---- index_put.c ---- */

/* Writes everything except the head. 0, -E2BIG if the index is too large, or -errno. */
int cop_index_put_all(struct build *b, const struct index_key *key);

#endif
