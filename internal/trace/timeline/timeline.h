/* SPDX-License-Identifier: BSD-3-Clause */
/* timeline: one timeline of all events, in the JSON format that Perfetto and Chromium's own
 * viewer load ("Trace Event Format"). It opens no file: the caller reads the traces and writes the
 * text.
 *
 * Each process of a host (or, if events name no host, of a file) becomes a process of the timeline,
 * with a number of its own and a name that identifies it. An id belongs to its file, because
 * programs number ids from 0; ids of Copper's flows (cat copper) are the same in all files, since
 * flows lead from one node to another. Begins and ends become complete events, so that they match
 * whatever was cut off. A begin without an end lasts to the last time seen on its thread, and is
 * marked: args.unfinished.
 *
 * Memory: the processes and threads, and what the sorting takes (order.c). */
#ifndef COP_TRACE_TIMELINE_H
#define COP_TRACE_TIMELINE_H

#include "trace/read/read.h"

struct cop_merge;

/* threads: how many add events; dir: for temporary files, owned by the caller. NULL: out of
 * memory. */
struct cop_merge *cop_merge_new(unsigned threads, const char *dir);
void cop_merge_free(struct cop_merge *m);
/* Takes an event of a reading with args, names and unfinished; also metadata. -ENOMEM; -errno of
 * writing a temporary file. */
int cop_merge_add(struct cop_merge *m, unsigned worker, const struct cop_trace_event *e);
/* Passes the document in parts to write; a result other than 0 ends it. files are those that were
 * read. Call it once. -ENOMEM; -errno of a temporary file. */
typedef int cop_merge_write_fn(void *arg, const char *data, size_t len);
int cop_merge_write(struct cop_merge *m, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg);

/* ---- page.c: the same as one HTML page ---- */

/* A page that loads nothing and draws the timeline itself, for users who may not send a trace
 * to a viewer. Its size is bounded: it has at most `limit` spans, the longest ones, and thins out
 * instants, counters and flows; it says what it omits. Nothing of a trace is ever markup: names are
 * in compressed data, and the page's policy allows its one script alone. */
struct cop_timeline;
struct cop_timeline *cop_timeline_new(unsigned threads, const char *dir, size_t limit);
void cop_timeline_free(struct cop_timeline *t);
/* As cop_merge_add and cop_merge_write. */
int cop_timeline_add(struct cop_timeline *t, unsigned worker, const struct cop_trace_event *e);
int cop_timeline_write(struct cop_timeline *t, const struct cop_trace_files *files,
	cop_merge_write_fn *write, void *arg);

/* order.c: sorts events by time, however many there are. Each thread fills a buffer, sorts it
 * and writes it out as a run; at the end the runs are merged: external merge sort, as in Knuth, The
 * Art of Computer Programming, volume 3, section 5.4. The files of the runs have no name, so they
 * are gone however the process ends. With a limit, a full buffer keeps only the first events; a
 * small enough number of them is never written. */

struct cop_order_conf {
	unsigned threads;
	const char *dir;     /* for the runs */
	uint64_t limit;      /* how many events are wanted; 0: all */
	bool whole;          /* keep id, scope, args, rank and so on, too */
	size_t buffer_bytes; /* per thread; 0: 32 MiB */
};
struct cop_order;

/* conf is copied; dir stays the caller's. NULL: out of memory. */
struct cop_order *cop_order_new(const struct cop_order_conf *conf);
void cop_order_free(struct cop_order *o);
/* -ENOMEM; -errno of writing, such as -ENOSPC. raw and of are not kept. */
int cop_order_add(struct cop_order *o, unsigned worker, const struct cop_trace_event *e);
/* Visits all events by time, longer before shorter, so that an event precedes the events inside of
 * it; then by file and line. What they point to is valid during the call. A result other than 0
 * ends it. */
typedef int cop_order_visit(void *arg, const struct cop_trace_event *e);
int cop_order_each(struct cop_order *o, cop_order_visit *visit, void *arg);
/* How many runs were written. */
size_t cop_order_runs_for_test(const struct cop_order *o);

/* ---- args.c ---- */

/* Appends a value, or the inside of a string, as valid JSON: control characters are escaped,
 * invalid UTF-8 becomes U+FFFD, and what is not a number becomes null. */
void cop_members_copy(struct cop_buf *out, struct cop_trace_str value);
void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text);

#endif
