/* SPDX-License-Identifier: BSD-3-Clause */
/* profile: records what programs on a node do, for the reports in the job directory: every FUSE
 * operation with its outcome and latency and, depending on the level, every path. Counting never
 * fails and blocks only on a short lock. Memory is limited; events that do not fit are counted as
 * dropped, and the summary reports them. Only cop_prof_snapshot and cop_prof_write_sums write
 * files.
 *
 * Every function accepts a NULL profile, which counts nothing. A call that the level does not cover
 * returns at once.
 *
 * Cost (CPU time on two cores, 20,000 paths of 80 bytes, 1 to 8 threads): 25 ns per operation; 75
 * to 100 ns per path event at the full level, and 0.5 us for the first touch of a path; 140 to 400
 * ns at the top level, which takes a lock. */
#ifndef COP_PROF_PROFILE_H
#define COP_PROF_PROFILE_H

#include "base/base/base.h"
#include "prof/stats/stats.h"

#define COP_PROF_TOP_N_MAX 65536u
#define COP_PROF_RANGES_MAX 16
#define COP_PROF_PATH_BYTES (512 * COP_MIB)

enum cop_prof_level {
	COP_PROF_OFF,
	COP_PROF_AGGREGATE, /* -P: operations */
	COP_PROF_TOP,       /* -N n: also the n most used paths of each category */
	COP_PROF_FULL,      /* -A: also every path; with top_n, also exact top paths */
};

enum cop_prof_op {
#define COP_PROF_OP(id, name) COP_PROF_OP_##id,
#include "prof/profile/ops.def"
#undef COP_PROF_OP
	COP_PROF_OPS
};

enum cop_prof_outcome {
	COP_PROF_DONE,     /* not cacheable; counts only as a call */
	COP_PROF_HIT,      /* answered from a table of this node */
	COP_PROF_MISS,     /* required a request to a parent or the storage */
	COP_PROF_NEGATIVE, /* no such name, or a write refused with EROFS */
	COP_PROF_ERROR,    /* another error */
	COP_PROF_OUTCOMES
};

enum cop_prof_table { COP_PROF_METADATA, COP_PROF_DATA, COP_PROF_TREE, COP_PROF_TABLES };

/* Events of a cached absence. */
enum cop_prof_ttl {
	COP_PROF_STORE,
	COP_PROF_SERVE,
	COP_PROF_EXPIRE,
	COP_PROF_CLEAR,
	COP_PROF_TTLS
};

struct cop_prof_conf {
	enum cop_prof_level level;
	uint32_t top_n; /* rows per category, at most COP_PROF_TOP_N_MAX; 0: no top paths (TOP then
			   means AGGREGATE) */
	const char *job_dir; /* copied, like the other strings; NULL: no snapshots */
	const char *host;
	int pid;
	uint32_t enoent_ttl_ms;
	uint32_t rank;      /* for the per-rank values in sums */
	const char *source; /* root of the relative paths counted; files list them as absolute paths
			       below it. NULL: paths are written as given */
	const struct cop_stats *stats; /* must outlive the profile; NULL: no profiling_fabric.csv
					  and no storage section */
	bool observe;                  /* kernel caching is disabled, so every use is counted */
	/* Appends more text to the summary, given the counters at that time. May be NULL. */
	void (*further)(void *ctx, const struct cop_stats *stats, struct cop_buf *out);
	void *ctx;
	uint64_t max_path_bytes; /* memory for paths at the full level; 0: COP_PROF_PATH_BYTES */
};

struct cop_prof;

/* NULL if out of memory. */
struct cop_prof *cop_prof_new(const struct cop_prof_conf *conf);
/* No thread may still be counting. p may be NULL. */
void cop_prof_free(struct cop_prof *p);
/* The current level; COP_PROF_OFF for NULL. Below COP_PROF_TOP the caller need not build a path. */
enum cop_prof_level cop_prof_level(const struct cop_prof *p);
const char *cop_prof_op_name(enum cop_prof_op op);

/* ---- counting: any thread ---- */

/* Counts an operation. Lock-free: relaxed atomics in a shard that few threads share. Latencies go
 * into a log-linear histogram (like HdrHistogram, 32 buckets per power of two), so quantiles are
 * accurate to 1.6 %; above 2^40 ns only the maximum is exact. */
void cop_prof_op(struct cop_prof *p, enum cop_prof_op op, enum cop_prof_outcome outcome,
	uint64_t latency_ns);
/* Counts a use of a path in a table. DONE and ERROR mark the path as touched, but do not count as
 * events. The top level counts with Space-Saving (Metwally, Agrawal, El Abbadi, ICDT 2005): a
 * reported count is never too high, and is too low by at most the error given in the summary, which
 * is at most events / counters of its shard. */
void cop_prof_path(struct cop_prof *p, enum cop_prof_table table, const char *path, size_t len,
	enum cop_prof_outcome outcome);
/* Like cop_prof_path with COP_PROF_DATA; the full level also records the byte range. A file keeps
 * at most COP_PROF_RANGES_MAX ranges; beyond that, those with the smallest gap are merged. */
void cop_prof_read(struct cop_prof *p, const char *path, size_t len, enum cop_prof_outcome outcome,
	uint64_t offset, uint64_t bytes);
void cop_prof_ttl(struct cop_prof *p, const char *path, size_t len, enum cop_prof_ttl event);

/* ---- writing ---- */

typedef void cop_prof_emit(void *arg, const char *path, size_t len, uint64_t bytes);
/* Lists the cached objects: `each` calls emit for every object in the table, in any order; the
 * sizes of objects with the same path are added up. */
struct cop_prof_sizes {
	void *ctx;
	void (*each)(void *ctx, enum cop_prof_table table, cop_prof_emit *emit, void *arg);
	bool asked; /* the user asked for sizes: the files are named *_cache_size.output, like those
		       that Copper 1.0 writes on request */
};

/* Writes this level's files to JOBDIR/profiling/<tag|final>/ and JOBDIR/tables/<tag|final>/,
 * creating the directories. A NULL or empty tag means final; any other tag is reduced to
 * [A-Za-z0-9_-] and truncated to 64 bytes, and "final" and "cluster" are rejected (-EINVAL). sizes
 * NULL: no sizes. Scripts for Copper 1.0 take each line that begins with a slash in an *.output
 * file of tables/final for a used path, and add up every *_cache_size.output below a directory; so
 * sizes that the user did not ask for go to *_cache_size.txt. Each file is written atomically. If
 * one fails, the others are still written, and the first error is returned with its message.
 * Counting may continue during a snapshot, and several snapshots may run concurrently. */
int cop_prof_snapshot(struct cop_prof *p, const char *tag, const struct cop_prof_sizes *sizes,
	struct cop_err *err);
/* The contents of a *_cache_size.output file. 0 or -ENOMEM. */
int cop_prof_sizes_text(enum cop_prof_table table, const char *source,
	const struct cop_prof_sizes *sizes, struct cop_buf *out);

/* ---- reset ---- */

/* Moves all counts to *out, a profile valid only for cop_prof_snapshot and cop_prof_free; p
 * restarts from zero. Other threads may keep counting: each event lands in exactly one of the two.
 * stats: the counters so far, already drained; must outlive *out. *out is NULL if p counts nothing.
 * -ENOMEM: nothing was moved. One thread at a time. */
int cop_prof_drain(struct cop_prof *p, const struct cop_stats *stats, struct cop_prof **out);
/* Moves counts that could not be written back into p. The caller still owns `taken`, which is then
 * empty; it may be NULL. */
void cop_prof_put_back(struct cop_prof *p, struct cop_prof *taken);

/* ---- order of first touches, for a manifest ---- */

struct cop_prof_touch {
	uint64_t sequence; /* across all tables, from 1, with gaps */
	enum cop_prof_table table;
	const char *path; /* as it was counted */
	size_t len;
	const struct cop_range *range; /* data only; ascending */
	unsigned ranges;
};
/* Calls fn for every path of every table, in order of first touch, and stops at the first non-zero
 * result, which it returns. Below the full level, it never calls fn. -ENOMEM. */
int cop_prof_each_touch(
	struct cop_prof *p, int (*fn)(void *arg, const struct cop_prof_touch *touch), void *arg);

/* ---- sums over one or more nodes ---- */

struct cop_prof_sum;

struct cop_prof_op_sum {
	uint64_t calls;
	uint64_t outcome[COP_PROF_OUTCOMES]; /* DONE: calls minus all the others */
	uint64_t latency_ns, max_ns;
	uint64_t latency_us; /* sum of the rounded values in the nodes' own files */
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns;
};

/* An empty sum; NULL if out of memory (400 KiB). */
struct cop_prof_sum *cop_prof_sum_new(void);
void cop_prof_sum_free(struct cop_prof_sum *s);
/* Adds the counts of one node so far. -ENOMEM: nothing was added. */
int cop_prof_sum_add(struct cop_prof_sum *s, const struct cop_prof *p);
/* Adds all of `from`; -ENOMEM: nothing was added. Sums saturate at 2^64-1, so the merge order does
 * not matter. Each category keeps the 4,096 most used paths (fewer if their names exceed 1 MiB). Up
 * to that many paths, counts are exact. Beyond it, a count is never too high, and is too low by at
 * most the reported error, which is at most events / rows for any merge order (Agarwal et al.,
 * Mergeable Summaries, PODS 2012; sketch.c). */
int cop_prof_merge(struct cop_prof_sum *into, const struct cop_prof_sum *from);
void cop_prof_sum_op(
	const struct cop_prof_sum *s, enum cop_prof_op op, struct cop_prof_op_sum *out);
/* Latency distribution of an operation: out[k] counts calls that took at least 2^k ns and less than
 * 2^(k+1). out[0] includes 0 ns; the last element counts everything from 2^40 ns up. */
#define COP_PROF_OCTAVES 41u
void cop_prof_sum_octaves(
	const struct cop_prof_sum *s, enum cop_prof_op op, uint64_t out[COP_PROF_OCTAVES]);
uint64_t cop_prof_sum_ttl(const struct cop_prof_sum *s, enum cop_prof_ttl event);
uint64_t cop_prof_sum_nodes(const struct cop_prof_sum *s);
/* All paths by class. A node that recorded only the most used paths contributes the rows of its top
 * paths files. */
const struct cop_pathclass_totals *cop_prof_sum_classes(const struct cop_prof_sum *s);

/* One node's contribution. */
enum cop_prof_share {
	COP_PROF_SHARE_HITS,
	COP_PROF_SHARE_MISSES,
	COP_PROF_SHARE_NEGATIVES,
	COP_PROF_SHARE_TTL_SERVES,
	COP_PROF_SHARE_LATENCY_US,
	COP_PROF_SHARES
};
struct cop_prof_shares {
	uint32_t rank;
	uint64_t value[COP_PROF_SHARES];
};
#define COP_PROF_SHARES_MAX 100000u
/* The nodes sorted by rank, and their number in *n; none if there are more than
 * COP_PROF_SHARES_MAX. */
const struct cop_prof_shares *cop_prof_sum_shares(const struct cop_prof_sum *s, size_t *n);

/* Whether the classes cover every path observed on any node. */
bool cop_prof_sum_has_every_path(const struct cop_prof_sum *s);

/* Calls fn for each kept path, by category and then by name, and stops at the first non-zero
 * result, which it returns. Paths are prefixed with source. counts: hits, misses, negatives, then
 * stores, serves, expires, clears. -ENOMEM. */
#define COP_PROF_TOP_COUNTS 7
int cop_prof_sum_each_path(const struct cop_prof_sum *s, const char *source,
	int (*fn)(void *arg, const char *category, const char *path, size_t len,
		const uint64_t counts[COP_PROF_TOP_COUNTS]),
	void *arg);

/* Calls fn for the rows of profiling_aggregate.csv, and stops at the first non-zero result, which
 * it returns. */
int cop_prof_each_metric(const struct cop_prof_sum *s,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg);

/* Like cop_prof_each_metric, for the last rows of profiling_aggregate.csv: the storage requests of
 * a node, or of many. */
int cop_prof_each_storage(const struct cop_stats *stats,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg);

/* Writes the cluster files that need sums: DIR/<prefix>-profiling_latency.csv,
 * -profiling_fabric.csv (from the stats of all nodes) and, if top paths were requested,
 * -profiling_top_paths.csv, with paths prefixed with source. dir must exist. */
int cop_prof_write_sums(const struct cop_prof_sum *s, const char *dir, const char *prefix,
	const char *source, const struct cop_stats *stats, struct cop_err *err);

/* Encodes a sum: a version, then the non-zero values. Usually a few KiB plus a few dozen bytes per
 * path; at most COP_PROF_ENCODED_MAX. */
#define COP_PROF_ENCODED_MAX (16u << 20)
void cop_prof_encode(const struct cop_prof_sum *s, struct cop_buf *out);
/* Accepts only the output of cop_prof_encode. -EBADMSG for other bytes, -EPROTO for another
 * version. */
int cop_prof_decode(const void *data, size_t len, struct cop_prof_sum **out);

/* pathclass: classifies paths by name, and suggests how to make an environment smaller. It accesses
 * no files, and does not decide what may be deleted. */

enum cop_pathclass {
	COP_PATHCLASS_PYTHON_ZIP,
	COP_PATHCLASS_VIRTUAL_ENV,
	COP_PATHCLASS_HWCAPS,
	COP_PATHCLASS_MISSING_LIBRARY,
	COP_PATHCLASS_NEGATIVE,
	COP_PATHCLASS_TORCH_NATIVE,
	COP_PATHCLASS_TORCH_PYTHON,
	COP_PATHCLASS_SITE_PACKAGES,
	COP_PATHCLASS_STDLIB,
	COP_PATHCLASS_BIN,
	COP_PATHCLASS_SHARED_LIBRARY,
	COP_PATHCLASS_PREFIX,
	COP_PATHCLASSES
};

/* path is absolute. absence: the path was looked up and does not exist (category metadata_ttl). */
enum cop_pathclass cop_pathclass_of(bool absence, const char *path, size_t len);
const char *cop_pathclass_name(enum cop_pathclass class);
/* Appends advice for the classes seen (a bit mask), as a Markdown list. */
void cop_pathclass_advice(struct cop_buf *out, unsigned seen, bool absences_served);

/* ---- totals: top path rows by class ---- */

struct cop_pathclass_total {
	uint64_t entries, events; /* rows, and the sum of their counts */
	uint64_t most;            /* events of the example */
	char *example; /* the path with the most events; among equals, the first in byte order.
			  NULL: no rows */
	size_t example_len;
};

/* Zeroed memory is empty. Sums saturate at 2^64-1, so the order of additions and merges does not
 * matter. */
struct cop_pathclass_totals {
	struct cop_pathclass_total of[COP_PATHCLASSES];
};

/* Adds a row; -ENOMEM: it was not added. */
int cop_pathclass_add(struct cop_pathclass_totals *t, bool absence, const char *path, size_t len,
	uint64_t events);
/* Adds a class total that was computed elsewhere. -ENOMEM. */
int cop_pathclass_add_total(struct cop_pathclass_totals *t, enum cop_pathclass class,
	const struct cop_pathclass_total *total);
int cop_pathclass_merge(struct cop_pathclass_totals *into, const struct cop_pathclass_totals *from);
/* The classes that have rows (a bit mask). */
unsigned cop_pathclass_seen(const struct cop_pathclass_totals *t);
/* Appends a Markdown table, most events first. */
void cop_pathclass_table(struct cop_buf *out, const struct cop_pathclass_totals *t);
/* Frees the contents. */
void cop_pathclass_totals_free(struct cop_pathclass_totals *t);

/* ---- the summary section on the most used paths, ten per kind ---- */

#define COP_PROF_HOT_ROWS 10
enum cop_prof_hot { COP_PROF_HOT_METADATA, COP_PROF_HOT_DATA, COP_PROF_HOT_TTL, COP_PROF_HOTS };
void cop_prof_hot_section(struct cop_buf *out);
void cop_prof_hot_head(struct cop_buf *out, enum cop_prof_hot of);
/* counts: hits, misses, negatives; or stores, serves, expires, clears. */
void cop_prof_hot_row(struct cop_buf *out, enum cop_prof_hot of, const char *path, size_t len,
	uint64_t events, const uint64_t *counts);

#endif
