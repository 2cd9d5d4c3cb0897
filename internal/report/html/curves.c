/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics recorded by programs (such as loss or throughput of a training) as curves of all compared
 * runs, by step. */
#include <math.h>

#include "report/html/html_priv.h"

#define CURVES 12 /* metrics */
#define COLS 100
#define POINTS_LEAST 2

struct curve {
	const struct cop_runrec *run;
	const struct cop_runrec_series *series;
	char name[80];
	double value[COLS];
};

static char *show(double value, char text[COP_HTML_NUMBER])
{
	snprintf(text, COP_HTML_NUMBER, "%.4g", value);
	return text;
}

static bool add_curve(
	struct curve *c, const struct cop_runrec *r, const char *key, const char *name)
{
	c->run = r;
	c->series = cop_runrec_find(r, key);
	if (!c->series || c->series->n < POINTS_LEAST)
		return false;
	snprintf(c->name, sizeof(c->name), "%.60s, %.8s",
		name ? name : cop_runrec_get(r, COP_RUNREC_NAME), r->id);
	return true;
}

/* Collects the curves of this run and of the requested ones or, if there are none, the previous
 * run. Returns the number of runs that have the metric. */
static unsigned find_curves(
	const struct cop_page *p, const char *key, struct curve curve[COP_CHART_LINES])
{
	unsigned n = add_curve(&curve[0], p->run, key, "this run");

	if (!n)
		return 0;
	for (size_t i = 0; i < p->compared_n && n < COP_CHART_LINES; i++)
		n += add_curve(&curve[n], &p->compared[i], key, NULL);
	if (!p->compared_n && p->before)
		n += add_curve(&curve[n], p->before, key, "before");
	return n;
}

/* Fills each column between the first and the last point with the last value up to it. */
static void sample(struct curve *c, unsigned cols, double steps_of_col)
{
	const struct cop_runrec_series *s = c->series;
	unsigned next = 0;

	for (unsigned k = 0; k < cols; k++)
		c->value[k] = NAN;
	for (size_t i = 0; i < s->n; i++) {
		double at = (double)s->point[i].step / steps_of_col;
		unsigned k = at < cols - 1 ? (unsigned)at : cols - 1;

		for (; i && next < k; next++)
			c->value[next] = s->point[i - 1].value;
		c->value[k] = s->point[i].value;
		next = k + 1;
	}
}

static void draw(const char *key, struct curve *curve, unsigned n, struct cop_buf *out)
{
	struct cop_chart_lines l = {
		.title = key, .lines = n, .show = show, .limit = NAN, .steps = true};
	double last = 0;

	for (unsigned i = 0; i < n; i++)
		last = fmax(last, (double)curve[i].series->point[curve[i].series->n - 1].step);
	l.cols = last < COLS ? (unsigned)last + 1 : COLS;
	l.interval_s = (last + 1) / l.cols;
	for (unsigned i = 0; i < n; i++) {
		sample(&curve[i], l.cols, l.interval_s);
		l.name[i] = curve[i].name;
		l.value[i] = curve[i].value;
	}
	cop_chart_lines(out, &l);
}

/* ---- the section ---- */

static bool is_curve(const struct cop_runrec_series *s)
{
	return s->n >= POINTS_LEAST && !cop_runrec_is_own_metric(s->key);
}

bool cop_page_has_curves(const struct cop_page *p)
{
	for (size_t i = 0; p->run && i < p->run->series_n; i++)
		if (is_curve(&p->run->series[i]))
			return true;
	return false;
}

void cop_page_curves(const struct cop_page *p, struct cop_buf *out)
{
	struct curve curve[COP_CHART_LINES];
	unsigned n = 0, more = 0;

	for (size_t i = 0; i < p->run->series_n; i++) {
		const struct cop_runrec_series *s = &p->run->series[i];

		if (!is_curve(s))
			continue;
		if (n++ < CURVES)
			draw(s->key, curve, find_curves(p, s->key, curve), out);
		else
			more++;
	}
	if (more)
		cop_page_say(out, "%u more metrics: copper runs show %.8s lists them.", more,
			p->run->id);
}
