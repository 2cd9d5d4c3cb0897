/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/json.h"

#include <assert.h>
#include <math.h>

size_t cop_utf8_len(const char *text, size_t left)
{
	const unsigned char *p = (const unsigned char *)text;
	size_t need = *p < 0x80                 ? 1
		      : *p >= 0xc2 && *p < 0xe0 ? 2
		      : *p >= 0xe0 && *p < 0xf0 ? 3
		      : *p >= 0xf0 && *p < 0xf5 ? 4
						: 0;

	if (!need || need > left)
		return 0;
	for (size_t i = 1; i < need; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] >= 0xa0) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] >= 0x90))
		return 0;
	return need;
}

/* The number of bytes at p that need no escape. */
static size_t plain_length(const unsigned char *p, const unsigned char *end)
{
	const unsigned char *at = p;

	while (at < end && *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\')
		at++;
	return (size_t)(at - p);
}

static void add_string(struct cop_buf *b, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	cop_buf_add(b, "\"", 1);
	while (p < end) {
		size_t n = plain_length(p, end);

		cop_buf_add(b, p, n);
		p += n;
		if (p == end)
			break;
		n = cop_utf8_len((const char *)p, (size_t)(end - p));
		if (!n) {
			cop_buf_str(b, "\\ufffd");
			n = 1;
		} else if (*p == '"' || *p == '\\') {
			cop_buf_printf(b, "\\%c", *p);
		} else if (*p < 0x20 || *p == 0x7f) {
			cop_buf_printf(b, "\\u%04x", *p);
		} else {
			cop_buf_add(b, p, n);
		}
		p += n;
	}
	cop_buf_add(b, "\"", 1);
}

void cop_json_value(struct cop_json *j, const char *key)
{
	bool member = j->depth && j->objects >> (j->depth - 1) & 1;

	assert(member == (key != NULL));
	assert(j->depth || !j->comma); /* only one top-level value */
	if (j->comma)
		cop_buf_str(j->out, ",");
	j->comma = true;
	if (!key)
		return;
	add_string(j->out, key, strlen(key));
	cop_buf_str(j->out, ":");
}

static void open_level(struct cop_json *j, const char *key, bool object)
{
	cop_json_value(j, key);
	assert(j->depth < COP_JSON_DEPTH_MAX);
	j->objects &= ~((uint32_t)1 << j->depth);
	j->objects |= (uint32_t)object << j->depth++;
	j->comma = false;
	cop_buf_str(j->out, object ? "{" : "[");
}

void cop_json_object(struct cop_json *j, const char *key)
{
	open_level(j, key, true);
}

void cop_json_array(struct cop_json *j, const char *key)
{
	open_level(j, key, false);
}

void cop_json_end(struct cop_json *j)
{
	assert(j->depth);
	j->comma = true;
	cop_buf_str(j->out, j->objects >> --j->depth & 1 ? "}" : "]");
}

void cop_json_bytes(struct cop_json *j, const char *key, const char *text, size_t len)
{
	cop_json_value(j, key);
	add_string(j->out, text, len);
}

void cop_json_str(struct cop_json *j, const char *key, const char *text)
{
	cop_json_bytes(j, key, text, strlen(text));
}

void cop_json_u64(struct cop_json *j, const char *key, uint64_t value)
{
	char digits[20];
	size_t at = sizeof(digits);

	cop_json_value(j, key);
	do
		digits[--at] = (char)('0' + value % 10);
	while (value /= 10);
	cop_buf_add(j->out, digits + at, sizeof(digits) - at);
}

void cop_json_bool(struct cop_json *j, const char *key, bool value)
{
	cop_json_value(j, key);
	cop_buf_str(j->out, value ? "true" : "false");
}

void cop_json_null(struct cop_json *j, const char *key)
{
	cop_json_value(j, key);
	cop_buf_str(j->out, "null");
}

void cop_json_double(struct cop_json *j, const char *key, double value, unsigned decimals)
{
	if (!isfinite(value)) {
		cop_json_null(j, key);
		return;
	}
	cop_json_value(j, key);
	cop_buf_printf(j->out, "%.*f", (int)decimals, value);
}
