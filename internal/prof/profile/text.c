/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/profile/profile_priv.h"

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

static bool word_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

char *cop_prof_text_reduce(const char *text, const char *extra, size_t max)
{
	char *out = strndup(text, max);

	for (char *c = out; c && *c; c++)
		if (!word_byte(*c) && !strchr(extra, *c))
			*c = '_';
	return out;
}
