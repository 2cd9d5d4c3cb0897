/* SPDX-License-Identifier: BSD-3-Clause */
/* chart: draws SVG for an HTML page, with the numbers of each chart as a collapsible table below
 * it. A chart is a figure: its title describes it in words, each mark has a tooltip with its
 * number, and colours are classes of the page's style sheet, light and dark. Titles, names and
 * labels are untrusted. Pure. */
#ifndef COP_REPORT_HTML_CHART_H
#define COP_REPORT_HTML_CHART_H

#include "markup.h"

/* ---- a map: rows over time ---- */

struct cop_chart_heat {
	const char *title, *rows_are; /* "node" */
	unsigned rows, cols;
	double interval_s;
	cop_html_show *show;
	const char *(*name)(const void *arg, unsigned row); /* valid until the next call */
	double (*value)(const void *arg, unsigned row, unsigned col); /* NAN: unknown */
	const void *arg;
};
void cop_chart_heat(struct cop_buf *out, const struct cop_chart_heat *h);

/* ---- lines over time ---- */

#define COP_CHART_LINES 6
struct cop_chart_lines {
	const char *title;
	unsigned lines, cols;
	double interval_s;
	bool steps; /* the axis counts steps, interval_s of them per column, instead of seconds */
	cop_html_show *show;
	const char *name[COP_CHART_LINES];
	const double *value[COP_CHART_LINES]; /* cols values each; NAN: none */
	double limit;                         /* a dashed line; NAN: none */
	const char *limit_name;
};
void cop_chart_lines(struct cop_buf *out, const struct cop_chart_lines *l);

/* ---- stacked bars ---- */

#define COP_CHART_PARTS 16
struct cop_chart_bars {
	const char *title, *rows_are;
	unsigned rows, parts;
	cop_html_show *show;
	const char *part[COP_CHART_PARTS];
	uint32_t pale; /* bit mask of less important parts */
	const char *(*name)(const void *arg, unsigned row);
	double (*value)(const void *arg, unsigned row, unsigned part);
	const void *arg;
};
void cop_chart_bars(struct cop_buf *out, const struct cop_chart_bars *b);

/* ---- logarithmic ranges, without a table ---- */

struct cop_chart_range {
	const char *name;
	double p50, p90, p99, max; /* above 0 */
};
void cop_chart_ranges(struct cop_buf *out, const char *title, const struct cop_chart_range *range,
	unsigned rows, cop_html_show *show);

/* ---- tree of nodes, without a table ---- */

struct cop_chart_tree {
	const char *title;
	unsigned n;
	const int32_t *parent; /* index; -1: none */
	const uint32_t *first; /* drawing order if space is limited, most important first */
	unsigned first_n;
	const char *top; /* the source of the roots' data */
	cop_html_show *show;
	double (*weight)(const void *arg,
		unsigned i); /* of the edge to its parent, or to the top; NAN: unknown */
	const char *(*label)(const void *arg, unsigned i);   /* short */
	const char *(*tooltip)(const void *arg, unsigned i); /* valid until the next call */
	const void *arg;
};
/* Returns 0, or -ENOMEM with out->failed. Nodes not reachable from a root are omitted; nodes that
 * do not fit are counted below the drawn ones. */
int cop_chart_tree(struct cop_buf *out, const struct cop_chart_tree *t);

#endif
