/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/chart_priv.h"

struct map {
	const struct cop_chart_heat *h;
	double most, cell, row; /* the maximum; width and height of a cell */
};

static double highest_cell(const struct cop_chart_heat *h)
{
	double most = 0;

	for (unsigned r = 0; r < h->rows; r++)
		for (unsigned c = 0; c < h->cols; c++)
			most = fmax(most, h->value(h->arg, r, c));
	return most;
}

/* Levels grow with the square root, so a single peak does not hide the rest. 0: none. */
static unsigned level_of(double v, double most)
{
	if (!(v > 0) || !(most > 0))
		return 0;
	return COP_MIN((unsigned)ceil(CHART_LEVELS * sqrt(v / most)), CHART_LEVELS);
}

static void draw_field(struct cop_buf *out, const struct map *m, unsigned r, unsigned c)
{
	double v = m->h->value(m->h->arg, r, c);
	char text[COP_HTML_NUMBER], from[COP_HTML_NUMBER];
	unsigned q = level_of(v, m->most);

	if (!q)
		return;
	cop_buf_printf(out,
		"<rect class=\"q%u\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
		q, CHART_LEFT + c * m->cell, r * m->row, m->cell + 0.2, m->row - 1);
	cop_html_text(out, m->h->name(m->h->arg, r));
	cop_html_printf(
		out, ", %s: %s", cop_html_time(c * m->h->interval_s, from), m->h->show(v, text));
	cop_buf_str(out, "</title></rect>\n");
}

static void draw_row(struct cop_buf *out, const struct map *m, unsigned r)
{
	cop_chart_row_name(out, CHART_LEFT, (r + 0.5) * m->row + 3.5, m->h->name(m->h->arg, r));
	cop_buf_printf(out,
		"<rect class=\"q0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"></rect>\n",
		CHART_LEFT, r * m->row, m->cell * m->h->cols, m->row - 1);
	for (unsigned c = 0; c < m->h->cols; c++)
		draw_field(out, m, r, c);
}

static void draw_scale(struct cop_buf *out, const struct map *m)
{
	char text[COP_HTML_NUMBER];

	cop_buf_str(out, "<p class=\"keys scale\">");
	cop_buf_str(out, "<span><i class=\"q0\"></i>0</span> ");
	for (unsigned q = 1; q <= CHART_LEVELS; q++) {
		double most = m->most * q * q / (CHART_LEVELS * CHART_LEVELS);

		cop_buf_printf(out, "<span><i class=\"q%u\"></i>", q);
		cop_html_printf(out, "≤ %s", m->h->show(most, text));
		cop_buf_str(out, "</span> ");
	}
	cop_buf_str(out, "</p>\n");
}

static void write_numbers(struct cop_buf *out, const struct map *m)
{
	const struct cop_chart_heat *h = m->h;
	char text[COP_HTML_NUMBER];

	cop_chart_open_numbers(out);
	cop_buf_str(out, "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"");
	cop_html_text(out, h->title);
	cop_buf_str(out, "\"><table><thead><tr><th scope=\"col\">from</th>");
	for (unsigned r = 0; r < h->rows; r++) {
		cop_buf_str(out, "<th scope=\"col\" class=\"n\">");
		cop_html_text(out, h->name(h->arg, r));
		cop_buf_str(out, "</th>");
	}
	cop_buf_str(out, "</tr></thead>\n<tbody>");
	for (unsigned c = 0; c < h->cols; c++) {
		cop_html_row(out);
		cop_html_cell(out, cop_html_time(c * h->interval_s, text));
		for (unsigned r = 0; r < h->rows; r++)
			cop_html_cell_number(out, h->show, h->value(h->arg, r, c));
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
	cop_chart_close_numbers(out);
}

void cop_chart_heat(struct cop_buf *out, const struct cop_chart_heat *h)
{
	struct map m = {.h = h, .most = highest_cell(h)};
	double width = CHART_WIDTH - CHART_LEFT - CHART_RIGHT;

	m.cell = width / h->cols;
	m.row = h->rows <= 8 ? 24 : h->rows <= 24 ? 17 : 13;
	cop_chart_open(out, h->title, CHART_WIDTH, m.row * h->rows + 26);
	for (unsigned r = 0; r < h->rows; r++)
		draw_row(out, &m, r);
	cop_chart_time_axis(out, CHART_LEFT, width, m.row * h->rows + 16, h->cols * h->interval_s);
	cop_chart_close_image(out);
	draw_scale(out, &m);
	write_numbers(out, &m);
	cop_chart_close(out);
}
