/* SPDX-License-Identifier: BSD-3-Clause */
/* observed: reads the raw tables that the nodes of a job left in its directory: each path once,
 * however many ranks list it, and the faults of each file. It trusts nothing that it reads
 * there. */
#ifndef COP_WRITERS_OBSERVED_H
#define COP_WRITERS_OBSERVED_H

#include "base/base/htab.h"
#include "base/table/table.h"
#include "base/walk/walk.h"

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
struct cop_path_counts {
	uint64_t events, absent, ttl;
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
	COP_OBSERVED_OTHER,    /* only its paths count */
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
/* Reads a table through read (csv.h) to its end, in bounded memory. 0, -ENOMEM, or what read or
 * take returned. */
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
