/* SPDX-License-Identifier: BSD-3-Clause */
/* diagnose: finds why a traced program was slow: causes, each with evidence, a command that shows
 * more, a remedy and its estimated gain. Takes all events of a trace in order of time; causes.c has
 * the criteria. Changes nothing and reads no file.
 *
 * Memory grows with the processes, the files and the (process, file) pairs, up to COP_DIAGNOSE_MAX
 * of each. */
#ifndef COP_TRACE_DIAGNOSE_H
#define COP_TRACE_DIAGNOSE_H

#include "base/table/table.h"
#include "trace/read/read.h"

#define COP_DIAGNOSE_MAX ((size_t)4000000)

struct cop_diagnose;
/* files: the files that are read; paths: their names in printed commands. Both are borrowed. NULL:
 * out of memory. */
struct cop_diagnose *cop_diagnose_new(
	unsigned threads, const struct cop_trace_files *files, const char *paths);
void cop_diagnose_free(struct cop_diagnose *d);
/* First pass, in any order, with metadata: collects the processes, and detects clocks that went
 * back within a file. -ENOMEM. */
int cop_diagnose_see(struct cop_diagnose *d, unsigned worker, const struct cop_trace_event *e);
/* Adds an event with args, in order of time; also begins without an end. -ENOMEM, -E2BIG. */
int cop_diagnose_add(struct cop_diagnose *d, const struct cop_trace_event *e);
/* Finds the causes and sorts them by cost, highest first. -ENOMEM. */
int cop_diagnose_finish(struct cop_diagnose *d);
/* Terminal: a paragraph per cause. Otherwise a table: cause, seconds, share, evidence, command,
 * help, saves. */
void cop_diagnose_show(const struct cop_diagnose *d, enum cop_grid_form form, struct cop_buf *out);

/* Appends a shell-quoted word, after a blank if the buffer is not empty. */
void cop_diagnose_quote(const char *word, struct cop_buf *out);

#endif
