/* SPDX-License-Identifier: BSD-3-Clause */
#include "report/watch/watch.h"

#include <stdarg.h>

#include "base/base/json.h"

/* The longest line before truncation. */
#define LINE_BYTES 4096

/* Whether a character is one column wide in every terminal, does not combine and does not change
 * the text direction: Latin, Greek and Cyrillic without combining marks, and the block characters
 * of charts. */
static bool is_narrow(uint32_t c)
{
	static const struct {
		uint32_t first, last;
	} narrow[] = {{0xa1, 0xac}, {0xae, 0x24f}, {0x384, 0x3ce}, {0x400, 0x481}, {0x48a, 0x52f},
		{0x2581, 0x2588}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(narrow); i++)
		if (c >= narrow[i].first && c <= narrow[i].last)
			return true;
	return false;
}

static uint32_t code_point(const unsigned char *s, size_t len)
{
	if (len == 2)
		return (s[0] & 0x1fu) << 6 | (s[1] & 0x3fu);
	if (len == 3)
		return (s[0] & 0xfu) << 12 | (s[1] & 0x3fu) << 6 | (s[2] & 0x3fu);
	return 0;
}

unsigned cop_screen_show(const char *text, bool utf8, unsigned columns, struct cop_buf *out)
{
	unsigned used = 0;
	size_t left = strlen(text), n;
	char shown[8];

	for (; left; text += n, left -= n) {
		const unsigned char *s = (const unsigned char *)text;
		unsigned width = 1;

		n = cop_utf8_len(text, left);
		if (n > 1 && utf8 && is_narrow(code_point(s, n))) {
			snprintf(shown, sizeof(shown), "%.*s", (int)n, text);
		} else {
			n = 1;
			if (*s >= 0x20 && *s < 0x7f)
				snprintf(shown, sizeof(shown), "%c", *s);
			else
				width = (unsigned)snprintf(shown, sizeof(shown), "\\x%02x", *s);
		}
		if (used + width > columns)
			break;
		cop_buf_str(out, shown);
		used += width;
	}
	return used;
}

void cop_screen_frame_begin(struct cop_screen_frame *f, unsigned rows, unsigned columns, bool utf8)
{
	cop_buf_free(&f->out);
	*f = (struct cop_screen_frame){.rows = COP_MIN(COP_MAX(rows, 1), COP_SCREEN_ROWS_MAX),
		.columns = COP_MIN(COP_MAX(columns, 1), COP_SCREEN_COLUMNS_MAX),
		.utf8 = utf8};
}

/* When the last column is filled, clearing to the end of the line would erase its character. */
void cop_screen_frame_line(
	struct cop_screen_frame *f, enum cop_screen_style style, const char *fmt, ...)
{
	static const char *const begin[] = {"", "\033[1m", "\033[7m"};
	char text[LINE_BYTES];
	unsigned used;
	va_list ap;

	if (f->lines >= f->rows)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	cop_buf_printf(&f->out, "\033[%u;1H%s", ++f->lines, begin[style]);
	used = cop_screen_show(text, f->utf8, f->columns, &f->out);
	for (; style == COP_SCREEN_REVERSE && used < f->columns; used++)
		cop_buf_str(&f->out, " ");
	if (style != COP_SCREEN_PLAIN)
		cop_buf_str(&f->out, "\033[0m");
	if (used < f->columns)
		cop_buf_str(&f->out, "\033[K");
}

void cop_screen_frame_end(struct cop_screen_frame *f)
{
	if (f->lines < f->rows)
		cop_buf_printf(&f->out, "\033[%u;1H\033[J", f->lines + 1);
}
