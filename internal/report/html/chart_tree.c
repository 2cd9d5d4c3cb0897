/* SPDX-License-Identifier: BSD-3-Clause */
/* Draws subtrees side by side. Nodes that do not fit are shown as a number at the drawn node above
 * them. Levels that fit completely are drawn first, then important nodes with their ancestors, then
 * whatever still fits. Parents are untrusted: nodes in a cycle are never reached. */
#include <math.h>

#include "report/html/chart_priv.h"

#define WIDEST 1280.0 /* wider charts would be scaled down until they are unreadable */
#define LABEL_BYTE 7.5
#define LEVEL 78.0 /* distance between levels */
#define TOP 20.0
#define ABOVE 46.0 /* distance from the roots' source to the roots */
#define DEEPEST 64

struct layout {
	const struct cop_chart_tree *t;
	int32_t *first, *next, *order; /* lists of children; all reachable nodes, level by level */
	unsigned *below, *kids;        /* numbers of descendants and of drawn children */
	double *x;                     /* NAN: not drawn; -1: drawn but not placed */
	unsigned *depth;               /* DEEPEST for unreachable nodes */
	unsigned reached, drawn, leaves, levels;
	double most, slot; /* slot: width of a leaf */
};

/* The index of the parent, or -1. */
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

/* Breadth-first from the roots. */
static void find_order(struct layout *l)
{
	int32_t roots = -1;
	unsigned n = 0;

	for (unsigned i = 0; i < l->t->n; i++) {
		l->first[i] = -1;
		l->depth[i] = DEEPEST;
		l->x[i] = NAN;
	}
	for (unsigned i = l->t->n; i-- > 0;) {
		int32_t p = parent_of(l, i);

		add_child(l, p >= 0 ? &l->first[p] : &roots, i);
	}
	for (int32_t r = roots; r >= 0; r = l->next[r]) {
		l->depth[r] = 0;
		l->order[n++] = r;
	}
	for (unsigned at = 0; at < n; at++) {
		unsigned i = (unsigned)l->order[at];

		for (int32_t c = l->first[i]; c >= 0; c = l->next[c]) {
			l->depth[c] = COP_MIN(l->depth[i] + 1, DEEPEST);
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

/* ---- selection of drawn nodes ---- */

static bool is_drawn(const struct layout *l, int32_t i)
{
	return !isnan(l->x[i]);
}

/* Draws a node and its ancestors if there is room for one more leaf, or if this adds none. */
static void add_with_ancestors(struct layout *l, int32_t i)
{
	int32_t top = i, above;

	if (l->depth[i] >= DEEPEST || is_drawn(l, i))
		return;
	while ((above = parent_of(l, (unsigned)top)) >= 0 && !is_drawn(l, above))
		top = above;
	if ((above < 0 || l->kids[above]) && (l->leaves + 1) * l->slot > WIDEST)
		return;
	l->leaves += above < 0 || l->kids[above];
	for (; i >= 0 && !is_drawn(l, i); i = parent_of(l, (unsigned)i)) {
		l->x[i] = -1;
		l->drawn++;
		l->levels = COP_MAX(l->levels, l->depth[i] + 1);
		l->most = fmax(l->most, l->t->weight(l->t->arg, (unsigned)i));
		above = parent_of(l, (unsigned)i);
		if (above >= 0)
			l->kids[above]++;
	}
}

/* The number of nodes, in level order, in levels that fit completely. */
static unsigned whole_levels(const struct layout *l)
{
	unsigned from = 0, leaves = 0;

	while (from < l->reached) {
		unsigned to = from, ends = 0, depth = l->depth[l->order[from]];

		for (; to < l->reached && l->depth[l->order[to]] == depth; to++)
			ends += l->first[l->order[to]] < 0;
		if ((leaves + (to - from)) * l->slot > WIDEST)
			break;
		leaves += ends;
		from = to;
	}
	return from;
}

/* The widest name determines the slot width. */
static double slot_of(const struct cop_chart_tree *t)
{
	size_t most = 0;

	for (unsigned i = 0; i < t->n; i++)
		most = COP_MAX(most, strlen(t->label(t->arg, i)));
	return fmax(40, LABEL_BYTE * (double)most + 12);
}

static void choose_drawn(struct layout *l)
{
	unsigned whole;

	l->slot = slot_of(l->t);
	whole = whole_levels(l);
	for (unsigned at = 0; at < whole; at++)
		add_with_ancestors(l, l->order[at]);
	for (unsigned f = 0; f < l->t->first_n; f++)
		if (l->t->first[f] < l->t->n)
			add_with_ancestors(l, (int32_t)l->t->first[f]);
	for (unsigned at = whole; at < l->reached; at++)
		add_with_ancestors(l, l->order[at]);
	l->leaves = 0;
}

/* ---- layout ---- */

/* Recursion is at most DEEPEST levels. */
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
	l->x[i] = isnan(from) ? (l->leaves++ + 0.5) * l->slot : (from + to) / 2;
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
		"</title><rect class=\"node\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"20\" rx=\"10\"></rect>",
		x - l->slot / 2 + 2, y - 10, l->slot - 4);
	cop_chart_label(out, "m", x, y + 4, l->t->label(l->t->arg, i));
	if (hidden) {
		snprintf(text, sizeof(text), "+%u", hidden);
		cop_chart_label(out, "m hidden", x, y + 25, text);
	}
	cop_buf_str(out, "</g>\n");
}

static void draw_layout(struct cop_buf *out, struct layout *l)
{
	double width, middle, first_root = NAN, last_root = 0;

	for (unsigned at = 0; at < l->reached && l->depth[l->order[at]] == 0; at++) {
		if (!is_drawn(l, l->order[at]))
			continue;
		place_node(l, (unsigned)l->order[at]);
		last_root = l->x[l->order[at]];
		first_root = isnan(first_root) ? last_root : first_root;
	}
	/* The box of the roots' source is wider than a slot. */
	width = fmax(l->leaves * l->slot, 240);
	middle = (first_root + last_root) / 2;
	cop_chart_open(out, l->t->title, width, TOP + ABOVE + (l->levels - 1) * LEVEL + 36);
	for (unsigned at = 0; at < l->reached; at++)
		if (is_drawn(l, l->order[at]))
			draw_edge(out, l, (unsigned)l->order[at], middle);
	cop_buf_printf(out,
		"<rect class=\"top\" x=\"%.1f\" y=\"%.1f\" width=\"76\" height=\"24\" rx=\"4\"></rect>",
		middle - 38, TOP - 12);
	cop_chart_label(out, "m", middle, TOP + 4, l->t->top);
	for (unsigned at = 0; at < l->reached; at++)
		if (is_drawn(l, l->order[at]))
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
		.kids = calloc(n, sizeof(*l.kids)),
		.x = calloc(n, sizeof(*l.x)),
		.depth = calloc(n, sizeof(*l.depth)),
		.levels = 1};

	if (l.first && l.next && l.order && l.below && l.kids && l.x && l.depth) {
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
	free(l.kids);
	free(l.x);
	free(l.depth);
	return out->failed ? -ENOMEM : 0;
}
