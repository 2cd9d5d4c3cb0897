/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: sums a job's cache contents from the *_cache_size.output files of copper-formats.5,
 * including Copper 1.0's. Contacts no node. */
#ifndef COP_REPORT_USAGE_H
#define COP_REPORT_USAGE_H

#include "base/base/base.h"

enum cop_usage_table { COP_USAGE_DATA, COP_USAGE_TREE, COP_USAGE_METADATA, COP_USAGE_TABLES };

/* Zeroed memory is empty; sums saturate at 2^64-1. */
struct cop_usage {
	struct {
		uint64_t files, bytes, entries;
	} table[COP_USAGE_TABLES];
	bool has_budget; /* from a running node; files do not contain it */
	uint64_t limit_bytes, used_bytes;
	uint64_t faults; /* unusable or truncated files */
	struct cop_buf
		named; /* the first faults by name, one per line, and the number of the rest */
};

/* "data_cache_size.output" */
const char *cop_usage_name(enum cop_usage_table table);
/* Adds one file, read to its end in 256 KiB of memory: its totals or, if missing, the sum of its
 * lines. 0 with *why NULL, or with a warning in *why if the file was used; -EBADMSG with *why if it
 * is no listing, and nothing was added; -ENOMEM; or the result of read. *why is static. */
int cop_usage_add(struct cop_usage *u, enum cop_usage_table table,
	ssize_t (*read)(void *arg, void *data, size_t len), void *arg, const char **why);
/* Adds every file at any depth below dir with a name that ends in one of the three names,
 * optionally with .txt; in a job directory, only those below its tables. A node counts once, with
 * its final contents or else the latest. -ENOENT if there is no such file, -ENODATA if none is
 * usable. */
int cop_usage_read(struct cop_usage *u, const char *dir, struct cop_err *err);
void cop_usage_free(struct cop_usage *u);
/* Print cache_usage_summary.txt, cache_usage_summary.csv, and the same as one JSON object. */
void cop_usage_text(const struct cop_usage *u, struct cop_buf *out);
void cop_usage_csv(const struct cop_usage *u, struct cop_buf *out);
void cop_usage_json(const struct cop_usage *u, struct cop_buf *out);
/* Writes the first two into dir, each completely or not at all. */
int cop_usage_write(const struct cop_usage *u, const char *dir, struct cop_err *err);

#endif
