/* SPDX-License-Identifier: BSD-3-Clause */
/* Metrics and logs of OTLP JSON.
 *
 * A data point becomes a counter: its value, or the count and sum of a histogram, precede its
 * attributes in args. Points of one metric with different attributes are separate counters with
 * different ids. A log record becomes an instant: name is its event name or else its body, category
 * its severity; args are its body and attributes.
 *
 * 	{"name":N,"sum":{"dataPoints":[{"asInt":"5","timeUnixNano":"..","attributes":[..]}]}}
 * 	{"name":N,"histogram":{"dataPoints":[{"count":"2","sum":0.5,"timeUnixNano":"..", ..}]}}
 * 	{"timeUnixNano":"..","severityText":"WARN","eventName":N,"body":{"stringValue":B}} */
#include "otel_priv.h"

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

/* ---- metrics ---- */

enum { P_TIME, P_INT, P_DOUBLE, P_COUNT, P_SUM, P_FLAGS, P_ATTRIBUTES, P_KEYS };
static const char *const point_keys[P_KEYS] = {
	"timeUnixNano", "asInt", "asDouble", "count", "sum", "flags", "attributes"};
#define NO_RECORDED_VALUE 1

/* A number without the quotes of 64-bit integers, NaN and infinities; empty if it is no number. */
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

/* Sets the values of a point; returns their number. JSON omits a count of 0. */
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

/* NULL, or why there is no counter. */
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
	cop_trace_otel_take_args(r, args);
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
		cop_trace_otel_deliver(r, &r->e);
	r->e = common;
}

void cop_trace_otel_metric(struct otel_reader *r, struct cop_trace_str metric)
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

/* Severities are 1 to 24, four per word. */
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

/* Before records had event names, an attribute named the event. A nested body is named by its
 * text. */
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

/* NULL, or why there is no instant. */
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
	cop_trace_otel_take_args(r, args);
	e->kind = COP_TRACE_INSTANT;
	e->ph = 'i';
	e->cat = severity_of(r, log);
	e->name = name_of(r, log, body.value);
	return NULL;
}

void cop_trace_otel_log(struct otel_reader *r, struct cop_trace_str record)
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
		cop_trace_otel_deliver(r, &r->e);
	r->e = common;
}
