/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster: sums over a job's ranks, and the cluster files of copper-formats(5). Reads job
 * directories, including those of Copper 1.0, and treats them as untrusted input. Does not contact
 * running nodes. */
#ifndef COP_WRITERS_CLUSTER_H
#define COP_WRITERS_CLUSTER_H

#include "base/base/base.h"
#include "base/base/htab.h"
#include "base/table/table.h"
#include "base/walk/walk.h"
#include "prof/profile/profile.h"

/* ---- sums over ranks: the cluster files of copper-formats(5) ---- */

struct cop_report_cluster;

/* One row of an operations file. */
struct cop_report_op {
	uint64_t calls, hits, misses, negatives;
	double latency_s;
};

/* One row of a top paths file, in the order of its columns. */
enum cop_report_top_count {
	COP_REPORT_TOP_EVENTS,
	COP_REPORT_TOP_HITS,
	COP_REPORT_TOP_MISSES,
	COP_REPORT_TOP_NEGATIVES,
	COP_REPORT_TOP_TTL_STORES,
	COP_REPORT_TOP_TTL_SERVES,
	COP_REPORT_TOP_TTL_EXPIRES,
	COP_REPORT_TOP_TTL_CLEARS,
	COP_REPORT_TOP_COUNTS
};

/* NULL: out of memory. */
struct cop_report_cluster *cop_report_cluster_new(void);
void cop_report_cluster_free(struct cop_report_cluster *c);
/* Adds n to the number of ranks in the sums. */
void cop_report_cluster_ranks(struct cop_report_cluster *c, uint64_t n);
/* Each adds to the row with this name. value is a number from a CSV file ("12", "0.250000"). 0;
 * -EINVAL: not a number; 1: value is above 2^64-1 and was clamped; -ENOMEM; -ENOBUFS: more than
 * 1,024 distinct names, or a name that is empty or longer than 255 bytes. Sums saturate at 2^64-1,
 * and latencies are rounded to microseconds per row, so the order of additions does not matter. A
 * top path is added both to its class and to the most used paths. Adding one row per rank and path,
 * as in the rank files, gives the table of Copper 1.0, whose "Entries" are rows. */
int cop_report_cluster_metric(struct cop_report_cluster *c, const char *name, const char *value);
int cop_report_cluster_op(
	struct cop_report_cluster *c, const char *name, const struct cop_report_op *op);
int cop_report_cluster_top(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS]);
/* Adds the rows of many ranks at once, already summed by class (profile.h). */
int cop_report_cluster_classes(struct cop_report_cluster *c,
	const struct cop_pathclass_totals *rows, bool absences_served);
/* Adds a path, with its sums over all ranks, to the list of most used paths. -ENOMEM. */
int cop_report_cluster_path(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS]);
/* Records that paths and classes are complete, not just the most used ones. */
void cop_report_cluster_every_path(struct cop_report_cluster *c);
/* Adds one rank's values, for the range across ranks. -ENOMEM. */
int cop_report_cluster_share(
	struct cop_report_cluster *c, const char *host, const struct cop_prof_shares *share);
/* Writes <dir>/<prefix>-profiling_{aggregate,operations}.csv and -profiling_summary.md, each
 * atomically, and creates dir. input: the directory that the summary names; notes: extra lines for
 * its head, and sections after it; coverage: text of its path coverage table. Each may be NULL. */
int cop_report_cluster_write(const struct cop_report_cluster *c, const char *dir,
	const char *prefix, const char *input, const char *notes, const char *coverage,
	struct cop_err *err);

/* Writes <dir>/<prefix>-profiling_top_paths.csv: the most used paths, in each category as many as
 * the longest list of any rank. */
int cop_report_cluster_write_paths(const struct cop_report_cluster *c, const char *dir,
	const char *prefix, struct cop_err *err);

/* Access to the sums: the number of ranks, and the i-th row in order of name. The latter return the
 * row's name, which the sums own, or NULL past the last row. */
uint64_t cop_report_cluster_rank_count(const struct cop_report_cluster *c);
const char *cop_report_cluster_op_at(
	const struct cop_report_cluster *c, size_t i, struct cop_report_op *out);
const char *cop_report_cluster_metric_at(
	const struct cop_report_cluster *c, size_t i, double *value);

/* ---- read-only sums of a job directory ---- */

/* Reads the cluster files DIR/PREFIX-profiling_{aggregate,operations}.csv. -ENOENT; -ENODATA if
 * none is usable. The caller frees *out. */
int cop_report_cluster_read(const char *dir, const char *prefix, struct cop_report_cluster **out);
/* Sums up the rank files in DIR (profiling/final, or the directory of a tag). -ENOENT; -ENODATA if
 * none is usable. Sets faults to the number of unusable files. The caller frees *out. */
int cop_report_ranks_sum(const char *dir, struct cop_report_cluster **out, uint64_t *faults);

/* ---- how a job ended ---- */

enum cop_report_end {
	COP_REPORT_END_UNKNOWN, /* the job directory has no list of nodes */
	COP_REPORT_END_NONE,    /* no node logged its end */
	COP_REPORT_END_STOPPED, /* by copper stop */
	COP_REPORT_END_OTHER,
};
/* Determines from the logs how the job ended, and appends a short description. Reads at most 32
 * logs, and none if the job was stopped. */
int cop_report_ending(const char *job_dir, struct cop_buf *out);

/* ---- aggregate: cluster files from rank files ---- */

struct cop_report_aggregate {
	const char *job_dir, *prefix;
	const char *output_dir;        /* NULL: JOBDIR/profiling/cluster */
	const char *const *usage_root; /* roots for the coverage table; override inferred ones */
	unsigned usage_roots;
	bool no_coverage; /* omit the coverage table, and walk no directories */
	const char *home; /* home directory, which gets its own row if used; NULL: none */
	/* Called now and then with the number of items read so far; `of` says which items: ranks,
	 * raw tables, or names below the roots. May be NULL. */
	void (*progress)(void *arg, const char *of, uint64_t n);
	void *arg;
};

enum cop_report_kind {
	COP_REPORT_AGGREGATE,
	COP_REPORT_OPERATIONS,
	COP_REPORT_TOP_PATHS,
	COP_REPORT_KINDS
};

struct cop_report_aggregated {
	char *job, *input, *output;       /* directories, absolute */
	uint64_t files[COP_REPORT_KINDS]; /* usable files */
	uint64_t faults;                  /* missing or unusable files */
	struct cop_buf
		named;   /* the first faults by name, one per line, and how many more there are */
	uint64_t doubts; /* files used without their negative values, or with values clamped to
			    2^64-1 */
	struct cop_buf doubted;       /* their names, as in named */
	bool paths_written;           /* also wrote the file of the most used paths */
	uint64_t found;               /* ranks that have files */
	uint64_t nodes;               /* nodes in the last run in this job directory; 0: unknown */
	int end;                      /* enum cop_report_end */
	struct cop_buf ending;        /* how the job ended, in words; empty if unknown */
	uint64_t missing;             /* nodes without any file */
	struct cop_buf missing_named; /* hosts of the first missing nodes, separated by commas, and
					 how many more there are */
	struct cop_report_cluster *cluster;
};

/* Reads JOBDIR/profiling/final, or JOBDIR itself if that does not exist (JOBDIR may be a directory
 * of tagged files), and writes the cluster files. Ignores malformed files. In well-formed ones,
 * skips rows with negative numbers and clamps numbers above 2^64-1. Memory use does not grow with
 * the number of ranks, except for 16 bytes per rank to record which ones were read. -ENOENT if
 * there are no rank files and -ENODATA if none is usable (out->named has the reasons), both with a
 * message that gives likely causes; -EINVAL for an invalid prefix; -EEXIST if the existing cluster
 * file covers more ranks than were found. Even after an error, out holds what was found, and the
 * caller must free it. */
int cop_report_aggregate(const struct cop_report_aggregate *what, struct cop_report_aggregated *out,
	struct cop_err *err);
void cop_report_aggregated_free(struct cop_report_aggregated *a);
/* Appends a sentence if there are more ranks than nodes in the last run, in which case the sums
 * cover several runs. */
void cop_report_aggregated_mixed(const struct cop_report_aggregated *a, struct cop_buf *out);
/* Appends a sentence that names any nodes of the last run that have no files. */
void cop_report_aggregated_missing(const struct cop_report_aggregated *a, struct cop_buf *out);
/* Appends how the job ended, unless that is unknown or the job was stopped. */
void cop_report_aggregated_ending(const struct cop_report_aggregated *a, struct cop_buf *out);
/* Print the sums and the files written, as text for a terminal and as a JSON object. */
void cop_report_aggregated_table(const struct cop_report_aggregated *a, struct cop_buf *out);
void cop_report_aggregated_json(
	const struct cop_report_aggregated *a, const char *prefix, struct cop_buf *out);

/* observed: reads the raw tables in a job directory as untrusted input. Collects each path once,
 * however many ranks list it, and the faults of each file. */

/* ---- faults.c: unreadable parts of files ---- */

#define COP_OBSERVED_NAMED_MAX 20 /* faults recorded by name; the rest are only counted */

/* The first COP_OBSERVED_NAMED_MAX faults in order of name, whatever the insertion order, and the
 * total count. Thread-safe. */
struct cop_observed_faults {
	pthread_mutex_t lock;
	struct cop_observed_fault {
		char *name, *why;
	} first[COP_OBSERVED_NAMED_MAX];
	unsigned named;
	uint64_t count;
};

void cop_observed_faults_init(struct cop_observed_faults *f);
void cop_observed_faults_fini(struct cop_observed_faults *f);
void cop_observed_faults_add(struct cop_observed_faults *f, const char *name, const char *why);
/* Appends one line "NAME: WHY" per named fault, and a line with the number of unnamed ones. */
void cop_observed_faults_list(const struct cop_observed_faults *f, struct cop_buf *out);

/* ---- names.c: files of a job ---- */

/* Whether text is <host>-<pid>. */
bool cop_observed_is_host_and_pid(const char *text, size_t len);
/* Opens a regular file of plausible size and returns its descriptor and size; -ENOENT, or -EBADMSG
 * with the reason in why. */
int cop_observed_open_file(int dir, const char *name, uint64_t *size, struct cop_buf *why);
/* Whether a line of a Copper 1.0 size listing is decoration: a bar, or the heading above the
 * attributes. */
bool cop_observed_is_ornament(const char *line, size_t len);
/* Appends one line per tagged snapshot in this subdirectory of the job ("profiling", "tables"),
 * with the command that reads it. */
void cop_observed_name_snapshots(
	const char *job, const char *folder, const char *command, struct cop_buf *text);

/* ---- pathset.c ---- */

#define COP_PATHSET_MAX ((size_t)1 << 25)
#define COP_PATHSET_BYTES_MAX (8 * COP_GIB)
#define COP_PATHSET_LEN_MAX 65535u

struct cop_observed_path {
	struct cop_hlink link; /* in the set's table */
	uint64_t events;       /* from the metadata tables of all ranks; saturates at 2^64-1 */
	uint64_t absent;       /* failed lookups; use ttl if that is larger */
	uint64_t ttl;
	uint32_t len;
	char text[]; /* NUL-terminated, as on disk */
};
struct cop_pathset {
	struct cop_arena arena;
	struct cop_htab table;
	uint64_t seed; /* never changes */
	bool full;     /* a path was dropped */
};
#define COP_PATH_COUNTS 4
struct cop_path_counts {
	uint64_t events, absent, ttl;
	uint64_t count[COP_PATH_COUNTS]; /* hits, misses, negatives; or stores, serves, expires,
					    clears */
};
/* Adds to the path's counts. 0, even if the set is full and drops the path; -ENOMEM. */
int cop_observed_pathset_add(struct cop_pathset *s, const char *text, size_t len, uint64_t hash,
	const struct cop_path_counts *c);
uint64_t cop_observed_pathset_hash(const struct cop_pathset *s, const char *text, size_t len);
/* Iterates over the paths, in no particular order: returns the path after p, or the first if p is
 * NULL; NULL at the end. */
const struct cop_observed_path *cop_observed_pathset_next(
	const struct cop_pathset *s, const struct cop_observed_path *p);
void cop_observed_pathset_free(struct cop_pathset *s);

/* ---- table.c: one raw table ---- */

enum cop_observed_kind {
	COP_OBSERVED_OTHER,    /* not part of a path's event counts */
	COP_OBSERVED_METADATA, /* defines the path's events */
	COP_OBSERVED_ABSENCES,
};
enum cop_observed_kind cop_observed_table_kind(const char *name);

/* Receives one unescaped path and its counts. Returning non-zero stops the reader, which returns
 * that value. */
typedef int cop_observed_visit(
	void *arg, const char *path, size_t len, const struct cop_path_counts *c);

enum cop_observed_verdict {
	COP_OBSERVED_WHOLE,
	COP_OBSERVED_CUT,   /* truncated */
	COP_OBSERVED_EMPTY, /* zero bytes */
	COP_OBSERVED_NONE,  /* not a raw table */
};
struct cop_table_result {
	enum cop_observed_verdict verdict;
	uint64_t paths, odd; /* odd: lines with a leading slash that are not table paths */
	uint64_t cut_line; /* the first line with a count above 2^64-1, which is clamped; 0: none */
};
/* Reads a table to its end with `read` (base/table), in bounded memory. Returns 0, -ENOMEM, or the
 * result of `read` or `take`. */
int cop_observed_table_read(cop_csv_read *read, void *read_arg, enum cop_observed_kind kind,
	cop_observed_visit *take, void *arg, struct cop_table_result *out);

/* ---- observed.c ---- */

struct cop_observed {
	struct cop_pathset set;
	uint64_t files, paths; /* usable tables, and the paths in them */
	struct cop_observed_faults faults;
};
void cop_observed_init(struct cop_observed *o);
/* Reads every *.output in dir. -ENOENT if there is none; -ENODATA if none is usable; -ENOMEM; or
 * the error from reading the directory. Calls tick with the number of files read so far. Free o
 * even after an error. */
int cop_observed_read(struct cop_observed *o, const char *dir,
	void (*tick)(void *arg, uint64_t files), void *arg);
void cop_observed_free(struct cop_observed *o);

#endif
