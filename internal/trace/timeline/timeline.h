/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline: merges all events into one timeline, in the JSON format that Perfetto and Chromium's
 * own viewer load ("Trace Event Format"). It opens no files: the caller reads the traces and writes
 * the output.
 *
 * Each process of a host (or of a file, if events name no host) becomes a process of the timeline
 * with a unique number and name. Ids are local to a file because programs number them from 0; the
 * ids of Copper's flows (cat copper) are global because those flows connect nodes. Pairs of begin
 * and end events become complete events, so viewers need not match them in truncated files. A begin
 * event with no end becomes a span that lasts until the last timestamp of its thread and is marked
 * args.unfinished.
 *
 * Memory use grows with the number of processes and threads, plus the sort buffers (order.c). */
#ifndef COP_TRACE_TIMELINE_H
#define COP_TRACE_TIMELINE_H

#include "trace/read/read.h"

struct cop_merge;

/* threads is the number of workers; dir, which is borrowed, holds temporary files. Returns NULL if
 * out of memory. */
struct cop_merge *cop_merge_new(unsigned threads, const char *dir);
void cop_merge_free(struct cop_merge *m);
/* Adds an event, which may be metadata. The read must have args, names and unfinished set. -ENOMEM;
 * -errno if a temporary file fails. */
int cop_merge_add(struct cop_merge *m, unsigned worker, const struct cop_trace_event *e);
/* Passes the document to `write` in pieces; a nonzero result stops it and is returned. files: the
 * files that were read. Call once. -ENOMEM; -errno if a temporary file fails. */
typedef int cop_merge_write_fn(void *arg, const char *data, size_t len);
int cop_merge_write(struct cop_merge *m, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg);

/* ---- page.c: the same as one HTML page ---- */

/* A self-contained HTML page that draws the timeline, for users who may not upload a trace to a
 * viewer. The size of the page is bounded: it keeps the `limit` longest spans, samples instants,
 * counters and flows, and reports what it omits. Trace contents never become markup: names are
 * stored as compressed data, and the page's content security policy allows only its own script. */
struct cop_timeline;
struct cop_timeline *cop_timeline_new(unsigned threads, const char *dir, size_t limit);
void cop_timeline_free(struct cop_timeline *t);
/* Like cop_merge_add and cop_merge_write. */
int cop_timeline_add(struct cop_timeline *t, unsigned worker, const struct cop_trace_event *e);
int cop_timeline_write(struct cop_timeline *t, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg);

/* order.c: external merge sort of events by time (Knuth, The Art of Computer Programming, volume 3,
 * section 5.4). Each thread fills a buffer, sorts it and writes it out as a run; a final merge
 * combines the runs. Run files are unnamed, so no exit path leaves them behind. With a limit, a
 * full buffer keeps only its earliest events; if those fit, no run is written. */

struct cop_order_conf {
	unsigned threads;
	const char *dir;     /* where to write runs */
	uint64_t limit;      /* keep only this many of the earliest events; 0: all */
	bool whole;          /* also keep id, scope, args, rank and other members */
	size_t buffer_bytes; /* per thread; 0: 32 MiB */
};
struct cop_order;

/* conf is copied; dir is borrowed. NULL: out of memory. */
struct cop_order *cop_order_new(const struct cop_order_conf *conf);
void cop_order_free(struct cop_order *o);
/* -ENOMEM; -errno if a write fails, such as -ENOSPC. The members raw and of are not kept. */
int cop_order_add(struct cop_order *o, unsigned worker, const struct cop_trace_event *e);
/* Visits all events in time order. At equal times longer events come first, so an event precedes
 * those nested in it; ties are broken by file and line. An event's strings are valid only during
 * the call. A nonzero result stops the visit and is returned. */
typedef int cop_order_visit(void *arg, const struct cop_trace_event *e);
int cop_order_each(struct cop_order *o, cop_order_visit *visit, void *arg);
/* Returns the number of runs written. */
size_t cop_order_runs_for_test(const struct cop_order *o);

/* ---- args.c ---- */

/* Appends a value, or the inside of a string, as valid JSON: escapes control characters, and
 * replaces invalid UTF-8 with U+FFFD and non-finite numbers with null. */
void cop_members_copy(struct cop_buf *out, struct cop_trace_str value);
void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text);

#endif
