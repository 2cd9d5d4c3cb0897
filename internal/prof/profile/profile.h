/* SPDX-License-Identifier: BSD-3-Clause */
/* profile: records the activity of programs on a node, for the files of a job directory: every FUSE
 * operation with its outcome and latency and, depending on the level, every path. Counting blocks
 * only on a short lock, never fails, and allocates within a limit; events beyond it are counted as
 * dropped and reported in the summary. Files are written only in cop_prof_snapshot.
 *
 * A NULL profile is accepted everywhere and counts nothing. Below its level, a call returns at
 * once.
 *
 * Cost (CPU time on two cores, paths of 80 bytes out of 20,000, 1 to 8 threads): an operation 25
 * ns; a path event at the full level 75 to 100 ns, its first touch of a path 0.5 us; at the top
 * level, which takes a lock, 140 to 400 ns. */
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
	COP_PROF_TOP,       /* -N n: the same, and the n most used paths of each category */
	COP_PROF_FULL, /* -A: the same, and every path; with top_n also the top paths, which are
			  then exact */
};

enum cop_prof_op {
#define COP_PROF_OP(id, name) COP_PROF_OP_##id,
#include "prof/profile/ops.def"
#undef COP_PROF_OP
	COP_PROF_OPS
};

enum cop_prof_outcome {
	COP_PROF_DONE,     /* not cacheable: counted only as a call */
	COP_PROF_HIT,      /* answered from a table of this node */
	COP_PROF_MISS,     /* required a request to a parent or the storage */
	COP_PROF_NEGATIVE, /* no such name; or refused because it would change something (EROFS) */
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
	uint32_t top_n; /* rows per category, at most COP_PROF_TOP_N_MAX; 0: no top paths (TOP is
			   then AGGREGATE) */
	const char *job_dir; /* copied, like the other strings; NULL: no snapshots */
	const char *host;
	int pid;
	uint32_t enoent_ttl_ms;
	uint32_t rank;      /* for the values by rank in sums */
	const char *source; /* paths are relative to it, and written as absolute paths below it;
			       NULL: written as given */
	const struct cop_stats *stats; /* must outlive the profile; NULL: no profiling_fabric.csv
					  and no storage section */
	bool observe;                  /* kernel caching is disabled, so every use is counted */
	/* Appends further text to the summary, from the counters of that time. May be NULL. */
	void (*further)(void *ctx, const struct cop_stats *stats, struct cop_buf *out);
	void *ctx;
	uint64_t max_path_bytes; /* memory for paths at the full level; 0: the default,
				    COP_PROF_PATH_BYTES */
};

struct cop_prof;

/* NULL if out of memory. */
struct cop_prof *cop_prof_new(const struct cop_prof_conf *conf);
/* No thread may be counting. p may be NULL. */
void cop_prof_free(struct cop_prof *p);
/* The current level; COP_PROF_OFF for NULL. Below COP_PROF_TOP the caller need not build a path. */
enum cop_prof_level cop_prof_level(const struct cop_prof *p);
const char *cop_prof_op_name(enum cop_prof_op op);

/* ---- counting: any thread ---- */

/* Counts an operation. Lock-free: relaxed atomics in a shard with few threads. The latency is added
 * to a log-linear histogram (like HdrHistogram, 32 buckets per power of two): quantiles are
 * accurate to 1.6 %; above 2^40 ns only the maximum is exact. */
void cop_prof_op(struct cop_prof *p, enum cop_prof_op op, enum cop_prof_outcome outcome,
	uint64_t latency_ns);
/* Counts a use of a path in a table. DONE and ERROR mark the path as touched, but are not counted
 * as events. The counts at the top level are those of Space-Saving (Metwally, Agrawal, El Abbadi,
 * ICDT 2005): a listed count is never too high, and too low by at most the error in the summary,
 * which is at most events / counters of its shard. */
void cop_prof_path(struct cop_prof *p, enum cop_prof_table table, const char *path, size_t len,
	enum cop_prof_outcome outcome);
/* The same for COP_PROF_DATA, and at the full level also for the byte range read: ranges are merged
 * into at most COP_PROF_RANGES_MAX per file, smallest gaps closed first. */
void cop_prof_read(struct cop_prof *p, const char *path, size_t len, enum cop_prof_outcome outcome,
	uint64_t offset, uint64_t bytes);
void cop_prof_ttl(struct cop_prof *p, const char *path, size_t len, enum cop_prof_ttl event);

/* ---- writing ---- */

typedef void cop_prof_emit(void *arg, const char *path, size_t len, uint64_t bytes);
/* The cached objects: each calls emit for every object of the table, in any order; objects of the
 * same path are added up. */
struct cop_prof_sizes {
	void *ctx;
	void (*each)(void *ctx, enum cop_prof_table table, cop_prof_emit *emit, void *arg);
	bool asked; /* requested by a user: the files are named *_cache_size.output, which
		       Copper 1.0 writes on request */
};

/* Writes the files of the level to JOBDIR/profiling/<tag|final>/ and JOBDIR/tables/<tag|final>/,
 * and creates the directories. tag NULL or "": final; otherwise it is reduced to [A-Za-z0-9_-] and
 * truncated to 64 bytes; "final" and "cluster" are rejected (-EINVAL). sizes NULL: no sizes.
 * Readers of Copper 1.0 interpret each line that begins with a slash in an *.output file of
 * tables/final as a used path, and add up every *_cache_size.output below a directory; therefore
 * sizes that were not requested by a user are written to *_cache_size.txt. Each file is written
 * atomically; a failure does not prevent the other files; the first failure is returned, with its
 * sentence. Counting may continue during a snapshot; several snapshots may run concurrently. */
int cop_prof_snapshot(struct cop_prof *p, const char *tag, const struct cop_prof_sizes *sizes,
	struct cop_err *err);
/* The contents of a *_cache_size.output file. 0 or -ENOMEM. */
int cop_prof_sizes_text(enum cop_prof_table table, const char *source,
	const struct cop_prof_sizes *sizes, struct cop_buf *out);

/* ---- reset ---- */

/* Moves all counts to *out, a profile only for cop_prof_snapshot and cop_prof_free; p continues
 * from zero. Other threads may count concurrently: each event is in exactly one of the two. stats:
 * the counters of p up to now, already drained; must outlive *out. *out is NULL if nothing is
 * counted. -ENOMEM: nothing was moved. One thread at a time. */
int cop_prof_drain(struct cop_prof *p, const struct cop_stats *stats, struct cop_prof **out);
/* Returns counts that could not be written to p. The caller still owns taken, which is then empty;
 * taken may be NULL. */
void cop_prof_put_back(struct cop_prof *p, struct cop_prof *taken);

/* ---- order of first touches, for a manifest ---- */

struct cop_prof_touch {
	uint64_t sequence; /* over all tables, starting at 1, with gaps */
	enum cop_prof_table table;
	const char *path; /* as it was counted */
	size_t len;
	const struct cop_range *range; /* data only; ascending */
	unsigned ranges;
};
/* Calls fn for every path of every table in the order of first touch, until it returns non-zero,
 * which is then returned. Only at the full level; otherwise fn is not called. -ENOMEM. */
int cop_prof_each_touch(
	struct cop_prof *p, int (*fn)(void *arg, const struct cop_prof_touch *touch), void *arg);

/* ---- sums of one or many nodes: operations, histograms, TTL totals, classes and most used paths
 * ---- */

struct cop_prof_sum;

struct cop_prof_op_sum {
	uint64_t calls;
	uint64_t outcome[COP_PROF_OUTCOMES]; /* for DONE: the calls minus all others */
	uint64_t latency_ns, max_ns;
	uint64_t latency_us; /* sum of the rounded values in each node's own files */
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns;
};

/* An empty sum; NULL if out of memory (400 KiB). */
struct cop_prof_sum *cop_prof_sum_new(void);
void cop_prof_sum_free(struct cop_prof_sum *s);
/* Adds the counts of one node so far. -ENOMEM: nothing was added. */
int cop_prof_sum_add(struct cop_prof_sum *s, const struct cop_prof *p);
/* Adds all of from; -ENOMEM: nothing was added. Sums saturate at 2^64-1, so the order of merging is
 * irrelevant. Each category keeps the 4,096 most used paths (fewer if their names exceed 1 MiB). Up
 * to that number of paths the counts are exact, in any order of merging. Beyond it, a count is
 * never too high, and too low by at most the stated error, which is at most events / rows for any
 * order of merging (Agarwal and others, Mergeable Summaries, PODS 2012; sketch.c). */
int cop_prof_merge(struct cop_prof_sum *into, const struct cop_prof_sum *from);
void cop_prof_sum_op(
	const struct cop_prof_sum *s, enum cop_prof_op op, struct cop_prof_op_sum *out);
/* Latency distribution of an operation: out[k] calls took at least 2^k ns and less than 2^(k+1);
 * out[0] includes 0 ns, and the last one everything from 2^40 ns on. */
#define COP_PROF_OCTAVES 41u
void cop_prof_sum_octaves(
	const struct cop_prof_sum *s, enum cop_prof_op op, uint64_t out[COP_PROF_OCTAVES]);
uint64_t cop_prof_sum_ttl(const struct cop_prof_sum *s, enum cop_prof_ttl event);
uint64_t cop_prof_sum_nodes(const struct cop_prof_sum *s);
/* Every path of the nodes by class; for nodes with only the most used paths, the rows of their top
 * path files. */
const struct cop_pathclass_totals *cop_prof_sum_classes(const struct cop_prof_sum *s);

/* Contribution of one node. */
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
/* The nodes by rank, and their number in *n; none beyond COP_PROF_SHARES_MAX. */
const struct cop_prof_shares *cop_prof_sum_shares(const struct cop_prof_sum *s, size_t *n);

/* Whether the classes cover every path observed on any node. */
bool cop_prof_sum_has_every_path(const struct cop_prof_sum *s);

/* Calls fn for each kept path, by category, sorted by name, until it returns non-zero, which is
 * then returned. The path is below source; counts: hits, misses, negatives, then stores, serves,
 * expires, clears. -ENOMEM. */
#define COP_PROF_TOP_COUNTS 7
int cop_prof_sum_each_path(const struct cop_prof_sum *s, const char *source,
	int (*fn)(void *arg, const char *category, const char *path, size_t len,
		const uint64_t counts[COP_PROF_TOP_COUNTS]),
	void *arg);

/* Calls fn for the rows of profiling_aggregate.csv until it returns non-zero, which is then
 * returned. */
int cop_prof_each_metric(const struct cop_prof_sum *s,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg);

/* A node's own storage requests, or their sum over many nodes: the last rows of
 * profiling_aggregate.csv. */
int cop_prof_each_storage(const struct cop_stats *stats,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg);

/* Writes the files that require sums: DIR/<prefix>-profiling_latency.csv, -profiling_fabric.csv
 * (with the stats of all nodes) and, if top paths were requested, -profiling_top_paths.csv, with
 * paths below source. dir must exist. */
int cop_prof_write_sums(const struct cop_prof_sum *s, const char *dir, const char *prefix,
	const char *source, const struct cop_stats *stats, struct cop_err *err);

/* Encodes a sum: the version, then only non-zero values; usually a few KiB, plus some tens of bytes
 * per path. At most COP_PROF_ENCODED_MAX. */
#define COP_PROF_ENCODED_MAX (16u << 20)
void cop_prof_encode(const struct cop_prof_sum *s, struct cop_buf *out);
/* Accepts only the output of encode. -EBADMSG for other bytes, -EPROTO for another version. */
int cop_prof_decode(const void *data, size_t len, struct cop_prof_sum **out);

/* pathclass: classifies paths by name, and derives advice for a smaller environment. Pure: it
 * accesses no files, and does not decide what may be deleted. */

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

/* path is absolute; absence: it was requested and does not exist (category metadata_ttl). */
enum cop_pathclass cop_pathclass_of(bool absence, const char *path, size_t len);
const char *cop_pathclass_name(enum cop_pathclass class);
/* Appends advice for the observed classes (bits), as a Markdown list. */
void cop_pathclass_advice(struct cop_buf *out, unsigned seen, bool absences_served);

/* ---- totals: rows of top paths by class ---- */

struct cop_pathclass_total {
	uint64_t entries, events; /* number of rows, and the sum of their counts */
	uint64_t most;            /* events of the example */
	char *example; /* the row with the most events, the first in byte order among equals; NULL:
			  no row */
	size_t example_len;
};

/* Zeroed when empty. Sums saturate at 2^64-1, so the order of adding and merging is irrelevant. */
struct cop_pathclass_totals {
	struct cop_pathclass_total of[COP_PATHCLASSES];
};

/* Adds a row; -ENOMEM: it was not added. */
int cop_pathclass_add(struct cop_pathclass_totals *t, bool absence, const char *path, size_t len,
	uint64_t events);
/* Adds a separately computed total of a class. -ENOMEM. */
int cop_pathclass_add_total(struct cop_pathclass_totals *t, enum cop_pathclass class,
	const struct cop_pathclass_total *total);
int cop_pathclass_merge(struct cop_pathclass_totals *into, const struct cop_pathclass_totals *from);
/* The classes with rows (bits). */
unsigned cop_pathclass_seen(const struct cop_pathclass_totals *t);
/* Appends a Markdown table, most events first. */
void cop_pathclass_table(struct cop_buf *out, const struct cop_pathclass_totals *t);
/* Frees the contents. */
void cop_pathclass_totals_free(struct cop_pathclass_totals *t);

/* ---- the section of a summary with the most used paths, ten per kind ---- */

#define COP_PROF_HOT_ROWS 10
enum cop_prof_hot { COP_PROF_HOT_METADATA, COP_PROF_HOT_DATA, COP_PROF_HOT_TTL, COP_PROF_HOTS };
void cop_prof_hot_section(struct cop_buf *out);
void cop_prof_hot_head(struct cop_buf *out, enum cop_prof_hot of);
/* counts: hits, misses, negatives; or stores, serves, expires, clears. */
void cop_prof_hot_row(struct cop_buf *out, enum cop_prof_hot of, const char *path, size_t len,
	uint64_t events, const uint64_t *counts);

#endif
