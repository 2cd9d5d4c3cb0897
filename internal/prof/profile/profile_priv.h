/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks: each shard of the path table has a lock for insertion, growth and the ranges of its
 * records; each shard of a Space-Saving summary has one for all of its data. A thread holds at most
 * one at a time, and never during I/O or callbacks. */
#ifndef COP_PROF_PROFILE_PRIV_H
#define COP_PROF_PROFILE_PRIV_H

#include <stdatomic.h>

#include "prof/profile/profile.h"

/* The three tables and the cached absences. */
enum category {
	CATEGORY_METADATA = COP_PROF_METADATA,
	CATEGORY_DATA = COP_PROF_DATA,
	CATEGORY_TREE = COP_PROF_TREE,
	CATEGORY_TTL,
	CATEGORIES
};

/* The counts of a path: hits, misses, negatives; or stores, serves, expires, clears. */
#define SLOTS 4
#define SLOT_NONE (-1)
#define PATH_LEN_MAX 65535u

/* ---- hist.c: log-linear buckets ---- */

#define HIST_SUB_BITS 5
#define HIST_TOP_BIT 40 /* larger values share the last bucket */
#define HIST_SUB (1u << HIST_SUB_BITS)
#define HIST_BUCKETS (2 * HIST_SUB + (HIST_TOP_BIT - HIST_SUB_BITS - 1) * HIST_SUB)

unsigned cop_prof_hist_index(uint64_t value);
/* The midpoint of bucket i. */
uint64_t cop_prof_hist_value(unsigned i);
/* The permille quantile. total: the sum of the buckets; max: the largest value. */
uint64_t cop_prof_hist_quantile(
	const uint64_t bucket[HIST_BUCKETS], uint64_t total, unsigned permille, uint64_t max);

/* ---- sums.c ---- */

/* Shards are assigned by thread number, so usually each thread has its own. */
#define OP_SHARDS 16u

struct op_cell {
	_Atomic uint64_t outcome[COP_PROF_OUTCOMES]; /* without DONE, which is derived */
	_Atomic uint64_t latency_ns, max_ns;
	_Atomic uint64_t bucket[HIST_BUCKETS];
};
struct op_shard {
	struct op_cell op[COP_PROF_OPS];
	_Atomic uint64_t ttl[COP_PROF_TTLS];
};

/* latency_us: the sum of the rounded values in the nodes' own files, so that it exactly matches the
 * sum over those files. */
struct sum_op {
	uint64_t outcome[COP_PROF_OUTCOMES];
	uint64_t latency_ns, latency_us, max_ns;
	uint64_t bucket[HIST_BUCKETS];
};

/* ---- sketch.c: the most used paths over all nodes ---- */

/* Per category; enough for all paths of most programs. */
#define SKETCH_ROWS 4096u
#define SKETCH_BYTES COP_MIB /* of names */

struct sketch_row {
	uint64_t weight;
	uint64_t count[SLOTS];
	uint32_t at, len; /* in text */
};
/* Zeroed memory is empty. */
struct sketch {
	struct sketch_row *row; /* sorted by name */
	size_t n;
	char *text;
	size_t text_len;
	uint64_t error;
};

void cop_prof_sketch_free(struct sketch *s);
/* Merges both into out; -ENOMEM. */
int cop_prof_sketch_merge(const struct sketch *a, const struct sketch *b, struct sketch *out);
struct rows;
/* Sorts rows, and drops rows without events. -ENOMEM, -E2BIG. */
int cop_prof_sketch_of(struct rows *rows, uint64_t error, struct sketch *out);
int cop_prof_sketch_rows(const struct sketch *s, struct rows *out);

struct cop_prof_sum {
	uint64_t nodes;
	uint64_t ttl[COP_PROF_TTLS];
	uint64_t latency_us; /* like latency_us above, over all operations */
	uint64_t top_n;      /* the most top path rows that any node requested */
	struct sum_op op[COP_PROF_OPS];
	struct sketch top[CATEGORIES];
	struct cop_pathclass_totals
		classes;               /* of all paths, or of the rows in the top paths files */
	struct cop_prof_shares *share; /* sorted by rank; NULL if there are too many */
	size_t shares;
	uint64_t whole; /* nodes whose classes cover every path */
};

/* Adds only the operations and absences of p. */
void cop_prof_sum_counts(struct cop_prof_sum *s, const struct cop_prof *p);

struct op_shard *cop_prof_op_shard(struct op_shard shards[OP_SHARDS]);
void cop_prof_op_count(struct op_cell *cell, enum cop_prof_outcome outcome, uint64_t latency_ns);
/* Raises a maximum that other threads may be raising, too. */
void cop_prof_raise(_Atomic uint64_t *max, uint64_t value);
/* The sum over all operations; leaves the quantiles 0. */
void cop_prof_sum_all(const struct cop_prof_sum *s, struct cop_prof_op_sum *out);

/* ---- paths.c: the full table ---- */

struct path_table;

struct path_table *cop_prof_paths_new(uint64_t max_bytes);
void cop_prof_paths_free(struct path_table *t);
/* Counts an event, or only the touch if slot is SLOT_NONE. read: the byte range read; may be
 * NULL. */
void cop_prof_paths_touch(struct path_table *t, enum category c, const char *path, size_t len,
	int slot, const struct cop_range *read);
/* Number of events whose paths did not fit. */
uint64_t cop_prof_paths_dropped(const struct path_table *t);
int cop_prof_paths_each_touch(
	struct path_table *t, int (*fn)(void *arg, const struct cop_prof_touch *touch), void *arg);

/* Moves all events and ranges to an empty table. The paths stay, but count as untouched. -ENOMEM:
 * nothing was moved. */
int cop_prof_paths_drain(struct path_table *t, struct path_table *into);
/* Undoes a drain, keeping the counts since then. */
void cop_prof_paths_put_back(struct path_table *t, struct path_table *taken);

/* ---- ranges.c ---- */

struct ranges {
	struct cop_range *range;
	unsigned n, cap;
};
/* Adds [start, end); 0, or -ENOMEM with r unchanged. */
int cop_prof_ranges_add(struct ranges *r, uint64_t start, uint64_t end);

/* ---- top.c: Space-Saving ---- */

#define TOP_SHARDS 32u

struct top_summary;

/* Number of counters in each shard of a category. */
uint32_t cop_prof_top_counters(uint32_t top_n);
struct top_summary *cop_prof_top_new(uint32_t counters);
void cop_prof_top_free(struct top_summary *t);
void cop_prof_top_count(struct top_summary *t, const char *path, size_t len, int slot);
/* Moves all counters into an empty summary of the same size. */
void cop_prof_top_drain(struct top_summary *t, struct top_summary *into);
/* Merges drained counts with the counts since then; drops paths if memory runs out. */
void cop_prof_top_put_back(struct top_summary *t, struct top_summary *taken);
/* The most by which any count may be too low, including those of unlisted paths. */
uint64_t cop_prof_top_error(struct top_summary *t);

/* ---- rows.c: input of the writers ---- */

struct row {
	const char *path; /* as counted; owned by the profile, or by this row */
	char *own;
	uint32_t len;
	uint64_t sequence; /* 0 at the top level */
	uint64_t events;
	uint64_t weight; /* for sketch.c: events minus the error of the other paths in the shard */
	uint64_t count[SLOTS];
};
struct rows {
	struct row *row;
	size_t n, cap;
};

int cop_prof_rows_push(struct rows *rows, const struct row *row);
void cop_prof_rows_free(struct rows *rows);
int cop_prof_paths_rows(struct path_table *t, enum category c, struct rows *out);
int cop_prof_top_rows(struct top_summary *t, struct rows *out);
/* Every touched path of a category, in order of first touch; full level only. */
int cop_prof_rows_all(const struct cop_prof *p, enum category c, struct rows *out);
/* Keeps at most limit rows, those with the most events; equals are sorted by name. */
void cop_prof_rows_busiest(struct rows *rows, size_t limit);
/* At most limit paths, those with the most events; equals are sorted by name. */
int cop_prof_rows_top(const struct cop_prof *p, enum category c, size_t limit, struct rows *out);

/* ---- text.c ---- */

/* The name of a directory without trailing slashes; "/" becomes "". */
char *cop_prof_root_dup(const char *source);
/* Writes root/path without escaping, or just the path if there is no root. */
void cop_prof_text_path(struct cop_buf *out, const char *root, const char *path, size_t len);
/* Copies at most max bytes, with every byte outside [A-Za-z0-9_-] and extra replaced by '_'. NULL:
 * out of memory. */
char *cop_prof_text_reduce(const char *text, const char *extra, size_t max);

/* ---- writers: each generates a whole file ---- */

struct report {
	const struct cop_prof *p;
	const struct cop_prof_sum *sum;
	const struct cop_prof_sizes *sizes;
	const char *root;
	const struct cop_stats *stats;
	uint32_t top_n;
	bool cluster;               /* a job's sums instead of a node's counts: p is NULL */
	const char *tag;            /* NULL: final */
	const char *top_paths_name; /* name of the top paths file, for the summary */
	bool with_top;
	struct rows top[CATEGORIES]; /* for top paths and classes */
};
/* Generates a file; type is a category or a table where needed. */
typedef int fill_fn(const struct report *r, unsigned type, struct cop_buf *out);

fill_fn cop_prof_fill_operations, cop_prof_fill_aggregate, cop_prof_fill_latency,
	cop_prof_fill_fabric, cop_prof_fill_top_paths, cop_prof_fill_first_touch,
	cop_prof_fill_summary, cop_prof_fill_events, cop_prof_fill_sizes;

/* ---- profile.c ---- */

struct cop_prof {
	enum cop_prof_level level;
	uint32_t top_n, enoent_ttl_ms, rank;
	char *job_dir, *root;
	char *stem; /* host-pid */
	const struct cop_stats *stats;
	bool observe;
	void (*further)(void *ctx, const struct cop_stats *stats, struct cop_buf *out);
	void *ctx;
	struct op_shard *shards;
	struct path_table *paths;            /* full level */
	struct top_summary *top[CATEGORIES]; /* top level */
};

const char *cop_prof_category_name(enum category c);

#endif
