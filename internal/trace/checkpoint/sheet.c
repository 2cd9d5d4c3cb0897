/* SPDX-License-Identifier: BSD-3-Clause */
#include <math.h>

#include "base/base/grow.h"
#include "trace/checkpoint/checkpoint_priv.h"

void cop_ckpt_sheet_col(struct sheet *s, const char *name, enum cop_grid_kind kind)
{
	char *copy = strdup(name);

	if (!copy || !COP_GROW_PLAIN(s->col, s->cols)) {
		free(copy);
		s->failed = true;
		return;
	}
	s->col[s->cols].name = copy;
	s->col[s->cols++].kind = kind;
}

static enum cop_grid_kind kind_of(char letter)
{
	switch (letter) {
	case 's':
		return COP_GRID_SECONDS;
	case 'w':
		return COP_GRID_WHOLE;
	case 'r':
		return COP_GRID_RATIO;
	default:
		return letter == 'n' ? COP_GRID_NUMBER : COP_GRID_TEXT;
	}
}

void cop_ckpt_sheet_cols(struct sheet *s, const char *cols)
{
	char word[32];

	while (*cols) {
		size_t n = strcspn(cols, " ");

		memcpy(word, cols, n - 2);
		word[n - 2] = '\0';
		cop_ckpt_sheet_col(s, word, kind_of(cols[n - 1]));
		cols += n + (cols[n] == ' ');
	}
}

static void put(struct sheet *s, struct cop_grid_cell cell)
{
	if (COP_GROW(s->cell, s->n, s->cap))
		s->cell[s->n++] = cell;
	else
		s->failed = true;
}

void cop_ckpt_put_str(struct sheet *s, const char *text)
{
	put(s, (struct cop_grid_cell){text, strlen(text), NAN});
}

void cop_ckpt_put_text(struct sheet *s, struct cop_trace_str text)
{
	put(s, (struct cop_grid_cell){text.at, text.len, NAN});
}

void cop_ckpt_put(struct sheet *s, double value)
{
	put(s, (struct cop_grid_cell){NULL, 0, value});
}

static struct cop_grid_cell cell(const void *arg, size_t row, unsigned col)
{
	const struct sheet *s = arg;

	return s->cell[row * s->cols + col];
}

void cop_ckpt_sheet_show(const struct sheet *s, enum cop_grid_form form, struct cop_buf *out)
{
	struct cop_grid g = {s->col, s->cols, s->cols ? s->n / s->cols : 0, cell, s};

	out->failed |= s->failed;
	if (!out->failed)
		cop_grid_show(&g, form, out);
}

void cop_ckpt_sheet_fini(struct sheet *s)
{
	for (unsigned i = 0; i < s->cols; i++)
		free((char *)s->col[i].name);
	free(s->col);
	free(s->cell);
}
