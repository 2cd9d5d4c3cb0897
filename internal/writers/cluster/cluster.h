/* SPDX-License-Identifier: BSD-3-Clause */
/* cluster: sums over the ranks of a job, the cluster files of copper-formats.5. It reads job
 * directories, including those of Copper 1.0, and trusts nothing that it reads there. It knows no
 * running node. */
#ifndef COP_WRITERS_CLUSTER_H
#define COP_WRITERS_CLUSTER_H

#include "base/base/base.h"
#include "base/base/htab.h"
#include "base/table/table.h"
#include "base/walk/walk.h"
#include "prof/profile/profile.h"

/* ---- sums over ranks: the cluster files of copper-formats.5 ---- */

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

/* NULL if out of memory. */
struct cop_report_cluster *cop_report_cluster_new(void);
void cop_report_cluster_free(struct cop_report_cluster *c);
/* Adds n to the number of ranks that the sums cover. */
void cop_report_cluster_ranks(struct cop_report_cluster *c, uint64_t n);
/* Each adds to the row of that name. value is a number as a CSV file has it ("12", "0.250000"):
 * -EINVAL if it is not a number; 1 if it is above 2^64-1, which was added in its place. -ENOMEM;
 * -ENOBUFS for more than 1,024 different names, or for a name that is empty or longer than 255
 * bytes. Sums stop at 2^64-1 and latencies are rounded to microseconds row by row, so the order of
 * adding does not matter. A top path is added to its class and to the paths used most: one row per
 * rank and path, as the files of the ranks have them, gives the table of Copper 1.0 (its "Entries"
 * are rows). */
int cop_report_cluster_metric(struct cop_report_cluster *c, const char *name, const char *value);
int cop_report_cluster_op(
	struct cop_report_cluster *c, const char *name, const struct cop_report_op *op);
int cop_report_cluster_top(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS]);
/* Adds the rows of many ranks at once, by class, where the ranks added them up themselves
 * (profile.h). */
int cop_report_cluster_classes(struct cop_report_cluster *c,
	const struct cop_pathclass_totals *rows, bool absences_served);
/* Adds a path that was used over all ranks, for the list of the most used ones; -ENOMEM. */
int cop_report_cluster_path(struct cop_report_cluster *c, const char *category, const char *path,
	size_t len, const uint64_t counts[COP_REPORT_TOP_COUNTS]);
/* Says that the paths and classes are all that were observed, not the most used ones only. */
void cop_report_cluster_every_path(struct cop_report_cluster *c);
/* Adds what one rank contributed, for the range across ranks; -ENOMEM. */
int cop_report_cluster_share(
	struct cop_report_cluster *c, const char *host, const struct cop_prof_shares *share);
/* Writes <dir>/<prefix>-profiling_{aggregate,operations}.csv and -profiling_summary.md, each whole
 * or not at all; creates dir. input: the directory that the summary names; notes: further lines for
 * its head, and sections after it; coverage: text for its path coverage table; each may be NULL. */
int cop_report_cluster_write(const struct cop_report_cluster *c, const char *dir,
	const char *prefix, const char *input, const char *notes, const char *coverage,
	struct cop_err *err);

/* Writes <dir>/<prefix>-profiling_top_paths.csv: the paths used most, as many of a category as the
 * longest list of a rank has. */
int cop_report_cluster_write_paths(const struct cop_report_cluster *c, const char *dir,
	const char *prefix, struct cop_err *err);

/* What the sums contain: the number of ranks, and the rows in order of name. The sums own the
 * names. */
uint64_t cop_report_cluster_rank_count(const struct cop_report_cluster *c);
size_t cop_report_cluster_op_count(const struct cop_report_cluster *c);
const char *cop_report_cluster_op_at(
	const struct cop_report_cluster *c, size_t i, struct cop_report_op *out);
size_t cop_report_cluster_metric_count(const struct cop_report_cluster *c);
const char *cop_report_cluster_metric_at(
	const struct cop_report_cluster *c, size_t i, double *value);

/* ---- sums of a job directory, read and not written ---- */

/* Reads the existing cluster files DIR/PREFIX-profiling_{aggregate,operations}.csv. -ENOENT;
 * -ENODATA if neither can be used. The caller frees *out. */
int cop_report_cluster_read(const char *dir, const char *prefix, struct cop_report_cluster **out);
/* Adds up the files of ranks in DIR (profiling/final, or the folder of a tag). -ENOENT; -ENODATA if
 * none can be used; faults counts those that cannot. The caller frees *out. */
int cop_report_ranks_sum(const char *dir, struct cop_report_cluster **out, uint64_t *faults);

/* ---- how a job ended ---- */

enum cop_report_end {
	COP_REPORT_END_UNKNOWN, /* the job left no list of its nodes */
	COP_REPORT_END_NONE,    /* no node has logged an end */
	COP_REPORT_END_STOPPED, /* by copper stop */
	COP_REPORT_END_OTHER,
};
/* Concludes it from the logs of a job directory, and appends a few words; reads at most 32 logs,
 * and none of a job that was stopped. */
int cop_report_ending(const char *job_dir, struct cop_buf *out);

/* ---- aggregate: the cluster files from the files of the ranks ---- */

struct cop_report_aggregate {
	const char *job_dir, *prefix;
	const char *output_dir; /* NULL: JOBDIR/profiling/cluster */
	const char *const
		*usage_root; /* for the coverage table, before the roots that are inferred */
	unsigned usage_roots;
	bool no_coverage; /* leave the coverage table out: no directory is walked */
	const char *home; /* whose use is reported if it was observed; NULL: none */
	/* Called at intervals with the number of ranks, raw tables, or names below the roots that
	 * have been read (of says which); NULL: never. */
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
	uint64_t files[COP_REPORT_KINDS]; /* files that were used */
	uint64_t faults;                  /* files that are missing or unusable */
	struct cop_buf
		named;   /* the first of them by name, one per line, and the number of the others */
	uint64_t doubts; /* files that are used, but without their negative values, or with values
			    limited to 2^64-1 */
	struct cop_buf doubted; /* their names, like named */
	bool paths_written;     /* the file of the most used paths, too */
	uint64_t found;         /* ranks that left a file */
	uint64_t nodes;         /* nodes of the last run in this job directory, 0 if unknown */
	int end;                /* enum cop_report_end */
	struct cop_buf ending;  /* how the job ended, in words; empty if it is not known */
	uint64_t missing;       /* of those: nodes that left no file at all */
	struct cop_buf missing_named; /* the hosts of the first of them, separated by commas, and
					 the number of the others */
	struct cop_report_cluster *cluster;
};

/* Reads JOBDIR/profiling/final, or JOBDIR if that is missing (JOBDIR may be a folder of tagged
 * files), and writes the cluster files. A malformed file is not used. In a well-formed one, a
 * row with a negative number is left out, and a number above 2^64-1 counts as 2^64-1. Memory
 * does not grow with the number of ranks, except for 16 bytes of each, which tell which were
 * read. -ENOENT if there is no file of a rank, -ENODATA if none can be used (out->named says
 * why), both with the likely causes; -EINVAL for an invalid PREFIX; -EEXIST if the existing
 * cluster file sums up more ranks than were found. out is filled as far as possible; the caller
 * frees it even after an error. */
int cop_report_aggregate(const struct cop_report_aggregate *what, struct cop_report_aggregated *out,
	struct cop_err *err);
void cop_report_aggregated_free(struct cop_report_aggregated *a);
/* Appends a sentence if there are more ranks than nodes of that run: the sums cover more than one
 * run. */
void cop_report_aggregated_mixed(const struct cop_report_aggregated *a, struct cop_buf *out);
/* Appends a sentence that names the nodes of that run that left no file, if any. */
void cop_report_aggregated_missing(const struct cop_report_aggregated *a, struct cop_buf *out);
/* Appends how the job ended, unless it was stopped or that is not known. */
void cop_report_aggregated_ending(const struct cop_report_aggregated *a, struct cop_buf *out);
/* The sums for a terminal, and as one JSON object with what was written. */
void cop_report_aggregated_table(const struct cop_report_aggregated *a, struct cop_buf *out);
void cop_report_aggregated_json(
	const struct cop_report_aggregated *a, const char *prefix, struct cop_buf *out);

/* observed: reads the raw tables that the nodes of a job left in its directory: each path once,
 * however many ranks list it, and the faults of each file. It trusts nothing that it reads
 * there. */

/* ---- faults.c: what was wrong with which file ---- */

#define COP_OBSERVED_NAMED_MAX 20 /* faults that are named; further ones are only counted */

/* The first COP_OBSERVED_NAMED_MAX faults by name, in whatever order they are added, and a count of
 * all. Any thread. */
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
/* Appends "NAME: WHY", one per line, and a line with the number of those that are not named. */
void cop_observed_faults_list(const struct cop_observed_faults *f, struct cop_buf *out);

/* ---- names.c: files of a job ---- */

/* Whether text is <host>-<pid>. */
bool cop_observed_is_host_and_pid(const char *text, size_t len);
/* Opens a regular file and returns its descriptor and size, if the size is plausible; -ENOENT, or
 * -EBADMSG with the reason in why. */
int cop_observed_open_file(int dir, const char *name, uint64_t *size, struct cop_buf *why);
/* Whether this is a line without information in a size listing of Copper 1.0: a bar, or the heading
 * before the attributes. */
bool cop_observed_is_ornament(const char *line, size_t len);
/* Appends a line for each tagged snapshot that a job left in its folder ("profiling", "tables"),
 * with the command that reads it. */
void cop_observed_name_snapshots(
	const char *job, const char *folder, const char *command, struct cop_buf *text);

/* ---- pathset.c ---- */

#define COP_PATHSET_MAX ((size_t)1 << 25)
#define COP_PATHSET_BYTES_MAX (8 * COP_GIB)
#define COP_PATHSET_LEN_MAX 65535u

struct cop_observed_path {
	struct cop_hlink link; /* in the set's table */
	uint64_t events;       /* of the metadata table, all ranks together; sums stop at 2^64-1 */
	uint64_t absent; /* those that found nothing; from the table of absences if that has more */
	uint64_t ttl;
	uint32_t len;
	char text[]; /* NUL-terminated, as it is on disk */
};
struct cop_pathset {
	struct cop_arena arena;
	struct cop_htab table;
	uint64_t seed; /* never changes */
	bool full;     /* a path was left out */
};
#define COP_PATH_COUNTS 4
struct cop_path_counts {
	uint64_t events, absent, ttl;
	uint64_t count[COP_PATH_COUNTS]; /* hits, misses, negatives; or stores, serves, expires,
					    clears */
};
/* Adds the counts to those of the path. Returns 0 even if the set is full; -ENOMEM. */
int cop_observed_pathset_add(struct cop_pathset *s, const char *text, size_t len, uint64_t hash,
	const struct cop_path_counts *c);
uint64_t cop_observed_pathset_hash(const struct cop_pathset *s, const char *text, size_t len);
/* Visits each path once, in no order: returns the path after p, or the first if p is NULL; NULL at
 * the end. */
const struct cop_observed_path *cop_observed_pathset_next(
	const struct cop_pathset *s, const struct cop_observed_path *p);
void cop_observed_pathset_free(struct cop_pathset *s);

/* ---- table.c: one raw table ---- */

enum cop_observed_kind {
	COP_OBSERVED_OTHER,    /* has no part in the counts of a path's events */
	COP_OBSERVED_METADATA, /* its events are those of the path */
	COP_OBSERVED_ABSENCES,
};
enum cop_observed_kind cop_observed_table_kind(const char *name);

/* Receives one path, with its escapes undone, and the counts that followed it. A result other than
 * 0 ends the reading and is returned. */
typedef int cop_observed_visit(
	void *arg, const char *path, size_t len, const struct cop_path_counts *c);

enum cop_observed_verdict {
	COP_OBSERVED_WHOLE,
	COP_OBSERVED_CUT,   /* its end is missing */
	COP_OBSERVED_EMPTY, /* no byte */
	COP_OBSERVED_NONE,  /* not a raw table */
};
struct cop_table_result {
	enum cop_observed_verdict verdict;
	uint64_t paths, odd; /* odd: lines that begin with a slash and are not paths of a table */
	uint64_t cut_line;   /* the first line whose count is above 2^64-1 and counts as 2^64-1; 0:
				none */
};
/* Reads a table through read (base/table) to its end, in bounded memory. 0, -ENOMEM, or what read
 * or take returned. */
int cop_observed_table_read(cop_csv_read *read, void *read_arg, enum cop_observed_kind kind,
	cop_observed_visit *take, void *arg, struct cop_table_result *out);

/* ---- observed.c ---- */

struct cop_observed {
	struct cop_pathset set;
	uint64_t files, paths; /* tables that were used, and the paths that they listed */
	struct cop_observed_faults faults;
};
void cop_observed_init(struct cop_observed *o);
/* Reads every *.output in dir. -ENOENT if there is none, -ENODATA if none can be used; -ENOMEM; or
 * the error of reading the directory. tick is called with the number of files read. Free o even
 * after an error. */
int cop_observed_read(struct cop_observed *o, const char *dir,
	void (*tick)(void *arg, uint64_t files), void *arg);
void cop_observed_free(struct cop_observed *o);

#endif
