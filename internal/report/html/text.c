/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>

#include "markup.h"

/* The length of the UTF-8 character at text, and its code point; 0: invalid. Uses the Unicode
 * standard's table of well-formed sequences (3-7), as code point ranges. */
static size_t decode_utf8(const unsigned char *text, size_t len, uint32_t *c)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = text[0] < 0x80             ? 1
		   : (text[0] & 0xe0) == 0xc0 ? 2
		   : (text[0] & 0xf0) == 0xe0 ? 3
		   : (text[0] & 0xf8) == 0xf0 ? 4
					      : 0;

	if (!n || n > len)
		return 0;
	*c = n == 1 ? text[0] : text[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		*c = *c << 6 | (text[i] & 0x3fu);
	}
	return *c < least[n] || *c > 0x10ffff || (*c >= 0xd800 && *c <= 0xdfff) ? 0 : n;
}

/* Control, zero-width, bidirectional, private and unassigned characters. */
static bool is_unseen(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c ||
	       (c >= 0x200b && c <= 0x200f) || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff0 && c <= 0xfffb) ||
	       (c & 0xfffe) == 0xfffe;
}

static const char *entity(uint32_t c)
{
	switch (c) {
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '&':
		return "&amp;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	default:
		return NULL;
	}
}

void cop_html_bytes(struct cop_buf *out, const char *text, size_t len)
{
	const unsigned char *at = (const unsigned char *)text;

	while (len) {
		uint32_t c = 0;
		size_t n = decode_utf8(at, len, &c);

		if (!n)
			cop_buf_printf(out, "\\x%02x", at[0]);
		else if (is_unseen(c))
			cop_buf_printf(out, c < 0x100 ? "\\x%02x" : "\\u{%x}", (unsigned)c);
		else if (entity(c))
			cop_buf_str(out, entity(c));
		else
			cop_buf_add(out, at, n);
		n = n ? n : 1;
		at += n;
		len -= n;
	}
}

void cop_html_text(struct cop_buf *out, const char *text)
{
	cop_html_bytes(out, text, strlen(text));
}

void cop_html_printf(struct cop_buf *out, const char *fmt, ...)
{
	char *text;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (n < 0) {
		out->failed = true;
		return;
	}
	cop_html_bytes(out, text, (size_t)n);
	free(text);
}
