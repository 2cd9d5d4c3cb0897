/* SPDX-License-Identifier: BSD-3-Clause */
/* Feeds arbitrary bytes as log lines of a program. Accepted values must be within bounds. */
#include <stdlib.h>
#include <string.h>

#include "writers/runs/line_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_text(const char *text, const char *line, size_t len, size_t most)
{
	require(text >= line && text + strlen(text) <= line + len && strlen(text) <= most);
}

static void check_line(char *line, size_t len)
{
	struct logline l;

	if (cop_logline_parse(line, len, &l))
		return;
	if (l.kind == LOGLINE_HEAD && l.form == LOG_FORM)
		require(strcmp(l.key, "-") == 0 || cop_line_is_id(l.key));
	if (l.kind == LOGLINE_PAIR || l.kind == LOGLINE_POINT)
		check_text(l.key, line, len, COP_RUNREC_KEY_MAX);
	if (l.kind == LOGLINE_PAIR)
		check_text(l.value, line, len, COP_RUNREC_VALUE_MAX);
	require(l.list < COP_RUNREC_LISTS && l.status < COP_RUNREC_LOST && l.step <= INT64_MAX);
	require(l.time_s >= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(data + at, '\n', size - at);
		size_t len = end ? (size_t)(end - data) - at : size - at;
		char *line = malloc(len + 1);

		if (!line)
			return 0;
		memcpy(line, data + at, len);
		line[len] = '\0';
		check_line(line, len);
		free(line);
		at += len + 1;
	}
	return 0;
}
