/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for len more bytes and the NUL. */
static bool reserve(struct cop_buf *b, size_t len)
{
	size_t cap = b->cap ? b->cap : 64;
	char *data;

	if (b->failed || len > SIZE_MAX / 4 - b->len) {
		b->failed = true;
		return false;
	}
	while (cap < b->len + len + 1)
		cap *= 2;
	if (cap == b->cap)
		return true;
	data = realloc(b->data, cap);
	if (!data) {
		b->failed = true;
		return false;
	}
	b->data = data;
	b->cap = cap;
	return true;
}

void cop_buf_add(struct cop_buf *b, const void *data, size_t len)
{
	if (!reserve(b, len))
		return;
	if (len)
		memcpy(b->data + b->len, data, len);
	b->len += len;
	b->data[b->len] = '\0';
}

void cop_buf_str(struct cop_buf *b, const char *text)
{
	cop_buf_add(b, text, strlen(text));
}

void cop_buf_printf(struct cop_buf *b, const char *fmt, ...)
{
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (len < 0 || !reserve(b, (size_t)len))
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)len;
}

/* Length of the well-formed UTF-8 sequence at p, 0 if there is none
 * (RFC 3629: no overlong forms, no surrogates, nothing past U+10FFFF). */
static size_t utf8_len(const unsigned char *p, size_t left)
{
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

void cop_buf_json_str(struct cop_buf *b, const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	cop_buf_add(b, "\"", 1);
	while (p < end) {
		size_t n = utf8_len(p, (size_t)(end - p));

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

void cop_buf_free(struct cop_buf *b)
{
	free(b->data);
	*b = (struct cop_buf){0};
}
