/* SPDX-License-Identifier: BSD-3-Clause */
/* Converts groups to rows; with `per`, reduces groups that have the same row keys to one row. */
#include <ctype.h>
#include <math.h>

#include "trace/table/table_priv.h"

/* ---- one row for each group ---- */

static void fill_row(struct cop_rows *r, struct group *g)
{
	struct cop_row *row = &r->row[r->n];
	struct doubt doubt = {0};

	row->value = r->values + r->n * r->conf.cols;
	cop_tab_split(g, r->conf.keys, row->key);
	for (unsigned i = 0; i < r->conf.cols; i++)
		row->value[i] = cop_agg_value(&g->agg, r->conf.col[i], r->tab->first_ns, &doubt);
	r->about |= doubt.about;
	r->closed = COP_MAX(r->closed, (double)doubt.closed_ns / 1e9);
	r->unfinished += g->agg.unfinished;
	r->n++;
}

static int compare_text(struct cop_trace_str a, struct cop_trace_str b)
{
	int c = memcmp(a.at, b.at, COP_MIN(a.len, b.len));

	return c ? c : (a.len > b.len) - (a.len < b.len);
}

static bool is_number(struct cop_trace_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += isdigit((unsigned char)s.at[i]) || (i == 0 && s.at[i] == '-' && s.len > 1) ||
		     (i && s.at[i] == '.');
	return s.len && n == s.len && s.len < 20;
}

static double number_of(struct cop_trace_str s)
{
	char copy[24] = "";

	memcpy(copy, s.at, s.len);
	return strtod(copy, NULL);
}

/* Numbers sort before words, and by value. */
static int compare_key(struct cop_trace_str a, struct cop_trace_str b)
{
	bool m = is_number(a), n = is_number(b);
	double x, y;

	if (!m || !n)
		return m != n ? n - m : compare_text(a, b);
	x = number_of(a);
	y = number_of(b);
	return x == y ? compare_text(a, b) : (x > y) - (x < y);
}

int cop_row_compare(const struct cop_row *a, const struct cop_row *b, unsigned keys)
{
	int c = 0;

	for (unsigned i = 0; i < keys && !c; i++)
		c = compare_key(a->key[i], b->key[i]);
	return c;
}

struct order {
	const struct cop_rows *rows;
	int col, key; /* one of them is -1 */
};

static int compare_rows(const void *p, const void *q, void *arg)
{
	const struct order *o = arg;
	const struct cop_row *a = p, *b = q;
	int c = 0;

	if (o->key >= 0)
		c = compare_key(a->key[o->key], b->key[o->key]);
	if (o->col >= 0) {
		long double x = a->value[o->col], y = b->value[o->col];

		if (isnan(x) || isnan(y))
			c = isnan(x) - isnan(y);
		else
			c = (x < y) - (x > y);
	}
	return c ? c : cop_row_compare(a, b, o->rows->conf.keys);
}

/* ---- reduction of rows with one key ---- */

/* Folds v into *to unless it is NAN; *n counts the values folded in. */
static void reduce(long double *to, long double v, enum cop_tab_then then, uint64_t *n)
{
	if (isnan(v))
		return;
	if (!(*n)++)
		*to = v;
	else if (then == COP_THEN_MAX)
		*to = COP_MAX(*to, v);
	else if (then == COP_THEN_MIN)
		*to = COP_MIN(*to, v);
	else
		*to += v;
}

/* Reduces the rows from `from` up to `to`, whose keys are equal, into the first. */
static void reduce_rows(const struct cop_rows *r, struct cop_row *from, struct cop_row *to)
{
	for (unsigned i = 0; i < r->conf.cols; i++) {
		long double v = NAN;
		uint64_t n = 0;

		for (struct cop_row *at = from; at < to; at++)
			reduce(&v, at->value[i], r->conf.then[i], &n);
		from->value[i] = r->conf.then[i] == COP_THEN_MEAN && n ? v / (long double)n : v;
	}
}

/* The sum of fractions depends on their order, so rows with equal keys are sorted by value to make
 * it independent of the threads. */
static void then(struct cop_rows *r)
{
	struct order o = {.rows = r, .col = -1, .key = -1};
	size_t n = 0;

	qsort_r(r->row, r->n, sizeof(*r->row), compare_rows, &o);
	for (size_t i = 0, k; i < r->n; i = k) {
		for (k = i + 1; k < r->n; k++)
			if (cop_row_compare(&r->row[i], &r->row[k], r->conf.keys))
				break;
		reduce_rows(r, &r->row[i], &r->row[k]);
		r->row[n++] = r->row[i];
	}
	r->n = n;
}

int cop_tab_rows(struct cop_tab *t, struct cop_rows *out, struct cop_err *err)
{
	struct cop_htab *table = &t->part[0].table;
	struct cop_hlink *l;
	int rc = cop_tab_merge(t);

	*out = (struct cop_rows){.conf = t->conf, .tab = t, .shared = t->shared};
	if (rc == -E2BIG)
		return cop_err_set(err, E2BIG,
			"the table has more than %zu groups: select fewer events or name fewer keys",
			COP_TAB_GROUPS_MAX);
	out->row = rc ? NULL : calloc(table->count + 1, sizeof(*out->row));
	if (out->row)
		out->values = calloc(table->count * t->conf.cols + 1, sizeof(*out->values));
	if (!out->values)
		return cop_err_set(err, ENOMEM, "no memory for the table");
	for (l = cop_htab_after(table, NULL); l; l = cop_htab_after(table, l))
		fill_row(out, COP_CONTAINER_OF(l, struct group, link));
	if (t->conf.pers)
		then(out);
	return 0;
}

void cop_rows_free(struct cop_rows *r)
{
	free(r->row);
	free(r->values);
	cop_tab_free(r->tab);
	*r = (struct cop_rows){0};
}

/* ---- order ---- */

static int find_order(const struct cop_tab_conf *c, const char *by, struct order *o)
{
	for (unsigned i = 0; i < c->keys; i++)
		if (!strcmp(by, cop_tab_key_name(c, i)))
			o->key = (int)i;
	for (unsigned i = 0; i < c->cols; i++)
		if (o->key < 0 && !strcmp(by, cop_tab_col[c->col[i]].name))
			o->col = (int)i;
	return o->key < 0 && o->col < 0 ? -EINVAL : 0;
}

int cop_tab_check_sort(const struct cop_tab_conf *conf, const char *by, struct cop_err *err)
{
	struct order o = {.col = -1, .key = -1};
	struct cop_buf all = {0};
	int rc;

	if (!by || !find_order(conf, by, &o))
		return 0;
	for (unsigned i = 0; i < conf->keys; i++)
		cop_buf_printf(&all, "%s%s", i ? ", " : "", cop_tab_key_name(conf, i));
	for (unsigned i = 0; i < conf->cols; i++)
		cop_buf_printf(&all, ", %s", cop_tab_col[conf->col[i]].name);
	rc = cop_err_set(err, EINVAL, "--sort: '%s' is not in the table, which has %s", by,
		all.data ? all.data : "");
	cop_buf_free(&all);
	return rc;
}

unsigned cop_tab_sort_col(const struct cop_tab_conf *conf)
{
	struct order o = {.col = -1, .key = -1};

	return find_order(conf, "dur", &o) ? 0 : (unsigned)o.col;
}

void cop_rows_sort(struct cop_rows *r, const char *by)
{
	struct order o = {.rows = r, .col = -1, .key = -1};

	if ((!by || find_order(&r->conf, by, &o)) && r->conf.cols)
		o.col = (int)cop_tab_sort_col(&r->conf);
	qsort_r(r->row, r->n, sizeof(*r->row), compare_rows, &o);
}
