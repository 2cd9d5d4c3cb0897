/* SPDX-License-Identifier: BSD-3-Clause */
/* tracemerge: one timeline of all events, in the JSON format that Perfetto and Chromium's own
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
 * Memory: the processes and threads, and what traceorder takes. */
#ifndef COP_TRACEMERGE_H
#define COP_TRACEMERGE_H

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

#endif
