/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_WRITERS_CLUSTER_PRIV_H
#define COP_WRITERS_CLUSTER_PRIV_H

#include "base/base/htab.h"
#include "base/table/table.h"
#include "writers/cluster/cluster.h"
#include "prof/profile/profile.h"

/* ---- number.c: exact decimal numbers ---- */

/* In millionths, at most COP_NUMBER_MAX. Exact for every 64-bit counter, and for sums of latencies,
 * which have six decimals in the files. */
typedef unsigned __int128 cop_number_t;
#define COP_NUMBER_UNIT 1000000u
#define COP_NUMBER_MAX ((cop_number_t)UINT64_MAX * COP_NUMBER_UNIT)

/* Parses "12", "0.250000" or "1.5e-05", rounding to a millionth and clamping to COP_NUMBER_MAX.
 * decimal: not written as an integer. 0; 1: clamped; -EINVAL: any other text, including negative
 * numbers. */
int cop_report_number_parse(const char *text, cop_number_t *out, bool *decimal);
cop_number_t cop_report_number_add(cop_number_t a, cop_number_t b);
cop_number_t cop_report_number_of_double(double value);
/* Prints n with six decimals, or truncated to an integer. */
void cop_report_number_print(struct cop_buf *out, cop_number_t n, bool decimal);

/* ---- cluster.c ---- */

/* No version of Copper writes more names; a file with more is rejected. */
#define CLUSTER_NAMES_MAX 1024u
#define CLUSTER_NAME_BYTES 255u

/* A metric is one sum; an operation has four counts (calls, hits, misses, negatives) and total
 * seconds. */
struct row {
	char *name;
	uint64_t count[4];
	cop_number_t sum;
	bool decimal;
};
struct rows { /* sorted by name */
	struct row *row;
	size_t n, cap;
};

/* ---- hot.c: the most used paths ---- */

#define HOT_BYTES_MAX (256 * COP_MIB)

enum { COP_REPORT_CATEGORIES = 4 };
extern const char *const cop_report_category[COP_REPORT_CATEGORIES];
/* -EINVAL: unknown category. */
int cop_report_category_of(const char *name);

struct hot_path {
	struct cop_hlink link;
	uint64_t count[COP_REPORT_TOP_COUNTS];
	uint32_t len;
	uint8_t category;
	char text[];
};
/* Zeroed memory is empty. */
struct hot {
	struct cop_htab table;
	struct cop_arena arena;
	bool full; /* a path was dropped */
};
/* Adds to the path's counts. 0, even if the table is full and drops the path; -ENOMEM. */
int cop_report_hot_add(struct hot *h, unsigned category, const char *path, size_t len,
	const uint64_t counts[COP_REPORT_TOP_COUNTS]);
int cop_report_hot_merge(struct hot *into, const struct hot *from);
void cop_report_hot_clear(struct hot *h);
/* Lists the paths of a category that have events, most events first. The caller frees *out, which
 * is NULL if out of memory. */
size_t cop_report_hot_list(const struct hot *h, unsigned category, const struct hot_path ***out);

/* ---- range.c: spread across ranks ---- */

struct rank_values {
	char *name;   /* the host, or <host>-<pid> */
	int64_t rank; /* -1: unknown */
	cop_number_t value[COP_PROF_SHARES];
	unsigned has, decimal; /* bits */
};
struct by_rank {
	struct rank_values *at;
	size_t n, cap;
};

struct cop_report_cluster {
	uint64_t ranks;
	struct rows metrics, ops;
	struct cop_pathclass_totals classes;
	bool absences_served; /* set by rows of top paths */
	bool every_path;      /* classes and paths are complete */
	bool of_lists;        /* paths come from the ranks' lists of top paths */
	size_t rows_most;     /* most rows that any top paths file has in a category */
	struct hot hot;
	struct by_rank by_rank;
};

struct cop_json;
/* Adds a rank with its metrics. c must contain only this rank. -ENOMEM. */
int cop_report_range_add(struct cop_report_cluster *c, int64_t rank, const char *name, size_t len,
	const struct rows *metrics);
void cop_report_range_clear(struct by_rank *r);
/* Appends the section of the summary if there are at least two ranks. */
void cop_report_range_table(const struct cop_report_cluster *c, struct cop_buf *out);
void cop_report_range_json(const struct cop_report_cluster *c, struct cop_json *j);

/* Adds all of `from`, or nothing on -ENOBUFS (too many names). After -ENOMEM the contents are
 * undefined. */
int cop_report_cluster_merge(
	struct cop_report_cluster *into, const struct cop_report_cluster *from);
/* Removes all rows and ranks. */
void cop_report_cluster_clear(struct cop_report_cluster *c);
/* Adds `from` to the row with the same name. */
int cop_report_cluster_row(struct rows *rows, const struct row *from);
/* The row of a metric or an operation, or NULL. */
const struct row *cop_report_rows_find(const struct rows *rows, const char *name);
double cop_report_average_us(const struct row *op);

/* ---- write.c ---- */

/* -EINVAL if a file name cannot start with the prefix. */
int cop_report_check_prefix(const char *prefix, struct cop_err *err);

/* ---- rank.c: one rank's files ---- */

#define RANK_NAME_MAX 256 /* a directory entry with its NUL */

/* Whether name is <host>-<pid>-profiling_<kind>.csv or, with a tag,
 * <host>-<pid>-<tag>-profiling_<kind>.csv; tag "": none. stem_len: the length before
 * -profiling_. */
bool cop_report_rank_name(
	const char *name, const char *tag, size_t *stem_len, enum cop_report_kind *kind);
/* "profiling_aggregate.csv" */
const char *cop_report_kind_name(enum cop_report_kind kind);

/* The state of one reader thread; zeroed memory is a closed reader. */
struct rank_reader {
	struct cop_csv csv;
	struct cop_report_cluster
		*file;        /* rows of the current file, until it turns out to be complete */
	struct cop_buf paths; /* that file's paths for the coverage table, each NUL-terminated */
	int fd;
	uint64_t left;        /* remaining bytes of the file */
	struct cop_buf doubt; /* the first clamped or skipped value of a usable file, and how many
				 more there are */
	uint64_t doubts;
	uint64_t rows[COP_REPORT_CATEGORIES]; /* of a top paths file */
	struct cop_report_cluster *tables;    /* paths in one rank's raw tables */
};

int cop_report_reader_open(struct rank_reader *r);
void cop_report_reader_close(struct rank_reader *r);
/* Reads one file of dir into r->file. 0; -ENOENT; -ENOMEM; -EBADMSG: the file is unusable, for the
 * reason in why, and so are the contents of r->file. */
int cop_report_read_file(struct rank_reader *r, int dir, const char *name,
	enum cop_report_kind kind, struct cop_buf *why);
/* Reads a rank's raw tables from dir into r->tables. True if all are present and complete. */
bool cop_report_read_tables(struct rank_reader *r, int dir, const char *stem);
/* Like cop_report_read_file, but reads the input of r->csv. */
int cop_report_read_csv(struct rank_reader *r, enum cop_report_kind kind, struct cop_buf *why);

/* ---- nodes.c: the nodes of the job ---- */

struct node_host;
struct nodes {
	uint64_t lines; /* nodes */
	char *text;
	struct node_host *host;
	size_t hosts;
	struct cop_htab by_name, by_short;
	uint64_t seed;
	bool met; /* file names and list use the same form of host names */
};

/* Reads the list of hosts; n is empty if there is no readable list. 0 or -ENOMEM. */
int cop_report_nodes_load(struct nodes *n, const char *path);
/* Records that rank <host>-<pid> has files. */
void cop_report_nodes_met(struct nodes *n, const char *stem, size_t len);
/* Returns the rank whose files have this stem, and appends its host to name; -1, and the stem, if
 * several nodes share the host or the list does not have it. Thread-safe. */
int64_t cop_report_nodes_rank(
	const struct nodes *n, const char *stem, size_t len, struct cop_buf *name);
/* Returns the number of nodes without files. Appends the first COP_OBSERVED_NAMED_MAX of their
 * hosts, and how many more there are. */
uint64_t cop_report_nodes_missing(const struct nodes *n, struct cop_buf *names);
void cop_report_nodes_free(struct nodes *n);

/* ---- ranks.c: the files of all ranks ---- */

#define RANKS_PATHS_BYTES (256 * COP_MIB)

struct cop_pathset;
struct ranks_result {
	uint64_t found, files[COP_REPORT_KINDS]; /* ranks and files used */
	struct cop_pathset *top; /* borrowed; receives the paths of top paths files, up to
				    RANKS_PATHS_BYTES; may be NULL */
	struct cop_observed_faults faults, doubts; /* doubts: files used except for some values */
	struct nodes *nodes;                       /* borrowed; receives each rank; may be NULL */
	struct cop_report_cluster *sums;
};

/* Reads the files of all ranks in dir. -ENOMEM, or the error from reading the directory. */
int cop_report_read_ranks(const char *dir, const struct cop_report_aggregate *what,
	struct ranks_result *out, struct cop_err *err);
/* Call even after an error. */
void cop_report_ranks_fini(struct ranks_result *out);

/* ---- coverage.c ---- */

/* Appends the path coverage table of the summary, for the paths in the raw tables in `tables`, or
 * else for those in top. Walks the roots; appends nothing if there are none. */
int cop_report_coverage(const struct cop_report_aggregate *what, const char *tables,
	const struct cop_pathset *top, struct cop_buf *out, struct cop_err *err);

#endif
