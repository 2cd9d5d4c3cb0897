/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "report/html/chart_priv.h"

#define ROW 22.0
#define AFTER 90.0 /* space for the sum after a bar */

static double sum_of(const struct cop_chart_bars *b, unsigned r)
{
	double sum = 0;

	for (unsigned i = 0; i < b->parts; i++)
		sum += fmax(0, b->value(b->arg, r, i));
	return sum;
}

/* Space for the longest name, within limits. */
static double left_of(const struct cop_chart_bars *b)
{
	double left = CHART_LEFT;

	for (unsigned r = 0; r < b->rows; r++)
		left = fmax(left, (double)(strlen(b->name(b->arg, r)) + 2) * CHART_BYTE);
	return fmin(left, CHART_WIDTH / 2);
}

static double highest_bar(const struct cop_chart_bars *b)
{
	double most = 0;

	for (unsigned r = 0; r < b->rows; r++)
		most = fmax(most, sum_of(b, r));
	return most > 0 ? most : 1;
}

/* Only important bars are coloured. */
static const char *part_class(const struct cop_chart_bars *b, unsigned part, char out[8])
{
	unsigned n = 0;

	for (unsigned i = 0; i < part; i++)
		n += !(b->pale >> i & 1);
	if (b->pale >> part & 1)
		strcpy(out, "pale");
	else
		snprintf(out, 8, "b%u", n % COP_CHART_PARTS);
	return out;
}

static void write_keys(struct cop_buf *out, const struct cop_chart_bars *b)
{
	char class[8];

	cop_buf_str(out, "<p class=\"keys\">");
	for (unsigned i = 0; i < b->parts; i++)
		cop_chart_key(out, part_class(b, i, class), b->part[i]);
	cop_buf_str(out, "</p>\n");
}

static void draw_row(struct cop_buf *out, const struct cop_chart_bars *b, unsigned r, double scale)
{
	char text[COP_HTML_NUMBER];
	double left = left_of(b), x = left;
	char class[8];

	cop_chart_row_name(out, left, (r + 0.5) * ROW + 4, b->name(b->arg, r));
	for (unsigned i = 0; i < b->parts; i++) {
		double v = b->value(b->arg, r, i);

		if (!(v > 0))
			continue;
		cop_buf_printf(out,
			"<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>",
			part_class(b, i, class), x, r * ROW + 2, fmax(v * scale, 0.5), ROW - 5);
		cop_html_text(out, b->name(b->arg, r));
		cop_html_printf(out, ", %s: %s", b->part[i], b->show(v, text));
		cop_buf_str(out, "</title></rect>\n");
		x += v * scale;
	}
	cop_chart_label(out, "v", x + 6, (r + 0.5) * ROW + 4, b->show(sum_of(b, r), text));
}

static void write_numbers(struct cop_buf *out, const struct cop_chart_bars *b)
{
	struct cop_html_col col[COP_CHART_PARTS + 2] = {{b->rows_are, false}};

	for (unsigned i = 0; i < b->parts; i++)
		col[i + 1] = (struct cop_html_col){b->part[i], true};
	col[b->parts + 1] = (struct cop_html_col){"together", true};
	cop_chart_open_numbers(out);
	cop_html_table(out, b->title, col, b->parts + 2);
	for (unsigned r = 0; r < b->rows; r++) {
		cop_html_row(out);
		cop_html_cell(out, b->name(b->arg, r));
		for (unsigned i = 0; i < b->parts; i++)
			cop_html_cell_number(out, b->show, b->value(b->arg, r, i));
		cop_html_cell_number(out, b->show, sum_of(b, r));
		cop_html_row_end(out);
	}
	cop_html_table_end(out);
	cop_chart_close_numbers(out);
}

void cop_chart_bars(struct cop_buf *out, const struct cop_chart_bars *b)
{
	double scale = (CHART_WIDTH - left_of(b) - AFTER) / highest_bar(b);

	cop_chart_open(out, b->title, CHART_WIDTH, ROW * b->rows + 4);
	for (unsigned r = 0; r < b->rows; r++)
		draw_row(out, b, r, scale);
	cop_chart_close_image(out);
	if (b->parts > 1)
		write_keys(out, b);
	write_numbers(out, b);
	cop_chart_close(out);
}
