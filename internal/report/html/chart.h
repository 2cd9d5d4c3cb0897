/* SPDX-License-Identifier: BSD-3-Clause */
/* chart: draws SVG for an HTML page, with the numbers of each chart as a collapsible table below
 * it. A chart is a figure: its title describes it in words, each mark has a tooltip with its
 * number, and colours are classes of the page's style sheet, light and dark. Titles, names and
 * labels are untrusted. Pure: no I/O. */
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
	bool steps; /* the axis shows steps instead of seconds, with interval_s steps per column */
	cop_html_show *show;
	const char *name[COP_CHART_LINES];
	const double *value[COP_CHART_LINES]; /* cols values each; NAN: no value */
	double limit;                         /* drawn as a dashed line; NAN: none */
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
	uint32_t pale; /* bit mask of parts drawn in a pale colour */
	const char *(*name)(const void *arg, unsigned row);
	double (*value)(const void *arg, unsigned row, unsigned part);
	const void *arg;
};
void cop_chart_bars(struct cop_buf *out, const struct cop_chart_bars *b);

/* ---- ranges on a logarithmic axis, without a table ---- */

struct cop_chart_range {
	const char *name;
	double p50, p90, p99, max; /* must be above 0 */
};
void cop_chart_ranges(struct cop_buf *out, const char *title, const struct cop_chart_range *range,
	unsigned rows, cop_html_show *show);

/* ---- the tree of nodes, without a table ---- */

struct cop_chart_tree {
	const char *title;
	unsigned n;
	const int32_t *parent; /* index of the parent; -1: none */
	const uint32_t *first; /* the order in which nodes get space, most important first */
	unsigned first_n;
	const char *top; /* where the roots get their data from */
	cop_html_show *show;
	double (*weight)(const void *arg,
		unsigned i); /* of the edge to the parent, or to the top; NAN: unknown */
	const char *(*label)(const void *arg, unsigned i);   /* a short name */
	const char *(*tooltip)(const void *arg, unsigned i); /* valid until the next call */
	const void *arg;
};
/* Returns 0, or -ENOMEM with out->failed set. Omits nodes that cannot be reached from a root. If a
 * node does not fit, the drawn node above it shows how many are missing. */
int cop_chart_tree(struct cop_buf *out, const struct cop_chart_tree *t);

#endif
