/* SPDX-License-Identifier: BSD-3-Clause */
/* otel: decides what rank 0 writes about a job for OpenTelemetry, and when:
 * JOBDIR/otel/traces.jsonl, metrics.jsonl and logs.jsonl (copper-formats(5)). follow reports the
 * state of the job; otlp formats lines. Files of an earlier job are replaced. A write failure is
 * logged once, and retried with the next line; a line is written completely or not at all. */
#ifndef COP_WRITERS_OTEL_H
#define COP_WRITERS_OTEL_H

#include "base/base/base.h"
#include "writers/runs/runs.h"

/* A job's position in a trace: from TRACEPARENT in the environment, or a new trace. */
struct cop_otel_trace;

/* NULL: failed; the error is logged. */
struct cop_otel_trace *cop_otel_trace_new(void);
/* NULL is fine. */
void cop_otel_trace_free(struct cop_otel_trace *t);
/* A TRACEPARENT that makes new spans children of the job's span. */
#define COP_OTEL_PARENT_SIZE 56
void cop_otel_trace_parent(const struct cop_otel_trace *t, char out[COP_OTEL_PARENT_SIZE]);

struct cop_otel_conf {
	const struct cop_otel_trace *trace; /* copied */
	const char *job_dir;                /* absolute */
	const char *source;                 /* absolute; "": unknown */
	uint32_t nodes;
	int64_t started_ns; /* wall clock: start of rank 0, and end of the startup */
	int64_t ready_ns;
	/* Main thread, on totals. The name of a rank's host, which is copied. */
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;
};

/* Adds a follower that writes the files. Failures are logged. */
void cop_otel_follow(struct cop_follow *f, const struct cop_otel_conf *conf);

#endif
