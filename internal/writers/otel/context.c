/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the job's parent trace, if the program that started the job set TRACEPARENT and
 * TRACESTATE. */
#include "writers/otel/otel_priv.h"

#include "base/log/log.h"

/* Ignores an invalid parent, along with its tracestate. */
static void take_parent(struct cop_otel_trace *p)
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

/* Takes the trace from the environment, or begins a new one. 0 or -errno. */
static int fill_trace(struct cop_otel_trace *p)
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

bool cop_otel_is_sampled(const struct cop_otel_trace *p)
{
	return p->job.flags & COP_OTLP_SAMPLED;
}

struct cop_otel_trace *cop_otel_trace_new(void)
{
	struct cop_otel_trace *t = calloc(1, sizeof(*t));
	int rc = t ? fill_trace(t) : -ENOMEM;

	if (!rc)
		return t;
	cop_log_warn("no OpenTelemetry files are written error=\"%s\"", strerror(-rc));
	free(t);
	return NULL;
}

void cop_otel_trace_free(struct cop_otel_trace *t)
{
	free(t);
}

void cop_otel_trace_parent(const struct cop_otel_trace *t, char out[COP_OTEL_PARENT_SIZE])
{
	const struct cop_otlp_context *job = &t->job;
	char *to = out + snprintf(out, COP_OTEL_PARENT_SIZE, "00-");

	for (size_t i = 0; i < sizeof(job->trace); i++)
		to += sprintf(to, "%02x", job->trace[i]);
	*to++ = '-';
	for (size_t i = 0; i < sizeof(job->span); i++)
		to += sprintf(to, "%02x", job->span[i]);
	sprintf(to, "-%02x", job->flags & 0xffu);
}
