/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

#include <stdarg.h>

/* Makes room for len more bytes and the NUL. */
static bool reserve_bytes(struct cop_buf *b, size_t len)
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
	if (__builtin_expect(b->cap - b->len <= len || b->failed, 0) && !reserve_bytes(b, len))
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
	if (len < 0 || !reserve_bytes(b, (size_t)len))
		return;
	va_start(ap, fmt);
	vsnprintf(b->data + b->len, (size_t)len + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)len;
}

void cop_buf_free(struct cop_buf *b)
{
	free(b->data);
	*b = (struct cop_buf){0};
}
