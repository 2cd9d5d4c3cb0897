/* SPDX-License-Identifier: BSD-3-Clause */
#include "writers/otel/otel_priv.h"

/* ---- rounds with a line ---- */

bool cop_otel_is_due(struct pace *p)
{
	uint64_t round = p->rounds++;

	if (!p->stride)
		p->stride = 1;
	if (round % p->stride || p->lines_all >= LINES_MAX)
		return false;
	p->lines_all++;
	if (++p->lines == PACE_LINES) {
		p->lines = 0;
		p->stride *= 2;
	}
	return true;
}

/* ---- the totals of a stop ---- */

static void take_latency(struct latency *l, const struct cop_prof_sum *prof, enum cop_prof_op op)
{
	uint64_t octave[COP_PROF_OCTAVES];
	struct cop_prof_op_sum sum;

	cop_prof_sum_octaves(prof, op, octave);
	cop_prof_sum_op(prof, op, &sum);
	for (unsigned k = 0; k < COP_PROF_OCTAVES; k++) {
		unsigned at = k < LATENCY_FIRST ? 0 : k - LATENCY_FIRST + 1;

		l->bucket[COP_MIN(at, LATENCY_BOUNDS)] += octave[k];
	}
	l->sum_ns = sum.latency_ns;
	l->max_ns = sum.max_ns;
}

void cop_otel_take_totals(struct totals *t, const struct cop_op_sum *sum)
{
	t->has = true;
	t->exits = sum->exits;
	cop_follow_numbers_of(sum, &t->numbers);
	for (unsigned op = 0; sum->prof && op < COP_PROF_OPS; op++)
		take_latency(&t->latency[op], sum->prof, op);
}

/* ---- a line ---- */

struct row {
	const char *name, *unit, *description; /* name NULL: another point of the previous metric */
	enum cop_counter counter;
	const char *key, *value;
};

static const struct row rows[] = {
#define COP_METRIC(name, unit, description) {name, unit, description, COP_COUNTERS, NULL, NULL},
#define COP_POINT(counter, key, value) {NULL, NULL, NULL, COP_##counter, key, value},
#include "writers/otel/instruments.def"
#undef COP_METRIC
#undef COP_POINT
};
#define ROWS COP_ARRAY_SIZE(rows)
/* Metrics other than counters: nodes by state, cache, memory, CPU, and latencies. */
#define OTHERS 16u

struct line {
	uint64_t start_ns, time_ns;
	struct cop_otlp_metric metric[ROWS + OTHERS];
	size_t metrics;
	struct cop_otlp_point point[ROWS + OTHERS];
	struct cop_otlp_attribute attribute[ROWS + OTHERS];
	size_t points;
	struct cop_otlp_histogram histogram[COP_PROF_OPS];
	struct cop_otlp_attribute operation[COP_PROF_OPS];
	double bound[LATENCY_BOUNDS];
};

static void add_metric(struct line *l, enum cop_otlp_kind kind, const char *name, const char *unit,
	const char *description)
{
	l->metric[l->metrics++] = (struct cop_otlp_metric){.name = name,
		.unit = unit,
		.description = description,
		.kind = kind,
		.point = &l->point[l->points]};
}

/* Adds a point to the last metric. */
static struct cop_otlp_point *add_point(struct line *l, const char *key, const char *value)
{
	struct cop_otlp_metric *m = &l->metric[l->metrics - 1];
	struct cop_otlp_attribute *a = &l->attribute[l->points];
	struct cop_otlp_point *p = &l->point[l->points++];

	*a = (struct cop_otlp_attribute){.key = key, .text = value};
	*p = (struct cop_otlp_point){.attributes = {a, key != NULL},
		.start_ns = m->kind == COP_OTLP_SUM ? l->start_ns : 0,
		.time_ns = l->time_ns};
	m->n++;
	return p;
}

static void add_real(struct line *l, double value)
{
	struct cop_otlp_point *p = add_point(l, NULL, NULL);

	p->is_real = true;
	p->real = value;
}

static void add_counters(struct line *l, const struct cop_stats *stats)
{
	for (size_t i = 0; i < ROWS; i++) {
		const struct row *r = &rows[i];
		const struct cop_otlp_metric *m = &l->metric[l->metrics ? l->metrics - 1 : 0];

		if (r->name)
			add_metric(l, COP_OTLP_SUM, r->name, r->unit, r->description);
		else if (strcmp(m->unit, "s") == 0)
			add_real(l, (double)cop_stats_get(stats, r->counter) / 1e6);
		else
			add_point(l, r->key, r->value)->whole = cop_stats_get(stats, r->counter);
	}
}

static void add_gauge(struct line *l, const char *name, const char *description, uint64_t bytes)
{
	add_metric(l, COP_OTLP_GAUGE, name, "By", description);
	add_point(l, NULL, NULL)->whole = bytes;
}

static void add_nodes(struct line *l, const struct cop_follow_numbers *n)
{
	add_metric(l, COP_OTLP_GAUGE, "copper.node.count", "{node}",
		"nodes that have answered, and that have not");
	add_point(l, "state", "answered")->whole = n->nodes;
	add_point(l, "state", "missing")->whole = n->missing;
}

/* Adds cache, memory and CPU. Answers to a stop have no cache sizes. */
static void add_machines(struct line *l, const struct cop_follow_numbers *n)
{
	if (n->usage.limit_bytes) {
		add_gauge(l, "copper.cache.usage", "bytes in the caches of all nodes",
			n->usage.used_bytes);
		add_gauge(l, "copper.cache.limit", "their limit", n->usage.limit_bytes);
	}
	if (!n->machine.cpu_us)
		return;
	add_metric(l, COP_OTLP_SUM, "copper.cpu.time", "s", "processor time of all nodes");
	add_real(l, (double)n->machine.cpu_us / 1e6);
	add_gauge(l, "copper.memory.usage", "resident memory of all nodes",
		n->machine.resident_bytes);
	add_gauge(l, "copper.node.memory.usage", "resident memory of the node that has most",
		n->machine.resident_bytes_most);
}

static uint64_t count_calls(const struct latency *l)
{
	uint64_t n = 0;

	for (unsigned i = 0; i <= LATENCY_BOUNDS; i++)
		n += l->bucket[i];
	return n;
}

static void add_histogram(struct line *l, enum cop_prof_op op, const struct latency *from)
{
	struct cop_otlp_metric *m = &l->metric[l->metrics - 1];
	struct cop_otlp_attribute *a = &l->operation[m->n];

	*a = (struct cop_otlp_attribute){.key = "operation", .text = cop_prof_op_name(op)};
	l->histogram[m->n++] = (struct cop_otlp_histogram){.attributes = {a, 1},
		.start_ns = l->start_ns,
		.time_ns = l->time_ns,
		.sum = (double)from->sum_ns / 1e9,
		.max = (double)from->max_ns / 1e9,
		.bound = l->bound,
		.bounds = LATENCY_BOUNDS,
		.bucket = from->bucket};
}

static void add_latencies(struct line *l, const struct totals *t)
{
	for (unsigned i = 0; i < LATENCY_BOUNDS; i++)
		l->bound[i] = (double)((1ULL << (LATENCY_FIRST + i)) - 1) / 1e9;
	add_metric(l, COP_OTLP_HISTOGRAM, "copper.fuse.request.duration", "s",
		"how long the requests of programs took");
	l->metric[l->metrics - 1].histogram = l->histogram;
	for (unsigned op = 0; op < COP_PROF_OPS; op++)
		if (count_calls(&t->latency[op]))
			add_histogram(l, op, &t->latency[op]);
	/* Without a profile there are no latencies, so remove the metric. */
	if (!l->metric[l->metrics - 1].n)
		l->metrics--;
}

static bool has_fallen(const struct series *s, const struct cop_follow_numbers *n)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++)
		if (cop_stats_get(&n->stats, c) < cop_stats_get(&s->last, c))
			return true;
	return n->machine.cpu_us && n->machine.cpu_us < s->last_cpu_us;
}

/* If a sum decreased, restarts the sums at the time of the last line. Times never go backwards,
 * even if the wall clock does. */
static void go_on(struct series *s, const struct cop_follow_numbers *n)
{
	if (has_fallen(s, n))
		s->start_ns = s->time_ns;
	s->time_ns = COP_MAX((uint64_t)n->wall_ns, COP_MAX(s->start_ns, s->time_ns) + 1);
	s->last = n->stats;
	if (n->machine.cpu_us)
		s->last_cpu_us = n->machine.cpu_us;
}

void cop_otel_metrics(struct cop_buf *out, const struct cop_otlp_source *from, struct series *s,
	const struct cop_follow_numbers *n, const struct totals *totals)
{
	struct line l = {0};

	go_on(s, n);
	l.start_ns = s->start_ns;
	l.time_ns = s->time_ns;
	add_counters(&l, &n->stats);
	add_nodes(&l, n);
	add_machines(&l, n);
	if (totals)
		add_latencies(&l, totals);
	cop_otlp_metrics(out, from, l.metric, l.metrics);
}
