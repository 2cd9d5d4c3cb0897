/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline: one timeline of all events, in the JSON format that Perfetto and Chromium's own
 * viewer load ("Trace Event Format"). It opens no file: the caller reads the traces and writes the
 * text.
 *
 * Each process of a host (or of a file, if events name no host) becomes a process of the timeline
 * with a unique number and name. Ids are local to a file, because programs number them from 0; ids
 * of Copper's flows (cat copper) are global, since flows connect nodes. Begin and end pairs become
 * complete events, so viewers need not match them in truncated files. A begin without an end
 * extends to the last timestamp of its thread and is marked args.unfinished.
 *
 * Memory: the processes and threads, plus the sort buffers (order.c). */
#ifndef COP_TRACE_TIMELINE_H
#define COP_TRACE_TIMELINE_H

#include "trace/read/read.h"

struct cop_merge;

/* threads: the number of workers; dir: for temporary files, borrowed. NULL: out of memory. */
struct cop_merge *cop_merge_new(unsigned threads, const char *dir);
void cop_merge_free(struct cop_merge *m);
/* Adds an event from a reading with args, names and unfinished; metadata, too. -ENOMEM; -errno of a
 * temporary file. */
int cop_merge_add(struct cop_merge *m, unsigned worker, const struct cop_trace_event *e);
/* Passes the document to write in pieces; a nonzero result stops it and is returned. files: the
 * files that were read. Call once. -ENOMEM; -errno of a temporary file. */
typedef int cop_merge_write_fn(void *arg, const char *data, size_t len);
int cop_merge_write(struct cop_merge *m, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg);

/* ---- page.c: the same as one HTML page ---- */

/* A self-contained HTML page that draws the timeline, for users who may not upload a trace to a
 * viewer. Its size is bounded: it keeps the `limit` longest spans, samples instants, counters and
 * flows, and reports what it omits. Trace contents are never markup: names are in compressed data,
 * and the page's policy allows only its own script. */
struct cop_timeline;
struct cop_timeline *cop_timeline_new(unsigned threads, const char *dir, size_t limit);
void cop_timeline_free(struct cop_timeline *t);
/* Like cop_merge_add and cop_merge_write. */
int cop_timeline_add(struct cop_timeline *t, unsigned worker, const struct cop_trace_event *e);
int cop_timeline_write(struct cop_timeline *t, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg);

/* order.c: external merge sort of events by time (Knuth, The Art of Computer Programming, volume 3,
 * section 5.4). Each thread fills a buffer, sorts it and writes it as a run; at the end the runs
 * are merged. Run files are unnamed, so no exit path leaves them behind. With a limit, a full
 * buffer keeps only its first events; if they fit, no run is written. */

struct cop_order_conf {
	unsigned threads;
	const char *dir;     /* for the runs */
	uint64_t limit;      /* number of events wanted; 0: all */
	bool whole;          /* also keep id, scope, args, rank and so on */
	size_t buffer_bytes; /* per thread; 0: 32 MiB */
};
struct cop_order;

/* conf is copied; dir is borrowed. NULL: out of memory. */
struct cop_order *cop_order_new(const struct cop_order_conf *conf);
void cop_order_free(struct cop_order *o);
/* -ENOMEM; -errno of writing, such as -ENOSPC. raw and of are not kept. */
int cop_order_add(struct cop_order *o, unsigned worker, const struct cop_trace_event *e);
/* Visits all events in order of time, longer before shorter, so an event precedes those nested in
 * it; then by file and line. The strings of an event are valid during the call. A nonzero result
 * stops the visit and is returned. */
typedef int cop_order_visit(void *arg, const struct cop_trace_event *e);
int cop_order_each(struct cop_order *o, cop_order_visit *visit, void *arg);
/* The number of runs written. */
size_t cop_order_runs_for_test(const struct cop_order *o);

/* ---- args.c ---- */

/* Appends a value, or the inside of a string, as valid JSON: escapes control characters, replaces
 * invalid UTF-8 by U+FFFD and non-finite numbers by null. */
void cop_members_copy(struct cop_buf *out, struct cop_trace_str value);
void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text);

#endif
