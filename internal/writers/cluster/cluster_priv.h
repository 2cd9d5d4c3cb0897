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
struct cop_report_cluster {
	uint64_t ranks;
	struct rows metrics, ops;
	struct cop_pathclass_totals classes;
	bool absences_served; /* a row of top paths says so */
};

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
};

int cop_report_reader_open(struct rank_reader *r);
void cop_report_reader_close(struct rank_reader *r);
/* Reads one file of dir into r->file. 0; -ENOENT: it does not exist; -ENOMEM; -EBADMSG: it is
 * unusable for the reason in why, and the contents of r->file must not be used. */
int cop_report_read_file(struct rank_reader *r, int dir, const char *name,
	enum cop_report_kind kind, struct cop_buf *why);
/* The same for the input that r's csv reader was opened for. */
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
