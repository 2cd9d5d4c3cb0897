/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums are integers, so the result does not depend on which thread gets which event. */
#include <math.h>

#include "base/base/grow.h"
#include "trace/table/table_priv.h"

/* Maximum number of disjoint spans per group for `busy`. */
#define BUSY_MAX ((size_t)1 << 17)

#define QUANTILE(what, of, kind, number)                                                           \
	{what ":" #number "%", of, COL_QUANTILE, kind, number / 100.0},                            \
	{                                                                                          \
		what ":p" #number, of, COL_QUANTILE, kind, number / 100.0                          \
	}
#define QUANTILES(what, of, kind)                                                                  \
	QUANTILE(what, of, kind, 1), QUANTILE(what, of, kind, 5), QUANTILE(what, of, kind, 10),    \
		QUANTILE(what, of, kind, 25), QUANTILE(what, of, kind, 50),                        \
		QUANTILE(what, of, kind, 75), QUANTILE(what, of, kind, 90),                        \
		QUANTILE(what, of, kind, 95), QUANTILE(what, of, kind, 99)
#define DISTRIBUTION(what, of, kind)                                                               \
	{what ":count", of, COL_COUNT_OF, COP_GRID_WHOLE, 0},                                      \
		{what ":mean", of, COL_MEAN, kind, 0}, {what ":std", of, COL_STD, kind, 0},        \
		{what ":min", of, COL_MIN, kind, 0}, {what ":max", of, COL_MAX, kind, 0},          \
		QUANTILES(what, of, kind)

const struct col cop_tab_col[] = {
	[COL_COUNT] = {"count", OF_GROUP, COL_SUM, COP_GRID_WHOLE, 0},
	[COL_DUR] = {"dur", OF_DUR, COL_SUM, COP_GRID_SECONDS, 0},
	[COL_SIZE] = {"size", OF_SIZE, COL_SUM, COP_GRID_WHOLE, 0},
	[COL_BANDWIDTH] = {"bandwidth", OF_GROUP, COL_MEAN, COP_GRID_WHOLE, 0},
	[COL_UNFINISHED] = {"unfinished", OF_GROUP, COL_SUM, COP_GRID_WHOLE, 0},
	[COL_SELF] = {"self", OF_GROUP, COL_SUM, COP_GRID_SECONDS, 0},
	[COL_BUSY] = {"busy", OF_GROUP, COL_SUM, COP_GRID_SECONDS, 0},
	[COL_BEGIN] = {"first", OF_GROUP, COL_FIRST, COP_GRID_SECONDS, 0},
	[COL_END] = {"last", OF_GROUP, COL_LAST, COP_GRID_SECONDS, 0},
	DISTRIBUTION("dur", OF_DUR, COP_GRID_SECONDS),
	DISTRIBUTION("size", OF_SIZE, COP_GRID_WHOLE),
	{"value", OF_VALUE, COL_LAST, COP_GRID_REAL, 0},
	{"value:first", OF_VALUE, COL_FIRST, COP_GRID_REAL, 0},
	{"value:last", OF_VALUE, COL_LAST, COP_GRID_REAL, 0},
	DISTRIBUTION("value", OF_VALUE, COP_GRID_REAL),
};
const unsigned cop_tab_col_count = COP_ARRAY_SIZE(cop_tab_col);

static inline void one(struct measure *m, uint64_t v)
{
	if (!m->n || v < m->min)
		m->min = v;
	if (!m->n || v > m->max)
		m->max = v;
	m->n++;
	m->sum += v;
	m->squares += (u128)v * v;
}

/* Adds an aggregate, which represents `count` spans with a known sum and extremes; each counts as
 * their mean. */
static int aggregate(struct agg *a, const struct cop_trace_event *e, bool quant)
{
	struct measure *m = &a->dur;
	uint64_t mean;

	if (!e->count)
		return 0;
	mean = e->dur_ns / e->count;
	if (!m->n || e->dur_min_ns < m->min)
		m->min = e->dur_min_ns;
	if (!m->n || e->dur_max_ns > m->max)
		m->max = e->dur_max_ns;
	m->n += e->count;
	m->sum += e->dur_ns;
	m->squares += (u128)e->dur_ns * e->dur_ns / e->count;
	return quant ? cop_quant_add(&m->quant, mean, e->count) : 0;
}

static bool has_any(const struct agg *a)
{
	return a->count || a->unfinished || a->values;
}

static void between(struct agg *a, int64_t first, int64_t last, bool any)
{
	a->first = any ? COP_MIN(a->first, first) : first;
	a->last = any ? COP_MAX(a->last, last) : last;
}

static int add_busy(struct agg *a, const struct cop_trace_event *e)
{
	if (!a->busy) {
		a->busy = calloc(1, sizeof(*a->busy));
		if (!a->busy)
			return -ENOMEM;
		a->busy->max = BUSY_MAX;
	}
	return cop_union_add(a->busy, e->ts_ns, e->ts_ns + (int64_t)e->dur_ns);
}

static int add_size(struct agg *a, const struct cop_trace_event *e, bool quant)
{
	if (!e->has_size)
		return 0;
	one(&a->size, e->size);
	return quant ? cop_quant_add(&a->size.quant, e->size, 1) : 0;
}

int cop_agg_add(
	struct agg *a, const struct cop_trace_event *e, struct wants wants, uint64_t self_ns)
{
	int rc = 0;

	between(a, e->ts_ns, e->ts_ns + (int64_t)e->dur_ns, has_any(a));
	if (e->unfinished) {
		a->unfinished++;
		return 0;
	}
	a->count += e->count;
	a->self_ns += self_ns;
	if (e->kind == COP_TRACE_AGGREGATE) {
		rc = aggregate(a, e, wants.dur);
	} else {
		one(&a->dur, e->dur_ns);
		if (wants.dur)
			rc = cop_quant_add(&a->dur.quant, e->dur_ns, 1);
		if (wants.busy && !rc)
			rc = add_busy(a, e);
	}
	return rc ? rc : add_size(a, e, wants.size);
}

int cop_agg_add_value(struct agg *a, const struct cop_trace_event *e, long double v)
{
	struct values *all = a->values;

	between(a, e->ts_ns, e->ts_ns, has_any(a));
	if (!all)
		all = a->values = calloc(1, sizeof(*all));
	if (!all || !COP_GROW(all->at, all->n, all->cap))
		return -ENOMEM;
	all->at[all->n++] =
		(struct value){.v = v, .ts_ns = e->ts_ns, .source = e->source, .line = e->line};
	all->sorted = false;
	a->count++;
	return 0;
}

static int merge(struct measure *to, const struct measure *from)
{
	if (!from->n)
		return 0;
	to->min = to->n ? COP_MIN(to->min, from->min) : from->min;
	to->max = to->n ? COP_MAX(to->max, from->max) : from->max;
	to->n += from->n;
	to->sum += from->sum;
	to->squares += from->squares;
	return cop_quant_merge(&to->quant, from->quant);
}

/* Merges the spans, or just moves those of `from` if `to` has none. */
static int merge_busy(struct agg *to, struct agg *from)
{
	if (!to->busy || !from->busy) {
		to->busy = to->busy ? to->busy : from->busy;
		from->busy = to->busy == from->busy ? NULL : from->busy;
		return 0;
	}
	return cop_union_merge(to->busy, from->busy);
}

static int merge_values(struct agg *to, struct agg *from)
{
	struct values *a = to->values, *b = from->values;
	struct value *grown;

	if (!a || !b) {
		to->values = a ? a : b;
		from->values = NULL;
		return 0;
	}
	grown = reallocarray(a->at, a->n + b->n, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	memcpy(grown + a->n, b->at, b->n * sizeof(*grown));
	*a = (struct values){.at = grown, .n = a->n + b->n, .cap = a->n + b->n};
	return 0;
}

int cop_agg_merge(struct agg *to, struct agg *from)
{
	int rc;

	if (!has_any(from))
		return 0;
	between(to, from->first, from->last, has_any(to));
	to->count += from->count;
	to->unfinished += from->unfinished;
	to->self_ns += from->self_ns;
	rc = merge(&to->dur, &from->dur);
	if (!rc)
		rc = merge(&to->size, &from->size);
	if (!rc)
		rc = merge_busy(to, from);
	return rc ? rc : merge_values(to, from);
}

void cop_agg_fini(struct agg *a)
{
	cop_quant_free(a->dur.quant);
	cop_quant_free(a->size.quant);
	if (a->busy)
		cop_union_free(a->busy);
	free(a->busy);
	if (a->values)
		free(a->values->at);
	free(a->values);
	*a = (struct agg){0};
}

/* ---- values ---- */

/* Returns the sample standard deviation, as pandas computes it. */
static long double deviation(const struct measure *m)
{
	long double n = (long double)m->n, sum = (long double)m->sum, v;

	if (m->n < 2)
		return NAN;
	v = ((long double)m->squares - sum * sum / n) / (n - 1);
	return v > 0 ? sqrtl(v) : 0;
}

static long double measured(struct measure *m, const struct col *c)
{
	switch (c->what) {
	case COL_SUM:
		return (long double)m->sum;
	case COL_MEAN:
		return (long double)m->sum / (long double)m->n;
	case COL_STD:
		return deviation(m);
	case COL_MIN:
		return (long double)m->min;
	case COL_MAX:
		return (long double)m->max;
	default:
		return cop_quant_at(m->quant, c->p);
	}
}

static int by_time(const void *p, const void *q)
{
	const struct value *a = p, *b = q;

	if (a->ts_ns != b->ts_ns)
		return a->ts_ns < b->ts_ns ? -1 : 1;
	if (a->source != b->source)
		return a->source < b->source ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return (a->v > b->v) - (a->v < b->v);
}

static int by_value(const void *p, const void *q)
{
	const long double *a = p, *b = q;

	return (*a > *b) - (*a < *b);
}

/* The values are sorted by time, so the sums do not depend on which thread got which value. */
static long double mean_of(const struct values *all, long double *squares)
{
	long double sum = 0, mean, rest = 0;

	for (size_t i = 0; i < all->n; i++)
		sum += all->at[i].v;
	mean = sum / (long double)all->n;
	for (size_t i = 0; i < all->n; i++)
		rest += (all->at[i].v - mean) * (all->at[i].v - mean);
	*squares = rest;
	return mean;
}

/* Interpolates as quant.c does. NaN has no rank. */
static long double quantile(const struct values *all, double p)
{
	long double *v = calloc(all->n, sizeof(*v)), low, high;
	double at;
	size_t n = 0;

	for (size_t i = 0; v && i < all->n; i++)
		if (!isnan(all->at[i].v))
			v[n++] = all->at[i].v;
	if (!n) {
		free(v);
		return NAN;
	}
	qsort(v, n, sizeof(*v), by_value);
	at = p * (double)(n - 1);
	low = v[(size_t)at];
	high = v[COP_MIN((size_t)at + 1, n - 1)];
	free(v);
	return low + (high - low) * (at - floor(at));
}

static long double value_of(struct values *all, const struct col *c)
{
	long double mean, squares;

	if (!all)
		return c->what == COL_COUNT_OF ? 0 : NAN;
	if (!all->sorted)
		qsort(all->at, all->n, sizeof(*all->at), by_time);
	all->sorted = true;
	switch (c->what) {
	case COL_COUNT_OF:
		return (long double)all->n;
	case COL_FIRST:
		return all->at[0].v;
	case COL_LAST:
		return all->at[all->n - 1].v;
	case COL_MIN:
		return quantile(all, 0);
	case COL_MAX:
		return quantile(all, 1);
	case COL_QUANTILE:
		return quantile(all, c->p);
	default:
		mean = mean_of(all, &squares);
		if (c->what == COL_MEAN)
			return mean;
		return all->n > 1 ? sqrtl(squares / (long double)(all->n - 1)) : NAN;
	}
}

static long double busy_of(struct agg *a, struct doubt *doubt)
{
	long double v = a->busy ? (long double)cop_union_length(a->busy) / 1e9L : 0;

	if (a->busy)
		doubt->closed_ns = COP_MAX(doubt->closed_ns, a->busy->closed_ns);
	return v;
}

static long double of_group(struct agg *a, unsigned col, int64_t first_ns, struct doubt *doubt)
{
	switch (col) {
	case COL_COUNT:
		return (long double)a->count;
	case COL_UNFINISHED:
		return (long double)a->unfinished;
	case COL_SELF:
		return a->dur.n ? (long double)a->self_ns / 1e9L : NAN;
	case COL_BUSY:
		return a->dur.n ? busy_of(a, doubt) : NAN;
	case COL_BEGIN:
		return (long double)(a->first - first_ns) / 1e9L;
	case COL_END:
		return (long double)(a->last - first_ns) / 1e9L;
	default:
		return a->dur.sum && a->size.n
			       ? (long double)a->size.sum / ((long double)a->dur.sum / 1e9L)
			       : NAN;
	}
}

long double cop_agg_value(struct agg *a, unsigned col, int64_t first_ns, struct doubt *doubt)
{
	const struct col *c = &cop_tab_col[col];
	struct measure *m = c->of == OF_DUR ? &a->dur : &a->size;

	if (c->of == OF_GROUP)
		return of_group(a, col, first_ns, doubt);
	if (c->of == OF_VALUE)
		return value_of(a->values, c);
	if (c->what == COL_COUNT_OF)
		return (long double)m->n;
	/* A group that has only begin events has no duration; a group without sizes has 0 bytes. */
	if (!m->n)
		return c->what == COL_SUM && (a->count || c->of == OF_SIZE) ? 0 : NAN;
	if (c->what == COL_QUANTILE && !cop_quant_is_exact(m->quant))
		doubt->about = true;
	return measured(m, c) / (c->of == OF_DUR ? 1e9L : 1);
}
