/* SPDX-License-Identifier: BSD-3-Clause */
/* prof: what a node's users did, for the files of a job directory: every FUSE operation with its
 * outcome and latency, and, as the level says, every path. Counting never blocks on anything but a
 * short lock, never fails and never allocates without a bound; what does not fit is counted as
 * dropped and the summary says so. Writing happens only in cop_prof_snapshot.
 *
 * A NULL profile is fine everywhere and counts nothing; below the level that needs it, a call
 * returns at once.
 *
 * What it costs (CPU time on two cores, paths of 80 bytes out of 20,000, 1 to 8 threads): an
 * operation 25 ns; a path event at the full level 75 to 100 ns, its first touch of a path 0.5 us;
 * at the top level, which takes a lock, 140 to 400 ns. */
#ifndef COP_PROF_H
#define COP_PROF_H

#include "base/base.h"
#include "pathclass/pathclass.h"
#include "stats/stats.h"

#define COP_PROF_TOP_N_MAX 65536u
#define COP_PROF_RANGES_MAX 16
#define COP_PROF_PATH_BYTES (512 * COP_MIB)

enum cop_prof_level {
	COP_PROF_OFF,
	COP_PROF_AGGREGATE, /* -P: operations */
	COP_PROF_TOP,       /* -N n: and the n paths of each category that are used most */
	COP_PROF_FULL,      /* -A: and every path; with top_n also the top paths, then exact */
};

enum cop_prof_op {
#define COP_PROF_OP(id, name) COP_PROF_OP_##id,
#include "prof/ops.def"
#undef COP_PROF_OP
	COP_PROF_OPS
};

enum cop_prof_outcome {
	COP_PROF_DONE, /* nothing that a cache could have answered: a call, and none of the others
			*/
	COP_PROF_HIT,  /* answered from a table of this node */
	COP_PROF_MISS, /* a parent or the storage was asked */
	COP_PROF_NEGATIVE, /* no such name; or refused because it would change something (EROFS) */
	COP_PROF_ERROR,    /* another error */
	COP_PROF_OUTCOMES
};

enum cop_prof_table { COP_PROF_METADATA, COP_PROF_DATA, COP_PROF_TREE, COP_PROF_TABLES };

/* What happened to a remembered absence. */
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
	const char *job_dir; /* copied, as the other strings; NULL: there will be no snapshots */
	const char *host;
	int pid;
	uint32_t enoent_ttl_ms;
	const char *source; /* paths come relative to it and are written below it; NULL: they are
			       written as they come */
	const struct cop_stats *stats; /* outlives the profile; NULL: no profiling_fabric.csv, and
					  nothing is said of the storage */
	bool observe;                  /* the kernel keeps nothing, so that every use is counted */
	uint64_t max_path_bytes; /* memory for paths at the full level; 0: COP_PROF_PATH_BYTES */
};

struct cop_prof;

/* NULL without memory. */
struct cop_prof *cop_prof_new(const struct cop_prof_conf *conf);
/* Nobody may be counting any more. NULL is fine. */
void cop_prof_free(struct cop_prof *p);
/* The level in force; COP_PROF_OFF for NULL. Lets a caller skip putting a path together below
 * COP_PROF_TOP. */
enum cop_prof_level cop_prof_level(const struct cop_prof *p);
const char *cop_prof_op_name(enum cop_prof_op op);

/* ---- counting: any thread ---- */

/* One operation. Lock-free: relaxed atomics in a shard of few threads. The latency goes into a
 * log-linear histogram (as HdrHistogram's, 32 buckets per power of two): quantiles are off by at
 * most 1.6 %; above 2^40 ns only the maximum is exact. */
void cop_prof_op(struct cop_prof *p, enum cop_prof_op op, enum cop_prof_outcome outcome,
	uint64_t latency_ns);
/* One use of a path in a table. DONE and ERROR mark the path as seen and count as no event. At the
 * top level the counts are those of Space-Saving (Metwally, Agrawal, El Abbadi, ICDT 2005): a
 * listed count is never too high, and too low by at most the figure that the summary states, which
 * is at most events / counters of its shard. */
void cop_prof_path(struct cop_prof *p, enum cop_prof_table table, const char *path, size_t len,
	enum cop_prof_outcome outcome);
/* The same for COP_PROF_DATA, and at the full level the bytes that were read: they are merged into
 * at most COP_PROF_RANGES_MAX ranges per file, smallest gaps closed first. */
void cop_prof_read(struct cop_prof *p, const char *path, size_t len, enum cop_prof_outcome outcome,
	uint64_t offset, uint64_t bytes);
void cop_prof_ttl(struct cop_prof *p, const char *path, size_t len, enum cop_prof_ttl event);

/* ---- writing ---- */

typedef void cop_prof_emit(void *arg, const char *path, size_t len, uint64_t bytes);
/* What is cached: each calls emit for every object of the table, in any order; the bytes of one
 * path are added up here. */
struct cop_prof_sizes {
	void *ctx;
	void (*each)(void *ctx, enum cop_prof_table table, cop_prof_emit *emit, void *arg);
	bool asked; /* for by a user: the files are *_cache_size.output, as Copper 1.0 writes them
		       when it is asked */
};

/* Writes the files of the level into JOBDIR/profiling/<tag|final>/ and JOBDIR/tables/<tag|final>/,
 * making the folders. tag NULL or "": final; otherwise it is reduced to [A-Za-z0-9_-] and cut at 64
 * bytes; "final" and "cluster" are refused (-EINVAL). sizes NULL: no sizes. Readers of Copper 1.0
 * take each line of an *.output in tables/final that begins with a slash for a used path, and add
 * up every *_cache_size.output that they find below a directory; so what was not asked for is
 * *_cache_size.txt. Each file is written whole or not at all; one that can't be written does not
 * keep the others from being written; the first failure is returned, with its sentence. Counting
 * may go on meanwhile; several snapshots may run at once. */
int cop_prof_snapshot(struct cop_prof *p, const char *tag, const struct cop_prof_sizes *sizes,
	struct cop_err *err);
/* What a *_cache_size.output file would hold. 0 or -ENOMEM. */
int cop_prof_sizes_text(enum cop_prof_table table, const char *source,
	const struct cop_prof_sizes *sizes, struct cop_buf *out);

/* ---- counting anew ---- */

/* Moves everything that was counted into *out, a profile for cop_prof_snapshot and cop_prof_free
 * alone; p goes on from zero. Others may count meanwhile: each event is in one of the two, none in
 * neither. stats: those of p up to now, taken as well; they outlive *out. *out is NULL where
 * nothing is counted. -ENOMEM, and then nothing has moved. One thread at a time. */
int cop_prof_take(struct cop_prof *p, const struct cop_stats *stats, struct cop_prof **out);
/* What could not be written is counted again. taken stays the caller's, empty; NULL is fine. */
void cop_prof_put_back(struct cop_prof *p, struct cop_prof *taken);

/* ---- the order of first touches, for a manifest ---- */

struct cop_prof_touch {
	uint64_t sequence; /* over all tables, from 1, with gaps */
	enum cop_prof_table table;
	const char *path; /* as it was counted */
	size_t len;
	const struct cop_range *range; /* data only; ascending */
	unsigned ranges;
};
/* Calls fn for every path of every table in the order of first touch, until it returns other than
 * 0, which is returned. Full level only: otherwise nothing is called. -ENOMEM. */
int cop_prof_each_touch(
	struct cop_prof *p, int (*fn)(void *arg, const struct cop_prof_touch *touch), void *arg);

/* ---- sums of one or many nodes: operations, histograms, TTL totals, classes and most used paths
 * ---- */

struct cop_prof_sum;

struct cop_prof_op_sum {
	uint64_t calls;
	uint64_t outcome[COP_PROF_OUTCOMES]; /* that of DONE is what the others leave of calls */
	uint64_t latency_ns, max_ns;
	uint64_t latency_us; /* the sum of what each node's files say */
	uint64_t p50_ns, p90_ns, p99_ns, p999_ns;
};

/* Zero; NULL without memory (400 KiB). */
struct cop_prof_sum *cop_prof_sum_new(void);
void cop_prof_sum_free(struct cop_prof_sum *s);
/* Adds one node: what p has counted up to now. -ENOMEM, and then nothing was added. */
int cop_prof_sum_add(struct cop_prof_sum *s, const struct cop_prof *p);
/* Adds all of from; -ENOMEM, and then nothing was added. Sums stop at 2^64-1, so that the order of
 * merging never matters. Of the paths of each category the 4,096 used most stay (fewer if their
 * names have over 1 MiB): as long as there are no more, they are exact and in any order the same;
 * then a count is never too high, and too low by at most an error that is stated and that no order
 * of merging makes larger than events / rows (Agarwal and others, Mergeable Summaries, PODS 2012;
 * sketch.c). */
int cop_prof_merge(struct cop_prof_sum *into, const struct cop_prof_sum *from);
void cop_prof_sum_op(
	const struct cop_prof_sum *s, enum cop_prof_op op, struct cop_prof_op_sum *out);
uint64_t cop_prof_sum_ttl(const struct cop_prof_sum *s, enum cop_prof_ttl event);
uint64_t cop_prof_sum_nodes(const struct cop_prof_sum *s);
/* The rows of the nodes' top path files, by class. */
const struct cop_pathclass_totals *cop_prof_sum_classes(const struct cop_prof_sum *s);
/* The rows of profiling_aggregate.csv, until fn returns other than 0, which is returned. */
int cop_prof_each_metric(const struct cop_prof_sum *s,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg);

/* What a node itself asked of the storage, or with the sums of many nodes all of them: rows of
 * profiling_aggregate.csv behind those. */
int cop_prof_each_storage(const struct cop_stats *stats,
	int (*fn)(void *arg, const char *metric, const char *value), void *arg);

/* Writes what only these sums know: DIR/<prefix>-profiling_latency.csv, -profiling_fabric.csv (with
 * stats, of all nodes) and where top paths were asked for -profiling_top_paths.csv, below source.
 * dir exists. */
int cop_prof_write_sums(const struct cop_prof_sum *s, const char *dir, const char *prefix,
	const char *source, const struct cop_stats *stats, struct cop_err *err);

/* As bytes: version, then only what is not zero: a few KiB as a rule, and some tens of bytes for
 * each path. Never more than COP_PROF_ENCODED_MAX. */
#define COP_PROF_ENCODED_MAX (8u << 20)
void cop_prof_encode(const struct cop_prof_sum *s, struct cop_buf *out);
/* The only bytes accepted are those that encode would write. -EBADMSG for others, -EPROTO for
 * another version's. */
int cop_prof_decode(const void *data, size_t len, struct cop_prof_sum **out);

#endif
