/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters that a node sends to a watching client. Parsed counters must survive writing and
 * parsing, and the remaining text must be within the input. */
#include <stdlib.h>
#include <string.h>

#include "prof/stats/stats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_again(const struct cop_stats *s)
{
	struct cop_buf out = {0};
	struct cop_stats again;
	const char *rest;

	cop_stats_lines(s, &out);
	rest = out.failed ? NULL : cop_stats_read_lines(out.data, &again);
	if (!rest || *rest || memcmp(s, &again, sizeof(again)) != 0)
		abort();
	cop_buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct cop_stats s;
	const char *rest;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	rest = cop_stats_read_lines(text, &s);
	if (rest && (rest <= text || rest + strlen(rest) > text + size))
		abort();
	read_again(&s);
	free(text);
	return 0;
}
