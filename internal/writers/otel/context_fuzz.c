/* SPDX-License-Identifier: BSD-3-Clause */
/* A traceparent and a tracestate, as the program that starts the job may put them into the
 * environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* A parsed version 00 must be written back unchanged, except for flags of later levels. */
static void check(const char *text, const struct cop_otlp_context *c)
{
	char again[56] = "00-";
	size_t n = 3;

	for (unsigned i = 0; i < COP_OTLP_TRACE_SIZE; i++)
		n += (size_t)snprintf(again + n, sizeof(again) - n, "%02x", c->trace[i]);
	again[n++] = '-';
	for (unsigned i = 0; i < COP_OTLP_SPAN_SIZE; i++)
		n += (size_t)snprintf(again + n, sizeof(again) - n, "%02x", c->span[i]);
	if (memcmp(text + 2, again + 2, n - 2) != 0 || c->flags > 3)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct cop_otlp_context c;
	char *text = strndup((const char *)data, len);

	if (!text)
		return 0;
	if (cop_otlp_parent(text, &c) == 0)
		check(text, &c);
	if (cop_otlp_is_state(text) && (!strchr(text, '=') || strlen(text) > COP_OTLP_STATE_MAX))
		abort();
	free(text);
	return 0;
}
