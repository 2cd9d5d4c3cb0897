/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child node reports, from a sender that has the secret. */
#include <stdlib.h>

#include "prof/telemetry/telemetry_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Accepted input can be merged, finished and encoded, and the result can be decoded. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_telemetry_sum *s, *into, *again = NULL;
	struct cop_buf out = {0};
	int rc;

	if (cop_telemetry_decode(data, size, &s))
		return 0;
	into = cop_telemetry_sum_like(s);
	rc = into ? cop_telemetry_merge(into, s) : -1;
	if (!rc) {
		cop_telemetry_finish(into);
		cop_telemetry_encode(into, &out);
		if (!out.failed && cop_telemetry_decode(out.data, out.len, &again))
			abort();
	}
	cop_buf_free(&out);
	cop_telemetry_sum_free(again);
	cop_telemetry_sum_free(into);
	cop_telemetry_sum_free(s);
	return 0;
}
