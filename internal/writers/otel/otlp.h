/* SPDX-License-Identifier: BSD-3-Clause */
/* otlp: spans, metrics and log records of OpenTelemetry as text: JSON in OTLP's mapping
 * (opentelemetry.io/docs/specs/otlp), one TracesData, MetricsData or LogsData per line, as
 * OpenTelemetry's file exporter writes them and the collector's otlpjsonfile receiver reads them.
 * Identifiers are hexadecimal, 64-bit integers are strings, enumerations are numbers, times are
 * nanoseconds since 1970. It also reads the W3C's trace context, as the environment hands it down.
 * It knows no file and no node.
 *
 * Arguments are only read. A line ends with a newline; the buffer shows whether memory was short.
 * The length of a line is not limited, so a caller with many items writes several lines. */
#ifndef COP_WRITERS_OTEL_OTLP_H
#define COP_WRITERS_OTEL_OTLP_H

#include "base/base/base.h"

#define COP_OTLP_TRACE_SIZE 16u
#define COP_OTLP_SPAN_SIZE 8u

struct cop_otlp_attribute {
	const char *key;
	const char *text; /* NULL: the number */
	int64_t number;
};
struct cop_otlp_attributes {
	const struct cop_otlp_attribute *at;
	size_t n;
};

/* Where the data comes from: the resource, and the version of this program, which is the scope. */
struct cop_otlp_source {
	struct cop_otlp_attributes resource;
	const char *version;
};

/* ---- traces ---- */

/* The place of a span: its trace and its identifier. */
struct cop_otlp_context {
	uint8_t trace[COP_OTLP_TRACE_SIZE];
	uint8_t span[COP_OTLP_SPAN_SIZE];
	uint8_t flags; /* of the trace, as the W3C defines them */
};
#define COP_OTLP_SAMPLED 1u

struct cop_otlp_event {
	uint64_t time_ns;
	const char *name;
	struct cop_otlp_attributes attributes;
};

/* By their numbers in OTLP. */
enum cop_otlp_status { COP_OTLP_UNSET, COP_OTLP_OK, COP_OTLP_ERROR };

struct cop_otlp_span {
	struct cop_otlp_context at;
	uint8_t parent[COP_OTLP_SPAN_SIZE]; /* all zero: none */
	bool remote;                        /* the parent is in another process */
	const char *state;                  /* tracestate; NULL: none */
	const char *name;
	uint64_t start_ns, end_ns;
	struct cop_otlp_attributes attributes;
	const struct cop_otlp_event *event;
	size_t events;
	uint32_t dropped_events;
	enum cop_otlp_status status;
	const char *message; /* of an error; NULL: none */
};

void cop_otlp_traces(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_span *span, size_t n);

/* ---- logs ---- */

/* By their numbers in OTLP. */
enum cop_otlp_severity { COP_OTLP_INFO = 9, COP_OTLP_WARN = 13, COP_OTLP_FAILURE = 17 };

struct cop_otlp_record {
	uint64_t time_ns, observed_ns;
	enum cop_otlp_severity severity;
	const char *event; /* its name */
	const char *body;
	struct cop_otlp_attributes attributes;
	struct cop_otlp_context at;
};

void cop_otlp_logs(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_record *record, size_t n);

/* ---- metrics ---- */

struct cop_otlp_point {
	struct cop_otlp_attributes attributes;
	uint64_t start_ns, time_ns; /* start 0: none, as of a gauge */
	bool is_real;
	double real; /* written to the nanosecond */
	uint64_t whole;
};

struct cop_otlp_histogram {
	struct cop_otlp_attributes attributes;
	uint64_t start_ns, time_ns;
	double sum, max;
	const double *bound; /* ascending; bucket i holds values up to and including bound i */
	size_t bounds;
	const uint64_t *bucket; /* one more than there are bounds; their sum is the count */
};

enum cop_otlp_kind {
	COP_OTLP_SUM, /* cumulative and monotonic */
	COP_OTLP_GAUGE,
	COP_OTLP_HISTOGRAM, /* cumulative */
};

struct cop_otlp_metric {
	const char *name, *unit, *description;
	enum cop_otlp_kind kind;
	const struct cop_otlp_point *point; /* sums and gauges */
	const struct cop_otlp_histogram *histogram;
	size_t n; /* the number of points or of histograms */
};

void cop_otlp_metrics(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_metric *metric, size_t n);

/* ---- the trace context (context.c) ---- */

#define COP_OTLP_STATE_MAX 512u

/* Reads a traceparent: 0, or -EBADMSG, which means that there is no parent. Keeps only the flags
 * that level 2 knows, sampled and random; reads only the known fields of later versions. */
int cop_otlp_parent(const char *traceparent, struct cop_otlp_context *out);
/* Whether a tracestate may be handed on: at most 32 members of the form key=value and
 * COP_OTLP_STATE_MAX bytes. */
bool cop_otlp_is_state(const char *tracestate);
/* New random identifiers, which are never all zero. 0 or -errno. */
int cop_otlp_new_trace(uint8_t trace[COP_OTLP_TRACE_SIZE]);
int cop_otlp_new_span(uint8_t span[COP_OTLP_SPAN_SIZE]);

#endif
