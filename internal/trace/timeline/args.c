/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the text of args. It has been read as JSON, either by a scanner that accepts control
 * characters and any bytes in strings, or by json-c, which accepts numbers as C writes them. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/base/json.h"
#include "trace/timeline/timeline_priv.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Returns what follows the string whose opening quote is at p. */
static const char *string_end(const char *p, const char *end)
{
	for (p++; p < end && *p != '"'; p++)
		p += *p == '\\';
	return p < end ? p + 1 : end;
}

static bool ends_scalar(char c)
{
	return is_blank(c) || c == ',' || c == ':' || c == '}' || c == ']' || c == '{' ||
	       c == '[' || c == '"';
}

static const char *scalar_end(const char *p, const char *end)
{
	while (p < end && !ends_scalar(*p))
		p++;
	return p;
}

/* ---- copying ---- */

void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text)
{
	const char *p = text.at, *end = p + text.len, *plain = p;

	while (p < end) {
		size_t n = cop_utf8_len(p, (size_t)(end - p));

		if (n && (unsigned char)*p >= 0x20) {
			p += *p == '\\' && p + 1 < end ? 2 : n;
			continue;
		}
		cop_buf_add(out, plain, (size_t)(p - plain));
		if (n)
			cop_buf_printf(out, "\\u%04x", (unsigned char)*p);
		else
			cop_buf_str(out, "\\ufffd");
		plain = ++p;
	}
	cop_buf_add(out, plain, (size_t)(p - plain));
}

/* Whether it is a number as RFC 8259 defines it. */
static bool is_number(const char *p, const char *end)
{
	size_t n;

	p += p < end && *p == '-';
	n = strspn(p, "0123456789");
	if (!n || (*p == '0' && n > 1))
		return false;
	p += n;
	if (p < end && *p == '.') {
		n = strspn(++p, "0123456789");
		if (!n)
			return false;
		p += n;
	}
	if (p < end && (*p | 32) == 'e') {
		p += p[1] == '+' || p[1] == '-' ? 2 : 1;
		n = strspn(p, "0123456789");
		p = n ? p + n : end + 1;
	}
	return p == end;
}

static void copy_scalar(struct cop_buf *out, const char *p, size_t len)
{
	char text[64], *end;
	double d;

	if (len >= sizeof(text)) {
		cop_buf_str(out, "null");
		return;
	}
	memcpy(text, p, len);
	text[len] = '\0';
	if (is_number(text, text + len) || !strcmp(text, "true") || !strcmp(text, "false")) {
		cop_buf_str(out, text);
		return;
	}
	d = strtod(text, &end);
	if (end == text + len && len && isfinite(d))
		cop_buf_printf(out, "%.17g", d);
	else
		cop_buf_str(out, "null");
}

void cop_members_copy(struct cop_buf *out, struct cop_trace_str value)
{
	const char *p = value.at, *end = p + value.len, *q;

	while (p < end) {
		if (*p == '"') {
			q = string_end(p, end);
			cop_buf_str(out, "\"");
			if (q - p > 2)
				cop_members_copy_inside(
					out, (struct cop_trace_str){p + 1, (size_t)(q - p - 2)});
			cop_buf_str(out, "\"");
		} else if (ends_scalar(*p)) {
			q = p + 1;
			if (!is_blank(*p))
				cop_buf_add(out, p, 1);
		} else {
			q = scalar_end(p, end);
			copy_scalar(out, p, (size_t)(q - p));
		}
		p = q;
	}
}
