/* SPDX-License-Identifier: BSD-3-Clause */
/* The telemetry of a subtree. Which rows a large job keeps does not depend on the shape of the
 * tree: the nodes with the highest values in the whole job also have the highest values in every
 * part of it. The same holds for events. */
#include "base/base/grow.h"
#include "prof/telemetry/telemetry_priv.h"

#include "base/log/log.h"

#define OUTLIERS_MAX (4 * COP_TELEMETRY_OUTLIERS)

struct cop_telemetry_sum *cop_telemetry_sum_new(uint32_t job_nodes)
{
	struct cop_telemetry_sum *s = calloc(1, sizeof(*s));

	if (s)
		s->job_nodes = job_nodes;
	return s;
}

struct cop_telemetry_sum *cop_telemetry_sum_like(const struct cop_telemetry_sum *s)
{
	return cop_telemetry_sum_new(s->job_nodes);
}

static void free_events(struct cop_telemetry_sum *s, size_t from)
{
	for (size_t i = from; i < s->events; i++)
		free((char *)(uintptr_t)s->event[i].detail);
	s->events = COP_MIN(s->events, from);
}

static void free_folded(struct folded *f)
{
	cop_telemetry_spread_free(f->cell, f->cells);
	*f = (struct folded){0};
}

void cop_telemetry_sum_free(struct cop_telemetry_sum *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->nodes; i++)
		free(s->node[i].series);
	free(s->node);
	free_events(s, 0);
	free(s->event);
	free_folded(&s->series);
	free_folded(&s->rows);
	free(s);
}

/* ---- access ---- */

uint32_t cop_telemetry_sum_nodes(const struct cop_telemetry_sum *s)
{
	return (uint32_t)s->nodes + s->rows.nodes;
}

int64_t cop_telemetry_sum_unix_ns(const struct cop_telemetry_sum *s)
{
	return s->unix_ns;
}

uint64_t cop_telemetry_sum_seconds(const struct cop_telemetry_sum *s)
{
	return (uint64_t)1 << s->level;
}

const struct cop_telemetry_node *cop_telemetry_sum_node(const struct cop_telemetry_sum *s, size_t i)
{
	return i < s->nodes ? &s->node[i] : NULL;
}

const struct cop_telemetry_event *cop_telemetry_sum_event(
	const struct cop_telemetry_sum *s, size_t i)
{
	return i < s->events ? &s->event[i] : NULL;
}

uint64_t cop_telemetry_sum_dropped(const struct cop_telemetry_sum *s)
{
	return s->dropped;
}

unsigned cop_telemetry_sum_intervals(const struct cop_telemetry_sum *s)
{
	unsigned n = s->series.cells / METRICS;

	while (n > 0) {
		const struct spread *row = &s->series.cell[(size_t)(n - 1) * METRICS];
		uint32_t others = 0;

		for (unsigned m = 0; m < METRICS; m++)
			others |= row[m].others;
		if (others)
			break;
		n--;
	}
	for (size_t i = 0; i < s->nodes; i++)
		n = COP_MAX(n, s->node[i].intervals);
	return n;
}

void cop_telemetry_numbers(const struct cop_telemetry_node *n, uint64_t out[NUMBERS])
{
	out[0] = (uint64_t)COP_MAX(n->start_us, 0);
	out[1] = (uint64_t)COP_MAX(n->ready_us, 0);
	out[2] = (uint64_t)COP_MAX(n->stopped_us, 0);
	memcpy(out + 3, n->phase_us, sizeof(n->phase_us));
	memcpy(out + 3 + COP_TELEMETRY_PHASES, n->total, sizeof(n->total));
}

struct cop_telemetry_node *cop_telemetry_sum_slot(struct cop_telemetry_sum *s)
{
	return COP_GROW(s->node, s->nodes, s->capacity) ? &s->node[s->nodes] : NULL;
}

/* ---- folding ---- */

int cop_telemetry_folded_open(struct folded *f, unsigned cells)
{
	if (!f->cell)
		f->cell = calloc(cells, sizeof(*f->cell));
	f->cells = f->cell ? cells : 0;
	return f->cell ? 0 : -ENOMEM;
}

static int add_numbers(struct folded *f, const uint64_t *number, unsigned n)
{
	int rc = 0;

	f->nodes++;
	for (unsigned i = 0; i < n; i++)
		rc |= cop_telemetry_spread_add(&f->cell[i], number[i]);
	return rc;
}

/* If memory runs out, the node counts as idle. */
static void fold_series(struct cop_telemetry_sum *s, struct cop_telemetry_node *n)
{
	if (cop_telemetry_folded_open(&s->series, INTERVALS * METRICS) ||
		add_numbers(&s->series, n->series[0], n->intervals * METRICS))
		cop_log_error("no memory for the series of rank=%u", n->rank);
	free(n->series);
	n->series = NULL;
	n->intervals = 0;
}

static void fold_rows(struct cop_telemetry_sum *s)
{
	uint64_t number[NUMBERS];
	size_t kept = 0;

	for (size_t i = 0; i < s->nodes; i++) {
		if (s->node[i].series) {
			s->node[kept++] = s->node[i];
			continue;
		}
		cop_telemetry_numbers(&s->node[i], number);
		if (cop_telemetry_folded_open(&s->rows, NUMBERS) ||
			add_numbers(&s->rows, number, NUMBERS))
			cop_log_error("no memory for the sums of rank=%u", s->node[i].rank);
	}
	s->nodes = kept;
}

struct candidate {
	uint64_t value;
	uint32_t rank;
	size_t at;
};

static int most_first(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static uint64_t value_of(const struct cop_telemetry_node *n, unsigned which)
{
	switch (which) {
	case 0:
		return cop_add_saturating(n->total[COP_TELEMETRY_ALL_WAIT_PARENT_US],
			n->total[COP_TELEMETRY_ALL_WAIT_ORIGIN_US]);
	case 1:
		return n->total[COP_TELEMETRY_ALL_REQUESTS];
	case 2:
		return n->total[COP_TELEMETRY_ALL_ORIGIN_OPERATIONS];
	default:
		return n->total[COP_TELEMETRY_ALL_FAILOVERS];
	}
}

static void choose_series(
	const struct cop_telemetry_sum *s, unsigned which, struct candidate *c, bool *chosen)
{
	size_t n = 0;

	for (size_t i = 0; i < s->nodes; i++) {
		uint64_t value = value_of(&s->node[i], which);

		if (s->node[i].series && value)
			c[n++] = (struct candidate){value, s->node[i].rank, i};
	}
	qsort(c, n, sizeof(*c), most_first);
	for (size_t i = 0; i < n && i < COP_TELEMETRY_OUTLIERS; i++)
		chosen[c[i].at] = true;
}

static void fold_nodes_in(struct cop_telemetry_sum *s)
{
	struct candidate *c = calloc(s->nodes + 1, sizeof(*c));
	bool *chosen = calloc(s->nodes + 1, sizeof(*chosen));

	for (unsigned which = 0; c && chosen && which < 4; which++)
		choose_series(s, which, c, chosen);
	/* If memory for the selection runs out, no node is an outlier. */
	for (size_t i = 0; i < s->nodes; i++)
		if (s->node[i].series && !(chosen && chosen[i]))
			fold_series(s, &s->node[i]);
	free(c);
	free(chosen);
	if (s->job_nodes > COP_TELEMETRY_ALL_NODES)
		fold_rows(s);
}

static void fold_if_many(struct cop_telemetry_sum *s)
{
	size_t series = 0;

	for (size_t i = 0; i < s->nodes; i++)
		series += s->node[i].series != NULL;
	if (s->job_nodes > COP_TELEMETRY_ALL_SERIES && series > OUTLIERS_MAX)
		fold_nodes_in(s);
}

/* ---- a common grid ---- */

static void coarsen_folded(struct folded *f)
{
	for (unsigned i = 0; i < f->cells; i++) {
		unsigned row = i / METRICS, metric = i % METRICS;
		struct spread *to = &f->cell[(size_t)(row / 2) * METRICS + metric];

		if (row % 2) {
			cop_telemetry_spread_pair(
				to, &f->cell[i], f->nodes, metric >= COP_TELEMETRY_FIRST_PEAK);
		} else if (row) {
			*to = f->cell[i];
			f->cell[i] = (struct spread){0};
		}
	}
}

static void raise_level(struct cop_telemetry_sum *s, unsigned level)
{
	for (; s->level < level; s->level++) {
		for (size_t i = 0; i < s->nodes; i++)
			if (s->node[i].series)
				s->node[i].intervals = cop_telemetry_coarsen(
					s->node[i].series, s->node[i].intervals);
		coarsen_folded(&s->series);
	}
}

/* ---- events ---- */

/* Events of the same class have equal priority. */
static unsigned class_of(enum cop_telemetry_kind kind)
{
	return kind <= COP_TELEMETRY_PEER_BACK       ? 0
	       : kind <= COP_TELEMETRY_STORAGE_ERROR ? 1
	       : kind <= COP_TELEMETRY_PREFETCH_END  ? 2
						     : 3;
}

static int by_time(const void *a, const void *b)
{
	const struct cop_telemetry_event *x = a, *y = b;

	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
				  : strcmp(x->detail, y->detail);
}

static int by_class(const void *a, const void *b)
{
	const struct cop_telemetry_event *x = a, *y = b;
	unsigned p = class_of(x->kind), q = class_of(y->kind);

	return p != q ? (p > q) - (p < q) : by_time(a, b);
}

static void trim_events(struct cop_telemetry_sum *s)
{
	if (s->events <= COP_TELEMETRY_EVENTS_JOB)
		return;
	qsort(s->event, s->events, sizeof(*s->event), by_class);
	s->dropped = cop_add_saturating(s->dropped, s->events - COP_TELEMETRY_EVENTS_JOB);
	free_events(s, COP_TELEMETRY_EVENTS_JOB);
}

/* ---- adding ---- */

static bool have_in_common(const struct cop_telemetry_sum *a, const struct cop_telemetry_sum *b)
{
	size_t i = 0, j = 0;

	while (i < a->nodes && j < b->nodes) {
		if (a->node[i].rank == b->node[j].rank)
			return true;
		if (a->node[i].rank < b->node[j].rank)
			i++;
		else
			j++;
	}
	return false;
}

/* Nodes with a series, kept or folded. */
static uint64_t nodes_with_series(const struct cop_telemetry_sum *s)
{
	uint64_t n = s->series.nodes;

	for (size_t i = 0; i < s->nodes; i++)
		n += s->node[i].series != NULL;
	return n;
}

static uint64_t nodes_with_numbers(const struct cop_telemetry_sum *s)
{
	return (uint64_t)s->nodes + s->rows.nodes;
}

bool cop_telemetry_sum_fits(const struct cop_telemetry_sum *a, const struct cop_telemetry_sum *b)
{
	return nodes_with_series(a) + (b ? nodes_with_series(b) : 0) <= a->job_nodes &&
	       nodes_with_numbers(a) + (b ? nodes_with_numbers(b) : 0) <= a->job_nodes;
}

/* Reserves memory for both before changing anything. */
static int reserve_both(struct cop_telemetry_sum *into, const struct cop_telemetry_sum *from)
{
	size_t nodes = into->nodes + from->nodes, events = into->events + from->events;
	struct cop_telemetry_node *node = reallocarray(into->node, nodes + 1, sizeof(*node));
	struct cop_telemetry_event *event;

	if (!node)
		return -ENOMEM;
	into->node = node;
	into->capacity = nodes + 1;
	event = reallocarray(into->event, events + 1, sizeof(*event));
	if (!event)
		return -ENOMEM;
	into->event = event;
	return 0;
}

static void move_nodes(struct cop_telemetry_sum *into, struct cop_telemetry_sum *from)
{
	size_t i = into->nodes, j = from->nodes, at = i + j;

	into->nodes = at;
	while (j > 0)
		into->node[--at] = i > 0 && into->node[i - 1].rank > from->node[j - 1].rank
					   ? into->node[--i]
					   : from->node[--j];
	from->nodes = 0;
}

static void move_events(struct cop_telemetry_sum *into, struct cop_telemetry_sum *from)
{
	memcpy(into->event + into->events, from->event ? from->event : into->event,
		from->events * sizeof(*from->event));
	into->events += from->events;
	from->events = 0;
	into->dropped = cop_add_saturating(into->dropped, from->dropped);
	trim_events(into);
}

static void move_folded(struct folded *into, struct folded *from)
{
	int rc = 0;

	if (!into->cell) {
		struct folded none = *into;

		*into = *from;
		*from = none;
	}
	into->nodes += from->nodes;
	for (unsigned i = 0; i < from->cells; i++)
		rc |= cop_telemetry_spread_merge(&into->cell[i], &from->cell[i]);
	if (rc)
		cop_log_error("no memory for the series of nodes=%u", from->nodes);
}

/* Moves the contents of `from`, which the caller frees. */
static int absorb_nodes(struct cop_telemetry_sum *into, struct cop_telemetry_sum *from)
{
	unsigned level = COP_MAX(into->level, from->level);
	int rc = into->job_nodes != from->job_nodes    ? -EINVAL
		 : have_in_common(into, from)          ? -EEXIST
		 : !cop_telemetry_sum_fits(into, from) ? -EINVAL
						       : reserve_both(into, from);

	if (rc)
		return rc;
	if (!cop_telemetry_sum_nodes(into))
		into->unix_ns = from->unix_ns;
	raise_level(into, level);
	raise_level(from, level);
	move_nodes(into, from);
	move_events(into, from);
	move_folded(&into->series, &from->series);
	move_folded(&into->rows, &from->rows);
	fold_if_many(into);
	return 0;
}

/* Copies `from` by encoding and decoding it, as between nodes. */
int cop_telemetry_merge(struct cop_telemetry_sum *into, const struct cop_telemetry_sum *from)
{
	struct cop_telemetry_sum *copy = NULL;
	struct cop_buf bytes = {0};
	int rc;

	cop_telemetry_encode(from, &bytes);
	rc = bytes.failed ? -ENOMEM : cop_telemetry_decode(bytes.data, bytes.len, &copy);
	cop_buf_free(&bytes);
	if (!rc)
		rc = absorb_nodes(into, copy);
	cop_telemetry_sum_free(copy);
	return rc;
}

static int fill_own(struct cop_telemetry_sum *s, struct own *own, uint32_t rank)
{
	struct cop_telemetry_node *slot = cop_telemetry_sum_slot(s);

	s->event = calloc(own->events + 1, sizeof(*s->event));
	if (!slot || !s->event)
		return -ENOMEM;
	s->unix_ns = own->unix_ns;
	s->level = own->level;
	s->dropped = own->dropped;
	for (unsigned i = 0; i < own->events; i++) {
		struct cop_telemetry_event *e = &s->event[i];

		*e = own->event[i];
		e->rank = rank;
		e->detail = strdup(own->event[i].detail);
		if (!e->detail)
			return -ENOMEM;
		s->events++;
	}
	*slot = own->node;
	slot->rank = rank;
	own->node.series = NULL;
	s->nodes++;
	return 0;
}

int cop_telemetry_sum_add(struct cop_telemetry_sum *s, struct cop_telemetry *t, uint32_t rank)
{
	struct cop_telemetry_sum *one = t ? cop_telemetry_sum_new(s->job_nodes) : NULL;
	struct own *own = t ? calloc(1, sizeof(*own)) : NULL;
	int rc = -ENOMEM;

	if (!t)
		return 0;
	if (own)
		own->node.series = calloc(INTERVALS, sizeof(*own->node.series));
	if (one && own && own->node.series) {
		cop_telemetry_own(t, own);
		rc = fill_own(one, own, rank);
	}
	if (!rc)
		rc = absorb_nodes(s, one);
	if (own)
		free(own->node.series);
	free(own);
	cop_telemetry_sum_free(one);
	return rc;
}

void cop_telemetry_finish(struct cop_telemetry_sum *s)
{
	if (s->job_nodes > COP_TELEMETRY_ALL_SERIES)
		fold_nodes_in(s);
	if (s->events)
		qsort(s->event, s->events, sizeof(*s->event), by_time);
}
