/* SPDX-License-Identifier: BSD-3-Clause */
/* tracesum: a first overview of traces: how much there is, where the time went, what each function
 * did, and how that changed over the run. It takes events from any number of threads. */
#ifndef COP_TRACESUM_H
#define COP_TRACESUM_H

#include "trace/tracetab/tracetab.h"

/* ---- union.c: time that some span covers ---- */

/* A set of spans, sorted, that neither overlap nor touch. If there are more than COP_UNION_MAX, the
 * shortest gaps are closed, and closed_ns says by how much the union may therefore be too long. */
#define COP_UNION_MAX ((size_t)1 << 20)
struct cop_union_span {
	int64_t from, to;
};
struct cop_union {
	struct cop_union_span *at;
	size_t n, sorted, cap;
	int64_t gap; /* gaps up to this are closed */
	uint64_t closed_ns;
	size_t max; /* a limit other than COP_UNION_MAX, a power of two from 2048 on; 0:
		       COP_UNION_MAX */
};
/* -ENOMEM. */
int cop_union_add(struct cop_union *u, int64_t from, int64_t to);
/* Adds what from covers; from is unchanged. -ENOMEM. */
int cop_union_merge(struct cop_union *u, const struct cop_union *from);
/* The nanoseconds that u covers; those that u covers and other does not. */
uint64_t cop_union_length(struct cop_union *u);
uint64_t cop_union_alone(struct cop_union *u, struct cop_union *other);
/* Adds to `to` what u covers and other does not. -ENOMEM. */
int cop_union_rest(struct cop_union *u, struct cop_union *other, struct cop_union *to);
void cop_union_free(struct cop_union *u);

/* ---- sum.c ---- */

/* Time in which at least one span of a kind runs, whatever process it belongs to: the program's own
 * input and output (cat contains "reader" or "checkpoint"), its computing (name contains
 * "compute"), and cat POSIX. Aggregated records do not say when their spans were, and are left out
 * here. */
enum { COP_SUM_APP, COP_SUM_COMPUTE, COP_SUM_POSIX, COP_SUM_PARTS };

struct cop_sum_result {
	uint64_t spans, instants, counters,
		flows; /* spans: including those that aggregates stand for */
	uint64_t processes, threads, hosts, files;
	double total_s; /* from the first begin to the last end of a span */
	double part_s[COP_SUM_PARTS];
	double app_alone_s,
		compute_not_app_s; /* time of app without compute, and of compute without app */
	double posix_alone_s, compute_not_posix_s; /* time of POSIX without compute, and of compute
						      without POSIX */
	double about_s;                            /* by how much the times above may be wrong */
	struct cop_rows functions, intervals;      /* free them by cop_rows_free */
};

struct cop_sum;
/* names: counts files and hosts that events name; without it, those that the traces define, which
 * needs no second pass. NULL: out of memory. */
struct cop_sum *cop_sum_new(unsigned threads, bool names, int64_t first_ns, uint64_t interval_ns);
void cop_sum_free(struct cop_sum *s);
/* Also takes metadata, unless names is set. -ENOMEM, -E2BIG. */
int cop_sum_add(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e);
/* -ENOMEM, -E2BIG with a sentence. */
int cop_sum_finish(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err);
void cop_sum_result_free(struct cop_sum_result *r);
void cop_sum_show(const struct cop_sum_result *r, enum cop_grid_form form, struct cop_buf *out);

#endif
