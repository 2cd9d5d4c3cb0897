/* SPDX-License-Identifier: BSD-3-Clause */
/* tracesum: a first overview of traces: how much there is, where the time went, what each function
 * did, and how that changed over the run. It takes events from any number of threads. */
#ifndef COP_TRACESUM_H
#define COP_TRACESUM_H

#include "tracetab/tracetab.h"

/* ---- union.c: time that some span covers ---- */

/* Spans that do not touch each other, in order. Beyond COP_UNION_MAX of them the shortest gaps are
 * closed, and closed_ns says how much too long the union may be for that. */
#define COP_UNION_MAX ((size_t)1 << 20)
struct cop_union_span {
	int64_t from, to;
};
struct cop_union {
	struct cop_union_span *at;
	size_t n, sorted, cap;
	int64_t gap; /* gaps up to this are closed */
	uint64_t closed_ns;
	size_t max; /* so many instead of COP_UNION_MAX, a power of two from 2048 on; 0: those */
};
/* -ENOMEM. */
int cop_union_add(struct cop_union *u, int64_t from, int64_t to);
/* Takes what is in from, which stays. -ENOMEM. */
int cop_union_merge(struct cop_union *u, const struct cop_union *from);
/* Nanoseconds that u covers; those that it covers and other does not. */
uint64_t cop_union_length(struct cop_union *u);
uint64_t cop_union_alone(struct cop_union *u, struct cop_union *other);
/* Adds to `to` what u covers and other does not. -ENOMEM. */
int cop_union_rest(struct cop_union *u, struct cop_union *other, struct cop_union *to);
void cop_union_free(struct cop_union *u);

/* ---- sum.c ---- */

/* Time in which at least one span of a kind runs, whatever process it belongs to: the program's own
 * input and output (cat holds "reader" or "checkpoint"), its computing (name holds "compute"), and
 * cat POSIX. Aggregated records do not say when their spans were and are left out here. */
enum { COP_SUM_APP, COP_SUM_COMPUTE, COP_SUM_POSIX, COP_SUM_PARTS };

struct cop_sum_result {
	uint64_t spans, instants, counters, flows; /* spans: with those that aggregates stand for */
	uint64_t processes, threads, hosts, files;
	double total_s; /* from the first begin to the last end of a span */
	double part_s[COP_SUM_PARTS];
	double app_alone_s, compute_not_app_s;     /* of app and compute, without the other */
	double posix_alone_s, compute_not_posix_s; /* of POSIX and compute, without the other */
	double about_s;                            /* the times above may be off by this much */
	struct cop_rows functions, intervals;      /* cop_rows_free */
};

struct cop_sum;
/* names: files and hosts are counted where events name them; otherwise where the traces define
 * them, which takes no second pass. NULL without memory. */
struct cop_sum *cop_sum_new(unsigned threads, bool names, int64_t first_ns, uint64_t interval_ns);
void cop_sum_free(struct cop_sum *s);
/* Also metadata, unless names. -ENOMEM, -E2BIG. */
int cop_sum_add(struct cop_sum *s, unsigned worker, const struct cop_trace_event *e);
/* -ENOMEM, -E2BIG with a sentence. */
int cop_sum_finish(struct cop_sum *s, struct cop_sum_result *out, struct cop_err *err);
void cop_sum_result_free(struct cop_sum_result *r);
void cop_sum_show(const struct cop_sum_result *r, enum cop_grid_form form, struct cop_buf *out);

#endif
