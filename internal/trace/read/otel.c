/* SPDX-License-Identifier: BSD-3-Clause */
/* Spans of OpenTelemetry: a line of OTLP in JSON (Copper's own, the collector's file exporter), or
 * one span as the console exporters of Python and Go write it. A span becomes a complete event:
 * its scope is the category, the resource names process, host and rank, attributes are args. The
 * events of a span become instants.
 *
 *	{"resourceSpans":[{"resource":{"attributes":[{"key":K,"value":{"intValue":"1"}}]},
 *	  "scopeSpans":[{"scope":{"name":S},"spans":[{"name":N,"startTimeUnixNano":"..", ..}]}]}]}
 *	{"name":N,"context":{..},"start_time":"2026-01-31T12:00:00.5Z","attributes":{..},
 *	 "resource":{"attributes":{..}}}
 *	{"Name":N,"StartTime":"..","Attributes":[{"Key":K,"Value":{"Type":"INT64","Value":1}}],
 *	 "Resource":[..],"InstrumentationScope":{"Name":S}} */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "trace/read/read_priv.h"

static const struct cop_trace_str none = {"", 0};

/* What the spans of one resource have in common. */
struct span_reader {
	struct sink *sink;
	const struct fields *fields; /* has nothing that matters to a span */
	struct cop_trace_event e;
	int rc;
};

/* ---- values ---- */

static struct cop_trace_str member(struct cop_trace_str object, const char *key)
{
	struct cop_trace_str value;

	return object.len && *object.at == '{' && cop_trace_member(object, key, &value) ? value
											: none;
}

static struct cop_trace_str either(struct cop_trace_str object, const char *a, const char *b)
{
	struct cop_trace_str v = member(object, a);

	return v.len ? v : member(object, b);
}

/* The elements of an array, one after the other: false at the end. */
static bool next_element(struct cop_trace_members *m, struct cop_trace_str *element)
{
	struct cop_trace_str rest;

	while (m->at < m->end && strchr(" \t\r\n,[", *m->at) && *m->at)
		m->at++;
	if (m->at >= m->end || *m->at == ']')
		return false;
	rest = (struct cop_trace_str){m->at, (size_t)(m->end - m->at)};
	*element = cop_trace_value_at(rest);
	m->at += element->len;
	return element->len > 0;
}

static struct cop_trace_members elements_of(struct cop_trace_str array)
{
	if (!array.len || *array.at != '[')
		return (struct cop_trace_members){array.at, array.at};
	return (struct cop_trace_members){array.at + 1, array.at + array.len};
}

/* A value as text, without quotes and escapes. */
static struct cop_trace_str plain(struct sink *s, struct cop_trace_str v)
{
	struct cop_trace_str text = {v.at + 1, v.len - 2};

	if (v.len < 2 || *v.at != '"')
		return v.len && (*v.at == '-' || isdigit((unsigned char)*v.at)) ? v : none;
	if (memchr(text.at, '\\', text.len) && !cop_trace_undo(text, &s->scratch, &text))
		return none;
	return text;
}

static bool digits(const char **p, const char *end, unsigned n, int *out)
{
	*out = 0;
	for (; n; n--, (*p)++) {
		if (*p >= end || !isdigit((unsigned char)**p))
			return false;
		*out = *out * 10 + (**p - '0');
	}
	return true;
}

static bool passes(const char **p, const char *end, char c)
{
	if (*p >= end || **p != c)
		return false;
	(*p)++;
	return true;
}

/* The rest of a time: .123456789, then Z or +01:00. */
static bool fraction_and_zone(const char *p, const char *end, int64_t *ns, int64_t *zone_s)
{
	int hours, minutes;
	bool east;

	*ns = *zone_s = 0;
	if (p < end && *p == '.') {
		int64_t unit = 100000000;

		for (p++; p < end && isdigit((unsigned char)*p); p++, unit /= 10)
			*ns += (*p - '0') * unit;
	}
	if (p == end || (*p == 'Z' && p + 1 == end))
		return true;
	east = *p == '+';
	if ((!east && *p != '-') || !digits((p++, &p), end, 2, &hours))
		return false;
	passes(&p, end, ':');
	if (!digits(&p, end, 2, &minutes))
		return false;
	*zone_s = (east ? 1 : -1) * (hours * 3600 + minutes * 60);
	return p == end;
}

/* 2026-01-31T12:00:00.5Z (RFC 3339). */
static bool date(struct cop_trace_str text, int64_t *out)
{
	const char *p = text.at, *end = p + text.len;
	struct tm t = {0};
	int64_t ns, zone;

	if (!digits(&p, end, 4, &t.tm_year) || !passes(&p, end, '-') ||
		!digits(&p, end, 2, &t.tm_mon) || !passes(&p, end, '-') ||
		!digits(&p, end, 2, &t.tm_mday) || !(passes(&p, end, 'T') || passes(&p, end, ' ')))
		return false;
	if (!digits(&p, end, 2, &t.tm_hour) || !passes(&p, end, ':') ||
		!digits(&p, end, 2, &t.tm_min) || !passes(&p, end, ':') ||
		!digits(&p, end, 2, &t.tm_sec) || !fraction_and_zone(p, end, &ns, &zone))
		return false;
	t.tm_year -= 1900;
	t.tm_mon--;
	if (t.tm_year < 0 || t.tm_year > 300)
		return false;
	*out = ((int64_t)timegm(&t) - zone) * 1000000000 + ns;
	return true;
}

/* Nanoseconds since 1970, or a date. */
static bool take_time(struct cop_trace_str v, int64_t *out)
{
	struct field f = {.at = v.at, .len = (uint32_t)v.len, .type = T_NUMBER};

	if (v.len > 2 && *v.at == '"') {
		f.at++;
		f.len -= 2;
		if (memchr(f.at, '-', f.len))
			return date((struct cop_trace_str){f.at, f.len}, out) &&
			       cop_trace_is_in_range(*out);
	}
	return f.len && cop_trace_number(&f, 1, out) && cop_trace_is_in_range(*out) && *out > 0;
}

/* ---- attributes ---- */

/* The value of {"key":K,"value":{"stringValue":V}}, or of the same with capitals. */
static struct cop_trace_str value_of(struct cop_trace_str attribute)
{
	static const char *const types[] = {"stringValue", "intValue", "doubleValue", "boolValue",
		"arrayValue", "kvlistValue", "bytesValue", "Value"};
	struct cop_trace_str v = either(attribute, "value", "Value"), inner;

	for (size_t i = 0; i < COP_ARRAY_SIZE(types); i++)
		if ((inner = member(v, types[i])).len)
			return inner;
	return none;
}

static bool put(struct scratch *s, const char *at, size_t len)
{
	char *to = cop_trace_scratch(s, len);

	if (to)
		memcpy(to, at, len);
	return to;
}

/* Numbers of 64 bits are in quotes in OTLP, so that JavaScript does not round them. */
static bool put_value(struct scratch *s, struct cop_trace_str attribute, struct cop_trace_str v)
{
	if (v.len > 2 && *v.at == '"' &&
		member(either(attribute, "value", "Value"), "intValue").len)
		return put(s, v.at + 1, v.len - 2);
	return put(s, v.at, v.len);
}

/* A list of attributes as an object. */
static struct cop_trace_str object_of(struct sink *s, struct cop_trace_str list)
{
	struct cop_trace_members m = elements_of(list);
	struct cop_trace_str one, key, value;
	size_t from = s->scratch.used;
	bool fits = put(&s->scratch, "{", 1), first = true;

	if (list.len && *list.at == '{')
		return list;
	while (fits && next_element(&m, &one)) {
		key = either(one, "key", "Key");
		value = value_of(one);
		if (key.len < 2 || *key.at != '"' || !value.len)
			continue;
		fits = (first || put(&s->scratch, ",", 1)) && put(&s->scratch, key.at, key.len) &&
		       put(&s->scratch, ":", 1) && put_value(&s->scratch, one, value);
		first = false;
	}
	if (!fits || !put(&s->scratch, "}", 1))
		return none;
	return (struct cop_trace_str){s->scratch.at + from, s->scratch.used - from};
}

static void take_resource(struct span_reader *r, struct cop_trace_str list)
{
	struct cop_trace_str all = object_of(r->sink, list);
	struct cop_trace_str rank = either(all, "copper.rank", "rank");

	r->e.pid = plain(r->sink, either(all, "process.pid", "service.instance.id"));
	r->e.host = plain(r->sink, member(all, "host.name"));
	if (rank.len)
		r->e.rank = plain(r->sink, rank);
}

/* What a span says of its own: it may name a thread, and the process that it is about. */
static void take_attributes(struct span_reader *r, struct cop_trace_str list)
{
	struct cop_trace_event *e = &r->e;
	struct cop_trace_str v;

	e->args = object_of(r->sink, list);
	e->tid = plain(r->sink, member(e->args, "thread.id"));
	e->thread = plain(r->sink, member(e->args, "thread.name"));
	if ((v = plain(r->sink, member(e->args, "host.name"))).len)
		e->host = v;
	if ((v = plain(r->sink, member(e->args, "copper.rank"))).len)
		e->rank = v;
}

/* ---- spans ---- */

static void deliver(struct span_reader *r, const struct cop_trace_event *e)
{
	struct record record = {.e = *e, .half = HALF_NONE};

	if (!r->rc)
		r->rc = r->sink->record(r->sink, r->fields, &record);
}

/* The events of a span are instants of its thread. */
static void take_events(struct span_reader *r, struct cop_trace_str list)
{
	struct cop_trace_members m = elements_of(list);
	struct cop_trace_str one, time;

	while (!r->rc && next_element(&m, &one)) {
		struct cop_trace_event e = r->e;

		time = either(one, "timeUnixNano", "timestamp");
		if (!take_time(time.len ? time : member(one, "Time"), &e.ts_ns))
			continue;
		e.kind = COP_TRACE_INSTANT;
		e.ph = 'i';
		e.dur_ns = e.dur_min_ns = e.dur_max_ns = 0;
		e.name = plain(r->sink, either(one, "name", "Name"));
		e.args = object_of(r->sink, either(one, "attributes", "Attributes"));
		deliver(r, &e);
	}
}

/* Spans that name no thread may overlap, so they have an id instead. */
static void be_async(struct span_reader *r, struct cop_trace_str span)
{
	struct cop_trace_str context = either(span, "context", "SpanContext");
	struct cop_trace_str id =
		context.len ? either(context, "span_id", "SpanID") : member(span, "spanId");

	r->e.ph = 'b';
	r->e.id = plain(r->sink, id);
	r->e.id_is_text = true;
}

static void one_span(struct span_reader *r, struct cop_trace_str span)
{
	struct cop_trace_event *e = &r->e;
	struct cop_trace_event common = *e;
	struct cop_trace_str start = either(span, "startTimeUnixNano", "start_time");
	struct cop_trace_str end = either(span, "endTimeUnixNano", "end_time");
	int64_t end_ns;

	if (!take_time(start.len ? start : member(span, "StartTime"), &e->ts_ns)) {
		r->sink->broken(r->sink, e->line, "a span that has no time at which it began");
		return;
	}
	e->name = plain(r->sink, either(span, "name", "Name"));
	take_attributes(r, either(span, "attributes", "Attributes"));
	if (!take_time(end.len ? end : member(span, "EndTime"), &end_ns))
		end_ns = e->ts_ns;
	e->dur_ns = end_ns < e->ts_ns ? 0 : (uint64_t)end_ns - (uint64_t)e->ts_ns;
	e->dur_ns = COP_MIN(e->dur_ns, COP_TRACE_MOST);
	e->dur_min_ns = e->dur_max_ns = e->dur_ns;
	e->raw = span;
	if (!e->tid.len)
		be_async(r, span);
	deliver(r, e);
	take_events(r, either(span, "events", "Events"));
	*e = common;
}

static void one_scope(struct span_reader *r, struct cop_trace_str scope)
{
	struct cop_trace_members m = elements_of(member(scope, "spans"));
	struct cop_trace_str one;

	r->e.cat = plain(r->sink, member(member(scope, "scope"), "name"));
	while (!r->rc && next_element(&m, &one))
		one_span(r, one);
}

static void one_resource(struct span_reader *r, struct cop_trace_str resource)
{
	struct cop_trace_members m =
		elements_of(either(resource, "scopeSpans", "instrumentationLibrarySpans"));
	struct cop_trace_str one;

	take_resource(r, member(member(resource, "resource"), "attributes"));
	while (!r->rc && next_element(&m, &one))
		one_scope(r, one);
}

/* What a console exporter wrote. */
static void console_span(struct span_reader *r, struct cop_trace_str span)
{
	struct cop_trace_str resource = member(span, "Resource"), scope;

	scope = either(span, "InstrumentationScope", "InstrumentationLibrary");
	r->e.cat = plain(r->sink, member(scope, "Name"));
	if (!resource.len)
		resource = member(member(span, "resource"), "attributes");
	take_resource(r, resource);
	one_span(r, span);
}

int cop_trace_otel(
	struct sink *s, const struct fields *f, struct cop_trace_str object, uint64_t line)
{
	const struct fields nothing = {.seen = 0};
	struct span_reader r = {.sink = s,
		.fields = &nothing,
		.e = {.kind = COP_TRACE_SPAN, .ph = 'X', .count = 1, .line = line}};
	struct cop_trace_str *const empty[] = {&r.e.name, &r.e.cat, &r.e.pid, &r.e.tid, &r.e.file,
		&r.e.host, &r.e.id, &r.e.scope, &r.e.of, &r.e.rank, &r.e.process, &r.e.thread,
		&r.e.bind_id, &r.e.more, &r.e.args, &r.e.end_args, &r.e.raw};
	const struct field *all = &f->f[F_RESOURCE_SPANS];
	struct cop_trace_members m;
	struct cop_trace_str one;

	for (size_t i = 0; i < COP_ARRAY_SIZE(empty); i++)
		*empty[i] = none;
	if (!cop_trace_has(f, F_RESOURCE_SPANS)) {
		console_span(&r, object);
		return r.rc;
	}
	m = elements_of((struct cop_trace_str){all->at, all->len});
	while (!r.rc && next_element(&m, &one))
		one_resource(&r, one);
	return r.rc;
}
