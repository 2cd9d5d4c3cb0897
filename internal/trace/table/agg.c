/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums are whole numbers, so that the result does not depend on which thread saw an event. */
#include <math.h>
#include <string.h>

#include "trace/table/table_priv.h"

const struct col cop_tab_col[] = {
	[COL_COUNT] = {"count", OF_GROUP, COL_SUM, true},
	[COL_DUR] = {"dur", OF_DUR, COL_SUM, false},
	[COL_SIZE] = {"size", OF_SIZE, COL_SUM, true},
	[COL_BANDWIDTH] = {"bandwidth", OF_GROUP, COL_MEAN, true},
	{"dur:mean", OF_DUR, COL_MEAN, false},
	{"dur:std", OF_DUR, COL_STD, false},
	{"dur:min", OF_DUR, COL_MIN, false},
	{"dur:25%", OF_DUR, COL_Q25, false},
	{"dur:50%", OF_DUR, COL_Q50, false},
	{"dur:75%", OF_DUR, COL_Q75, false},
	{"dur:max", OF_DUR, COL_MAX, false},
	{"size:mean", OF_SIZE, COL_MEAN, true},
	{"size:std", OF_SIZE, COL_STD, true},
	{"size:min", OF_SIZE, COL_MIN, true},
	{"size:25%", OF_SIZE, COL_Q25, true},
	{"size:50%", OF_SIZE, COL_Q50, true},
	{"size:75%", OF_SIZE, COL_Q75, true},
	{"size:max", OF_SIZE, COL_MAX, true},
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

/* An aggregate stands for `count` spans, of which only the sum and the extremes are known: each
 * counts as the mean. */
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

int cop_agg_add(struct agg *a, const struct cop_trace_event *e, struct wants wants)
{
	int rc = 0;

	a->count += e->count;
	if (e->kind == COP_TRACE_AGGREGATE) {
		rc = aggregate(a, e, wants.dur);
	} else {
		one(&a->dur, e->dur_ns);
		if (wants.dur)
			rc = cop_quant_add(&a->dur.quant, e->dur_ns, 1);
	}
	if (e->has_size) {
		one(&a->size, e->size);
		if (wants.size && !rc)
			rc = cop_quant_add(&a->size.quant, e->size, 1);
	}
	return rc;
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

int cop_agg_merge(struct agg *to, const struct agg *from)
{
	int rc = merge(&to->dur, &from->dur);

	to->count += from->count;
	return rc ? rc : merge(&to->size, &from->size);
}

void cop_agg_fini(struct agg *a)
{
	cop_quant_free(a->dur.quant);
	cop_quant_free(a->size.quant);
}

/* The standard deviation of a sample, as pandas computes it. */
static double deviation(const struct measure *m)
{
	long double n = (long double)m->n, sum = (long double)m->sum, v;

	if (m->n < 2)
		return NAN;
	v = ((long double)m->squares - sum * sum / n) / (n - 1);
	return v > 0 ? (double)sqrtl(v) : 0;
}

static double value(struct measure *m, enum col_what what)
{
	static const double p[] = {[COL_Q25] = 0.25, [COL_Q50] = 0.5, [COL_Q75] = 0.75};

	switch (what) {
	case COL_SUM:
		return (double)m->sum;
	case COL_MEAN:
		return (double)((long double)m->sum / (long double)m->n);
	case COL_STD:
		return deviation(m);
	case COL_MIN:
		return (double)m->min;
	case COL_MAX:
		return (double)m->max;
	default:
		return cop_quant_at(m->quant, p[what]);
	}
}

double cop_agg_value(struct agg *a, unsigned col, bool *about)
{
	const struct col *c = &cop_tab_col[col];
	struct measure *m = c->of == OF_DUR ? &a->dur : &a->size;

	if (col == COL_COUNT)
		return (double)a->count;
	if (col == COL_BANDWIDTH)
		return a->dur.sum && a->size.n ? (double)a->size.sum / ((double)a->dur.sum / 1e9)
					       : NAN;
	if (!m->n)
		return c->what == COL_SUM ? 0 : NAN;
	if (c->what >= COL_Q25 && c->what <= COL_Q75 && !cop_quant_is_exact(m->quant))
		*about = true;
	return value(m, c->what) / (c->of == OF_DUR ? 1e9 : 1);
}
