/* SPDX-License-Identifier: BSD-3-Clause */
/* Names hold any byte but NUL and a slash; each kind of file has its own way to keep them whole. */
#include <stdlib.h>
#include <string.h>

#include "prof/prof_priv.h"

char *cop_prof_root_dup(const char *source)
{
	size_t len = strlen(source);

	while (len && source[len - 1] == '/')
		len--;
	return strndup(source, len);
}

void cop_prof_text_path(struct cop_buf *out, const char *root, const char *path, size_t len)
{
	if (root) {
		cop_buf_str(out, root);
		if ((len && path[0] != '/') || (!len && !*root))
			cop_buf_str(out, "/");
	}
	cop_buf_add(out, path, len);
}

void cop_prof_text_escaped(struct cop_buf *out, const char *text, size_t len)
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

void cop_prof_text_csv(struct cop_buf *out, const char *text, size_t len)
{
	size_t plain = 0;

	cop_buf_str(out, "\"");
	for (size_t i = 0; i < len; i++) {
		if (text[i] != '"')
			continue;
		cop_buf_add(out, text + plain, i + 1 - plain);
		plain = i; /* the quote once more */
	}
	cop_buf_add(out, text + plain, len - plain);
	cop_buf_str(out, "\"");
}

void cop_prof_text_markdown(struct cop_buf *out, const char *text, size_t len)
{
	const char *fence = memchr(text, '`', len) ? "``" : "`";
	const char *gap = fence[1] ? " " : "";

	cop_buf_printf(out, "%s%s", fence, gap);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '\n' || c == '\\')
			cop_prof_text_escaped(out, text + i, 1);
		else if (c < 0x20 || c == 0x7f)
			cop_buf_printf(out, "\\x%02x", c);
		else if (c == '|')
			cop_buf_str(out, "\\|");
		else
			cop_buf_add(out, text + i, 1);
	}
	cop_buf_printf(out, "%s%s", gap, fence);
}

static bool word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
		c == '-';
}

char *cop_prof_text_reduce(const char *text, const char *extra, size_t max)
{
	char *out = strndup(text, max);

	for (char *c = out; c && *c; c++)
		if (!word_byte(*c) && !strchr(extra, *c))
			*c = '_';
	return out;
}
