/* SPDX-License-Identifier: BSD-3-Clause */
#include "otlp.h"

#include "base/base/json.h"

/* ---- values ---- */

static void put_u64(struct cop_json *j, const char *key, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	cop_json_str(j, key, text);
}

static void put_i64(struct cop_json *j, const char *key, int64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRId64, value);
	cop_json_str(j, key, text);
}

static void put_hex(struct cop_json *j, const char *key, const uint8_t *id, size_t len)
{
	char text[2 * COP_OTLP_TRACE_SIZE + 1];

	for (size_t i = 0; i < len; i++)
		snprintf(text + 2 * i, 3, "%02x", id[i]);
	cop_json_str(j, key, text);
}

static void put_text(struct cop_json *j, const char *key, const char *text)
{
	cop_json_object(j, key);
	cop_json_str(j, "stringValue", text);
	cop_json_end(j);
}

static void put_attributes(struct cop_json *j, const struct cop_otlp_attributes *a)
{
	if (!a->n)
		return;
	cop_json_array(j, "attributes");
	for (size_t i = 0; i < a->n; i++) {
		const struct cop_otlp_attribute *one = &a->at[i];

		cop_json_object(j, NULL);
		cop_json_str(j, "key", one->key);
		if (one->text) {
			put_text(j, "value", one->text);
		} else {
			cop_json_object(j, "value");
			put_i64(j, "intValue", one->number);
			cop_json_end(j);
		}
		cop_json_end(j);
	}
	cop_json_end(j);
}

/* ---- resource and scope ---- */

static void open_line(struct cop_json *j, const struct cop_otlp_source *from, const char *resources,
	const char *scopes, const char *what)
{
	cop_json_object(j, NULL);
	cop_json_array(j, resources);
	cop_json_object(j, NULL);
	cop_json_object(j, "resource");
	put_attributes(j, &from->resource);
	cop_json_end(j);
	cop_json_array(j, scopes);
	cop_json_object(j, NULL);
	cop_json_object(j, "scope");
	cop_json_str(j, "name", "copper");
	cop_json_str(j, "version", from->version);
	cop_json_end(j);
	cop_json_array(j, what);
}

static void close_line(struct cop_json *j)
{
	while (j->depth)
		cop_json_end(j);
	cop_buf_str(j->out, "\n");
}

/* ---- traces ---- */

/* Flag bits: whether it is known that the parent is remote, and whether it is. */
#define KNOWS_REMOTE 0x100u
#define IS_REMOTE 0x200u
#define SPAN_KIND_INTERNAL 1u

static void put_events(struct cop_json *j, const struct cop_otlp_span *s)
{
	if (s->dropped_events)
		cop_json_u64(j, "droppedEventsCount", s->dropped_events);
	if (!s->events)
		return;
	cop_json_array(j, "events");
	for (size_t i = 0; i < s->events; i++) {
		cop_json_object(j, NULL);
		put_u64(j, "timeUnixNano", s->event[i].time_ns);
		cop_json_str(j, "name", s->event[i].name);
		put_attributes(j, &s->event[i].attributes);
		cop_json_end(j);
	}
	cop_json_end(j);
}

static void put_status(struct cop_json *j, const struct cop_otlp_span *s)
{
	cop_json_object(j, "status");
	if (s->status != COP_OTLP_UNSET)
		cop_json_u64(j, "code", s->status);
	if (s->message)
		cop_json_str(j, "message", s->message);
	cop_json_end(j);
}

static void put_span(struct cop_json *j, const struct cop_otlp_span *s)
{
	static const uint8_t none[COP_OTLP_SPAN_SIZE];

	cop_json_object(j, NULL);
	put_hex(j, "traceId", s->at.trace, COP_OTLP_TRACE_SIZE);
	put_hex(j, "spanId", s->at.span, COP_OTLP_SPAN_SIZE);
	if (s->state)
		cop_json_str(j, "traceState", s->state);
	if (memcmp(s->parent, none, sizeof(none)) != 0)
		put_hex(j, "parentSpanId", s->parent, COP_OTLP_SPAN_SIZE);
	cop_json_u64(j, "flags", s->at.flags | KNOWS_REMOTE | (s->remote ? IS_REMOTE : 0));
	cop_json_str(j, "name", s->name);
	cop_json_u64(j, "kind", SPAN_KIND_INTERNAL);
	put_u64(j, "startTimeUnixNano", s->start_ns);
	put_u64(j, "endTimeUnixNano", s->end_ns);
	put_attributes(j, &s->attributes);
	put_events(j, s);
	put_status(j, s);
	cop_json_end(j);
}

void cop_otlp_traces(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_span *span, size_t n)
{
	struct cop_json j = cop_json_to(out);

	open_line(&j, from, "resourceSpans", "scopeSpans", "spans");
	for (size_t i = 0; i < n; i++)
		put_span(&j, &span[i]);
	close_line(&j);
}

/* ---- logs ---- */

static const char *severity_text(enum cop_otlp_severity s)
{
	return s == COP_OTLP_INFO ? "INFO" : s == COP_OTLP_WARN ? "WARN" : "ERROR";
}

static void put_record(struct cop_json *j, const struct cop_otlp_record *r)
{
	cop_json_object(j, NULL);
	put_u64(j, "timeUnixNano", r->time_ns);
	put_u64(j, "observedTimeUnixNano", r->observed_ns);
	cop_json_u64(j, "severityNumber", r->severity);
	cop_json_str(j, "severityText", severity_text(r->severity));
	cop_json_str(j, "eventName", r->event);
	put_text(j, "body", r->body);
	put_attributes(j, &r->attributes);
	cop_json_u64(j, "flags", r->at.flags);
	put_hex(j, "traceId", r->at.trace, COP_OTLP_TRACE_SIZE);
	put_hex(j, "spanId", r->at.span, COP_OTLP_SPAN_SIZE);
	cop_json_end(j);
}

void cop_otlp_logs(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_record *record, size_t n)
{
	struct cop_json j = cop_json_to(out);

	open_line(&j, from, "resourceLogs", "scopeLogs", "logRecords");
	for (size_t i = 0; i < n; i++)
		put_record(&j, &record[i]);
	close_line(&j);
}

/* ---- metrics ---- */

#define CUMULATIVE 2u

static void put_times(struct cop_json *j, uint64_t start_ns, uint64_t time_ns)
{
	if (start_ns)
		put_u64(j, "startTimeUnixNano", start_ns);
	put_u64(j, "timeUnixNano", time_ns);
}

static void put_point(struct cop_json *j, const struct cop_otlp_point *p)
{
	cop_json_object(j, NULL);
	put_attributes(j, &p->attributes);
	put_times(j, p->start_ns, p->time_ns);
	if (p->is_real)
		cop_json_double(j, "asDouble", p->real, 9);
	else
		put_u64(j, "asInt", COP_MIN(p->whole, (uint64_t)INT64_MAX));
	cop_json_end(j);
}

static uint64_t count_of(const struct cop_otlp_histogram *h)
{
	uint64_t n = 0;

	for (size_t i = 0; i <= h->bounds; i++)
		n += h->bucket[i];
	return n;
}

static void put_histogram(struct cop_json *j, const struct cop_otlp_histogram *h)
{
	cop_json_object(j, NULL);
	put_attributes(j, &h->attributes);
	put_times(j, h->start_ns, h->time_ns);
	put_u64(j, "count", count_of(h));
	cop_json_double(j, "sum", h->sum, 9);
	cop_json_double(j, "max", h->max, 9);
	cop_json_array(j, "bucketCounts");
	for (size_t i = 0; i <= h->bounds; i++)
		put_u64(j, NULL, h->bucket[i]);
	cop_json_end(j);
	cop_json_array(j, "explicitBounds");
	for (size_t i = 0; i < h->bounds; i++)
		cop_json_double(j, NULL, h->bound[i], 9);
	cop_json_end(j);
	cop_json_end(j);
}

static void put_metric(struct cop_json *j, const struct cop_otlp_metric *m)
{
	static const char *const kinds[] = {"sum", "gauge", "histogram"};

	cop_json_object(j, NULL);
	cop_json_str(j, "name", m->name);
	cop_json_str(j, "description", m->description);
	cop_json_str(j, "unit", m->unit);
	cop_json_object(j, kinds[m->kind]);
	if (m->kind != COP_OTLP_GAUGE)
		cop_json_u64(j, "aggregationTemporality", CUMULATIVE);
	if (m->kind == COP_OTLP_SUM)
		cop_json_bool(j, "isMonotonic", true);
	cop_json_array(j, "dataPoints");
	for (size_t i = 0; i < m->n; i++) {
		if (m->kind == COP_OTLP_HISTOGRAM)
			put_histogram(j, &m->histogram[i]);
		else
			put_point(j, &m->point[i]);
	}
	cop_json_end(j);
	cop_json_end(j);
	cop_json_end(j);
}

void cop_otlp_metrics(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_metric *metric, size_t n)
{
	struct cop_json j = cop_json_to(out);

	open_line(&j, from, "resourceMetrics", "scopeMetrics", "metrics");
	for (size_t i = 0; i < n; i++)
		put_metric(&j, &metric[i]);
	close_line(&j);
}
