/* SPDX-License-Identifier: BSD-3-Clause */
/* diagnose: finds out why a traced program was slow. It reports causes, each with evidence, a
 * command that shows more, a remedy and its estimated gain. It takes all events of a trace in time
 * order; causes.c has the criteria. It reads no files and changes nothing.
 *
 * Memory grows with the number of processes, files and (process, file) pairs, up to
 * COP_DIAGNOSE_MAX of each. */
#ifndef COP_TRACE_DIAGNOSE_H
#define COP_TRACE_DIAGNOSE_H

#include "base/table/table.h"
#include "trace/read/read.h"

#define COP_DIAGNOSE_MAX ((size_t)4000000)

struct cop_diagnose;
/* files lists the files to be read; paths names them in printed commands. Both are borrowed.
 * Returns NULL if out of memory. */
struct cop_diagnose *cop_diagnose_new(
	unsigned threads, const struct cop_trace_files *files, const char *paths);
void cop_diagnose_free(struct cop_diagnose *d);
/* First pass: takes events in any order, including metadata, to collect the processes and to detect
 * clocks that jumped back within a file. -ENOMEM. */
int cop_diagnose_see(struct cop_diagnose *d, unsigned worker, const struct cop_trace_event *e);
/* Second pass: adds an event with its args, in time order; begin events with no end, too. -ENOMEM,
 * -E2BIG. */
int cop_diagnose_add(struct cop_diagnose *d, const struct cop_trace_event *e);
/* Finds the causes and sorts them by cost, highest first. -ENOMEM. */
int cop_diagnose_finish(struct cop_diagnose *d);
/* On a terminal, prints a paragraph per cause; otherwise a table with the columns cause, seconds,
 * share, evidence, command, help and saves. */
void cop_diagnose_show(const struct cop_diagnose *d, enum cop_grid_form form, struct cop_buf *out);

/* Appends the word, quoted for the shell, after a space if the buffer is not empty. */
void cop_diagnose_quote(const char *word, struct cop_buf *out);

#endif
