/* SPDX-License-Identifier: BSD-3-Clause */
/* Iterates over the members of an object, such as an event's args, in text that the scanner has
 * accepted. */
#include <limits.h>
#include <math.h>

#include "trace/read/read_priv.h"

static const char *value_end(const char *p, const char *end)
{
	unsigned depth = 0;

	while (p < end) {
		const char *before = p;

		if (*p == '"')
			p = cop_json_string_end(p, end);
		else if (*p == '{' || *p == '[')
			depth++, p++;
		else if ((*p == '}' || *p == ']') && depth)
			depth--, p++;
		else if (cop_json_ends_scalar(*p))
			p += depth > 0;
		else
			p = cop_json_scalar_end(p, end);
		if (!depth || p == before)
			return p;
	}
	return end;
}

struct cop_trace_members cop_trace_members_of(struct cop_trace_str object)
{
	return (struct cop_trace_members){object.at + (object.len > 0), object.at + object.len};
}

struct cop_trace_str cop_trace_value_at(struct cop_trace_str text)
{
	return (struct cop_trace_str){
		text.at, (size_t)(value_end(text.at, text.at + text.len) - text.at)};
}

static const char *skip(const char *p, const char *end, char other)
{
	while (p < end && (cop_json_is_blank(*p) || *p == other))
		p++;
	return p;
}

bool cop_trace_members_next(
	struct cop_trace_members *m, struct cop_trace_str *key, struct cop_trace_str *value)
{
	const char *p = skip(m->at, m->end, ','), *q;

	if (p == m->end || *p != '"')
		return false;
	q = cop_json_string_end(p, m->end);
	if (q - p < 2)
		return false;
	*key = (struct cop_trace_str){p + 1, (size_t)(q - p - 2)};
	p = skip(q, m->end, ':');
	m->at = value_end(p, m->end);
	*value = (struct cop_trace_str){p, (size_t)(m->at - p)};
	return value->len > 0;
}

bool cop_trace_member(struct cop_trace_str object, const char *key, struct cop_trace_str *value)
{
	struct cop_trace_members m = cop_trace_members_of(object);
	struct cop_trace_str k;

	while (cop_trace_members_next(&m, &k, value))
		if (cop_trace_str_is(k, key))
			return true;
	return false;
}

struct cop_trace_str cop_trace_value_text(struct cop_trace_str value, struct cop_buf *room)
{
	const char *text = value.at + 1;
	size_t len = value.len - 2;

	room->len = 0;
	if (value.len < 2 || *value.at != '"')
		return value;
	if (!memchr(text, '\\', len))
		return (struct cop_trace_str){text, len};
	cop_buf_add(room, text, len);
	if (room->failed)
		return value;
	return (struct cop_trace_str){room->data, cop_json_undo(text, len, room->data)};
}

bool cop_trace_value_number(struct cop_trace_str value, long double *out)
{
	char copy[64], *end;
	long double whole;

	if (value.len > 2 && *value.at == '"')
		value = (struct cop_trace_str){value.at + 1, value.len - 2};
	if (!value.len || value.len >= sizeof(copy) || cop_json_is_blank(*value.at))
		return false;
	memcpy(copy, value.at, value.len);
	copy[value.len] = '\0';
	*out = strtod(copy, &end);
	if (fabsl(*out) >= 0x1p53L && fabsl(*out) <= 0x1p64L) {
		whole = strtold(copy, NULL);
		*out = whole == floorl(whole) && fabsl(whole) < 0x1p64L ? whole : *out;
	}
	return end == copy + value.len;
}

struct cop_trace_values cop_trace_values_of(const struct cop_trace_event *e)
{
	return (struct cop_trace_values){
		cop_trace_members_of(e->args), e->values ? e->values : UINT_MAX};
}

bool cop_trace_values_next(
	struct cop_trace_values *v, struct cop_trace_str *series, long double *value)
{
	struct cop_trace_str text;

	while (v->left && cop_trace_members_next(&v->members, series, &text)) {
		v->left--;
		if (cop_trace_value_number(text, value))
			return true;
	}
	return false;
}
