/* SPDX-License-Identifier: BSD-3-Clause */
/* diagnose: why a program that left a trace was slow: causes, each with what shows it, the command
 * that shows more, and what would help by how much. It takes all events of a trace in order of
 * time; what each cause needs to be named is in causes.c. It changes nothing and reads no file.
 *
 * Memory grows with the processes, files, and files that each process uses, up to
 * COP_DIAGNOSE_MAX of each. */
#ifndef COP_TRACE_DIAGNOSE_H
#define COP_TRACE_DIAGNOSE_H

#include "base/table/table.h"
#include "trace/read/read.h"

#define COP_DIAGNOSE_MAX ((size_t)4000000)

struct cop_diagnose;
/* files: those that are read, borrowed; paths: how they are named in commands that are shown,
 * borrowed. NULL: out of memory. */
struct cop_diagnose *cop_diagnose_new(
	unsigned threads, const struct cop_trace_files *files, const char *paths);
void cop_diagnose_free(struct cop_diagnose *d);
/* Takes an event as it is read, in any order, metadata too: who took part, and whether clocks went
 * back within a file. -ENOMEM. */
int cop_diagnose_see(struct cop_diagnose *d, unsigned worker, const struct cop_trace_event *e);
/* Takes an event with its args, in order of time; begins without an end, too. -ENOMEM, -E2BIG. */
int cop_diagnose_add(struct cop_diagnose *d, const struct cop_trace_event *e);
/* Finds the causes, the one that costs most first. -ENOMEM. */
int cop_diagnose_finish(struct cop_diagnose *d);
/* On a terminal a paragraph for each, else a table: cause, seconds, share, evidence, command, help,
 * saves. */
void cop_diagnose_show(const struct cop_diagnose *d, enum cop_grid_form form, struct cop_buf *out);

/* Appends a word as a shell takes it, behind a blank if something is there. */
void cop_diagnose_quote(const char *word, struct cop_buf *out);

#endif
