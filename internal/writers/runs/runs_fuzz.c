/* SPDX-License-Identifier: BSD-3-Clause */
/* Feeds arbitrary bytes as a run record. Accepted records must survive writing and parsing. */
#include <stdlib.h>
#include <string.h>

#include "writers/runs/runs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
	if (!holds)
		abort();
}

static void write_again(const struct cop_runrec *r)
{
	struct cop_runrec again = {0};
	struct cop_buf once = {0}, twice = {0};
	struct cop_err err = {0};

	cop_runrec_write(r, &once);
	require(!once.failed);
	require(cop_runrec_parse(once.data, once.len, "again", &again, &err) == 0);
	cop_runrec_write(&again, &twice);
	require(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	cop_buf_free(&once);
	cop_buf_free(&twice);
	cop_runrec_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_runrec r = {0};
	struct cop_err err = {0};
	int rc = cop_runrec_parse((const char *)data, size, "fuzz", &r, &err);

	require(!rc || err.text[0]);
	if (!rc)
		write_again(&r);
	cop_runrec_free(&r);
	return 0;
}
