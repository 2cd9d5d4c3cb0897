/* SPDX-License-Identifier: BSD-3-Clause */
/* The distribution of a number over many nodes: a histogram with classes of equal width in each
 * power of two, as in HdrHistogram. Unlike a sample or a digest, it does not depend on the merge
 * order. */
#include "prof/telemetry/telemetry_priv.h"

unsigned cop_telemetry_class(uint64_t value)
{
	unsigned power;

	if (value < EXACT)
		return (unsigned)value;
	power = 63 - (unsigned)__builtin_clzll(value);
	return EXACT + (power - 4) * 8 + (unsigned)(value >> (power - 3) & 7);
}

uint64_t cop_telemetry_middle(unsigned class)
{
	unsigned shift;

	if (class < EXACT)
		return class;
	shift = (class - EXACT) / 8 + 1;
	return ((uint64_t)(8 + (class - EXACT) % 8) << shift) + ((uint64_t)1 << (shift - 1));
}

static int open_counts(struct spread *s)
{
	if (!s->count)
		s->count = calloc(SPREAD_CLASSES, sizeof(*s->count));
	return s->count ? 0 : -ENOMEM;
}

static void set_bounds(struct spread *s, uint64_t least, uint64_t most)
{
	s->least = s->others ? COP_MIN(s->least, least) : least;
	s->most = COP_MAX(s->most, most);
}

int cop_telemetry_spread_add(struct spread *s, uint64_t value)
{
	if (!value)
		return 0;
	if (open_counts(s))
		return -ENOMEM;
	set_bounds(s, value, value);
	s->others++;
	s->count[cop_telemetry_class(value)]++;
	return 0;
}

int cop_telemetry_spread_merge(struct spread *into, const struct spread *from)
{
	if (!from->others)
		return 0;
	if (open_counts(into))
		return -ENOMEM;
	set_bounds(into, from->least, from->most);
	into->others += from->others;
	for (unsigned c = 0; c < SPREAD_CLASSES; c++)
		into->count[c] += from->count[c];
	return 0;
}

void cop_telemetry_spread_free(struct spread *s, size_t n)
{
	for (size_t i = 0; s && i < n; i++)
		free(s[i].count);
	free(s);
}

/* ---- the nodes, sorted by a number ---- */

struct walk {
	const struct spread *s;
	unsigned class; /* the next node's class */
	uint32_t left;  /* nodes left in this class */
};

static void skip_empty_classes(struct walk *w)
{
	while (!w->left && ++w->class < SPREAD_CLASSES)
		w->left = w->s->count ? w->s->count[w->class] : 0;
}

static struct walk from_lowest(const struct spread *s, uint32_t nodes)
{
	struct walk w = {s, 0, nodes - s->others};

	skip_empty_classes(&w);
	return w;
}

static void skip_nodes(struct walk *w, uint32_t nodes)
{
	w->left -= nodes;
	skip_empty_classes(w);
}

static uint64_t lowest_value(const struct spread *s, uint32_t nodes)
{
	return s->others == nodes ? s->least : 0;
}

void cop_telemetry_spread_pair(struct spread *a, struct spread *b, uint32_t nodes, bool peak)
{
	unsigned metric = peak ? COP_TELEMETRY_FIRST_PEAK : 0;
	struct walk x = from_lowest(a, nodes), y = from_lowest(b, nodes);
	struct spread sum = {
		.least = metric_add(metric, lowest_value(a, nodes), lowest_value(b, nodes)),
		.most = metric_add(metric, a->most, b->most)};

	if (b->others && open_counts(&sum) == 0) {
		while (x.class < SPREAD_CLASSES && y.class < SPREAD_CLASSES) {
			uint32_t both = COP_MIN(x.left, y.left);
			uint64_t value = metric_add(metric, cop_telemetry_middle(x.class),
				cop_telemetry_middle(y.class));

			if (value)
				sum.count[cop_telemetry_class(value)] += both;
			sum.others += value ? both : 0;
			skip_nodes(&x, both);
			skip_nodes(&y, both);
		}
		/* The lowest non-zero value, or the midpoint of the lowest class. */
		for (unsigned c = 1; !sum.least && c < SPREAD_CLASSES; c++)
			sum.least = sum.count[c] ? COP_MIN(cop_telemetry_middle(c), sum.most) : 0;
		free(a->count);
		*a = sum;
	}
	free(b->count);
	*b = (struct spread){0};
}

struct three cop_telemetry_spread_three(const struct spread *s, uint32_t nodes)
{
	struct three t = {.min = lowest_value(s, nodes), .max = s->most};
	struct walk w = from_lowest(s, nodes);

	/* Use the lower of the two middle values. */
	for (uint32_t before = (nodes - 1) / 2; before >= w.left && w.class < SPREAD_CLASSES;) {
		before -= w.left;
		skip_nodes(&w, w.left);
	}
	t.median = w.class < SPREAD_CLASSES ? cop_telemetry_middle(w.class) : t.max;
	t.median = COP_MIN(COP_MAX(t.median, t.min), t.max);
	return t;
}
