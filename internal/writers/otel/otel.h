/* SPDX-License-Identifier: BSD-3-Clause */
/* otel: decides what rank 0 writes about a job for OpenTelemetry, and when:
 * JOBDIR/otel/traces.jsonl, metrics.jsonl and logs.jsonl (copper-formats(5)). It learns from follow
 * how the job goes; otlp knows the form of a line. The files of an earlier job are replaced. A file
 * that cannot be written is logged once, and tried again with the next line; a line is written
 * whole or not at all. */
#ifndef COP_WRITERS_OTEL_H
#define COP_WRITERS_OTEL_H

#include "base/base/base.h"
#include "writers/runs/runs.h"

/* The place of a job in a trace: that of TRACEPARENT in the environment, or a new one. */
struct cop_otel_trace;

/* NULL: it cannot be had, which the log says. */
struct cop_otel_trace *cop_otel_trace_new(void);
/* NULL is fine. */
void cop_otel_trace_free(struct cop_otel_trace *t);
/* A TRACEPARENT that makes spans children of the job's span. */
#define COP_OTEL_PARENT_SIZE 56
void cop_otel_trace_parent(const struct cop_otel_trace *t, char out[COP_OTEL_PARENT_SIZE]);

struct cop_otel_conf {
	const struct cop_otel_trace *trace; /* copied */
	const char *job_dir;                /* absolute */
	const char *source;                 /* absolute; "": not known */
	uint32_t nodes;
	int64_t started_ns; /* wall clock: when rank 0 began, and when the start ended */
	int64_t ready_ns;
	/* Main thread, when totals come. The name of a rank's host, which is copied. */
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;
};

/* Adds a follower that writes the files. If that fails, the log says so. */
void cop_otel_follow(struct cop_follow *f, const struct cop_otel_conf *conf);

#endif
