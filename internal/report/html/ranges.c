/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/chart_priv.h"

#define ROW 24.0

struct scale {
	double low, high, width; /* powers of ten */
};

static double x_of(const struct scale *s, double v)
{
	return CHART_LEFT + s->width * (log10(v) - s->low) / (s->high - s->low);
}

static struct scale scale_of(const struct cop_chart_range *range, unsigned rows)
{
	struct scale s = {INFINITY, -INFINITY, CHART_WIDTH - CHART_LEFT - 40};

	for (unsigned i = 0; i < rows; i++) {
		s.low = fmin(s.low, floor(log10(range[i].p50)));
		s.high = fmax(s.high, ceil(log10(range[i].max)));
	}
	if (s.high <= s.low)
		s.high = s.low + 1;
	return s;
}

static void draw_grid(
	struct cop_buf *out, const struct scale *s, double height, cop_html_show *show)
{
	char text[COP_HTML_NUMBER];

	for (double e = s->low; e <= s->high; e++) {
		double x = x_of(s, pow(10, e));

		cop_buf_printf(out, "<path class=\"g\" d=\"M%.1f 0v%.1f\"></path>\n", x, height);
		cop_chart_label(out, "x", x, height + 16, show(pow(10, e), text));
	}
}

static void draw_row(struct cop_buf *out, const struct scale *s, const struct cop_chart_range *r,
	double y, cop_html_show *show)
{
	char p50[COP_HTML_NUMBER], p90[COP_HTML_NUMBER], p99[COP_HTML_NUMBER], max[COP_HTML_NUMBER];
	double from = x_of(s, r->p50), to = x_of(s, r->p99);

	cop_chart_row_name(out, CHART_LEFT, y + 4, r->name);
	cop_buf_str(out, "<g><title>");
	cop_html_printf(out, "%s: half within %s, 90 %% within %s, 99 %% within %s, slowest %s",
		r->name, show(r->p50, p50), show(r->p90, p90), show(r->p99, p99),
		show(r->max, max));
	cop_buf_printf(out,
		"</title><path class=\"tail\" d=\"M%.1f %.1fH%.1f\"></path><rect class=\"b0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
		"height=\"10\" rx=\"3\"></rect><circle class=\"half\" cx=\"%.1f\" cy=\"%.1f\" r=\"5\"></circle><circle "
		"class=\"most\" cx=\"%.1f\" cy=\"%.1f\" r=\"4\"></circle></g>\n",
		from, y, x_of(s, r->max), from, y - 5, fmax(to - from, 1), from, y, x_of(s, r->max),
		y);
}

void cop_chart_ranges(struct cop_buf *out, const char *title, const struct cop_chart_range *range,
	unsigned rows, cop_html_show *show)
{
	struct scale s = scale_of(range, rows);

	cop_chart_open(out, title, CHART_WIDTH, ROW * rows + 24);
	draw_grid(out, &s, ROW * rows, show);
	for (unsigned i = 0; i < rows; i++)
		draw_row(out, &s, &range[i], (i + 0.5) * ROW, show);
	cop_chart_close_image(out);
	cop_buf_str(out,
		"<p class=\"keys\"><span><i class=\"half\"></i>half of the requests were as fast or faster</span> "
		"<span><i class=\"b0\"></i>up to 99 %</span> <span><i class=\"most\"></i>the slowest</span></p>\n");
	cop_chart_close(out);
}
