/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: adds up the cache contents of a job from the *_cache_size.output files of
 * copper-formats.5, including those of Copper 1.0. It contacts no node. */
#ifndef COP_REPORT_USAGE_H
#define COP_REPORT_USAGE_H

#include "base/base/base.h"

enum cop_usage_table { COP_USAGE_DATA, COP_USAGE_TREE, COP_USAGE_METADATA, COP_USAGE_TABLES };

/* All zeros is empty; sums stop at 2^64-1. */
struct cop_usage {
	struct {
		uint64_t files, bytes, entries;
	} table[COP_USAGE_TABLES];
	bool has_budget; /* known from a running node; files do not contain it */
	uint64_t limit_bytes, used_bytes;
	uint64_t faults; /* files that are unusable or truncated */
	struct cop_buf
		named; /* the first of them by name, one per line, and the number of the others */
};

/* "data_cache_size.output" */
const char *cop_usage_name(enum cop_usage_table table);
/* Adds the contents of one file, read to its end in 256 KiB of memory: its totals or, if they are
 * missing, the sum of its lines. Returns 0 with *why NULL, or with *why saying what is wrong
 * although the file was used; -EBADMSG with *why if the file is not a listing, in which case
 * nothing was added; -ENOMEM; or what read returned. *why is static text. */
int cop_usage_add(struct cop_usage *u, enum cop_usage_table table,
	ssize_t (*read)(void *arg, void *data, size_t len), void *arg, const char **why);
/* Adds every file in dir and below it whose name ends in one of the three names, or the same with
 * .txt; in a job directory, only those below its tables. A node counts once, with what it held at
 * its end, or else with what was written last. -ENOENT if there is no such file, -ENODATA if all
 * are unusable. */
int cop_usage_read(struct cop_usage *u, const char *dir, struct cop_err *err);
void cop_usage_free(struct cop_usage *u);
/* cache_usage_summary.txt, cache_usage_summary.csv, and the same as one JSON object. */
void cop_usage_text(const struct cop_usage *u, struct cop_buf *out);
void cop_usage_csv(const struct cop_usage *u, struct cop_buf *out);
void cop_usage_json(const struct cop_usage *u, struct cop_buf *out);
/* Writes the first two into dir, each whole or not at all. */
int cop_usage_write(const struct cop_usage *u, const char *dir, struct cop_err *err);

#endif
