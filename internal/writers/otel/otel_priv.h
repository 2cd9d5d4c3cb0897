/* SPDX-License-Identifier: BSD-3-Clause */
/* otel.c implements follow's callbacks and calls the other files: facts.c stores the nodes' final
 * reports, context.c finds the job's trace, and spans.c and numbers.c format lines.
 *
 * Until the job ends, the main thread owns its outcome and the totals; the follower's thread owns
 * the rest. */
#ifndef COP_WRITERS_OTEL_PRIV_H
#define COP_WRITERS_OTEL_PRIV_H

#include <limits.h>

#include "writers/otel/otel.h"
#include "otlp.h"
#include "prof/profile/profile.h"
#include "prof/telemetry/telemetry.h"

/* The interval doubles after every PACE_LINES lines of metrics. So a job of n intervals writes
 * about PACE_LINES * log2(n / PACE_LINES) lines, and at most LINES_MAX plus the last one. */
#define PACE_LINES 128u
#define LINES_MAX 4096u
#define RESOURCE_MAX 24u
#define VALUE_MAX 4096u

enum file { TRACES, METRICS, LOGS, FILES };

/* ---- numbers.c ---- */

/* Latencies of one operation. Bucket bounds are 2^10 - 1, 2^11 - 1, … 2^36 - 1 ns. */
#define LATENCY_FIRST 10u
#define LATENCY_LAST 36u
#define LATENCY_BOUNDS (LATENCY_LAST - LATENCY_FIRST + 1)
struct latency {
	uint64_t bucket[LATENCY_BOUNDS + 1];
	uint64_t sum_ns, max_ns;
};

struct totals {
	bool has;
	struct cop_follow_numbers numbers;
	struct cop_op_exits exits;
	struct latency latency[COP_PROF_OPS];
};

/* The state of the sums. They restart if one decreases, which happens when a node stops
 * answering. */
struct series {
	uint64_t start_ns, time_ns; /* when the sums started; time of the last line */
	struct cop_stats last;
	uint64_t last_cpu_us;
};

/* Selects which rounds get a line. */
struct pace {
	uint64_t rounds, stride; /* stride 0 means 1 */
	unsigned lines, lines_all;
};
bool cop_otel_is_due(struct pace *p);

void cop_otel_take_totals(struct totals *t, const struct cop_op_sum *sum);
/* totals: NULL to write only the numbers. */
void cop_otel_metrics(struct cop_buf *out, const struct cop_otlp_source *from, struct series *s,
	const struct cop_follow_numbers *n, const struct totals *totals);

/* ---- facts.c: node events, which arrive at the stop ---- */

#define SLOWEST 16u

struct node_start {
	uint32_t rank;
	char *host;
	int64_t start_ns,
		reached_ns; /* wall clock: when the node started, and when it reached the barrier */
	uint64_t phase_us[COP_TELEMETRY_PHASES];
};
struct fact {
	int64_t wall_ns;
	uint32_t rank;
	enum cop_telemetry_kind kind;
	char *host, *detail;
};
struct facts {
	struct node_start slowest[SLOWEST]; /* the last nodes to reach the barrier, latest first */
	size_t nodes;
	struct fact *fact; /* sorted by time */
	size_t n;
	uint64_t dropped;
};
/* Copies the facts; drops some if memory runs out. */
void cop_otel_take_facts(struct facts *f, const struct cop_telemetry_sum *sum,
	const char *(*host)(void *ctx, uint32_t rank), void *ctx);
void cop_otel_free_facts(struct facts *f);
/* Whether the event is a problem instead of normal progress. */
bool cop_otel_is_trouble(enum cop_telemetry_kind kind);

/* ---- context.c ---- */

struct cop_otel_trace {
	struct cop_otlp_context job; /* the job's own span */
	uint8_t start[COP_OTLP_SPAN_SIZE], stop[COP_OTLP_SPAN_SIZE];
	uint8_t parent[COP_OTLP_SPAN_SIZE]; /* the job's parent; all zeros: none */
	bool has_parent;
	char state[COP_OTLP_STATE_MAX + 1]; /* "": none */
};
bool cop_otel_is_sampled(const struct cop_otel_trace *p);

struct files {
	char dir[PATH_MAX];
	bool made[FILES], complained;
};

/* ---- otel.c ---- */

struct resource {
	struct cop_otlp_attribute at[RESOURCE_MAX];
	size_t n;
	bool failed;
};

struct cop_otel {
	struct files files;
	struct resource resource;
	struct cop_otel_trace place;
	char source[PATH_MAX];
	uint32_t nodes;
	int64_t started_ns, ready_ns;

	/* Owned by the main thread until the end. */
	bool failed, start_failed; /* failed: includes failed commands */
	uint64_t kills;            /* OOM kills before the job */
	char *reason;              /* NULL: out of memory */
	int64_t stop_ns;
	struct totals totals;
	struct facts facts;
	const char *(*host)(void *ctx, uint32_t rank);
	void *ctx;

	/* Owned by the follower's thread. */
	bool begun;
	struct series series;
	struct pace pace;
	bool has_latest; /* the latest answer has not been written yet */
	struct cop_follow_numbers latest;
};
/* Appends several lines: the nodes' events, then the end of the job. */
void cop_otel_end_records(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out);

/* ---- spans.c ---- */
/* Append spans: for the startup; and for the job and its end, with the activity of the nodes. */
void cop_otel_start_span(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out);
void cop_otel_end_spans(const struct cop_otel *o, const struct cop_otlp_source *from,
	int64_t now_ns, struct cop_buf *out);

#endif
