/* SPDX-License-Identifier: BSD-3-Clause */
/* OpenTelemetry: a line of OTLP JSON (from Copper or the collector's file exporter), or one span of
 * the Python or Go console exporter. A span becomes a complete event: category is the scope;
 * process, host and rank are from the resource; args are the attributes. The events of a span
 * become instants. otel_data.c reads metrics and logs.
 *
 * 	{"resourceSpans":[{"resource":{"attributes":[{"key":K,"value":{"intValue":"1"}}]},
 * 	  "scopeSpans":[{"scope":{"name":S},"spans":[{"name":N,"startTimeUnixNano":"..", ..}]}]}]}
 * 	{"resourceMetrics":[{.., "scopeMetrics":[{.., "metrics":[..]}]}]}
 * 	{"resourceLogs":[{.., "scopeLogs":[{.., "logRecords":[..]}]}]}
 * 	{"name":N,"context":{..},"start_time":"2026-01-31T12:00:00.5Z","attributes":{..},
 * 	 "resource":{"attributes":{..}}}
 * 	{"Name":N,"StartTime":"..","Attributes":[{"Key":K,"Value":{"Type":"INT64","Value":1}}],
 * 	 "Resource":[..],"InstrumentationScope":{"Name":S}} */
#include "otel_priv.h"

static const struct cop_trace_str none = {"", 0};

static void take_resource(struct otel_reader *r, struct cop_trace_str list)
{
	struct cop_trace_str all = cop_trace_otel_object(r->sink, list);
	struct cop_trace_str rank = cop_trace_otel_either(all, "copper.rank", "rank");

	r->e.pid = cop_trace_otel_plain(
		r->sink, cop_trace_otel_either(all, "process.pid", "service.instance.id"));
	r->e.host = cop_trace_otel_plain(r->sink, cop_trace_otel_member(all, "host.name"));
	if (rank.len)
		r->e.rank = cop_trace_otel_plain(r->sink, rank);
}

/* Attributes may name a thread, and the process of the event. */
void cop_trace_otel_take_args(struct otel_reader *r, struct cop_trace_str args)
{
	struct cop_trace_event *e = &r->e;
	struct cop_trace_str v;

	e->args = args;
	e->tid = cop_trace_otel_plain(r->sink, cop_trace_otel_member(e->args, "thread.id"));
	e->thread = cop_trace_otel_plain(r->sink, cop_trace_otel_member(e->args, "thread.name"));
	if ((v = cop_trace_otel_plain(r->sink, cop_trace_otel_member(e->args, "host.name"))).len)
		e->host = v;
	if ((v = cop_trace_otel_plain(r->sink, cop_trace_otel_member(e->args, "copper.rank"))).len)
		e->rank = v;
}

/* ---- spans ---- */

void cop_trace_otel_deliver(struct otel_reader *r, const struct cop_trace_event *e)
{
	struct record record = {.e = *e, .half = HALF_NONE};

	if (!r->rc)
		r->rc = r->sink->record(r->sink, r->fields, &record);
}

/* The events of a span become instants of its thread. */
static void take_events(struct otel_reader *r, struct cop_trace_str list)
{
	struct cop_trace_members m = cop_trace_otel_elements(list);
	struct cop_trace_str one, time;

	while (!r->rc && cop_trace_otel_next(&m, &one)) {
		struct cop_trace_event e = r->e;

		time = cop_trace_otel_either(one, "timeUnixNano", "timestamp");
		if (!cop_trace_otel_time(
			    time.len ? time : cop_trace_otel_member(one, "Time"), &e.ts_ns))
			continue;
		e.kind = COP_TRACE_INSTANT;
		e.ph = 'i';
		e.dur_ns = e.dur_min_ns = e.dur_max_ns = 0;
		e.name = cop_trace_otel_plain(r->sink, cop_trace_otel_either(one, "name", "Name"));
		e.args = cop_trace_otel_object(
			r->sink, cop_trace_otel_either(one, "attributes", "Attributes"));
		cop_trace_otel_deliver(r, &e);
	}
}

/* Spans without a thread may overlap, so they have an id. */
static void be_async(struct otel_reader *r, struct cop_trace_str span)
{
	struct cop_trace_str context = cop_trace_otel_either(span, "context", "SpanContext");
	struct cop_trace_str id = context.len ? cop_trace_otel_either(context, "span_id", "SpanID")
					      : cop_trace_otel_member(span, "spanId");

	r->e.ph = 'b';
	r->e.id = cop_trace_otel_plain(r->sink, id);
	r->e.id_is_text = true;
}

static void one_span(struct otel_reader *r, struct cop_trace_str span)
{
	struct cop_trace_event *e = &r->e;
	struct cop_trace_event common = *e;
	struct cop_trace_str start = cop_trace_otel_either(span, "startTimeUnixNano", "start_time");
	struct cop_trace_str end = cop_trace_otel_either(span, "endTimeUnixNano", "end_time");
	int64_t end_ns;

	if (!cop_trace_otel_time(
		    start.len ? start : cop_trace_otel_member(span, "StartTime"), &e->ts_ns)) {
		r->sink->broken(r->sink, e->line, "a span that has no time at which it began");
		return;
	}
	e->name = cop_trace_otel_plain(r->sink, cop_trace_otel_either(span, "name", "Name"));
	cop_trace_otel_take_args(
		r, cop_trace_otel_object(
			   r->sink, cop_trace_otel_either(span, "attributes", "Attributes")));
	if (!cop_trace_otel_time(end.len ? end : cop_trace_otel_member(span, "EndTime"), &end_ns))
		end_ns = e->ts_ns;
	e->dur_ns = end_ns < e->ts_ns ? 0 : (uint64_t)end_ns - (uint64_t)e->ts_ns;
	e->dur_ns = COP_MIN(e->dur_ns, COP_TRACE_MOST);
	e->dur_min_ns = e->dur_max_ns = e->dur_ns;
	e->raw = span;
	if (!e->tid.len)
		be_async(r, span);
	cop_trace_otel_deliver(r, e);
	take_events(r, cop_trace_otel_either(span, "events", "Events"));
	*e = common;
}

/* ---- lines of OTLP ---- */

struct signal {
	unsigned field;
	const char *scopes, *older, *items; /* older: name before OTLP 0.15 */
	void (*one)(struct otel_reader *r, struct cop_trace_str item);
};
static const struct signal signals[] = {
	{F_RESOURCE_SPANS, "scopeSpans", "instrumentationLibrarySpans", "spans", one_span},
	{F_RESOURCE_METRICS, "scopeMetrics", "instrumentationLibraryMetrics", "metrics",
		cop_trace_otel_metric},
	{F_RESOURCE_LOGS, "scopeLogs", "instrumentationLibraryLogs", "logRecords",
		cop_trace_otel_log},
};

static void one_scope(
	struct otel_reader *r, const struct signal *signal, struct cop_trace_str scope)
{
	struct cop_trace_members m =
		cop_trace_otel_elements(cop_trace_otel_member(scope, signal->items));
	struct cop_trace_str one, of = cop_trace_otel_member(scope, "scope");

	r->e.cat = cop_trace_otel_plain(r->sink, cop_trace_otel_member(of, "name"));
	while (!r->rc && cop_trace_otel_next(&m, &one))
		signal->one(r, one);
}

static void one_resource(
	struct otel_reader *r, const struct signal *signal, struct cop_trace_str resource)
{
	struct cop_trace_members m = cop_trace_otel_elements(
		cop_trace_otel_either(resource, signal->scopes, signal->older));
	struct cop_trace_str one, of = cop_trace_otel_member(resource, "resource");

	take_resource(r, cop_trace_otel_member(of, "attributes"));
	while (!r->rc && cop_trace_otel_next(&m, &one))
		one_scope(r, signal, one);
}

static void read_line(struct otel_reader *r, const struct fields *f)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(signals) && !r->rc; i++) {
		const struct field *all = &f->f[signals[i].field];
		struct cop_trace_members m;
		struct cop_trace_str one;

		if (!cop_trace_has(f, signals[i].field))
			continue;
		m = cop_trace_otel_elements((struct cop_trace_str){all->at, all->len});
		while (!r->rc && cop_trace_otel_next(&m, &one))
			one_resource(r, &signals[i], one);
	}
}

/* A span of a console exporter. */
static void console_span(struct otel_reader *r, struct cop_trace_str span)
{
	struct cop_trace_str resource = cop_trace_otel_member(span, "Resource"), scope;

	scope = cop_trace_otel_either(span, "InstrumentationScope", "InstrumentationLibrary");
	r->e.cat = cop_trace_otel_plain(r->sink, cop_trace_otel_member(scope, "Name"));
	if (!resource.len)
		resource = cop_trace_otel_member(
			cop_trace_otel_member(span, "resource"), "attributes");
	take_resource(r, resource);
	one_span(r, span);
}

int cop_trace_otel(
	struct sink *s, const struct fields *f, struct cop_trace_str object, uint64_t line)
{
	const struct fields nothing = {.seen = 0};
	struct otel_reader r = {.sink = s,
		.fields = &nothing,
		.e = {.kind = COP_TRACE_SPAN,
			.ph = 'X',
			.count = 1,
			.line = line,
			.args_odd = true}};
	struct cop_trace_str *const empty[] = {&r.e.name, &r.e.cat, &r.e.pid, &r.e.tid, &r.e.file,
		&r.e.host, &r.e.id, &r.e.scope, &r.e.of, &r.e.rank, &r.e.process, &r.e.thread,
		&r.e.bind_id, &r.e.more, &r.e.args, &r.e.end_args, &r.e.raw};

	for (size_t i = 0; i < COP_ARRAY_SIZE(empty); i++)
		*empty[i] = none;
	if (cop_trace_is_otlp(f))
		read_line(&r, f);
	else
		console_span(&r, object);
	return r.rc;
}
