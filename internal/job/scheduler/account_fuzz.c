/* SPDX-License-Identifier: BSD-3-Clause */
/* Any bytes as the output of sacct: what is accepted is text that fits on a line. */
#include <stdlib.h>
#include <string.h>

#include "job/scheduler/scheduler.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void check_text(const char *text)
{
	for (; *text; text++)
		require(*text >= ' ' && *text <= '~');
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_slurm_account a;
	char *text = strndup((const char *)data, size);
	int rc = text ? cop_slurm_account_parse(text, "7", 1700000000, &a) : -ENOMEM;

	require(rc == 0 || rc == -ENOENT || rc == -EBADMSG || rc == -ENOMEM);
	if (!rc) {
		require(*a.state && a.max_rss_bytes < (uint64_t)1e18);
		check_text(a.state);
		check_text(a.tres);
	}
	free(text);
	return 0;
}
