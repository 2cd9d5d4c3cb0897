/* SPDX-License-Identifier: BSD-3-Clause */
/* What charts share. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "chart/chart_priv.h"

void cop_chart_open(struct cop_buf *out, const char *title, double width, double height)
{
	cop_buf_str(out, "<figure><figcaption>");
	cop_html_text(out, title);
	cop_buf_str(out, "</figcaption>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
			 "aria-label=\"");
	cop_html_text(out, title);
	cop_buf_printf(out,
		"\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"style=\"--w:%.0fpx\" role=\"img\" aria-label=\"",
		width, height, width);
	cop_html_text(out, title);
	cop_buf_str(out, "\">\n");
}

void cop_chart_close_image(struct cop_buf *out)
{
	cop_buf_str(out, "</svg></div>\n");
}

void cop_chart_open_numbers(struct cop_buf *out)
{
	cop_buf_str(out, "<details><summary>The numbers</summary>\n");
}

void cop_chart_close_numbers(struct cop_buf *out)
{
	cop_buf_str(out, "</details>\n");
}

void cop_chart_close(struct cop_buf *out)
{
	cop_buf_str(out, "</figure>\n");
}

void cop_chart_label(struct cop_buf *out, const char *class, double x, double y, const char *text)
{
	cop_buf_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, x, y);
	cop_html_text(out, text);
	cop_buf_str(out, "</text>\n");
}

/* Long names are cut between characters, in front: ends tell hosts apart. */
void cop_chart_row_name(struct cop_buf *out, double y, const char *name)
{
	size_t len = strlen(name), from = len > CHART_NAME_BYTES ? len - CHART_NAME_BYTES : 0;
	char text[CHART_NAME_BYTES + 8];

	while (from && (name[from] & 0xc0) == 0x80)
		from++;
	snprintf(text, sizeof(text), "%s%s", from ? "…" : "", name + from);
	cop_chart_label(out, "r", CHART_LEFT - 8, y, text);
}

double cop_chart_round_up(double v)
{
	double ten = pow(10, floor(log10(v)));
	double m = v / ten;

	return (m <= 1 ? 1 : m <= 2 ? 2 : m <= 5 ? 5 : 10) * ten;
}

void cop_chart_time_axis(struct cop_buf *out, double left, double width, double y, double seconds)
{
	double step = seconds > 0 ? cop_chart_round_up(seconds / 8) : 1;
	char text[COP_HTML_NUMBER];

	for (double s = 0; s <= seconds * 1.0001; s += step)
		cop_chart_label(out, "x", left + width * s / seconds, y, cop_html_time(s, text));
}

void cop_chart_keys(struct cop_buf *out, const char *class, const char *const *name, unsigned n)
{
	cop_buf_str(out, "<p class=\"keys\">");
	for (unsigned i = 0; i < n; i++) {
		cop_buf_printf(out, "<span><i class=\"%s%u\"></i>", class, i);
		cop_html_text(out, name[i]);
		cop_buf_str(out, "</span> ");
	}
	cop_buf_str(out, "</p>\n");
}
