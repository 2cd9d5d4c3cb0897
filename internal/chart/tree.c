/* SPDX-License-Identifier: BSD-3-Clause */
/* The first nodes by levels are drawn, each subtree beside the next one; what is below a drawn node
 * and has no room is a number. Parents come from a file: nodes in a circle are never reached. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chart/chart_priv.h"

#define SLOT 40.0  /* room of a leaf */
#define LEVEL 78.0 /* from one level to the next */
#define TOP 20.0
#define ABOVE 46.0 /* from what the roots read to the roots */
#define DEEPEST 64

struct layout {
	const struct cop_chart_tree *t;
	int32_t *first, *next, *order; /* children; all that are reached, by levels */
	unsigned *below;               /* descendants */
	double *x;
	unsigned *depth;
	unsigned reached, drawn, leaves, levels;
	double most;
};

/* The index of its parent, or -1. */
static int32_t parent_of(const struct layout *l, unsigned i)
{
	int32_t p = l->t->parent[i];

	return p >= 0 && (unsigned)p < l->t->n ? p : -1;
}

static void add_child(struct layout *l, int32_t *list, unsigned i)
{
	l->next[i] = *list;
	*list = (int32_t)i;
}

/* By levels, from the roots. */
static void find_order(struct layout *l)
{
	int32_t roots = -1;
	unsigned n = 0;

	for (unsigned i = 0; i < l->t->n; i++)
		l->first[i] = -1;
	for (unsigned i = l->t->n; i-- > 0;) {
		int32_t p = parent_of(l, i);

		add_child(l, p >= 0 ? &l->first[p] : &roots, i);
	}
	for (int32_t r = roots; r >= 0; r = l->next[r])
		l->order[n++] = r;
	for (unsigned at = 0; at < n; at++) {
		unsigned i = (unsigned)l->order[at];

		for (int32_t c = l->first[i]; c >= 0; c = l->next[c]) {
			l->depth[c] = l->depth[i] + 1;
			l->order[n++] = c;
		}
	}
	l->reached = n;
}

static void count_below(struct layout *l)
{
	for (unsigned at = l->reached; at-- > 0;) {
		unsigned i = (unsigned)l->order[at];
		int32_t p = parent_of(l, i);

		if (p >= 0)
			l->below[p] += l->below[i] + 1;
	}
}

/* Which are drawn: marked by their place, -1 so far. */
static void choose_drawn(struct layout *l)
{
	for (unsigned i = 0; i < l->t->n; i++)
		l->x[i] = NAN;
	for (unsigned at = 0; at < l->reached && l->drawn < COP_CHART_TREE_DRAWN; at++) {
		unsigned i = (unsigned)l->order[at];

		if (l->depth[i] >= DEEPEST)
			break;
		l->x[i] = -1;
		l->drawn++;
		l->levels = COP_MAX(l->levels, l->depth[i] + 1);
		l->most = fmax(l->most, l->t->weight(l->t->arg, i));
	}
}

/* At most DEEPEST levels deep. */
static void place_node(struct layout *l, unsigned i)
{
	double from = NAN, to = NAN;

	for (int32_t c = l->first[i]; c >= 0; c = l->next[c]) {
		if (isnan(l->x[c]))
			continue;
		place_node(l, (unsigned)c);
		from = isnan(from) ? l->x[c] : from;
		to = l->x[c];
	}
	l->x[i] = isnan(from) ? (l->leaves++ + 0.5) * SLOT : (from + to) / 2;
}

static double y_of(const struct layout *l, unsigned i)
{
	return TOP + ABOVE + l->depth[i] * LEVEL;
}

static void draw_edge(struct cop_buf *out, const struct layout *l, unsigned i, double middle)
{
	int32_t p = parent_of(l, i);
	double px = p >= 0 ? l->x[p] : middle, py = p >= 0 ? y_of(l, (unsigned)p) : TOP;
	double w = l->t->weight(l->t->arg, i), x = l->x[i], y = y_of(l, i);
	char text[COP_HTML_NUMBER];

	cop_buf_printf(out,
		"<path class=\"e%s\" stroke-width=\"%.1f\" d=\"M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f\"><title>",
		p >= 0 ? "" : " s", l->most > 0 && w > 0 ? 1 + 7 * sqrt(w / l->most) : 0.7, px, py,
		px, (py + y) / 2, x, (py + y) / 2, x, y);
	cop_html_text(out, p >= 0 ? l->t->label(l->t->arg, (unsigned)p) : l->t->top);
	cop_buf_str(out, " → ");
	cop_html_text(out, l->t->label(l->t->arg, i));
	cop_html_printf(out, ": %s", l->t->show(w, text));
	cop_buf_str(out, "</title></path>\n");
}

static unsigned hidden_below(const struct layout *l, unsigned i)
{
	unsigned hidden = 0;

	for (int32_t c = l->first[i]; c >= 0; c = l->next[c])
		hidden += isnan(l->x[c]) ? l->below[c] + 1 : 0;
	return hidden;
}

static void draw_node(struct cop_buf *out, const struct layout *l, unsigned i)
{
	unsigned hidden = hidden_below(l, i);
	double x = l->x[i], y = y_of(l, i);
	char text[COP_HTML_NUMBER + 8];

	cop_buf_printf(out, "<g><title>");
	cop_html_text(out, l->t->tooltip(l->t->arg, i));
	cop_buf_printf(out,
		"</title><rect class=\"node\" x=\"%.1f\" y=\"%.1f\" width=\"36\" height=\"20\" rx=\"10\"></rect>",
		x - 18, y - 10);
	cop_chart_label(out, "m", x, y + 4, l->t->label(l->t->arg, i));
	if (hidden) {
		snprintf(text, sizeof(text), "+%u", hidden);
		cop_chart_label(out, "m hidden", x, y + 25, text);
	}
	cop_buf_str(out, "</g>\n");
}

static void draw_layout(struct cop_buf *out, struct layout *l)
{
	double width, middle, last_root = 0;

	for (unsigned at = 0; at < l->drawn && l->depth[l->order[at]] == 0; at++) {
		place_node(l, (unsigned)l->order[at]);
		last_root = l->x[l->order[at]];
	}
	width = fmax(l->leaves * SLOT, 240); /* the box of the roots' source is wider than a slot */
	middle = (l->x[l->order[0]] + last_root) / 2;
	cop_chart_open(out, l->t->title, width, TOP + ABOVE + (l->levels - 1) * LEVEL + 36);
	for (unsigned at = 0; at < l->drawn; at++)
		draw_edge(out, l, (unsigned)l->order[at], middle);
	cop_buf_printf(out,
		"<rect class=\"top\" x=\"%.1f\" y=\"%.1f\" width=\"76\" height=\"24\" rx=\"4\"></rect>",
		middle - 38, TOP - 12);
	cop_chart_label(out, "m", middle, TOP + 4, l->t->top);
	for (unsigned at = 0; at < l->drawn; at++)
		draw_node(out, l, (unsigned)l->order[at]);
	cop_chart_close_image(out);
	cop_chart_close(out);
}

int cop_chart_tree(struct cop_buf *out, const struct cop_chart_tree *t)
{
	size_t n = COP_MAX(t->n, 1u);
	struct layout l = {.t = t,
		.first = calloc(n, sizeof(*l.first)),
		.next = calloc(n, sizeof(*l.next)),
		.order = calloc(n, sizeof(*l.order)),
		.below = calloc(n, sizeof(*l.below)),
		.x = calloc(n, sizeof(*l.x)),
		.depth = calloc(n, sizeof(*l.depth)),
		.levels = 1};

	if (l.first && l.next && l.order && l.below && l.x && l.depth) {
		find_order(&l);
		count_below(&l);
		choose_drawn(&l);
		if (l.drawn)
			draw_layout(out, &l);
	} else {
		out->failed = true;
	}
	free(l.first);
	free(l.next);
	free(l.order);
	free(l.below);
	free(l.x);
	free(l.depth);
	return out->failed ? -ENOMEM : 0;
}
