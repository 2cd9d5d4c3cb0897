/* SPDX-License-Identifier: BSD-3-Clause */
/* The metrics that programs recorded in both runs, as curves on one axis: the loss of a training,
 * its rate. The axis is the time since the start of each run. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "prof/stats/stats.h"
#include "report/html/html_priv.h"

#define CURVES 6 /* metrics */
#define COLS 100
#define POINTS_LEAST 3

/* Whether Copper itself records a metric of this name. */
static bool is_own(const char *key)
{
	static const char *const groups[] = {
		"cpu", "memory", "budget", "nodes", "profile", "operation"};
	size_t len = strcspn(key, ".");

	if (!key[len])
		return false;
	for (size_t i = 0; i < COP_ARRAY_SIZE(groups); i++)
		if (strlen(groups[i]) == len && strncmp(groups[i], key, len) == 0)
			return true;
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		const char *group = cop_counter_group(c);

		if (strlen(group) == len && strncmp(group, key, len) == 0)
			return true;
	}
	return false;
}

static char *show(double value, char text[COP_HTML_NUMBER])
{
	snprintf(text, COP_HTML_NUMBER, "%.4g", value);
	return text;
}

/* The time of the last point since the start of its run; 0: the chart cannot show the series. */
static double span_of(const struct cop_runrec *r, const struct cop_runrec_series *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->point[i].value < 0 || s->point[i].time_s < r->start_s)
			return 0;
	return s->n ? s->point[s->n - 1].time_s - r->start_s : 0;
}

/* The last value up to each interval, from the first point to the last one. */
static void sample(const struct cop_runrec *r, const struct cop_runrec_series *s, unsigned cols,
	double interval_s, double out[COLS])
{
	unsigned next = 0;

	for (unsigned c = 0; c < cols; c++)
		out[c] = NAN;
	for (size_t i = 0; i < s->n; i++) {
		double at = (s->point[i].time_s - r->start_s) / interval_s;
		unsigned c = at < cols - 1 ? (unsigned)at : cols - 1;

		for (; i && next < c; next++)
			out[next] = s->point[i - 1].value;
		out[c] = s->point[i].value;
		next = c + 1;
	}
}

static bool draw(const struct cop_page *p, const struct cop_runrec_series *now,
	const struct cop_runrec_series *was, struct cop_buf *out)
{
	double span = fmax(span_of(p->run, now), span_of(p->before, was));
	unsigned cols = (unsigned)COP_MIN((size_t)COLS, COP_MAX(now->n, was->n));
	double value[2][COLS];
	char title[COP_RUNREC_KEY_MAX + 32], before[32], this[32];

	if (span_of(p->run, now) <= 0 || span_of(p->before, was) <= 0)
		return false;
	sample(p->run, now, cols, span / cols, value[0]);
	sample(p->before, was, cols, span / cols, value[1]);
	snprintf(title, sizeof(title), "%s since the start", now->key);
	snprintf(this, sizeof(this), "this run, %.8s", p->run->id);
	snprintf(before, sizeof(before), "before, %.8s", p->before->id);
	cop_chart_lines(out, &(struct cop_chart_lines){.title = title,
				     .lines = 2,
				     .cols = cols,
				     .interval_s = span / cols,
				     .show = show,
				     .name = {this, before},
				     .value = {value[0], value[1]},
				     .limit = NAN});
	return true;
}

void cop_page_curves(const struct cop_page *p, struct cop_buf *out)
{
	unsigned n = 0;

	for (size_t i = 0; i < p->run->series_n && n < CURVES; i++) {
		const struct cop_runrec_series *now = &p->run->series[i],
					       *was = cop_runrec_find(p->before, now->key);

		if (was && now->n >= POINTS_LEAST && was->n >= POINTS_LEAST && !is_own(now->key))
			n += draw(p, now, was, out);
	}
}
