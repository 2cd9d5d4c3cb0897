/* SPDX-License-Identifier: BSD-3-Clause */
/* What a job asked for: the paths in its raw tables, each once however many ranks have it. */
#ifndef COP_REPORT_OBSERVED_PRIV_H
#define COP_REPORT_OBSERVED_PRIV_H

#include "report/report_priv.h"
#include "walk/walk.h"

/* ---- pathset.c ---- */

#define PATHSET_MAX ((size_t)1 << 25)
#define PATHSET_BYTES_MAX (8 * COP_GIB)
#define PATHSET_LEN_MAX 65535u

struct observed_path {
	struct cop_hlink link; /* in the set's table */
	uint64_t events;       /* of the metadata table, all ranks together; sums stop at 2^64-1 */
	uint64_t absent; /* those that found nothing; from the table of absences where that has more
			  */
	uint64_t ttl;
	uint32_t len;
	char text[]; /* NUL-terminated, as it is on disk */
};
struct pathset {
	struct cop_arena arena;
	struct cop_htab table;
	uint64_t seed; /* never changes */
	bool full;     /* a path was left out */
};
struct path_counts {
	uint64_t events, absent, ttl;
};
/* Adds the counts to the path's own. 0 also when the set is full; -ENOMEM. */
int cop_report_pathset_add(struct pathset *s, const char *text, size_t len, uint64_t hash,
	const struct path_counts *c);
uint64_t cop_report_pathset_hash(const struct pathset *s, const char *text, size_t len);
const struct observed_path *cop_report_pathset_find(
	const struct pathset *s, const char *text, size_t len);
/* Each once, in no order: the one after p, or with NULL the first; NULL: there is no more. */
const struct observed_path *cop_report_pathset_next(
	const struct pathset *s, const struct observed_path *p);
void cop_report_pathset_free(struct pathset *s);

/* ---- table.c: one raw table ---- */

enum table_kind {
	TABLE_OTHER,    /* only its paths count */
	TABLE_METADATA, /* its events are those of the path */
	TABLE_ABSENCES,
};
enum table_kind cop_report_table_kind(const char *name);

/* Takes one path, its escapes undone, and the counts that followed it. Not 0 ends the reading and
 * is passed on. */
typedef int table_take(void *arg, const char *path, size_t len, const struct path_counts *c);

enum table_verdict {
	TABLE_WHOLE,
	TABLE_CUT,   /* its end is missing */
	TABLE_EMPTY, /* no byte */
	TABLE_NONE,  /* not a raw table */
};
struct table_result {
	enum table_verdict verdict;
	uint64_t paths, odd; /* odd: lines that begin with a slash and are no path of a table */
	uint64_t cut_line;   /* the first whose count is above 2^64-1 and taken for that; 0: none */
};
/* Reads a table through read (csv.h) to its end, in bounded memory. 0, -ENOMEM, or what read or
 * take returned. */
int cop_report_table_read(cop_csv_read *read, void *read_arg, enum table_kind kind,
	table_take *take, void *arg, struct table_result *out);

/* ---- observed.c ---- */

struct observed {
	struct pathset set;
	uint64_t files, paths; /* tables that were used, and what they listed */
	struct faults faults;
};
void cop_report_observed_init(struct observed *o);
/* Reads every *.output in dir. -ENOENT if there is none, -ENODATA if none can be used; -ENOMEM; or
 * why the directory cannot be read. tick: how many files were read. Free it also after an error. */
int cop_report_observed_read(
	struct observed *o, const char *dir, void (*tick)(void *arg, uint64_t files), void *arg);
void cop_report_observed_free(struct observed *o);

#endif
