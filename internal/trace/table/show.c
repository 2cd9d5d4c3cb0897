/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints rows as a grid. */
#include <math.h>

#include "trace/table/table_priv.h"

struct cop_grid_col cop_tab_key_col(const struct cop_tab_conf *conf, unsigned i)
{
	static const enum cop_grid_kind kinds[COP_KEYS] = {
		[COP_KEY_PID] = COP_GRID_LABEL,
		[COP_KEY_TID] = COP_GRID_LABEL,
		[COP_KEY_SIZE] = COP_GRID_NUMBER,
		[COP_KEY_INTERVAL] = COP_GRID_NUMBER,
		[COP_KEY_TIME] = COP_GRID_NUMBER,
		[COP_KEY_RANK] = COP_GRID_NUMBER,
		[COP_KEY_ARG] = COP_GRID_LABEL,
	};

	return (struct cop_grid_col){cop_tab_key_name(conf, i), kinds[conf->key[i]]};
}

struct cop_grid_col cop_tab_value_col(const struct cop_tab_conf *conf, unsigned i)
{
	const struct col *c = &cop_tab_col[conf->col[i]];

	return (struct cop_grid_col){c->name, c->kind};
}

/* If both a key and a column are called "size", the column is printed under the name of the sum. */
static struct cop_grid_col beside_keys(const struct cop_tab_conf *conf, unsigned i)
{
	struct cop_grid_col col = cop_tab_value_col(conf, i);

	for (unsigned k = 0; k < conf->keys && conf->col[i] == COL_SIZE; k++)
		if (conf->key[k] == COP_KEY_SIZE)
			col.name = "size:sum";
	return col;
}

static struct cop_grid_cell cell(const void *arg, size_t row, unsigned col)
{
	const struct cop_rows *r = arg;
	const struct cop_row *at = &r->row[row];

	if (col < r->conf.keys)
		return (struct cop_grid_cell){at->key[col].at, at->key[col].len, NAN};
	return (struct cop_grid_cell){NULL, 0, at->value[col - r->conf.keys]};
}

void cop_rows_show(
	const struct cop_rows *r, enum cop_grid_form form, size_t limit, struct cop_buf *out)
{
	struct cop_grid_col col[COP_TAB_KEYS_MAX + COP_TAB_COLS_MAX];
	struct cop_grid g = {.col = col,
		.cols = r->conf.keys + r->conf.cols,
		.rows = limit && limit < r->n ? limit : r->n,
		.cell = cell,
		.arg = r};

	for (unsigned k = 0; k < r->conf.keys; k++)
		col[k] = cop_tab_key_col(&r->conf, k);
	for (unsigned k = 0; k < r->conf.cols; k++)
		col[r->conf.keys + k] = beside_keys(&r->conf, k);
	cop_grid_show(&g, form, out);
}
