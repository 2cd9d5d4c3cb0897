/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_WRITERS_CLUSTER_PRIV_H
#define COP_WRITERS_CLUSTER_PRIV_H

#include "base/base/htab.h"
#include "base/table/table.h"
#include "writers/cluster/cluster.h"
#include "prof/profile/profile.h"

/* ---- number.c: numbers without double ---- */

/* Millionths, at most COP_NUMBER_MAX. Every 64-bit counter is then exact, and so is a sum of
 * latencies, whose files have six decimals. */
typedef unsigned __int128 cop_number_t;
#define COP_NUMBER_UNIT 1000000u
#define COP_NUMBER_MAX ((cop_number_t)UINT64_MAX * COP_NUMBER_UNIT)

/* Parses "12", "0.250000", "1.5e-05" (rounded to a millionth; a larger number is COP_NUMBER_MAX).
 * decimal: the number is not written as an integer. 0; 1: it was too large; -EINVAL for other text,
 * including negative numbers. */
int cop_report_number_parse(const char *text, cop_number_t *out, bool *decimal);
cop_number_t cop_report_number_add(cop_number_t a, cop_number_t b);
cop_number_t cop_report_number_of_double(double value);
/* Prints with six decimals, or truncated to an integer. */
void cop_report_number_print(struct cop_buf *out, cop_number_t n, bool decimal);

/* ---- cluster.c ---- */

/* More names than any version of Copper writes; a file with more is not one of ours. */
#define CLUSTER_NAMES_MAX 1024u
#define CLUSTER_NAME_BYTES 255u

/* A metric is a sum; an operation has four counts (calls, hits, misses, negatives) and a sum of
 * seconds. */
struct row {
	char *name;
	uint64_t count[4];
	cop_number_t sum;
	bool decimal;
};
struct rows { /* in order of name */
	struct row *row;
	size_t n, cap;
};

/* ---- hot.c: the paths that were used most ---- */

#define HOT_BYTES_MAX (256 * COP_MIB)

enum { COP_REPORT_CATEGORIES = 4 };
extern const char *const cop_report_category[COP_REPORT_CATEGORIES];
/* -EINVAL: no category has this name. */
int cop_report_category_of(const char *name);

struct hot_path {
	struct cop_hlink link;
	uint64_t count[COP_REPORT_TOP_COUNTS];
	uint32_t len;
	uint8_t category;
	char text[];
};
/* All zeros is empty. */
struct hot {
	struct cop_htab table;
	struct cop_arena arena;
	bool full; /* a path was left out */
};
/* Adds the counts to those of the path; 0 even if the table is full; -ENOMEM. */
int cop_report_hot_add(struct hot *h, unsigned category, const char *path, size_t len,
	const uint64_t counts[COP_REPORT_TOP_COUNTS]);
int cop_report_hot_merge(struct hot *into, const struct hot *from);
void cop_report_hot_clear(struct hot *h);
/* The paths of a category with an event, most events first; the caller frees *out, which is NULL if
 * memory is short. */
size_t cop_report_hot_list(const struct hot *h, unsigned category, const struct hot_path ***out);

/* ---- range.c: how far the ranks are apart ---- */

struct rank_values {
	char *name;   /* the host, or <host>-<pid> */
	int64_t rank; /* -1: not known */
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
	bool absences_served; /* a row of top paths says so */
	bool every_path;      /* the classes and the paths are of all that were observed */
	bool of_lists;        /* the paths are those of the ranks' lists */
	size_t rows_most;     /* of a category in a top paths file */
	struct hot hot;
	struct by_rank by_rank;
};

struct cop_json;
/* Adds a rank with its metrics, of the sums that belong to it alone. -ENOMEM. */
int cop_report_range_add(struct cop_report_cluster *c, int64_t rank, const char *name, size_t len,
	const struct rows *metrics);
void cop_report_range_clear(struct by_rank *r);
/* Appends the section of the summary, if there are two ranks to compare. */
void cop_report_range_table(const struct cop_report_cluster *c, struct cop_buf *out);
void cop_report_range_json(const struct cop_report_cluster *c, struct cop_json *j);

/* Adds all of `from`; adds nothing on -ENOBUFS (too many names). After -ENOMEM the contents are
 * undefined. */
int cop_report_cluster_merge(
	struct cop_report_cluster *into, const struct cop_report_cluster *from);
/* Removes everything that was added. */
void cop_report_cluster_clear(struct cop_report_cluster *c);
/* Adds to the row of that name. */
int cop_report_cluster_row(struct rows *rows, const struct row *from);
/* The row of a metric or an operation, or NULL. */
const struct row *cop_report_rows_find(const struct rows *rows, const char *name);
double cop_report_average_us(const struct row *op);

/* ---- write.c ---- */

/* -EINVAL if a file name cannot begin with it. */
int cop_report_check_prefix(const char *prefix, struct cop_err *err);

/* ---- rank.c: the files of one rank ---- */

#define RANK_NAME_MAX 256 /* a directory entry with its NUL */

/* Whether name is <host>-<pid>-profiling_<kind>.csv or, with a tag,
 * <host>-<pid>-<tag>-profiling_<kind>.csv; tag "": none. stem_len: everything before
 * -profiling_. */
bool cop_report_rank_name(
	const char *name, const char *tag, size_t *stem_len, enum cop_report_kind *kind);
/* "profiling_aggregate.csv" */
const char *cop_report_kind_name(enum cop_report_kind kind);

/* What one thread needs to read files; all zeros is closed. */
struct rank_reader {
	struct cop_csv csv;
	struct cop_report_cluster
		*file;        /* the rows of one file, until it is known to be complete */
	struct cop_buf paths; /* likewise: the paths that may be looked for on disk, each followed
				 by a NUL */
	int fd;
	uint64_t left;        /* of it */
	struct cop_buf doubt; /* the first value of a usable file that is not used as it is, and how
				 many there are */
	uint64_t doubts;
	uint64_t rows[COP_REPORT_CATEGORIES]; /* of a top paths file */
	struct cop_report_cluster *tables;    /* the paths of one rank's raw tables */
};

int cop_report_reader_open(struct rank_reader *r);
void cop_report_reader_close(struct rank_reader *r);
/* Reads one file of dir into r->file. 0; -ENOENT: it does not exist; -ENOMEM; -EBADMSG: it is
 * unusable for the reason in why, and the contents of r->file must not be used. */
int cop_report_read_file(struct rank_reader *r, int dir, const char *name,
	enum cop_report_kind kind, struct cop_buf *why);
/* Reads the raw tables of a rank from dir into r->tables. True: all of them are there and whole. */
bool cop_report_read_tables(struct rank_reader *r, int dir, const char *stem);
/* The same as cop_report_read_file for the input that r's csv reader was opened for. */
int cop_report_read_csv(struct rank_reader *r, enum cop_report_kind kind, struct cop_buf *why);

/* ---- nodes.c: those that the job had ---- */

struct node_host;
struct nodes {
	uint64_t lines; /* nodes */
	char *text;
	struct node_host *host;
	size_t hosts;
	struct cop_htab by_name, by_short;
	uint64_t seed;
	bool met; /* the files name hosts in the form of the list */
};

/* Reads the list of hosts; if there is no list or it cannot be read, nothing is known. 0 or
 * -ENOMEM. */
int cop_report_nodes_load(struct nodes *n, const char *path);
/* Notes that rank <host>-<pid> left files. */
void cop_report_nodes_met(struct nodes *n, const char *stem, size_t len);
/* The rank whose files begin with that stem, and its host; -1 and the stem if several nodes share
 * the host, or it is in no list. Any thread. */
int64_t cop_report_nodes_rank(
	const struct nodes *n, const char *stem, size_t len, struct cop_buf *name);
/* How many nodes left no file; appends the first COP_OBSERVED_NAMED_MAX of their hosts and how many
 * more there are. */
uint64_t cop_report_nodes_missing(const struct nodes *n, struct cop_buf *names);
void cop_report_nodes_free(struct nodes *n);

/* ---- ranks.c: all of them ---- */

#define RANKS_PATHS_BYTES (256 * COP_MIB)

struct cop_pathset;
struct ranks_result {
	uint64_t found, files[COP_REPORT_KINDS]; /* ranks and files that were used */
	struct cop_pathset *top; /* owned by the caller, may be NULL: gets the paths of top paths
				    files, up to RANKS_PATHS_BYTES */
	struct cop_observed_faults faults,
		doubts;      /* doubts: files that are used except for single values */
	struct nodes *nodes; /* owned by the caller, may be NULL: is told of each rank */
	struct cop_report_cluster *sums;
};

/* Reads every rank's files in dir. -ENOMEM, or the error of reading the directory. */
int cop_report_read_ranks(const char *dir, const struct cop_report_aggregate *what,
	struct ranks_result *out, struct cop_err *err);
/* Call it even after an error. */
void cop_report_ranks_fini(struct ranks_result *out);

/* ---- coverage.c ---- */

/* Appends the path coverage table of the summary, for the paths in the raw tables of that folder
 * or, if there are none, those in top. Appends nothing if there is no root. Walks the roots. */
int cop_report_coverage(const struct cop_report_aggregate *what, const char *tables,
	const struct cop_pathset *top, struct cop_buf *out, struct cop_err *err);

/* ---- warnings.c ---- */

/* Appends the section with the warnings that the job left when it stopped; nothing if it left
 * none. */
void cop_report_warnings(const char *job_dir, struct cop_buf *out);

#endif
