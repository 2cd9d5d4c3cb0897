/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests the format of the lines. scripts/t/t1810-otel.sh checks them against OpenTelemetry's
 * protobuf definitions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "otlp.h"

#define AROUND(resources, scopes, what, text)                                                      \
	"{\"" resources "\":[{\"resource\":{\"attributes\":[{\"key\":\"service.name\",\"value\":"  \
	"{\"stringValue\":\"copper\"}}]},\"" scopes                                                \
	"\":[{\"scope\":{\"name\":\"copper\",\"version\":\"1\"},\"" what "\":[" text "]}]}]}\n"

static const struct cop_otlp_attribute named = {.key = "service.name", .text = "copper"};
static const struct cop_otlp_source from = {{&named, 1}, "1"};
static const struct cop_otlp_context at = {.trace = {0x0a, 0xf7, 0x65, 0x19, 0x16, 0xcd, 0x43, 0xdd,
						   0x84, 0x48, 0xeb, 0x21, 0x1c, 0x80, 0x31, 0x9c},
	.span = {0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31},
	.flags = 1};
#define IDS "\"traceId\":\"0af7651916cd43dd8448eb211c80319c\",\"spanId\":\"b7ad6b7169203331\""

static void is_line(struct cop_buf *got, const char *wanted)
{
	assert_false(got->failed);
	assert_string_equal(got->data, wanted);
	cop_buf_free(got);
}

static void a_span_has_hexadecimal_ids_and_times_as_strings(void **state)
{
	struct cop_otlp_span s = {.at = at, .name = "x", .start_ns = 1, .end_ns = UINT64_MAX};
	struct cop_buf out = {0};

	(void)state;
	cop_otlp_traces(&out, &from, &s, 1);
	is_line(&out, AROUND("resourceSpans", "scopeSpans", "spans",
			      "{" IDS ",\"flags\":257,\"name\":\"x\",\"kind\":1,"
			      "\"startTimeUnixNano\":\"1\","
			      "\"endTimeUnixNano\":\"18446744073709551615\",\"status\":{}}"));
}

static void a_span_of_a_remote_parent_has_events_and_an_error(void **state)
{
	const struct cop_otlp_attribute rank = {.key = "rank", .number = INT64_MIN};
	const struct cop_otlp_event event = {2, "e", {&rank, 1}};
	struct cop_otlp_span s = {.at = at,
		.parent = {1},
		.remote = true,
		.state = "a=b",
		.name = "x",
		.start_ns = 1,
		.end_ns = 3,
		.event = &event,
		.events = 1,
		.dropped_events = 5,
		.status = COP_OTLP_ERROR,
		.message = "why"};
	struct cop_buf out = {0};

	(void)state;
	cop_otlp_traces(&out, &from, &s, 1);
	is_line(&out,
		AROUND("resourceSpans", "scopeSpans", "spans",
			"{" IDS ",\"traceState\":\"a=b\",\"parentSpanId\":\"0100000000000000\","
			"\"flags\":769,\"name\":\"x\",\"kind\":1,\"startTimeUnixNano\":\"1\","
			"\"endTimeUnixNano\":\"3\",\"droppedEventsCount\":5,\"events\":["
			"{\"timeUnixNano\":\"2\",\"name\":\"e\",\"attributes\":[{\"key\":\"rank\","
			"\"value\":{\"intValue\":\"-9223372036854775808\"}}]}],"
			"\"status\":{\"code\":2,\"message\":\"why\"}}"));
}

static void a_log_record_has_its_severity_as_number_and_text(void **state)
{
	struct cop_otlp_record r[] = {
		{1, 2, COP_OTLP_WARN, "failover", "b", {NULL, 0}, at},
		{3, 4, COP_OTLP_FAILURE, "dead", "", {NULL, 0}, at},
	};
	struct cop_buf out = {0};

	(void)state;
	cop_otlp_logs(&out, &from, r, 2);
	is_line(&out, AROUND("resourceLogs", "scopeLogs", "logRecords",
			      "{\"timeUnixNano\":\"1\",\"observedTimeUnixNano\":\"2\","
			      "\"severityNumber\":13,\"severityText\":\"WARN\","
			      "\"eventName\":\"failover\",\"body\":{\"stringValue\":\"b\"},"
			      "\"flags\":1," IDS "},"
			      "{\"timeUnixNano\":\"3\",\"observedTimeUnixNano\":\"4\","
			      "\"severityNumber\":17,\"severityText\":\"ERROR\","
			      "\"eventName\":\"dead\",\"body\":{\"stringValue\":\"\"},"
			      "\"flags\":1," IDS "}"));
}

static void a_sum_is_cumulative_and_its_integers_are_strings(void **state)
{
	const struct cop_otlp_attribute read = {.key = "operation", .text = "read"};
	const struct cop_otlp_point p[] = {
		{.attributes = {&read, 1}, .start_ns = 1, .time_ns = 2, .whole = UINT64_MAX},
		{.start_ns = 1, .time_ns = 2, .is_real = true, .real = 0.5},
	};
	const struct cop_otlp_metric m = {"n", "By", "d", COP_OTLP_SUM, p, NULL, 2};
	struct cop_buf out = {0};

	(void)state;
	cop_otlp_metrics(&out, &from, &m, 1);
	is_line(&out, AROUND("resourceMetrics", "scopeMetrics", "metrics",
			      "{\"name\":\"n\",\"description\":\"d\",\"unit\":\"By\",\"sum\":{"
			      "\"aggregationTemporality\":2,\"isMonotonic\":true,\"dataPoints\":["
			      "{\"attributes\":[{\"key\":\"operation\",\"value\":"
			      "{\"stringValue\":\"read\"}}],\"startTimeUnixNano\":\"1\","
			      "\"timeUnixNano\":\"2\",\"asInt\":\"9223372036854775807\"},"
			      "{\"startTimeUnixNano\":\"1\",\"timeUnixNano\":\"2\","
			      "\"asDouble\":0.500000000}]}}"));
}

static void a_gauge_has_no_start_and_a_histogram_counts_its_buckets(void **state)
{
	const double bound[] = {0.001, 2};
	const uint64_t bucket[] = {1, 0, 4};
	const struct cop_otlp_point p = {.time_ns = 2, .whole = 3};
	const struct cop_otlp_histogram h = {.start_ns = 1,
		.time_ns = 2,
		.sum = 10,
		.max = 3.5,
		.bound = bound,
		.bounds = 2,
		.bucket = bucket};
	const struct cop_otlp_metric m[] = {
		{"g", "By", "d", COP_OTLP_GAUGE, &p, NULL, 1},
		{"h", "s", "d", COP_OTLP_HISTOGRAM, NULL, &h, 1},
	};
	struct cop_buf out = {0};

	(void)state;
	cop_otlp_metrics(&out, &from, m, 2);
	is_line(&out,
		AROUND("resourceMetrics", "scopeMetrics", "metrics",
			"{\"name\":\"g\",\"description\":\"d\",\"unit\":\"By\",\"gauge\":{"
			"\"dataPoints\":[{\"timeUnixNano\":\"2\",\"asInt\":\"3\"}]}},"
			"{\"name\":\"h\",\"description\":\"d\",\"unit\":\"s\",\"histogram\":{"
			"\"aggregationTemporality\":2,\"dataPoints\":[{\"startTimeUnixNano\":\"1\","
			"\"timeUnixNano\":\"2\",\"count\":\"5\",\"sum\":10.000000000,"
			"\"max\":3.500000000,\"bucketCounts\":[\"1\",\"0\",\"4\"],"
			"\"explicitBounds\":[0.001000000,2.000000000]}]}}"));
}

static void new_identifiers_differ(void **state)
{
	uint8_t a[COP_OTLP_TRACE_SIZE], b[COP_OTLP_TRACE_SIZE];
	uint8_t c[COP_OTLP_SPAN_SIZE], d[COP_OTLP_SPAN_SIZE];

	(void)state;
	assert_int_equal(cop_otlp_new_trace(a) | cop_otlp_new_trace(b), 0);
	assert_int_equal(cop_otlp_new_span(c) | cop_otlp_new_span(d), 0);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_memory_not_equal(c, d, sizeof(c));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_span_has_hexadecimal_ids_and_times_as_strings),
		cmocka_unit_test(a_span_of_a_remote_parent_has_events_and_an_error),
		cmocka_unit_test(a_log_record_has_its_severity_as_number_and_text),
		cmocka_unit_test(a_sum_is_cumulative_and_its_integers_are_strings),
		cmocka_unit_test(a_gauge_has_no_start_and_a_histogram_counts_its_buckets),
		cmocka_unit_test(new_identifiers_differ),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
