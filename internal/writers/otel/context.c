/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that started the job may be part of a trace, which it says in the environment:
 * TRACEPARENT and TRACESTATE. */
#include "writers/otel/otel_priv.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log/log.h"

/* An invalid parent counts as none, and its tracestate is dropped with it. */
static void take_parent(struct place *p)
{
	const char *parent = getenv("TRACEPARENT"), *state = getenv("TRACESTATE");

	if (!parent || !*parent)
		return;
	if (cop_otlp_parent(parent, &p->job)) {
		cop_log_warn("TRACEPARENT is not valid: this job begins a trace of its own");
		return;
	}
	p->has_parent = true;
	memcpy(p->parent, p->job.span, sizeof(p->parent));
	if (state && cop_otlp_is_state(state))
		snprintf(p->state, sizeof(p->state), "%s", state);
	if (!cop_otel_is_sampled(p))
		cop_log_info(
			"no spans are written: TRACEPARENT says that nobody records its trace");
}

int cop_otel_place(struct place *p)
{
	int rc = 0;

	take_parent(p);
	if (!p->has_parent) {
		p->job.flags = COP_OTLP_SAMPLED;
		rc = cop_otlp_new_trace(p->job.trace);
	}
	if (!rc)
		rc = cop_otlp_new_span(p->job.span);
	if (!rc)
		rc = cop_otlp_new_span(p->start);
	return rc ? rc : cop_otlp_new_span(p->stop);
}

bool cop_otel_is_sampled(const struct place *p)
{
	return p->job.flags & COP_OTLP_SAMPLED;
}
