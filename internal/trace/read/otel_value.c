/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads values in OpenTelemetry's JSON: times, attributes and lists. */
#include <ctype.h>
#include <time.h>

#include "otel_priv.h"

static const struct cop_trace_str none = {"", 0};

/* ---- values ---- */

struct cop_trace_str cop_trace_otel_member(struct cop_trace_str object, const char *key)
{
	struct cop_trace_str value;

	return object.len && *object.at == '{' && cop_trace_member(object, key, &value) ? value
											: none;
}

struct cop_trace_str cop_trace_otel_either(
	struct cop_trace_str object, const char *a, const char *b)
{
	struct cop_trace_str v = cop_trace_otel_member(object, a);

	return v.len ? v : cop_trace_otel_member(object, b);
}

bool cop_trace_otel_next(struct cop_trace_members *m, struct cop_trace_str *element)
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

struct cop_trace_members cop_trace_otel_elements(struct cop_trace_str array)
{
	if (!array.len || *array.at != '[')
		return (struct cop_trace_members){array.at, array.at};
	return (struct cop_trace_members){array.at + 1, array.at + array.len};
}

struct cop_trace_str cop_trace_otel_plain(struct sink *s, struct cop_trace_str v)
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

/* Parses the rest of a time: .123456789, then Z or +01:00. */
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

/* Parses 2026-01-31T12:00:00.5Z (RFC 3339). */
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

bool cop_trace_otel_time(struct cop_trace_str v, int64_t *out)
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

struct cop_trace_str cop_trace_otel_any(struct cop_trace_str v)
{
	static const char *const types[] = {"stringValue", "intValue", "doubleValue", "boolValue",
		"arrayValue", "kvlistValue", "bytesValue", "Value"};
	struct cop_trace_str inner;

	for (size_t i = 0; i < COP_ARRAY_SIZE(types); i++)
		if ((inner = cop_trace_otel_member(v, types[i])).len)
			return inner;
	return none;
}

/* Finds the verbatim key and value in {"key":K,"value":{"stringValue":V}}, whose names may be
 * capitalized. */
static bool read_attribute(
	struct cop_trace_str one, struct cop_trace_str *key, struct cop_trace_str *value)
{
	*key = cop_trace_otel_either(one, "key", "Key");
	*value = cop_trace_otel_any(cop_trace_otel_either(one, "value", "Value"));
	return key->len >= 2 && *key->at == '"' && value->len;
}

static bool put(struct scratch *s, const char *at, size_t len)
{
	char *to = cop_trace_scratch(s, len);

	if (to)
		memcpy(to, at, len);
	return to;
}

static bool put_text(struct scratch *s, const char *text)
{
	return put(s, text, strlen(text));
}

static bool is_whole_number(const char *p, size_t len)
{
	size_t i = *p == '-';

	if (i == len)
		return false;
	while (i < len && isdigit((unsigned char)p[i]))
		i++;
	return i == len;
}

/* Unquotes 64-bit integers, which OTLP quotes to protect them from rounding in JavaScript. */
static bool put_value(struct scratch *s, struct cop_trace_str attribute, struct cop_trace_str v)
{
	struct cop_trace_str typed = cop_trace_otel_either(attribute, "value", "Value");

	if (v.len > 2 && *v.at == '"' && is_whole_number(v.at + 1, v.len - 2) &&
		cop_trace_otel_member(typed, "intValue").len)
		return put(s, v.at + 1, v.len - 2);
	return put(s, v.at, v.len);
}

static bool put_attributes(struct scratch *s, struct cop_trace_str list, bool comma)
{
	struct cop_trace_members m = cop_trace_otel_elements(list);
	struct cop_trace_str one, key, value;
	bool fits = true;

	while (fits && cop_trace_otel_next(&m, &one)) {
		if (!read_attribute(one, &key, &value))
			continue;
		fits = (!comma || put_text(s, ",")) && put(s, key.at, key.len) &&
		       put_text(s, ":") && put_value(s, one, value);
		comma = true;
	}
	return fits;
}

struct cop_trace_str cop_trace_otel_args(
	struct sink *s, const struct otel_member *first, size_t n, struct cop_trace_str list)
{
	struct scratch *to = &s->scratch;
	size_t from = to->used;
	bool fits = put_text(to, "{"), comma = false;

	for (size_t i = 0; i < n && fits; i++) {
		if (!first[i].value.len)
			continue;
		fits = put_text(to, comma ? ",\"" : "\"") && put_text(to, first[i].key) &&
		       put_text(to, "\":") && put(to, first[i].value.at, first[i].value.len);
		comma = true;
	}
	if (!fits || !put_attributes(to, list, comma) || !put_text(to, "}"))
		return none;
	return (struct cop_trace_str){to->at + from, to->used - from};
}

struct cop_trace_str cop_trace_otel_object(struct sink *s, struct cop_trace_str list)
{
	return list.len && *list.at == '{' ? list : cop_trace_otel_args(s, NULL, 0, list);
}

/* Appends a value to labels: a string unquoted and unescaped, anything else verbatim. */
static bool put_label(struct sink *s, struct cop_trace_str v)
{
	struct cop_trace_str text = {v.at + 1, v.len - 2};
	char *to;

	if (*v.at != '"' || v.len < 2)
		return put(&s->scratch, v.at, v.len);
	to = cop_trace_scratch(&s->scratch, text.len);
	if (!to)
		return false;
	s->scratch.used -= text.len - cop_json_undo(text.at, text.len, to);
	return true;
}

struct cop_trace_str cop_trace_otel_labels(struct sink *s, struct cop_trace_str list)
{
	struct cop_trace_members m = cop_trace_otel_elements(list);
	size_t from = s->scratch.used;
	struct cop_trace_str one, key, value;

	while (cop_trace_otel_next(&m, &one)) {
		if (!read_attribute(one, &key, &value))
			continue;
		if ((s->scratch.used > from && !put_text(&s->scratch, ",")) || !put_label(s, key) ||
			!put_text(&s->scratch, "=") || !put_label(s, value))
			return none;
	}
	if (s->scratch.used == from)
		return none;
	return (struct cop_trace_str){s->scratch.at + from, s->scratch.used - from};
}
