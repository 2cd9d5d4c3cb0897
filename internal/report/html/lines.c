/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/chart_priv.h"

#define HEIGHT 220.0
#define TOP 14.0
#define MARKS 4 /* number of marks on the vertical axis */

struct plot {
	const struct cop_chart_lines *l;
	double least, most, width; /* least: at most 0 */
};

/* Formats a column for the axis. */
static char *show_col(const struct cop_chart_lines *l, unsigned c, char text[COP_HTML_NUMBER])
{
	if (!l->steps)
		return cop_html_time(c * l->interval_s, text);
	snprintf(text, COP_HTML_NUMBER, "%.0f", ceil(c * l->interval_s));
	return text;
}

/* Rounds up to MARKS steps, each a round number of bytes. */
static double round_up(double most)
{
	static const double round[] = {
		1, 2, 4, 5, 10, 16, 20, 32, 50, 64, 100, 128, 200, 256, 500, 512};
	static const double small[] = {1, 2, 2.5, 5};

	for (double unit = 1e-9; unit < 0.5 && most <= MARKS; unit *= 10)
		for (size_t i = 0; i < COP_ARRAY_SIZE(small); i++)
			if (MARKS * small[i] * unit >= most)
				return MARKS * small[i] * unit;
	for (double unit = 1; unit < 1e30; unit *= 1024)
		for (size_t i = 0; i < COP_ARRAY_SIZE(round); i++)
			if (MARKS * round[i] * unit >= most)
				return MARKS * round[i] * unit;
	return most;
}

static double highest_point(const struct cop_chart_lines *l)
{
	double most = isnan(l->limit) ? 0 : l->limit;

	for (unsigned i = 0; i < l->lines; i++)
		for (unsigned c = 0; c < l->cols; c++)
			most = fmax(most, l->value[i][c]);
	return round_up(most);
}

static double lowest_point(const struct cop_chart_lines *l)
{
	double least = 0;

	for (unsigned i = 0; i < l->lines; i++)
		for (unsigned c = 0; c < l->cols; c++)
			least = fmin(least, l->value[i][c]);
	return least < 0 ? -round_up(-least) : 0;
}

static double x_of(const struct plot *p, unsigned c)
{
	return CHART_LEFT + p->width * (c + 0.5) / p->l->cols;
}

static double y_of(const struct plot *p, double v)
{
	return TOP + HEIGHT * (1 - (v - p->least) / (p->most - p->least));
}

static void draw_side(struct cop_buf *out, const struct plot *p)
{
	char text[COP_HTML_NUMBER];

	for (unsigned i = 0; i <= MARKS; i++) {
		double v = p->least + (p->most - p->least) * i / MARKS, y = y_of(p, v);

		cop_buf_printf(out, "<path class=\"g\" d=\"M%.1f %.1fh%.1f\"></path>\n", CHART_LEFT,
			y, p->width);
		cop_chart_label(out, "r", CHART_LEFT - 8, y + 4, p->l->show(v, text));
	}
}

static void draw_line(struct cop_buf *out, const struct plot *p, unsigned i)
{
	const double *v = p->l->value[i];
	bool pen = false;

	cop_buf_printf(out, "<path class=\"l l%u\" d=\"", i);
	for (unsigned c = 0; c < p->l->cols; c++) {
		if (isnan(v[c])) {
			pen = false;
			continue;
		}
		cop_buf_printf(out, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(p, c), y_of(p, v[c]));
		pen = true;
	}
	cop_buf_str(out, "\"></path>\n");
}

static void draw_points(struct cop_buf *out, const struct plot *p, unsigned i)
{
	char text[COP_HTML_NUMBER], from[COP_HTML_NUMBER];

	for (unsigned c = 0; c < p->l->cols; c++) {
		double v = p->l->value[i][c];

		if (isnan(v))
			continue;
		cop_buf_printf(out,
			"<circle class=\"p l%u\" cx=\"%.1f\" cy=\"%.1f\" r=\"3\"><title>", i,
			x_of(p, c), y_of(p, v));
		cop_html_printf(out, "%s, %s: %s", p->l->name[i], show_col(p->l, c, from),
			p->l->show(v, text));
		cop_buf_str(out, "</title></circle>\n");
	}
}

static void draw_steps(struct cop_buf *out, const struct plot *p)
{
	unsigned each = COP_MAX(1u, (p->l->cols + 9) / 10);
	char text[COP_HTML_NUMBER];

	for (unsigned c = 0; c < p->l->cols; c += each)
		cop_chart_label(out, "x", x_of(p, c), TOP + HEIGHT + 20, show_col(p->l, c, text));
}

static void draw_limit(struct cop_buf *out, const struct plot *p)
{
	if (isnan(p->l->limit))
		return;
	cop_buf_printf(out, "<path class=\"limit\" d=\"M%.1f %.1fh%.1f\"></path>\n", CHART_LEFT,
		y_of(p, p->l->limit), p->width);
	cop_chart_label(
		out, "on", CHART_LEFT + p->width, y_of(p, p->l->limit) - 4, p->l->limit_name);
}

static void write_keys(struct cop_buf *out, const struct cop_chart_lines *l)
{
	char class[8];

	cop_buf_str(out, "<p class=\"keys\">");
	for (unsigned i = 0; i < l->lines; i++) {
		snprintf(class, sizeof(class), "l%u", i % COP_CHART_LINES);
		cop_chart_key(out, class, l->name[i]);
	}
	cop_buf_str(out, "</p>\n");
}

static void write_numbers(struct cop_buf *out, const struct cop_chart_lines *l)
{
	struct cop_html_col col[COP_CHART_LINES + 1] = {{l->steps ? "step" : "from", false}};
	char text[COP_HTML_NUMBER];

	for (unsigned i = 0; i < l->lines; i++)
		col[i + 1] = (struct cop_html_col){l->name[i], true};
	cop_chart_open_numbers(out);
	cop_html_table(out, l->title, col, l->lines + 1);
	for (unsigned c = 0; c < l->cols; c++) {
		cop_html_row(out);
		cop_html_cell(out, show_col(l, c, text));
		for (unsigned i = 0; i < l->lines; i++)
			cop_html_cell_number(out, l->show, l->value[i][c]);
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
	cop_chart_close_numbers(out);
}

void cop_chart_lines(struct cop_buf *out, const struct cop_chart_lines *l)
{
	struct plot p = {.l = l,
		.least = lowest_point(l),
		.most = highest_point(l),
		.width = CHART_WIDTH - CHART_LEFT - CHART_RIGHT};

	cop_chart_open(out, l->title, CHART_WIDTH, TOP + HEIGHT + 26);
	draw_side(out, &p);
	for (unsigned i = 0; i < l->lines; i++)
		draw_line(out, &p, i);
	draw_limit(out, &p);
	for (unsigned i = 0; i < l->lines; i++)
		draw_points(out, &p, i);
	if (l->steps)
		draw_steps(out, &p);
	else
		cop_chart_time_axis(
			out, CHART_LEFT, p.width, TOP + HEIGHT + 20, l->cols * l->interval_s);
	cop_chart_close_image(out);
	write_keys(out, l);
	write_numbers(out, l);
	cop_chart_close(out);
}
