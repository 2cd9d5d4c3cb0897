/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans along a common axis of time, each row with its name. */
#include <math.h>

#include "report/html/chart_priv.h"

#define ROW 18.0
#define LEAST 1.0 /* minimum width of a span */

static void draw_span(struct cop_buf *out, const struct cop_chart_spans *c,
	const struct cop_chart_span *s, double scale)
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

void cop_chart_spans(struct cop_buf *out, const struct cop_chart_spans *c)
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
