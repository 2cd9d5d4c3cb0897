/* SPDX-License-Identifier: BSD-3-Clause */
/* Parts common to all charts. */
#include <math.h>

#include "report/html/chart_priv.h"

void cop_chart_open(struct cop_buf *out, const char *title, double width, double height)
{
	cop_buf_str(out, "<figure><figcaption>");
	cop_html_text(out, title);
	cop_buf_str(out, "</figcaption>\n<div class=\"wide\" tabindex=\"0\" role=\"region\" "
			 "aria-label=\"");
	cop_html_text(out, title);
	cop_buf_printf(out,
		"\"><svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" "
		"style=\"--w:%.0fpx;--most:%s\" role=\"img\" aria-label=\"",
		width, height, width, width < CHART_WIDTH ? "var(--w)" : "none");
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

/* Truncates a long name at its start, at a character boundary, because hosts and paths differ at
 * the end. */
void cop_chart_row_name(struct cop_buf *out, double left, double y, const char *name)
{
	size_t len = strlen(name), room = (size_t)(left / CHART_BYTE) - 1;
	size_t from = len > room ? len - room + 1 : 0;

	while (from && (name[from] & 0xc0) == 0x80)
		from++;
	cop_buf_printf(
		out, "<text class=\"r\" x=\"%.1f\" y=\"%.1f\">%s", left - 8, y, from ? "…" : "");
	cop_html_text(out, name + from);
	cop_buf_str(out, "</text>\n");
}

/* Chooses a step that is round on a clock. */
static double step_of(double seconds)
{
	static const double steps[] = {0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900,
		1800, 3600, 7200, 14400, 28800, 86400};

	for (size_t i = 0; i < COP_ARRAY_SIZE(steps); i++)
		if (steps[i] * 10 >= seconds)
			return steps[i];
	return seconds / 8;
}

void cop_chart_time_axis(struct cop_buf *out, double left, double width, double y, double seconds)
{
	double step = step_of(seconds);
	char text[COP_HTML_NUMBER];

	for (unsigned i = 0; seconds > 0 && i * step <= seconds * 0.97; i++) {
		/* On an axis of seconds, half a second is a valid step. */
		if (seconds > 1 && i * step < 1)
			snprintf(text, sizeof(text), "%g s", i * step);
		else
			cop_html_time(i * step, text);
		cop_chart_label(out, "x", left + width * i * step / seconds, y, text);
	}
}

void cop_chart_key(struct cop_buf *out, const char *class, const char *name)
{
	cop_buf_printf(out, "<span><i class=\"%s\"></i>", class);
	cop_html_text(out, name);
	cop_buf_str(out, "</span> ");
}
