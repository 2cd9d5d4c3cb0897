/* SPDX-License-Identifier: BSD-3-Clause */
/* collect.c counts; causes.c and spread.c find causes; diagnose.c sorts and prints them. */
#ifndef COP_TRACE_DIAGNOSE_PRIV_H
#define COP_TRACE_DIAGNOSE_PRIV_H

#include "base/base/htab.h"
#include "trace/diagnose/diagnose.h"
#include "trace/table/table.h"
#include "trace/who/who.h"

/* ---- collect.c ---- */

/* Calls of one kind. */
struct calls {
	uint64_t n, ns, bytes;
};

/* Every counted item begins with this, and is followed by its key. */
struct thing {
	struct cop_hlink link;
	size_t len;
	char *key;
};
struct things {
	struct cop_htab table;
	size_t size; /* size of one item */
};

struct actor {
	struct thing thing;
	struct cop_trace_event any; /* its source, host, pid and tid, from the key */
	struct calls posix, moved;  /* all calls; calls that transfer data */
};
struct file {
	struct thing thing;
	struct calls moved, opens;
	struct actor *first; /* first process to use it */
	bool shared;         /* used by several processes */
	bool wrote;
};
/* A file as used by one process. */
struct use {
	struct thing thing;
	struct file *file;
	struct calls opens, moved;
	int64_t at;   /* end of the last transfer */
	int64_t seek; /* where the next transfer starts after a seek */
	bool sought;
	int64_t distance; /* of the last jump */
	uint64_t jumps, unaligned, extent, read;
};
/* A function as run by one process. */
struct part {
	struct thing thing;
	struct actor *process;
	struct cop_trace_str name;
	struct calls calls;
};
/* A begin event with no end. */
struct open {
	struct thing thing;
	struct cop_trace_event any;
	uint64_t n;
	int64_t since;
};
struct gap {
	int64_t from, to;
};

enum { SMALL, LARGE, SIZES };
#define SMALL_BYTES 65536u
#define PAGE 4096

#define CAUSES_MAX 16 /* each cause is found at most once */
struct cause {
	const char *name;
	double seconds; /* upper bound on its cost */
	double saves;   /* estimated gain from the remedy; NAN if not known */
	struct cop_buf evidence, command, help;
};

struct cop_diagnose {
	const struct cop_trace_files *files;
	const char *paths;
	unsigned threads;
	struct seen *seen;
	struct crew crew;
	struct clock_part *clock; /* one per thread */
	struct things process, file, use, part, open;
	struct calls posix, meta, failed, sync, moved[SIZES];
	struct calls random, unaligned, write, read;
	uint64_t random_of, unaligned_of; /* number of transfers with a known offset */
	struct cop_union io, compute;
	int64_t first, last, covered; /* covered: latest end of any event so far */
	struct gap *gap;
	size_t gaps, gaps_cap;
	struct gap *spanned; /* one per trace file: from its first event to its last */
	struct cop_buf room;
	struct cause cause[CAUSES_MAX];
	size_t causes;
};
struct thing *cop_diagnose_next(const struct things *t, const struct thing *before);
double cop_diagnose_total(const struct cop_diagnose *d);

/* ---- clock.c: clocks that jumped back ---- */

struct step {
	size_t source;
	uint64_t line, back_ns;
};
struct clock_part *cop_diagnose_clock_new(unsigned threads);
void cop_diagnose_clock_free(struct clock_part *c, unsigned threads);
int cop_diagnose_clock_take(
	struct clock_part *all, unsigned worker, const struct cop_trace_event *e);
/* Finds the largest step back; returns false if there is none. */
bool cop_diagnose_clock_step(const struct clock_part *c, unsigned threads, struct step *out);

/* ---- causes.c, spread.c ---- */

/* Adds a cause; the caller fills in its texts. */
struct cause *cop_diagnose_cause(
	struct cop_diagnose *d, const char *name, double seconds, double saves);
/* Sets a cause's command to "copper trace WORDS PATHS". */
void cop_diagnose_command(struct cop_diagnose *d, struct cause *c, const char *words);
/* Appends the name of a process for printing. */
void cop_diagnose_who(
	struct cop_diagnose *d, const struct cop_trace_event *any, struct cop_buf *to);
void cop_diagnose_causes(struct cop_diagnose *d);
/* Converts thread seconds to wall-clock seconds. */
double cop_diagnose_passed(struct cop_diagnose *d, double s);
void cop_diagnose_slow_process(struct cop_diagnose *d);
void cop_diagnose_slow_files(struct cop_diagnose *d);
void cop_diagnose_one_writer(struct cop_diagnose *d);

#endif
