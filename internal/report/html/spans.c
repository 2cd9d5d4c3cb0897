/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws the spans that programs recorded, below Copper's start and stop and the reads through
 * Copper. A nested span is drawn below its parent. */
#include <math.h>

#include "report/html/html_priv.h"
#include "report/html/chart_priv.h"

#define SPAN_KINDS 24
struct spans_span {
	const char *text;
	double from_s, for_s;
	unsigned row, kind;
};
struct spans_chart {
	const char *title;
	double seconds; /* length of the axis, above 0; every span begins within it */
	unsigned rows;
	const char *const *name; /* one per row, may be "" */
	const struct spans_span *span;
	size_t n;
	const char *class[SPAN_KINDS]; /* colour class of each kind */
	const char *key[SPAN_KINDS];   /* names of the first kinds */
	unsigned keys;
};

/* Draws spans along a common time axis, with a name for each row. */

#define ROW 18.0
#define LEAST 1.0 /* minimum width of a span */

static void draw_span(
	struct cop_buf *out, const struct spans_chart *c, const struct spans_span *s, double scale)
{
	char from[COP_HTML_NUMBER], length[COP_HTML_NUMBER];
	double x = CHART_LEFT + s->from_s * scale;
	double width = fmin(fmax(s->for_s * scale, LEAST), CHART_WIDTH - CHART_RIGHT - x);

	cop_buf_printf(out,
		"<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
		c->class[s->kind], x, s -> row *ROW + 2, fmax(width, LEAST), ROW - 3);
	cop_html_printf(out, "%s: %s from %s on", s->text, cop_html_time(s->for_s, length),
		cop_html_time(s->from_s, from));
	cop_buf_str(out, "</title></rect>\n");
}

/* Leaves the figure open: the caller adds the numbers and closes it. */
static void draw_spans(struct cop_buf *out, const struct spans_chart *c)
{
	double width = CHART_WIDTH - CHART_LEFT - CHART_RIGHT;

	cop_chart_open(out, c->title, CHART_WIDTH, ROW * c->rows + 22);
	for (unsigned r = 0; r < c->rows; r++)
		if (*c->name[r])
			cop_chart_row_name(out, CHART_LEFT, (r + 0.5) * ROW + 4, c->name[r]);
	for (size_t i = 0; i < c->n; i++)
		draw_span(out, c, &c->span[i], width / c->seconds);
	cop_chart_time_axis(out, CHART_LEFT, width, ROW * c->rows + 14, c->seconds);
	cop_chart_close_image(out);
	cop_buf_str(out, "<p class=\"keys\">");
	for (unsigned i = 0; i < c->keys; i++)
		cop_chart_key(out, c->class[i], c -> key[i]);
	cop_buf_str(out, "</p>\n");
}

#define NAMES 8u     /* span names with a colour */
#define DEPTH 6u     /* maximum rows per process */
#define PROCESSES 8u /* maximum number of processes drawn */
#define LISTED 40u   /* rows of the table */
#define ROWS (2u + PROCESSES * DEPTH)
/* Kinds in the chart: names, other names, Copper, reads by level. */
enum { OTHER = NAMES, COPPER, READS, KINDS = READS + CHART_LEVELS + 1 };
_Static_assert((int)KINDS <= SPAN_KINDS, "each kind has a class");

/* The sum of all spans with one name. */
struct total {
	const char *name;
	uint64_t calls;
	double sum_s, longest_s;
};

struct drawing {
	const struct cop_page *p;
	const struct cop_page_spans *s;
	struct total *total; /* longest sum first */
	size_t totals;
	struct spans_span *span;
	size_t n;
	const char *name[ROWS];
	unsigned rows;
	uint64_t hidden; /* spans that are nested too deeply, or whose process has no row */
	char reads[COP_JOBDATA_STEPS_MAX][COP_HTML_NUMBER + 32];
};

/* ---- names ---- */

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct total *)a)->name, ((const struct total *)b)->name);
}

static int by_sum(const void *a, const void *b)
{
	const struct total *x = a, *y = b;

	if (x->sum_s != y->sum_s)
		return (x->sum_s < y->sum_s) - (x->sum_s > y->sum_s);
	/* Parents before their children. */
	if (x->longest_s != y->longest_s)
		return (x->longest_s < y->longest_s) - (x->longest_s > y->longest_s);
	return by_name(a, b);
}

static void add_up(struct drawing *d)
{
	size_t to = 0;

	for (size_t i = 0; i < d->s->n; i++) {
		const struct cop_page_span *s = &d->s->at[i];

		if (s->process)
			d->total[d->totals++] = (struct total){s->name, 1, s->for_s, s->for_s};
	}
	qsort(d->total, d->totals, sizeof(*d->total), by_name);
	for (size_t i = 1; i < d->totals; i++) {
		struct total *t = &d->total[to];

		if (strcmp(t->name, d->total[i].name) != 0) {
			d->total[++to] = d->total[i];
			continue;
		}
		t->calls++;
		t->sum_s += d->total[i].sum_s;
		t->longest_s = fmax(t->longest_s, d->total[i].longest_s);
	}
	d->totals = d->totals ? to + 1 : 0;
	qsort(d->total, d->totals, sizeof(*d->total), by_sum);
}

static unsigned kind_of(const struct drawing *d, const char *name)
{
	for (unsigned i = 0; i < NAMES && i < d->totals; i++)
		if (strcmp(d->total[i].name, name) == 0)
			return i;
	return OTHER;
}

/* ---- rows ---- */

static void add_span(struct drawing *d, const char *text, double from_s, double for_s, unsigned row,
	unsigned kind)
{
	d->span[d->n++] = (struct spans_span){text, from_s, for_s, row, kind};
}

/* Copper's start and stop events; other events have their own sections. */
static void add_copper(struct drawing *d)
{
	static const char *const shown[] = {"copper.start", "copper.prefetch", "copper.stop"};

	for (size_t i = 0; i < d->s->n && !d->s->at[i].process; i++) {
		const struct cop_page_span *s = &d->s->at[i];

		for (size_t k = 0; k < COP_ARRAY_SIZE(shown); k++)
			if (strcmp(s->name, shown[k]) == 0)
				add_span(d, s->name, s->from_s, s->for_s, d->rows, COPPER);
	}
	d->name[d->rows++] = "Copper";
}

/* Bytes read by programs in an interval; NAN if nodes have no series. */
static double read_in(const struct cop_jobdata *j, unsigned step)
{
	double sum = NAN;

	for (size_t i = 0; i < j->series_n; i++) {
		double v = (double)j->series[i]->value[COP_JOBDATA_READ_BYTES][step];

		if (j->series[i]->rank < 0)
			return NAN;
		if (!isnan(v))
			sum = isnan(sum) ? v : sum + v;
	}
	return sum;
}

static void add_reads(struct drawing *d)
{
	const struct cop_jobdata *j = d->p->job;
	double most = 0;
	char text[COP_HTML_NUMBER];

	for (unsigned i = 0; i < j->steps; i++)
		most = fmax(most, read_in(j, i));
	if (!(most > 0))
		return;
	for (unsigned i = 0; i < j->steps; i++) {
		/* The two clocks may differ slightly. */
		double v = read_in(j, i), from_s = fmax(0, d->s->job_s + i * j->interval_s);

		if (!(v > 0) || from_s >= d->s->seconds)
			continue;
		snprintf(d->reads[i], sizeof(d->reads[i]), "read by all nodes: %s",
			cop_html_size(v, text));
		add_span(d, d->reads[i], from_s, j->interval_s, d->rows,
			READS + 1 + (unsigned)(v / most * (CHART_LEVELS - 1)));
	}
	d->name[d->rows++] = "reads";
}

/* The first row that is free from this time on, or DEPTH. */
static unsigned free_row(const double end_s[DEPTH], double from_s)
{
	unsigned row = 0;

	while (row < DEPTH && end_s[row] > from_s)
		row++;
	return row;
}

/* Returns the index of the next process's first span. */
static size_t add_process(struct drawing *d, size_t i)
{
	unsigned process = d->s->at[i].process, depth = 0;
	bool drawn = process <= PROCESSES;
	double end_s[DEPTH];

	for (unsigned k = 0; k < DEPTH; k++)
		end_s[k] = -INFINITY;
	for (; i < d->s->n && d->s->at[i].process == process; i++) {
		const struct cop_page_span *s = &d->s->at[i];
		unsigned row = drawn ? free_row(end_s, s->from_s) : DEPTH;

		if (row == DEPTH) {
			d->hidden++;
			continue;
		}
		end_s[row] = s->from_s + s->for_s;
		depth = COP_MAX(depth, row + 1);
		add_span(d, s->name, s->from_s, s->for_s, d->rows + row, kind_of(d, s->name));
	}
	for (unsigned k = 0; k < depth; k++)
		d->name[d->rows + k] = k ? "" : d->s->process[process];
	d->rows += depth;
	return i;
}

static void add_programs(struct drawing *d)
{
	size_t i = 0;

	while (i < d->s->n && !d->s->at[i].process)
		i++;
	while (i < d->s->n)
		i = add_process(d, i);
}

/* ---- the section ---- */

static void draw(const struct drawing *d, struct cop_buf *out)
{
	static const char *const colour[] = {"b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7"};
	static const char *const level[] = {"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8"};
	const struct total *most = &d->total[0];
	char title[COP_PAGE_SPAN_NAME + 160], a[COP_HTML_NUMBER], b[COP_HTML_NUMBER];
	struct spans_chart c = {.title = title,
		.seconds = d->s->seconds,
		.rows = d->rows,
		.name = d->name,
		.span = d->span,
		.n = d->n};

	snprintf(title, sizeof(title), "%s took most time: %s in %s span%s", most->name,
		cop_html_time(most->sum_s, a), cop_html_count((double)most->calls, b),
		most->calls == 1 ? "" : "s");
	for (unsigned i = 0; i < NAMES; i++)
		c.class[i] = colour[i];
	c.class[OTHER] = "b8";
	c.class[COPPER] = "pale";
	for (unsigned i = 0; i <= CHART_LEVELS; i++)
		c.class[READS + i] = level[i];
	c.keys = (unsigned)COP_MIN(d->totals, NAMES);
	for (unsigned i = 0; i < c.keys; i++)
		c.key[i] = d->total[i].name;
	draw_spans(out, &c);
}

static void write_numbers(const struct drawing *d, struct cop_buf *out)
{
	static const struct cop_html_col col[] = {
		{"span", false}, {"how often", true}, {"together", true}, {"the longest", true}};

	cop_chart_open_numbers(out);
	cop_html_table(out, "Spans by name, the most time first", col, COP_ARRAY_SIZE(col));
	for (size_t i = 0; i < d->totals && i < LISTED; i++) {
		const struct total *t = &d->total[i];

		cop_html_row(out);
		cop_html_cell(out, t->name);
		cop_html_cell_number(out, cop_html_count, (double)t->calls);
		cop_html_cell_number(out, cop_html_time, t->sum_s);
		cop_html_cell_number(out, cop_html_time, t->longest_s);
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
	cop_chart_close_numbers(out);
	cop_chart_close(out);
}

static void say_what_is_missing(const struct drawing *d, struct cop_buf *out)
{
	char n[COP_HTML_NUMBER];

	if (d->hidden)
		cop_page_say(out,
			"%s more spans have no row: of other processes, or inside of too many others. copper trace timeline draws all of them.",
			cop_html_count((double)d->hidden, n));
	if (d->s->shorter)
		cop_page_say(out, "%s shorter spans are not shown.",
			cop_html_count((double)d->s->shorter, n));
	if (d->s->elsewhen)
		cop_page_say(out, "%s spans are of another time than this job, and not shown.",
			cop_html_count((double)d->s->elsewhen, n));
}

bool cop_page_has_spans(const struct cop_page *p)
{
	return p->spans && p->spans->processes > 1 && p->spans->n &&
	       p->spans->at[p->spans->n - 1].process;
}

void cop_page_spans(const struct cop_page *p, struct cop_buf *out)
{
	struct drawing *d = calloc(1, sizeof(*d));
	size_t most = p->spans->n + COP_JOBDATA_STEPS_MAX;

	if (d) {
		d->p = p;
		d->s = p->spans;
		d->total = calloc(p->spans->n, sizeof(*d->total));
		d->span = calloc(most, sizeof(*d->span));
	}
	if (!d || !d->total || !d->span) {
		out->failed = true;
	} else {
		add_up(d);
		add_copper(d);
		add_reads(d);
		add_programs(d);
		cop_page_say(out,
			"The spans that programs wrote about themselves, on one axis of time with Copper and what was read through it. A span is below the one that it is inside of.");
		draw(d, out);
		write_numbers(d, out);
		say_what_is_missing(d, out);
	}
	if (d) {
		free(d->total);
		free(d->span);
	}
	free(d);
}
