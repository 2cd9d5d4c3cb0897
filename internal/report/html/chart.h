/* SPDX-License-Identifier: BSD-3-Clause */
/* chart: draws SVG for a page of HTML, and writes the numbers of each chart as a table that opens
 * below it. A chart is a figure: its title describes it in words, each mark has a tooltip with its
 * number, and colours are classes that the page's style sheet defines for light and dark. Titles,
 * names and labels may be of unknown origin. Pure. */
#ifndef COP_REPORT_HTML_CHART_H
#define COP_REPORT_HTML_CHART_H

#include "markup.h"

/* ---- a map: rows over time ---- */

struct cop_chart_heat {
	const char *title, *rows_are; /* "node" */
	unsigned rows, cols;
	double interval_s;
	cop_html_show *show;
	const char *(*name)(const void *arg, unsigned row);           /* until the next call */
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
	bool steps; /* unit of the axis, and how many of them interval_s is */
	cop_html_show *show;
	const char *name[COP_CHART_LINES];
	const double *value[COP_CHART_LINES]; /* cols each; NAN: none */
	double limit;                         /* a dashed line; NAN: none */
	const char *limit_name;
};
void cop_chart_lines(struct cop_buf *out, const struct cop_chart_lines *l);

/* ---- bars of several parts ---- */

#define COP_CHART_PARTS 16
struct cop_chart_bars {
	const char *title, *rows_are;
	unsigned rows, parts;
	cop_html_show *show;
	const char *part[COP_CHART_PARTS];
	uint32_t pale; /* bits of parts that matter less */
	const char *(*name)(const void *arg, unsigned row);
	double (*value)(const void *arg, unsigned row, unsigned part);
	const void *arg;
};
void cop_chart_bars(struct cop_buf *out, const struct cop_chart_bars *b);

/* ---- spans over time ---- */

#define COP_CHART_SPAN_KINDS 24
struct cop_chart_span {
	const char *text;
	double from_s, for_s;
	unsigned row, kind;
};
struct cop_chart_spans {
	const char *title;
	double seconds; /* of the axis, above 0; every span begins on it */
	unsigned rows;
	const char *const *name; /* of each row, perhaps "" */
	const struct cop_chart_span *span;
	size_t n;
	const char *class[COP_CHART_SPAN_KINDS]; /* the colour of each kind */
	const char *key[COP_CHART_SPAN_KINDS];   /* names of the first kinds */
	unsigned keys;
};
/* Leaves the figure open: the numbers and its end follow. */
void cop_chart_spans(struct cop_buf *out, const struct cop_chart_spans *c);

/* ---- ranges on a logarithmic scale, without a table ---- */

struct cop_chart_range {
	const char *name;
	double p50, p90, p99, max; /* above 0 */
};
void cop_chart_ranges(struct cop_buf *out, const char *title, const struct cop_chart_range *range,
	unsigned rows, cop_html_show *show);

/* ---- a tree of nodes, without a table ---- */

struct cop_chart_tree {
	const char *title;
	unsigned n;
	const int32_t *parent; /* index; -1: none */
	const uint32_t *first; /* drawn first if there is no room for all; most important first */
	unsigned first_n;
	const char *top; /* what the roots read from */
	cop_html_show *show;
	double (*weight)(const void *arg,
		unsigned i); /* of the edge to its parent, or to the top; NAN: unknown */
	const char *(*label)(const void *arg, unsigned i);   /* short */
	const char *(*tooltip)(const void *arg, unsigned i); /* until the next call */
	const void *arg;
};
/* Returns 0, or -ENOMEM with out->failed. Nodes that no root leads to are omitted; nodes without
 * room are counted below those that are drawn. */
int cop_chart_tree(struct cop_buf *out, const struct cop_chart_tree *t);

#endif
