/* SPDX-License-Identifier: BSD-3-Clause */
#include "trace/read/read_priv.h"

int cop_trace_otel(
	struct sink *s, const struct fields *f, struct cop_trace_str object, uint64_t line)
{
	(void)f;
	(void)object;
	s->broken(s, line, "spans of OpenTelemetry");
	return 0;
}
