/* SPDX-License-Identifier: BSD-3-Clause */
/* Command lines of mount and serve, one word per line: a configuration that is accepted passes the
 * check again unchanged. */
#include <stdlib.h>
#include <string.h>

#include "job/conf/conf.h"

#define WORDS_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int split(char *text, char *word[WORDS_MAX + 1])
{
	int n = 0;

	word[n++] = (char *)"copper";
	for (char *at = text; at && n < WORDS_MAX; n++)
		word[n] = strsep(&at, "\n");
	word[n] = NULL;
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cop_opt_table *table =
		size && data[0] & 1 ? &cop_conf_serve_table : &cop_conf_mount_table;
	char *text = size ? strndup((const char *)data + 1, size - 1) : NULL, *word[WORDS_MAX + 1];
	struct cop_conf conf = {0};
	struct cop_buf notes = {0};
	struct cop_err err = {0};
	enum cop_opt_ask ask;
	int rc;

	if (!text)
		return 0;
	rc = cop_opt_parse(table, split(text, word), word, &conf, &ask, &notes, &err);
	if (rc ? rc != -err.code || !err.text[0] : !ask && cop_conf_check(&conf, &err))
		abort();
	cop_buf_free(&notes);
	free(text);
	return 0;
}
