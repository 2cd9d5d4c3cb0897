/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's trace: a span from the start of rank 0 to its end, with child spans for the startup
 * (including the phases of the slowest nodes), the prefetch and the stop. */
#include "writers/otel/otel_priv.h"

static struct cop_otlp_span child_span(const struct cop_otel *o,
	const uint8_t parent[COP_OTLP_SPAN_SIZE], const char *name, int64_t start_ns,
	int64_t end_ns)
{
	struct cop_otlp_span s = {.at = o->place.job,
		.name = name,
		.start_ns = (uint64_t)start_ns,
		.end_ns = (uint64_t)COP_MAX(start_ns, end_ns),
		.state = *o->place.state ? o->place.state : NULL};

	memcpy(s.parent, parent, sizeof(s.parent));
	return s;
}

void cop_otel_start_span(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out)
{
	struct cop_otlp_span s =
		child_span(o, o->place.job.span, "copper.start", o->started_ns, o->ready_ns);
	bool failed = o->start_failed;

	(void)now_ns;
	memcpy(s.at.span, o->place.start, sizeof(s.at.span));
	s.status = failed ? COP_OTLP_ERROR : COP_OTLP_UNSET;
	s.message = failed ? o->reason : NULL;
	cop_otlp_traces(out, from, &s, 1);
}

/* ---- the starts of the slowest nodes ---- */

#define SPANS_MAX (SLOWEST * (1 + COP_TELEMETRY_PHASES))

struct starts {
	struct cop_otlp_span span[SPANS_MAX];
	size_t n;
	struct cop_otlp_attribute attribute[SLOWEST][2];
	char name[COP_TELEMETRY_PHASES][48];
};

/* Adds a span, unless no identifier can be generated. */
static void add_span(struct starts *s, struct cop_otlp_span span)
{
	if (cop_otlp_new_span(span.at.span) == 0)
		s->span[s->n++] = span;
}

static int64_t end_of(const struct node_start *n)
{
	int64_t ns = n->start_ns;

	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++)
		ns += (int64_t)n->phase_us[p] * 1000;
	return ns;
}

static void add_node(struct starts *s, const struct cop_otel *o, size_t i)
{
	const struct node_start *n = &o->facts.slowest[i];
	struct cop_otlp_attribute *a = s->attribute[i];
	struct cop_otlp_span span =
		child_span(o, o->place.start, "copper.start.node", n->start_ns, end_of(n));
	int64_t ns = n->start_ns;
	size_t at = s->n;

	a[0] = (struct cop_otlp_attribute){.key = "copper.rank", .number = n->rank};
	a[1] = (struct cop_otlp_attribute){.key = "host.name", .text = n->host};
	span.attributes = (struct cop_otlp_attributes){a, 2};
	add_span(s, span);
	for (unsigned p = 0; s->n > at && p < COP_TELEMETRY_PHASES; p++) {
		int64_t end_ns = ns + (int64_t)n->phase_us[p] * 1000;

		span = child_span(o, s->span[at].at.span, s->name[p], ns, end_ns);
		span.attributes = s->span[at].attributes;
		if (n->phase_us[p])
			add_span(s, span);
		ns = end_ns;
	}
}

static void add_starts(
	const struct cop_otel *o, const struct cop_otlp_source *from, struct cop_buf *out)
{
	struct starts *s = o->facts.nodes ? calloc(1, sizeof(*s)) : NULL;

	if (!s) {
		out->failed |= o->facts.nodes > 0;
		return;
	}
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++)
		snprintf(s->name[p], sizeof(s->name[p]), "copper.start.%s",
			cop_telemetry_phase_name(p));
	for (size_t i = 0; i < o->facts.nodes; i++)
		add_node(s, o, i);
	cop_otlp_traces(out, from, s->span, s->n);
	free(s);
}

/* ---- the prefetch: from the first node's start to the last node's end ---- */

static bool find_prefetch(const struct cop_otel *o, struct cop_otlp_span *span)
{
	int64_t begin_ns = 0, end_ns = 0;

	for (size_t i = 0; i < o->facts.n; i++) {
		const struct fact *f = &o->facts.fact[i];

		if (f->kind == COP_TELEMETRY_PREFETCH_BEGIN && !begin_ns)
			begin_ns = f->wall_ns;
		if (f->kind == COP_TELEMETRY_PREFETCH_END)
			end_ns = f->wall_ns;
	}
	*span = child_span(o, o->place.job.span, "copper.prefetch", begin_ns, end_ns);
	return begin_ns && end_ns && cop_otlp_new_span(span->at.span) == 0;
}

/* ---- the job ---- */

/* The per-span limit of OpenTelemetry's SDKs; the log has all events. */
#define EVENTS_MAX 128u

struct troubles {
	struct cop_otlp_event event[EVENTS_MAX];
	struct cop_otlp_attribute attribute[EVENTS_MAX][3];
	char name[COP_TELEMETRY_KINDS][48];
	size_t n;
	uint32_t dropped;
};

static void take_trouble(struct troubles *t, const struct fact *f)
{
	struct cop_otlp_attribute *a;

	if (t->n == EVENTS_MAX) {
		t->dropped++;
		return;
	}
	a = t->attribute[t->n];
	snprintf(t->name[f->kind], sizeof(t->name[0]), "copper.%s",
		cop_telemetry_kind_name(f->kind));
	a[0] = (struct cop_otlp_attribute){.key = "copper.rank", .number = f->rank};
	a[1] = (struct cop_otlp_attribute){.key = "host.name", .text = f->host};
	a[2] = (struct cop_otlp_attribute){.key = "copper.detail", .text = f->detail};
	t->event[t->n++] = (struct cop_otlp_event){(uint64_t)f->wall_ns, t->name[f->kind], {a, 3}};
}

static void take_troubles(struct troubles *t, const struct facts *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (cop_otel_is_trouble(f->fact[i].kind))
			take_trouble(t, &f->fact[i]);
}

static struct cop_otlp_span job_span(
	const struct cop_otel *o, int64_t now_ns, const struct troubles *t)
{
	struct cop_otlp_span s =
		child_span(o, o->place.parent, "copper.job", o->started_ns, now_ns);

	s.remote = o->place.has_parent;
	s.status = o->failed ? COP_OTLP_ERROR : COP_OTLP_OK;
	s.message = o->failed ? o->reason : NULL;
	s.event = t->event;
	s.events = t->n;
	s.dropped_events = t->dropped;
	return s;
}

void cop_otel_end_spans(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out)
{
	const struct cop_otlp_attribute attributes[] = {
		{.key = "copper.source", .text = o->source},
		{.key = "copper.nodes", .number = o->nodes},
		{.key = "copper.nodes.missing", .number = o->totals.numbers.missing},
		{.key = "copper.end.reason", .text = o->reason ? o->reason : ""},
	};
	struct cop_otlp_span span[3];
	struct troubles troubles = {.n = 0};
	size_t n = 0;

	add_starts(o, from, out);
	n += find_prefetch(o, &span[n]);
	if (o->stop_ns) {
		span[n] = child_span(o, o->place.job.span, "copper.stop", o->stop_ns, now_ns);
		memcpy(span[n++].at.span, o->place.stop, COP_OTLP_SPAN_SIZE);
	}
	take_troubles(&troubles, &o->facts);
	span[n] = job_span(o, now_ns, &troubles);
	span[n++].attributes = (struct cop_otlp_attributes){attributes, COP_ARRAY_SIZE(attributes)};
	cop_otlp_traces(out, from, span, n);
}
