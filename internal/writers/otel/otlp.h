/* SPDX-License-Identifier: BSD-3-Clause */
/* otlp: formats OpenTelemetry spans, metrics and log records as JSON in the OTLP mapping
 * (opentelemetry.io/docs/specs/otlp): one TracesData, MetricsData or LogsData per line, the format
 * that OpenTelemetry's file exporter writes and the collector's otlpjsonfile receiver reads.
 * Identifiers are hexadecimal, 64-bit integers are strings, enums are numbers, and times are
 * nanoseconds since 1970. Also parses the W3C trace context from the environment. Does not access
 * files or nodes.
 *
 * Arguments are not modified. Every line ends with a newline; the buffer records allocation
 * failures. Lines have no length limit, so a caller with many items should write several lines. */
#ifndef COP_WRITERS_OTEL_OTLP_H
#define COP_WRITERS_OTEL_OTLP_H

#include "base/base/base.h"

#define COP_OTLP_TRACE_SIZE 16u
#define COP_OTLP_SPAN_SIZE 8u

struct cop_otlp_attribute {
	const char *key;
	const char *text; /* NULL: use the number */
	int64_t number;
};
struct cop_otlp_attributes {
	const struct cop_otlp_attribute *at;
	size_t n;
};

/* Where the data comes from: the resource, and this program's version as the scope. */
struct cop_otlp_source {
	struct cop_otlp_attributes resource;
	const char *version;
};

/* ---- traces ---- */

/* Identifies a span by its trace and span identifiers. */
struct cop_otlp_context {
	uint8_t trace[COP_OTLP_TRACE_SIZE];
	uint8_t span[COP_OTLP_SPAN_SIZE];
	uint8_t flags; /* of the trace, as defined by the W3C */
};
#define COP_OTLP_SAMPLED 1u

struct cop_otlp_event {
	uint64_t time_ns;
	const char *name;
	struct cop_otlp_attributes attributes;
};

/* Values as in OTLP. */
enum cop_otlp_status { COP_OTLP_UNSET, COP_OTLP_OK, COP_OTLP_ERROR };

struct cop_otlp_span {
	struct cop_otlp_context at;
	uint8_t parent[COP_OTLP_SPAN_SIZE]; /* all zeros: none */
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

/* Values as in OTLP. */
enum cop_otlp_severity { COP_OTLP_INFO = 9, COP_OTLP_WARN = 13, COP_OTLP_FAILURE = 17 };

struct cop_otlp_record {
	uint64_t time_ns, observed_ns;
	enum cop_otlp_severity severity;
	const char *event; /* event name */
	const char *body;
	struct cop_otlp_attributes attributes;
	struct cop_otlp_context at;
};

void cop_otlp_logs(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_record *record, size_t n);

/* ---- metrics ---- */

struct cop_otlp_point {
	struct cop_otlp_attributes attributes;
	uint64_t start_ns, time_ns; /* start_ns 0: none, for gauges */
	bool is_real;
	double real; /* printed with nine decimals */
	uint64_t whole;
};

struct cop_otlp_histogram {
	struct cop_otlp_attributes attributes;
	uint64_t start_ns, time_ns;
	double sum, max;
	const double *bound; /* ascending; bucket i counts values up to and including bound i */
	size_t bounds;
	const uint64_t *bucket; /* one more element than bound; their sum is the count */
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
	size_t n; /* number of points or histograms */
};

void cop_otlp_metrics(struct cop_buf *out, const struct cop_otlp_source *from,
	const struct cop_otlp_metric *metric, size_t n);

/* ---- the trace context (context.c) ---- */

#define COP_OTLP_STATE_MAX 512u

/* Parses a traceparent header. 0, or -EBADMSG, which callers treat as no parent. Keeps only the
 * flags that level 2 defines, sampled and random; in later versions, parses only the known
 * fields. */
int cop_otlp_parent(const char *traceparent, struct cop_otlp_context *out);
/* Whether a tracestate may be propagated: at most 32 key=value members and COP_OTLP_STATE_MAX
 * bytes. */
bool cop_otlp_is_state(const char *tracestate);
/* New random identifiers, never all zeros. 0 or -errno. */
int cop_otlp_new_trace(uint8_t trace[COP_OTLP_TRACE_SIZE]);
int cop_otlp_new_span(uint8_t span[COP_OTLP_SPAN_SIZE]);

#endif
