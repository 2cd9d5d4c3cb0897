/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads OpenTelemetry data: a line of OTLP JSON (from Copper or the collector's file exporter), or
 * one span from the Python or Go console exporter. A span becomes a complete event: the scope is
 * its category, the resource provides process, host and rank, and the attributes are its args. The
 * events of a span become instants.
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

/* Metrics and logs of OTLP JSON.
 *
 * A data point becomes a counter whose args are its value, or the count and sum of a histogram,
 * followed by its attributes. Points of one metric with different attributes are separate counters
 * with different ids. A log record becomes an instant: its event name, or else its body, is the
 * name, its severity the category; body and attributes are the args.
 *
 * 	{"name":N,"sum":{"dataPoints":[{"asInt":"5","timeUnixNano":"..","attributes":[..]}]}}
 * 	{"name":N,"histogram":{"dataPoints":[{"count":"2","sum":0.5,"timeUnixNano":"..", ..}]}}
 * 	{"timeUnixNano":"..","severityText":"WARN","eventName":N,"body":{"stringValue":B}} */

static const struct cop_trace_str none = {"", 0};

/* Finds several members of an object in one pass; absent ones are empty. */
static void pick(
	struct cop_trace_str object, const char *const *key, size_t n, struct cop_trace_str *out)
{
	struct cop_trace_members m = cop_trace_members_of(object);
	struct cop_trace_str k, v;

	for (size_t i = 0; i < n; i++)
		out[i] = none;
	if (!object.len || *object.at != '{')
		return;
	while (cop_trace_members_next(&m, &k, &v))
		for (size_t i = 0; i < n; i++)
			if (cop_trace_str_is(k, key[i]))
				out[i] = v;
}

/* Sets the args, from which it takes the thread and the process of the event if they name them. */
static void take_args(struct otel_reader *r, struct cop_trace_str args)
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

static void deliver(struct otel_reader *r, const struct cop_trace_event *e)
{
	struct record record = {.e = *e, .half = HALF_NONE};

	if (!r->rc)
		r->rc = r->sink->record(r->sink, r->fields, &record);
}

/* ---- metrics ---- */

enum { P_TIME, P_INT, P_DOUBLE, P_COUNT, P_SUM, P_FLAGS, P_ATTRIBUTES, P_KEYS };
static const char *const point_keys[P_KEYS] = {
	"timeUnixNano", "asInt", "asDouble", "count", "sum", "flags", "attributes"};
#define NO_RECORDED_VALUE 1

/* Returns a number without the quotes that 64-bit integers, NaN and infinities have; empty if it is
 * not a number. */
static struct cop_trace_str number_of(struct cop_trace_str v)
{
	long double d;

	if (!cop_trace_value_number(v, &d))
		return none;
	return *v.at == '"' ? (struct cop_trace_str){v.at + 1, v.len - 2} : v;
}

static bool is_unrecorded(struct cop_trace_str flags)
{
	struct field f = {.at = flags.at, .len = (uint32_t)flags.len, .type = T_NUMBER};
	int64_t v;

	return flags.len && cop_trace_number(&f, 1, &v) && v & NO_RECORDED_VALUE;
}

/* Sets the values of a point and returns how many there are. JSON omits a count of 0. */
static unsigned values_of(
	const struct cop_trace_str *point, bool histogram, struct otel_member value[2])
{
	struct cop_trace_str count = point[P_COUNT], zero = {"0", 1};

	if (!histogram) {
		value[0].key = "value";
		value[0].value = number_of(point[P_INT].len ? point[P_INT] : point[P_DOUBLE]);
		return value[0].value.len > 0;
	}
	value[0] = (struct otel_member){"count", count.len ? number_of(count) : zero};
	value[1] = (struct otel_member){"sum", number_of(point[P_SUM])};
	return value[0].value.len ? 1 + (value[1].value.len > 0) : 0;
}

/* Converts a point to a counter. Returns NULL, or why it cannot. */
static const char *counter_of(
	struct otel_reader *r, const struct cop_trace_str *point, bool histogram)
{
	struct otel_member value[2] = {{"", none}, {"", none}};
	struct cop_trace_event *e = &r->e;
	struct cop_trace_str args;
	unsigned n = values_of(point, histogram, value);

	if (!n)
		return "a data point that has no value";
	if (!cop_trace_otel_time(point[P_TIME], &e->ts_ns))
		return "a data point that has no time";
	args = cop_trace_otel_args(r->sink, value, n, point[P_ATTRIBUTES]);
	if (!args.len)
		return "a data point that is too long";
	take_args(r, args);
	e->values = (uint8_t)n;
	e->id = cop_trace_otel_labels(r->sink, point[P_ATTRIBUTES]);
	e->id_is_text = e->id.len > 0;
	return NULL;
}

static void one_point(struct otel_reader *r, struct cop_trace_str text, bool histogram)
{
	struct cop_trace_event common = r->e;
	struct cop_trace_str point[P_KEYS];
	const char *why;

	pick(text, point_keys, P_KEYS, point);
	if (is_unrecorded(point[P_FLAGS]))
		return;
	r->e.raw = text;
	why = counter_of(r, point, histogram);
	if (why)
		r->sink->broken(r->sink, r->e.line, why);
	else
		deliver(r, &r->e);
	r->e = common;
}

/* Delivers each data point of a metric as a counter. */
static void deliver_metric(struct otel_reader *r, struct cop_trace_str metric)
{
	enum { M_NAME, M_SUM, M_GAUGE, M_HISTOGRAM, M_EXPONENTIAL, M_SUMMARY, M_KEYS };
	static const char *const keys[M_KEYS] = {
		"name", "sum", "gauge", "histogram", "exponentialHistogram", "summary"};
	struct cop_trace_str found[M_KEYS], one;
	struct cop_trace_members m;

	pick(metric, keys, M_KEYS, found);
	r->e.kind = COP_TRACE_COUNTER;
	r->e.ph = 'C';
	r->e.name = cop_trace_otel_plain(r->sink, found[M_NAME]);
	for (unsigned i = M_SUM; i < M_KEYS; i++) {
		m = cop_trace_otel_elements(cop_trace_otel_member(found[i], "dataPoints"));
		while (!r->rc && cop_trace_otel_next(&m, &one))
			one_point(r, one, i >= M_HISTOGRAM);
	}
}

/* ---- logs ---- */

enum { L_TIME, L_OBSERVED, L_NUMBER, L_TEXT, L_EVENT, L_BODY, L_ATTRIBUTES, L_KEYS };
static const char *const log_keys[L_KEYS] = {"timeUnixNano", "observedTimeUnixNano",
	"severityNumber", "severityText", "eventName", "body", "attributes"};

/* Severity numbers are 1 to 24, four for each word. */
static struct cop_trace_str severity_of(struct otel_reader *r, const struct cop_trace_str *log)
{
	static const char *const words[] = {"TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL"};
	struct cop_trace_str text = cop_trace_otel_plain(r->sink, log[L_TEXT]);
	struct field f = {
		.at = log[L_NUMBER].at, .len = (uint32_t)log[L_NUMBER].len, .type = T_NUMBER};
	int64_t v;

	if (text.len || !f.len || !cop_trace_number(&f, 1, &v) || v < 1 || v > 24)
		return text;
	return (struct cop_trace_str){words[(v - 1) / 4], strlen(words[(v - 1) / 4])};
}

/* Before records had event names, an attribute named the event. If neither exists, the text of the
 * body is the name. */
static struct cop_trace_str name_of(
	struct otel_reader *r, const struct cop_trace_str *log, struct cop_trace_str body)
{
	struct cop_trace_str name = cop_trace_otel_plain(r->sink, log[L_EVENT]);

	if (!name.len)
		name = cop_trace_otel_plain(
			r->sink, cop_trace_otel_member(r->e.args, "event.name"));
	if (name.len)
		return name;
	return body.len && *body.at == '"' ? cop_trace_otel_plain(r->sink, body) : body;
}

/* Converts a log record to an instant. Returns NULL, or why it cannot. */
static const char *instant_of(struct otel_reader *r, const struct cop_trace_str *log)
{
	struct otel_member body = {"body", cop_trace_otel_any(log[L_BODY])};
	struct cop_trace_event *e = &r->e;
	struct cop_trace_str args;

	if (!cop_trace_otel_time(log[L_TIME], &e->ts_ns) &&
		!cop_trace_otel_time(log[L_OBSERVED], &e->ts_ns))
		return "a log record that has no time";
	args = cop_trace_otel_args(r->sink, &body, 1, log[L_ATTRIBUTES]);
	if (!args.len)
		return "a log record that is too long";
	take_args(r, args);
	e->kind = COP_TRACE_INSTANT;
	e->ph = 'i';
	e->cat = severity_of(r, log);
	e->name = name_of(r, log, body.value);
	return NULL;
}

/* Delivers a log record as an instant. */
static void deliver_log(struct otel_reader *r, struct cop_trace_str record)
{
	struct cop_trace_event common = r->e;
	struct cop_trace_str log[L_KEYS];
	const char *why;

	pick(record, log_keys, L_KEYS, log);
	r->e.raw = record;
	why = instant_of(r, log);
	if (why)
		r->sink->broken(r->sink, r->e.line, why);
	else
		deliver(r, &r->e);
	r->e = common;
}

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

/* ---- spans ---- */

/* Delivers the events of a span as instants of its thread. */
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
		deliver(r, &e);
	}
}

/* Spans without a thread may overlap, so they become asynchronous spans with an id. */
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
	take_args(r, cop_trace_otel_object(
			     r->sink, cop_trace_otel_either(span, "attributes", "Attributes")));
	if (!cop_trace_otel_time(end.len ? end : cop_trace_otel_member(span, "EndTime"), &end_ns))
		end_ns = e->ts_ns;
	e->dur_ns = end_ns < e->ts_ns ? 0 : (uint64_t)end_ns - (uint64_t)e->ts_ns;
	e->dur_ns = COP_MIN(e->dur_ns, COP_TRACE_MOST);
	e->dur_min_ns = e->dur_max_ns = e->dur_ns;
	e->raw = span;
	if (!e->tid.len)
		be_async(r, span);
	deliver(r, e);
	take_events(r, cop_trace_otel_either(span, "events", "Events"));
	*e = common;
}

/* ---- lines of OTLP ---- */

struct signal {
	unsigned field;
	const char *scopes, *older, *items; /* older: name of scopes before OTLP 0.15 */
	void (*one)(struct otel_reader *r, struct cop_trace_str item);
};
static const struct signal signals[] = {
	{F_RESOURCE_SPANS, "scopeSpans", "instrumentationLibrarySpans", "spans", one_span},
	{F_RESOURCE_METRICS, "scopeMetrics", "instrumentationLibraryMetrics", "metrics",
		deliver_metric},
	{F_RESOURCE_LOGS, "scopeLogs", "instrumentationLibraryLogs", "logRecords", deliver_log},
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

/* Reads a span from a console exporter. */
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
