/* SPDX-License-Identifier: BSD-3-Clause */
/* Names may contain any byte except NUL and slash; each file format preserves them in its own
 * way. */
#include "base/table/table.h"

void cop_csv_quoted(struct cop_buf *out, const char *text, size_t len)
{
	size_t plain = 0;

	cop_buf_str(out, "\"");
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '"')
			continue;
		cop_buf_add(out, text + plain, i + 1 - plain);
		plain = i; /* writes the quote again, which doubles it */
	}
	cop_buf_add(out, text + plain, len - plain);
	cop_buf_str(out, "\"");
}

void cop_csv_field(struct cop_buf *out, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (strchr(",\"\r\n", text[i])) {
			cop_csv_quoted(out, text, len);
			return;
		}
	cop_buf_add(out, text, len);
}

void cop_csv_escaped(struct cop_buf *out, const char *text, size_t len)
{
	size_t plain = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] != '\n' && text[i] != '\\')
			continue;
		cop_buf_add(out, text + plain, i - plain);
		cop_buf_str(out, text[i] == '\n' ? "\\n" : "\\\\");
		plain = i + 1;
	}
	cop_buf_add(out, text + plain, len - plain);
}

size_t cop_csv_unescape(char *text, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		bool pair = text[i] == '\\' && i + 1 < len &&
			    (text[i + 1] == 'n' || text[i + 1] == '\\');

		text[n++] = !pair ? text[i] : text[i + 1] == 'n' ? '\n' : '\\';
		i += pair;
	}
	return n;
}

void cop_csv_markdown(struct cop_buf *out, const char *text, size_t len)
{
	const char *fence = memchr(text, '`', len) ? "``" : "`";
	const char *gap = fence[1] ? " " : "";

	cop_buf_printf(out, "%s%s", fence, gap);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' || c == '\\')
			cop_csv_escaped(out, text + i, 1);
		else if (c < 0x20 || c == 0x7f)
			cop_buf_printf(out, "\\x%02x", c);
		else if (c == '|')
			cop_buf_str(out, "\\|");
		else
			cop_buf_add(out, text + i, 1);
	}
	cop_buf_printf(out, "%s%s", gap, fence);
}
