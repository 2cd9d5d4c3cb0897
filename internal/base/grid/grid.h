/* SPDX-License-Identifier: BSD-3-Clause */
/* grid: a table of named columns, printed for a terminal, as CSV (RFC 4180) or as a JSON array of
 * objects. It asks for the cells one by one and keeps none; it sorts and computes nothing. */
#ifndef COP_GRID_H
#define COP_GRID_H

#include "base/base/base.h"

enum cop_grid_form { COP_GRID_PLAIN, COP_GRID_CSV, COP_GRID_JSON };

enum cop_grid_kind {
	COP_GRID_TEXT,
	COP_GRID_LABEL,   /* text; JSON has it as a number where it is a whole one */
	COP_GRID_NUMBER,  /* the text of a number, or empty: null */
	COP_GRID_SECONDS, /* to the nanosecond, on a terminal to the microsecond */
	COP_GRID_WHOLE,   /* bytes or a count; three decimals if it is a mean, none on a terminal */
	COP_GRID_RATIO    /* six decimals, on a terminal two */
};

struct cop_grid_col {
	const char *name; /* any text; also the member of the JSON objects */
	enum cop_grid_kind kind;
};
/* By the kind of its column: text, which is borrowed for the call, or a value, NAN if there is
 * none. */
struct cop_grid_cell {
	const char *text;
	size_t len;
	double value;
};
struct cop_grid {
	const struct cop_grid_col *col;
	unsigned cols;
	size_t rows;
	struct cop_grid_cell (*cell)(const void *arg, size_t row, unsigned col);
	const void *arg;
};

/* Whole lines; JSON ends with a newline, too. out->failed says whether memory sufficed. */
void cop_grid_show(const struct cop_grid *g, enum cop_grid_form form, struct cop_buf *out);

#endif
