/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "prof/profile/profile.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Accepted input must be exactly what encode would write, and can be merged with itself. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct cop_prof_sum *s, *twice;
	struct cop_buf out = {0};

	if (cop_prof_decode(data, size, &s))
		return 0;
	cop_prof_encode(s, &out);
	if (out.failed || out.len != size || memcmp(out.data, data, size) != 0)
		abort();
	if (cop_prof_decode(out.data, out.len, &twice))
		abort();
	if (cop_prof_merge(twice, s))
		abort();
	out.len = 0;
	cop_prof_encode(twice, &out);
	cop_prof_sum_free(twice);
	if (cop_prof_decode(out.data, out.len, &twice))
		abort();
	for (unsigned op = 0; op < COP_PROF_OPS; op++) {
		struct cop_prof_op_sum one, two;

		cop_prof_sum_op(s, op, &one);
		cop_prof_sum_op(twice, op, &two);
		if (two.calls < one.calls || two.max_ns != one.max_ns || one.p50_ns > one.p99_ns ||
			one.p999_ns > one.max_ns)
			abort();
	}
	cop_prof_sum_free(twice);
	cop_prof_sum_free(s);
	cop_buf_free(&out);
	return 0;
}
