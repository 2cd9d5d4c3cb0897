/* SPDX-License-Identifier: BSD-3-Clause */
/* A series contains sums since the start instead of increments, so dropping points loses no counts:
 * the count between any two points is their difference. When there are POINTS points, every second
 * one is dropped, and the sampling interval doubles. */
#include "prof/telemetry/telemetry_priv.h"

#define SECOND_US 1000000u

void cop_telemetry_series_init(struct series *s)
{
	s->n = 0;
	s->step_us = SECOND_US;
}

static void keep_peaks(struct point *into, const struct point *from)
{
	for (unsigned m = COP_TELEMETRY_FIRST_PEAK; m < METRICS; m++)
		into->value[m] = COP_MAX(into->value[m], from->value[m]);
}

static void thin_series(struct series *s)
{
	unsigned n = 1;

	for (unsigned i = 2; i < s->n; i += 2) {
		keep_peaks(&s->point[i], &s->point[i - 1]);
		s->point[n++] = s->point[i];
	}
	s->n = n;
	s->step_us *= 2;
}

/* Whether this sample replaces the last point. The last point is replaced until it is about one
 * step after its predecessor, because samples are never exactly on time. */
static bool moves_on(const struct series *s, uint64_t at_us)
{
	return s->n > 1 && at_us - s->point[s->n - 2].at_us < s->step_us - s->step_us / 8;
}

void cop_telemetry_series_add(struct series *s, const struct point *p)
{
	struct point next = *p;

	if (moves_on(s, p->at_us))
		keep_peaks(&next, &s->point[--s->n]);
	s->point[s->n++] = next;
	if (s->n == POINTS + 1)
		thin_series(s);
}

/* ---- distribution over the job's intervals ---- */

unsigned cop_telemetry_level(int64_t us)
{
	unsigned level = 0;

	while (level < LEVEL_MAX && us > (int64_t)INTERVALS * SECOND_US << level)
		level++;
	return level;
}

/* Interpolates the count at a time between two points. */
static uint64_t counted_in(
	const struct point *a, const struct point *b, unsigned metric, int64_t at_us)
{
	uint64_t from = a->value[metric], to = b->value[metric], between;

	if (at_us <= (int64_t)a->at_us)
		return from;
	if (at_us >= (int64_t)b->at_us)
		return to;
	between = (uint64_t)((double)(to - from) * (double)(at_us - (int64_t)a->at_us) /
			     (double)(b->at_us - a->at_us));
	return from + COP_MIN(between, to - from);
}

/* Distributes the counts between two points over the intervals that they span. The first interval
 * includes counts from before the start of the job, and the last one those after its end. */
static void spread_over(const struct point *a, const struct point *b, int64_t began_us,
	int64_t length_us, uint64_t (*rows)[METRICS], unsigned n)
{
	int64_t first = ((int64_t)a->at_us - began_us) / length_us;
	int64_t last = ((int64_t)b->at_us - began_us) / length_us;

	first = COP_MIN(COP_MAX(first, 0), (int64_t)n - 1);
	last = COP_MIN(COP_MAX(last, first), (int64_t)n - 1);
	for (int64_t i = first; i <= last; i++) {
		int64_t from = i == first ? 0 : began_us + i * length_us;
		int64_t to = i == last ? INT64_MAX : began_us + (i + 1) * length_us;

		for (unsigned m = 0; m < COP_TELEMETRY_FIRST_PEAK; m++)
			rows[i][m] = cop_add_saturating(
				rows[i][m], counted_in(a, b, m, to) - counted_in(a, b, m, from));
		for (unsigned m = COP_TELEMETRY_FIRST_PEAK; m < METRICS; m++)
			rows[i][m] = COP_MAX(rows[i][m], b->value[m]);
	}
}

unsigned cop_telemetry_series_rows(
	const struct series *s, int64_t began_us, unsigned level, uint64_t (*rows)[METRICS])
{
	static const struct point start;
	int64_t length_us = (int64_t)SECOND_US << level, end_us;
	unsigned n;

	if (!s->n)
		return 0;
	end_us = COP_MAX((int64_t)s->point[s->n - 1].at_us - began_us, 1);
	n = (unsigned)COP_MIN((end_us + length_us - 1) / length_us, (int64_t)INTERVALS);
	for (unsigned i = 0; i < s->n; i++)
		spread_over(
			i ? &s->point[i - 1] : &start, &s->point[i], began_us, length_us, rows, n);
	return n;
}

unsigned cop_telemetry_coarsen(uint64_t (*rows)[METRICS], unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned m = 0; m < METRICS; m++)
			rows[i / 2][m] =
				i % 2 ? metric_add(m, rows[i / 2][m], rows[i][m]) : rows[i][m];
	memset(rows + (n + 1) / 2, 0, (n - (n + 1) / 2) * sizeof(*rows));
	return (n + 1) / 2;
}
