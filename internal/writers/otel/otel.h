/* SPDX-License-Identifier: BSD-3-Clause */
/* otel: decides what rank 0 writes about a job for OpenTelemetry, and when, in
 * JOBDIR/otel/traces.jsonl, metrics.jsonl and logs.jsonl (copper-formats(5)). follow reports the
 * state of the job, and otlp formats the lines. Replaces the files of an earlier job. A failed
 * write is logged once and retried with the next line. A line is written in full or not at all. */
#ifndef COP_WRITERS_OTEL_H
#define COP_WRITERS_OTEL_H

#include "base/base/base.h"
#include "writers/runs/runs.h"

/* A job's place in a trace: the one that TRACEPARENT in the environment names, or a new trace. */
struct cop_otel_trace;

/* NULL on failure, which is logged. */
struct cop_otel_trace *cop_otel_trace_new(void);
/* t may be NULL. */
void cop_otel_trace_free(struct cop_otel_trace *t);
/* Formats a TRACEPARENT that makes new spans children of the job's span. */
#define COP_OTEL_PARENT_SIZE 56
void cop_otel_trace_parent(const struct cop_otel_trace *t, char out[COP_OTEL_PARENT_SIZE]);

struct cop_otel_conf {
	const struct cop_otel_trace *trace; /* copied */
	const char *job_dir;                /* absolute */
	const char *source;                 /* absolute; "": unknown */
	uint32_t nodes;
	int64_t started_ns; /* wall clock: start of rank 0 */
	int64_t ready_ns;   /* wall clock: end of its startup */
	/* Called on the main thread when the totals arrive. Returns the name of a rank's host,
	 * which is copied. */
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;
};

/* Adds a follower that writes the files. Logs failures. */
void cop_otel_follow(struct cop_follow *f, const struct cop_otel_conf *conf);

#endif
