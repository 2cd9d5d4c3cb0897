/* SPDX-License-Identifier: BSD-3-Clause */
/* traceorder: sorts events by time, however many there are. Each thread fills a buffer, sorts it
 * and writes it out as a run; at the end the runs are merged: external merge sort, as in Knuth, The
 * Art of Computer Programming, volume 3, section 5.4. The files of the runs have no name, so they
 * are gone however the process ends. With a limit, a full buffer keeps only the first events; a
 * small enough number of them is never written. */
#ifndef COP_TRACEORDER_H
#define COP_TRACEORDER_H

#include "trace/read/read.h"

struct cop_order_conf {
	unsigned threads;
	const char *dir;     /* for the runs */
	uint64_t limit;      /* how many events are wanted; 0: all */
	bool whole;          /* keep id, scope and args, too */
	size_t buffer_bytes; /* per thread; 0: 32 MiB */
};
struct cop_order;

/* conf is copied; dir stays the caller's. NULL: out of memory. */
struct cop_order *cop_order_new(const struct cop_order_conf *conf);
void cop_order_free(struct cop_order *o);
/* -ENOMEM; -errno of writing, such as -ENOSPC. raw, of and rank are not kept. */
int cop_order_add(struct cop_order *o, unsigned worker, const struct cop_trace_event *e);
/* Visits all events by time, longer before shorter, so that an event comes before those inside of
 * it; then by file and line. What they point to is valid during the call. A result other than 0
 * ends it. */
typedef int cop_order_visit(void *arg, const struct cop_trace_event *e);
int cop_order_each(struct cop_order *o, cop_order_visit *visit, void *arg);
/* How many runs were written. */
size_t cop_order_runs_for_test(const struct cop_order *o);

#endif
