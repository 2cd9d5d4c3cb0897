/* SPDX-License-Identifier: BSD-3-Clause */
/* Sorts all tables by their keys and merges them. */
#include <assert.h>
#include <math.h>

#include "trace/table/table.h"

struct joined {
	const struct cop_row *any;  /* row of any run, for the keys */
	const struct cop_row **run; /* one per run; NULL if the run lacks the row */
};
struct cop_compare {
	const struct cop_rows *rows;
	const char *const *name;
	unsigned runs, sort; /* sort: the sort column */
	struct joined *row;
	const struct cop_row **slots;
	size_t n;
};

/* ---- joining ---- */

/* Returns the smallest among the current rows of all runs; NULL if all runs have ended. */
static const struct cop_row *least(const struct cop_compare *c, const size_t *at)
{
	const struct cop_row *least = NULL;

	for (unsigned r = 0; r < c->runs; r++) {
		const struct cop_row *row = &c->rows[r].row[at[r]];

		if (at[r] < c->rows[r].n &&
			(!least || cop_row_compare(row, least, c->rows[0].conf.keys) < 0))
			least = row;
	}
	return least;
}

static void join(struct cop_compare *c)
{
	size_t at[COP_COMPARE_RUNS_MAX] = {0};
	const struct cop_row *any;

	while ((any = least(c, at))) {
		struct joined *j = &c->row[c->n];

		*j = (struct joined){any, c->slots + c->n++ * c->runs};
		for (unsigned r = 0; r < c->runs; r++) {
			const struct cop_row *row = &c->rows[r].row[at[r]];

			if (at[r] == c->rows[r].n ||
				cop_row_compare(row, any, c->rows[0].conf.keys))
				continue;
			j->run[r] = row;
			at[r]++;
		}
	}
}

static long double value_of(const struct joined *j, unsigned run, unsigned col)
{
	return j->run[run] ? j->run[run]->value[col] : NAN;
}

/* Missing values come last. */
static int by_value(const void *p, const void *q, void *arg)
{
	const struct cop_compare *c = arg;
	const struct joined *a = p, *b = q;

	for (unsigned r = 0; r < c->runs; r++) {
		long double x = value_of(a, r, c->sort), y = value_of(b, r, c->sort);

		if (isnan(x) != isnan(y))
			return isnan(x) ? 1 : -1;
		if (!isnan(x) && x != y)
			return x < y ? 1 : -1;
	}
	return cop_row_compare(a->any, b->any, c->rows[0].conf.keys);
}

/* Reserves room for the maximum number of rows, since all of them may differ. */
static int reserve_rows(struct cop_compare *c)
{
	size_t most = 0;

	for (unsigned r = 0; r < c->runs; r++)
		most += c->rows[r].n;
	c->row = calloc(most + 1, sizeof(*c->row));
	c->slots = calloc((most + 1) * c->runs, sizeof(const struct cop_row *));
	return c->row && c->slots ? 0 : -ENOMEM;
}

int cop_compare_new(struct cop_rows *rows, const char *const *name, unsigned n,
	struct cop_compare **out, struct cop_err *err)
{
	struct cop_compare *c = calloc(1, sizeof(*c));

	assert(n && n <= COP_COMPARE_RUNS_MAX);
	if (c)
		*c = (struct cop_compare){.rows = rows, .name = name, .runs = n};
	if (!c || reserve_rows(c)) {
		cop_compare_free(c);
		return cop_err_set(err, ENOMEM, "no memory for the tables side by side");
	}
	for (unsigned r = 0; r < n; r++)
		cop_rows_sort(&rows[r], cop_tab_key_name(&rows[r].conf, 0));
	join(c);
	c->sort = cop_tab_sort_col(&rows[0].conf);
	if (rows[0].conf.cols)
		qsort_r(c->row, c->n, sizeof(*c->row), by_value, c);
	*out = c;
	return 0;
}

void cop_compare_free(struct cop_compare *c)
{
	if (!c)
		return;
	free(c->row);
	free(c->slots);
	free(c);
}

/* ---- the columns ---- */

enum { KEY, VALUE, RATIO };
struct column {
	int what;
	unsigned of, run; /* which key, or which column of which run */
};
struct sheet {
	const struct cop_compare *c;
	struct column *column;
	struct cop_grid_col *col;
	unsigned n;
};

static struct cop_grid_cell cell(const void *arg, size_t row, unsigned col)
{
	const struct sheet *s = arg;
	const struct column *at = &s->column[col];
	const struct joined *j = &s->c->row[row];
	double first;

	if (at->what == KEY)
		return (struct cop_grid_cell){j->any->key[at->of].at, j->any->key[at->of].len, NAN};
	if (at->what == VALUE)
		return (struct cop_grid_cell){NULL, 0, value_of(j, at->run, at->of)};
	/* Divide doubles, as other tools do, so that 67 / 40 prints as 1.68. */
	first = (double)value_of(j, 0, at->of);
	return (struct cop_grid_cell){
		NULL, 0, first != 0 ? (double)value_of(j, at->run, at->of) / first : NAN};
}

static int add_column(struct sheet *s, struct column column)
{
	const struct cop_tab_conf *conf = &s->c->rows[0].conf;
	struct cop_grid_col *col = &s->col[s->n];
	const char *run = s->c->name[column.run];
	char *name;
	int rc;

	if (column.what == KEY)
		*col = cop_tab_key_col(conf, column.of);
	else
		*col = cop_tab_value_col(conf, column.of);
	if (column.what == RATIO) {
		col->kind = COP_GRID_RATIO;
		rc = asprintf(&name, "%s/%s", run, s->c->name[0]);
	} else if (column.what == VALUE) {
		rc = asprintf(&name, "%s:%s", run, col->name);
	} else {
		name = strdup(col->name);
		rc = name ? 0 : -1;
	}
	col->name = rc < 0 ? NULL : name;
	s->column[s->n] = column;
	s->n += rc >= 0;
	return rc < 0 ? -ENOMEM : 0;
}

static int add_all(struct sheet *s, bool ratio)
{
	const struct cop_tab_conf *conf = &s->c->rows[0].conf;
	int rc = 0;

	for (unsigned i = 0; i < conf->keys && !rc; i++)
		rc = add_column(s, (struct column){KEY, i, 0});
	for (unsigned i = 0; i < conf->cols; i++) {
		for (unsigned r = 0; r < s->c->runs && !rc; r++)
			rc = add_column(s, (struct column){VALUE, i, r});
		for (unsigned r = 1; r < s->c->runs && !rc && ratio && i == 0; r++)
			rc = add_column(s, (struct column){RATIO, i, r});
	}
	return rc;
}

void cop_compare_show(
	const struct cop_compare *c, enum cop_grid_form form, size_t limit, struct cop_buf *out)
{
	unsigned most = COP_TAB_KEYS_MAX + (COP_TAB_COLS_MAX + 1) * c->runs;
	struct sheet s = {.c = c};
	struct cop_grid g = {.rows = limit && limit < c->n ? limit : c->n, .cell = cell, .arg = &s};

	s.column = calloc(most, sizeof(*s.column));
	s.col = calloc(most, sizeof(*s.col));
	if (!s.column || !s.col || add_all(&s, form == COP_GRID_PLAIN)) {
		out->failed = true;
	} else {
		g.col = s.col;
		g.cols = s.n;
		cop_grid_show(&g, form, out);
	}
	for (unsigned i = 0; i < s.n; i++)
		free((char *)s.col[i].name);
	free(s.col);
	free(s.column);
}
