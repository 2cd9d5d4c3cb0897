/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the text of args. The scanner has accepted it, so it is JSON, except that strings may
 * contain control characters, arbitrary bytes and lone backslashes, numbers are as in C, and commas
 * may precede closing brackets. */
#include <math.h>

#include "base/base/json.h"
#include "base/base/json_read.h"
#include "trace/timeline/timeline_priv.h"

/* ---- copying ---- */

/* Returns how many bytes from p on are ASCII other than control characters and backslashes. */
static size_t plain_length(const char *p, const char *end)
{
	const char *at = p;

	while (end - at >= 8) {
		uint64_t w, odd;

		memcpy(&w, at, sizeof(w));
		odd = w ^ 0x5c5c5c5c5c5c5c5cULL; /* backslashes become zeros */
		odd = (odd - 0x0101010101010101ULL) & ~odd;
		odd |= w | ((w - 0x2020202020202020ULL) & ~w);
		if (odd & 0x8080808080808080ULL)
			break;
		at += 8;
	}
	while (at < end && (unsigned char)*at >= 0x20 && (unsigned char)*at < 0x80 && *at != '\\')
		at++;
	return (size_t)(at - p);
}

bool cop_members_copy_plain(struct cop_buf *out, struct cop_trace_str text)
{
	const char *p = text.at, *end = p + text.len;
	size_t before = out->len;

	while (p < end) {
		size_t n = plain_length(p, end);

		cop_buf_add(out, p, n);
		p += n;
		if (p < end && *p != '\n') {
			out->len = before;
			return false;
		}
		while (p < end && (*p == '\n' || *p == ' '))
			p++;
	}
	return true;
}

/* Copies the special character at p; returns the number of bytes consumed. */
static size_t copy_odd(struct cop_buf *out, const char *p, const char *end)
{
	size_t n = cop_utf8_len(p, (size_t)(end - p));

	if (*p == '\\') {
		n = cop_json_escape(p, end);
		if (!n)
			cop_buf_str(out, "\\\\");
		else
			cop_buf_add(out, p, n);
		return COP_MAX(n, (size_t)1);
	}
	if (!n)
		cop_buf_str(out, "\\ufffd");
	else if ((unsigned char)*p < 0x20)
		cop_buf_printf(out, "\\u%04x", (unsigned char)*p);
	else
		cop_buf_add(out, p, n);
	return COP_MAX(n, (size_t)1);
}

void cop_members_copy_inside(struct cop_buf *out, struct cop_trace_str text)
{
	const char *p = text.at, *end = p + text.len;

	while (p < end) {
		size_t n = plain_length(p, end);

		cop_buf_add(out, p, n);
		p += n;
		if (p < end)
			p += copy_odd(out, p, end);
	}
}

static size_t digits(const char *p, const char *end)
{
	const char *q = p;

	while (q < end && (unsigned char)(*q - '0') < 10)
		q++;
	return (size_t)(q - p);
}

/* Whether the text is a number as in RFC 8259, of any length. */
static bool is_number(const char *p, const char *end)
{
	size_t n;

	p += p < end && *p == '-';
	n = digits(p, end);
	if (!n || (*p == '0' && n > 1))
		return false;
	p += n;
	if (p < end && *p == '.') {
		n = digits(++p, end);
		if (!n)
			return false;
		p += n;
	}
	if (p < end && (*p | 32) == 'e') {
		p++;
		p += p < end && (*p == '+' || *p == '-');
		n = digits(p, end);
		p = n ? p + n : end + 1;
	}
	return p == end;
}

static bool is_word(const char *p, size_t len, const char *word)
{
	return len == strlen(word) && !memcmp(p, word, len);
}

static void copy_scalar(struct cop_buf *out, const char *p, size_t len)
{
	char text[64], *end;
	double d;

	if (is_number(p, p + len) || is_word(p, len, "true") || is_word(p, len, "false")) {
		cop_buf_add(out, p, len);
		return;
	}
	if (len >= sizeof(text)) {
		cop_buf_str(out, "null");
		return;
	}
	memcpy(text, p, len);
	text[len] = '\0';
	d = strtod(text, &end);
	if (end == text + len && len && isfinite(d))
		cop_buf_printf(out, "%.17g", d);
	else
		cop_buf_str(out, "null");
}

/* Whether another value follows the comma at p, rather than a closing bracket. */
static bool separates(const char *p, const char *end)
{
	for (p++; p < end && cop_json_is_blank(*p);)
		p++;
	return p < end && *p != '}' && *p != ']';
}

void cop_members_copy(struct cop_buf *out, struct cop_trace_str value)
{
	const char *p = value.at, *end = p + value.len, *q;

	while (p < end) {
		if (*p == '"') {
			q = cop_json_string_end(p, end);
			cop_buf_str(out, "\"");
			if (q - p > 2)
				cop_members_copy_inside(
					out, (struct cop_trace_str){p + 1, (size_t)(q - p - 2)});
			cop_buf_str(out, "\"");
		} else if (cop_json_ends_scalar(*p)) {
			q = p + 1;
			if (!cop_json_is_blank(*p) && (*p != ',' || separates(p, end)))
				cop_buf_add(out, p, 1);
		} else {
			q = cop_json_scalar_end(p, end);
			copy_scalar(out, p, (size_t)(q - p));
		}
		p = q;
	}
}
