/* SPDX-License-Identifier: BSD-3-Clause */
/* usage: sums a job's cache contents from its *_cache_size.output files (copper-formats.5),
 * including those of Copper 1.0. Contacts no node. */
#ifndef COP_REPORT_USAGE_H
#define COP_REPORT_USAGE_H

#include "base/base/base.h"

enum cop_usage_table { COP_USAGE_DATA, COP_USAGE_TREE, COP_USAGE_METADATA, COP_USAGE_TABLES };

/* Zero-initialise it. Sums saturate at 2^64-1. */
struct cop_usage {
	struct {
		uint64_t files, bytes, entries;
	} table[COP_USAGE_TABLES];
	bool has_budget; /* the budget is known: only a running node reports it, files do not
			    contain it */
	uint64_t limit_bytes, used_bytes;
	uint64_t faults;      /* unusable or truncated files */
	struct cop_buf named; /* the first few faulty files with the reason, one per line, then a
				 count of the rest */
};

/* The name of the table's file, such as "data_cache_size.output". */
const char *cop_usage_name(enum cop_usage_table table);
/* Adds one file, read to its end with a buffer of 256 KiB: its totals or, if these are missing, the
 * sum of its lines. Returns 0 with *why NULL, or with a warning in *why if the file was used
 * nevertheless; -EBADMSG with the reason in *why if the file is not a listing, in which case
 * nothing was added; -ENOMEM; or the error returned by read. *why is a static string. */
int cop_usage_add(struct cop_usage *u, enum cop_usage_table table,
	ssize_t (*read)(void *arg, void *data, size_t len), void *arg, const char **why);
/* Adds every file below dir, at any depth, whose name ends in one of the three names, optionally
 * followed by .txt; in a job directory, only those below its tables. Each node counts once: with
 * its final contents or, failing that, its latest. -ENOENT if there is no such file, -ENODATA if
 * none is usable. */
int cop_usage_read(struct cop_usage *u, const char *dir, struct cop_err *err);
void cop_usage_free(struct cop_usage *u);
/* Print cache_usage_summary.txt, cache_usage_summary.csv, and the same numbers as one JSON
 * object. */
void cop_usage_text(const struct cop_usage *u, struct cop_buf *out);
void cop_usage_csv(const struct cop_usage *u, struct cop_buf *out);
void cop_usage_json(const struct cop_usage *u, struct cop_buf *out);
/* Writes the text and CSV files into dir, each atomically. */
int cop_usage_write(const struct cop_usage *u, const char *dir, struct cop_err *err);

#endif
