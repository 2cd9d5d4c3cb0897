/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <math.h>

#include "base/base/json.h"
#include "base/table/table.h"

static bool is_text(enum cop_grid_kind kind)
{
	return kind <= COP_GRID_NUMBER;
}

static struct cop_grid_cell cell_of(const struct cop_grid *g, size_t row, unsigned col)
{
	return g->cell(g->arg, row, col);
}

static bool is_whole(long double v)
{
	return v == floorl(v) && fabsl(v) < 0x1p64L;
}

void cop_grid_put_real(long double v, struct cop_buf *out)
{
	char text[40];
	int digits = 15;

	if (is_whole(v) && fabsl(v) >= 0x1p53L)
		snprintf(text, sizeof(text), "%.0Lf", v);
	else
		do
			snprintf(text, sizeof(text), "%.*g", digits, (double)v);
		while (strtod(text, NULL) != (double)v && digits++ < 17);
	cop_buf_str(out, text);
}

static void put_value(enum cop_grid_kind kind, long double v, struct cop_buf *out)
{
	if (kind == COP_GRID_REAL)
		cop_grid_put_real(v, out);
	else if (kind == COP_GRID_WHOLE && is_whole(v))
		cop_buf_printf(out, "%.0Lf", v);
	else if (kind == COP_GRID_WHOLE)
		cop_buf_printf(out, "%.3Lf", v);
	else
		cop_buf_printf(out, kind == COP_GRID_SECONDS ? "%.9Lf" : "%.6Lf", v);
}

/* ---- JSON ---- */

static bool is_json_number(const char *text, size_t len)
{
	size_t digits = 0;

	while (digits < len && isdigit((unsigned char)text[digits]))
		digits++;
	return len && len < 19 && digits == len && (len == 1 || text[0] != '0');
}

static void json_cell(struct cop_json *j, const struct cop_grid_col *col, struct cop_grid_cell c)
{
	if (!is_text(col->kind) && !isfinite(c.value)) {
		cop_json_null(j, col->name);
	} else if (!is_text(col->kind)) {
		cop_json_value(j, col->name);
		put_value(col->kind, c.value, j->out);
	} else if (col->kind == COP_GRID_NUMBER && !c.len) {
		cop_json_null(j, col->name);
	} else if (col->kind == COP_GRID_NUMBER ||
		   (col->kind == COP_GRID_LABEL && is_json_number(c.text, c.len))) {
		cop_json_value(j, col->name);
		cop_buf_add(j->out, c.text, c.len);
	} else {
		cop_json_bytes(j, col->name, c.text, c.len);
	}
}

static void show_json(const struct cop_grid *g, struct cop_buf *out)
{
	struct cop_json j = cop_json_to(out);

	cop_json_array(&j, NULL);
	for (size_t i = 0; i < g->rows; i++) {
		cop_buf_str(out, i ? "" : "\n");
		cop_json_object(&j, NULL);
		for (unsigned k = 0; k < g->cols; k++)
			json_cell(&j, &g->col[k], cell_of(g, i, k));
		cop_json_end(&j);
		cop_buf_str(out, "\n");
	}
	cop_json_end(&j);
	cop_buf_str(out, "\n");
}

/* ---- CSV ---- */

static void show_csv(const struct cop_grid *g, struct cop_buf *out)
{
	for (unsigned k = 0; k < g->cols; k++) {
		cop_buf_str(out, k ? "," : "");
		cop_csv_field(out, g->col[k].name, strlen(g->col[k].name));
	}
	cop_buf_str(out, "\n");
	for (size_t i = 0; i < g->rows; i++) {
		for (unsigned k = 0; k < g->cols; k++) {
			struct cop_grid_cell c = cell_of(g, i, k);

			cop_buf_str(out, k ? "," : "");
			if (is_text(g->col[k].kind))
				cop_csv_field(out, c.text, c.len);
			else if (!isnan(c.value))
				put_value(g->col[k].kind, c.value, out);
		}
		cop_buf_str(out, "\n");
	}
}

/* ---- terminal ---- */

/* The number of characters if text is UTF-8, else of bytes. */
static int width_of(const char *text, size_t len)
{
	int n = 0;

	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* Replaces control characters, which would move the cursor. */
static void put_text(struct cop_buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = (unsigned char)text[i] < 32 || text[i] == 127 ? '?' : text[i];

		cop_buf_add(out, &c, 1);
	}
}

/* Shows a missing value as a dash. */
static struct cop_grid_cell plain_cell(
	const struct cop_grid *g, size_t row, unsigned col, char text[40])
{
	static const int decimals[] = {
		[COP_GRID_SECONDS] = 6, [COP_GRID_WHOLE] = 0, [COP_GRID_RATIO] = 2};
	struct cop_grid_cell c = cell_of(g, row, col);

	if (is_text(g->col[col].kind))
		return c;
	if (isnan(c.value))
		snprintf(text, 40, "-");
	else if (g->col[col].kind == COP_GRID_REAL)
		snprintf(text, 40, is_whole(c.value) ? "%.0Lf" : "%.6Lg", c.value);
	else
		snprintf(text, 40, "%.*Lf", decimals[g->col[col].kind], c.value);
	return (struct cop_grid_cell){.text = text, .len = strlen(text)};
}

/* Text is left-aligned, values are right-aligned. If the last column is text, it is not padded. */
static void put_plain(const struct cop_grid *g, unsigned col, int width, struct cop_grid_cell c,
	struct cop_buf *out)
{
	int pad = COP_MAX(0, width - width_of(c.text, c.len));

	cop_buf_str(out, col ? "  " : "");
	if (!is_text(g->col[col].kind))
		cop_buf_printf(out, "%*s", pad, "");
	put_text(out, c.text, c.len);
	if (is_text(g->col[col].kind) && col + 1 < g->cols)
		cop_buf_printf(out, "%*s", pad, "");
}

static int col_width(const struct cop_grid *g, unsigned col)
{
	int most = width_of(g->col[col].name, strlen(g->col[col].name));
	char text[40];

	for (size_t i = 0; i < g->rows; i++) {
		struct cop_grid_cell c = plain_cell(g, i, col, text);

		most = COP_MAX(most, width_of(c.text, c.len));
	}
	return most;
}

static void show_plain(const struct cop_grid *g, struct cop_buf *out)
{
	int *width = calloc(g->cols + 1, sizeof(*width));
	char text[40];

	if (!width) {
		out->failed = true;
		return;
	}
	for (unsigned k = 0; k < g->cols; k++) {
		const char *name = g->col[k].name;

		width[k] = col_width(g, k);
		put_plain(g, k, width[k], (struct cop_grid_cell){.text = name, .len = strlen(name)},
			out);
	}
	cop_buf_str(out, "\n");
	for (size_t i = 0; i < g->rows; i++) {
		for (unsigned k = 0; k < g->cols; k++)
			put_plain(g, k, width[k], plain_cell(g, i, k, text), out);
		cop_buf_str(out, "\n");
	}
	free(width);
}

void cop_grid_show(const struct cop_grid *g, enum cop_grid_form form, struct cop_buf *out)
{
	if (form == COP_GRID_JSON)
		show_json(g, out);
	else if (form == COP_GRID_CSV)
		show_csv(g, out);
	else
		show_plain(g, out);
}
