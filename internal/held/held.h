/* SPDX-License-Identifier: BSD-3-Clause */
/* held: what the caches of a job held, added up from the *_cache_size.output files of
 * copper-formats.5, those of Copper 1.0 too. It asks no node. */
#ifndef COP_HELD_H
#define COP_HELD_H

#include "base/base.h"

enum cop_held_table { COP_HELD_DATA, COP_HELD_TREE, COP_HELD_METADATA, COP_HELD_TABLES };

/* Zero is empty; sums stop at 2^64-1. */
struct cop_held {
	struct {
		uint64_t files, bytes, entries;
	} table[COP_HELD_TABLES];
	bool has_budget; /* a running node said it; files do not */
	uint64_t limit_bytes, used_bytes;
	uint64_t faults; /* files that are of no use, or cut short */
	struct cop_buf
		named; /* the first of them by name, a line each, and how many more there are */
};

/* "data_cache_size.output" */
const char *cop_held_name(enum cop_held_table table);
/* Adds what one file holds, read to its end in memory of 256 KiB: its totals, or where they are
 * missing what its lines add up to. 0 with *why NULL, or with a word on what is wrong with it all
 * the same; -EBADMSG with *why: it is none of ours, and nothing was added; -ENOMEM; or what read
 * returned. why is text that stays. */
int cop_held_add(struct cop_held *u, enum cop_held_table table,
	ssize_t (*read)(void *arg, void *data, size_t len), void *arg, const char **why);
/* Adds every file in dir and below it whose name ends in one of the three, or in .txt in their
 * place; of a job directory those below its tables. A node counts once, with what it held at its
 * end, or else what was written last. -ENOENT if there is none, -ENODATA if all are of no use. */
int cop_held_read(struct cop_held *u, const char *dir, struct cop_err *err);
void cop_held_free(struct cop_held *u);
/* cache_usage_summary.txt, cache_usage_summary.csv, and the same as one JSON object. */
void cop_held_text(const struct cop_held *u, struct cop_buf *out);
void cop_held_csv(const struct cop_held *u, struct cop_buf *out);
void cop_held_json(const struct cop_held *u, struct cop_buf *out);
/* The first two into dir, each whole or not at all. */
int cop_held_write(const struct cop_held *u, const char *dir, struct cop_err *err);

#endif
