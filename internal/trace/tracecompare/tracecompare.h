/* SPDX-License-Identifier: BSD-3-Clause */
/* tracecompare: the tables of several runs side by side. It joins them by their keys: the keys come
 * first, then, for each column, one column per run. It reads and adds up nothing. */
#ifndef COP_TRACECOMPARE_H
#define COP_TRACECOMPARE_H

#include "trace/tracetab/tracetab.h"

#define COP_COMPARE_RUNS_MAX 64u

struct cop_compare;

/* Takes n tables with the same keys and columns, from 1 to COP_COMPARE_RUNS_MAX, and the names of
 * their runs. Rows and names are borrowed until cop_compare_free, and the rows are reordered. The
 * result is sorted in descending order of the first column that can sort: by the value of the first
 * run, then by that of the second, and so on. -ENOMEM. */
int cop_compare_new(struct cop_rows *rows, const char *const *name, unsigned n,
	struct cop_compare **out, struct cop_err *err);
void cop_compare_free(struct cop_compare *c);
/* Shows the first `limit` rows (0: all). Columns are called RUN:COLUMN; a run that has no such row
 * has no value. For a terminal, columns RUN/FIRST follow those of the first column: its ratio to
 * that of the first run. */
void cop_compare_show(
	const struct cop_compare *c, enum cop_grid_form form, size_t limit, struct cop_buf *out);

#endif
