/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests what real files contain although no description of a format mentions it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "trace/read/read_testing.h"

#define X1 "{\"name\":\"a\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":5,\"ph\":\"X\"}"
#define X2 "{\"name\":\"b\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":20,\"dur\":5,\"ph\":\"X\"}"
#define W1 "000000010000 S a|c|1|2|||5000|1|-"
#define W2 "000000020000 S b|c|1|2|||5000|1|-"

#define HALF(ph, name, tid, ts)                                                                    \
	"{\"name\":\"" name "\",\"cat\":\"m\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts                \
	",\"ph\":\"" ph "\"},\n"

/* An event ends where its JSON object does, not with its line. */
static void an_event_may_take_several_lines_after_one_that_takes_one(void **state)
{
	(void)state;
	CHECK("[\n" X1
	      ",\n{\"name\":\"b\",\"cat\":\"c\",\"ph\":\"X\",\"pid\":1,\n\"tid\":2,\"ts\":20,\"dur\":5}\n]\n",
		W1 "@2\n" W2 "@3\n", "");
	CHECK(X1 " " X2 "\n", W1 "@1\n" W2 "@1\n", "");
	CHECK("{\"traceEvents\":[\n" X1 "," X2
	      ",\n{\n\"name\":\"d\",\"ph\":\"i\",\n\"ts\":30,\"args\":\n{\"a\":[\n{\"b\":1},\n{\"b\":2}]}}]}",
		W1 "@2\n" W2 "@2\n000000030000 I d||||||0|1|-@3\n", "");
}

static void after_the_array_of_events_nothing_is_an_event(void **state)
{
	(void)state;
	CHECK("{\n\"traceEvents\": [\n" X1 ",\n" X2 "\n ],\n\"other\": [\n" X1 ",\n" X1 "\n]\n}\n",
		W1 "@3\n" W2 "@4\n", "");
	CHECK("{\"traceEvents\":[" X1 "],\n \"stackFrames\":{\"1\":" X2 "},\"a\":\"]}\"}\n",
		W1 "@1\n", "");
	CHECK("{\"a\":[" X2 "],\"traceEvents\":[\n" X1 "\n]}", W1 "@2\n", "");
}

static void documents_may_follow_each_other(void **state)
{
	(void)state;
	CHECK("{\"traceEvents\":[" X1 "]}{\"traceEvents\":[" X2 "]}\n", W1 "@1\n" W2 "@1\n", "");
	CHECK("{\"traceEvents\":[\n" X1 "\n],\"a\":1}\n\xef\xbb\xbf{\"b\":2,\"traceEvents\":[\n" X2
	      "\n]}\n",
		W1 "@2\n" W2 "@5\n", "");
	CHECK("[" X1 "]\n[" X2 "]\n", W1 "@1\n" W2 "@2\n", "");
	/* PerfFlowAspect never closes its arrays. */
	CHECK("{ \"displayTimeUnit\":\"us\", \"otherData\":{ }, \"traceEvents\":[\n" X1 ",\n"
	      "{ \"displayTimeUnit\":\"us\", \"otherData\":{ }, \"traceEvents\":[\n" X2 ",\n",
		W1 "@2\n" W2 "@4\n", "");
}

static void brackets_may_be_indented_and_padding_is_nothing(void **state)
{
	(void)state;
	CHECK("[\n" X1 ",\n  ]\n", W1 "@2\n", "");
	CHECK("[\n" X1 ",\n" X2 ",\n{}\n]\n", W1 "@2\n" W2 "@3\n", "");
	CHECK("[" X1 ",{ }]", W1 "@1\n", "");
}

static void a_bad_first_event_refuses_nothing(void **state)
{
#define BAD(more) "{\"name\":\"x\",\"ph\":\"X\",\"pid\":1,\"tid\":1," more "}"
#define AFTER(more, why)                                                                           \
	CHECK("{\"traceEvents\":[" BAD(more) "," X1 "]}", W1 "@1\n", "F:1: " why "\n");            \
	CHECK("[\n" BAD(more) ",\n" X1 "\n]\n", W1 "@3\n", "F:2: " why "\n")
	(void)state;
	AFTER("\"ts\":1,\"dur\":-1", "the duration (dur) is not a number from 0");
	AFTER("\"ts\":null", "no event: it has no time (ts)");
	AFTER("\"ts\":1e30", "the time (ts) is out of range");
	AFTER("\"ts\":9300000000000000", "the time (ts) is out of range");
	AFTER("\"ts\":1 \"dur\":2", "a comma is missing");
	AFTER("\"ts\":1,\"dur\":two", "no value stands here");
	CHECK("[" BAD("\"ts\":1,\"dur\":-1") "]", "", "");
}

static void a_line_that_is_cut_off_hides_no_other(void **state)
{
	static const char *const cut[] = {"{\"name\":\"cu", "{\"name\":\"x\",\"ph\":\"X\"",
		"{\"name\":\"x\",", "{\"name\":", "{\"name\":\"x\",\"args\":{\"a\":[1,",
		"{\"name\":\"x\",\"args\":{\"a\":[[1,2],[3", "{"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(cut); i++) {
		struct cop_buf text = {0}, notes = {0};
		struct cop_trace_result result;
		char *got;

		cop_buf_printf(&text, "[\n%s\n%s,\n%s\n]\n", cut[i], X1, X2);
		got = events_of(text.data, text.len, false, &result, &notes);
		/* An event that could be the missing value may be lost. */
		assert_non_null(strstr(got, W2 "@4\n"));
		assert_int_equal(result.broken, 1);
		free(got);
		cop_buf_free(&text);
		cop_buf_free(&notes);
	}
}

static void arguments_may_nest_as_deep_as_they_like(void **state)
{
	struct cop_buf text = {0}, notes = {0};
	struct cop_trace_result result;
	char *got;

	(void)state;
	cop_buf_str(&text, "{\"traceEvents\":[{\"args\":{\"a\":");
	for (unsigned i = 0; i < 1000; i++)
		cop_buf_str(&text, i % 3 ? "[" : "{\"b\":");
	cop_buf_str(&text, "1");
	for (unsigned i = 1000; i-- > 0;)
		cop_buf_str(&text, i % 3 ? "]" : "}");
	cop_buf_str(&text,
		"},\"name\":\"a\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":5,\"ph\":\"X\"}]}");
	got = events_of(text.data, text.len, false, &result, &notes);
	assert_string_equal(got, W1 "@1\n");
	assert_null(notes.data);
	free(got);
	cop_buf_free(&text);
}

static void paths_of_windows_and_unknown_phases_lose_nothing(void **state)
{
	(void)state;
	CHECK("[\n{\"name\":\"C:\\Users\\x\",\"ph\":\"X\",\"ts\":10,\"dur\":5}\n{\"name\":\"n\",\"ph\":\"Zz\"}\n"
	      "{\"name\":\"v\",\"ph\":\"v\",\"ts\":\"x\"}\n",
		"000000000000 M n||||||0|1|-@3\n000000000000 M v||||||0|1|-@4\n"
		"000000010000 S C:\\Users\\x||||||5000|1|-@2\n",
		"2 events are omitted, since copper trace does not read their phases (ph): v and longer ones\n");
	CHECK("{\"name\":\"a\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":5,\"ph\":1}\n"
	      "{\"name\":\"n\",\"ph\":7}\n",
		"000000000000 M n||||||0|1|-@2\n" W1 "@1\n",
		"1 event is omitted, since copper trace does not read its phase (ph): 7\n");
}

static void times_count_from_the_base_of_their_document(void **state)
{
#define BASE "\"baseTimeNanoseconds\":1767189312000000001"
	(void)state;
	CHECK("{" BASE ",\"traceEvents\":[" X1 "]}", "1767189312000010001 S a|c|1|2|||5000|1|-@1\n",
		"");
	CHECK("{\"traceEvents\":[" X1 "]," BASE "}", "1767189312000010001 S a|c|1|2|||5000|1|-@1\n",
		"");
	CHECK("{" BASE ",\"traceEvents\":[" X1 "]}\n{\"traceEvents\":[" X2 "]}",
		W2 "@2\n1767189312000010001 S a|c|1|2|||5000|1|-@1\n", "");
	CHECK("{\"other\":{" BASE "},\"traceEvents\":[" X1 "]}", W1 "@1\n", "");
#undef BASE
}

#define ASYNC(ph, name, cat, id, ts)                                                               \
	"{\"name\":\"" name "\",\"cat\":\"" cat "\",\"id\":" id ",\"ph\":\"" ph                    \
	"\",\"pid\":1,\"tid\":2,\"ts\":" ts "},\n"

static void async_spans_pair_by_category_id_scope_and_name(void **state)
{
	(void)state;
	CHECK("[\n" ASYNC("b", "req", "net", "1", "0") ASYNC("b", "io", "disk", "1", "10")
			ASYNC("e", "req", "net", "1", "30") ASYNC("e", "io", "disk", "1", "100"),
		"000000000000 S req|net|1|2|||30000|1|-@2\n"
		"000000010000 S io|disk|1|2|||90000|1|-@3\n",
		"");
	CHECK("[\n" ASYNC("b", "Read", "d", "2", "2") ASYNC("b", "Write", "d", "2", "3")
			ASYNC("e", "Read", "d", "2", "5") ASYNC("e", "Write", "d", "2", "7"),
		"000000002000 S Read|d|1|2|||3000|1|-@2\n"
		"000000003000 S Write|d|1|2|||4000|1|-@3\n",
		"");
	CHECK("[\n" ASYNC("b", "out", "d", "2", "2") ASYNC("b", "in", "d", "2", "3")
			ASYNC("n", "now", "d", "2", "4") ASYNC("e", "in", "d", "2", "5")
				ASYNC("e", "out", "d", "2", "7"),
		"000000002000 S out|d|1|2|||5000|1|-@2\n"
		"000000003000 S in|d|1|2|||2000|1|-@3\n"
		"000000004000 I now|d|1|2|||0|1|-@4\n",
		"");
}

static void the_old_form_of_async_spans_is_read(void **state)
{
	(void)state;
	CHECK("[\n" ASYNC("S", "a", "c", "1", "1") ASYNC("S", "b", "c", "1", "2")
			ASYNC("T", "a", "c", "1", "3") ASYNC("p", "b", "c", "1", "4")
				ASYNC("F", "a", "c", "1", "31") ASYNC("F", "b", "c", "1", "42"),
		"000000001000 S a|c|1|2|||30000|1|-@2\n"
		"000000002000 S b|c|1|2|||40000|1|-@3\n"
		"000000003000 I a|c|1|2|||0|1|-@4\n"
		"000000004000 I b|c|1|2|||0|1|-@5\n",
		"");
	/* Thread states have no id. */
	CHECK("[\n{\"name\":\"Running\",\"ph\":\"T\",\"pid\":1,\"tid\":2,\"ts\":3},\n",
		"000000003000 I Running||1|2|||0|1|-@2\n", "");
}

static void an_end_ends_what_it_names(void **state)
{
	(void)state;
	CHECK("[\n" HALF("B", "outer", "1", "0") HALF("B", "lost", "1", "10")
			HALF("E", "outer", "1", "100"),
		"000000000000 S outer|m|1|1|||100000|1|-@2\n", "1 begin of a span has no end\n");
	CHECK("[\n" HALF("B", "f", "1", "0") HALF("B", "f", "1", "10") HALF("E", "f", "1", "20")
			HALF("E", "f", "1", "50"),
		"000000000000 S f|m|1|1|||50000|1|-@2\n000000010000 S f|m|1|1|||10000|1|-@3\n", "");
	CHECK("[\n" HALF("B", "f", "1", "0") "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":20},\n" HALF(
		      "B", "g", "1", "30") HALF("E", "f", "1", "50"),
		"000000000000 S f|m|1|1|||20000|1|-@2\n",
		"1 begin of a span has no end\n1 end of a span has no begin\n");
	/* PerfFlowAspect's pointcuts "before" and "after" mark two different functions. */
	CHECK("[\n" HALF("B", "main", "1", "0") HALF("B", "opened", "1", "10")
			HALF("E", "closed", "1", "20") HALF("E", "main", "1", "50"),
		"000000000000 S main|m|1|1|||50000|1|-@2\n000000010000 S opened|m|1|1|||10000|1|-@3\n",
		"");
}

static void a_hash_for_two_names_is_told(void **state)
{
#define FH(value, name)                                                                            \
	"{\"name\":\"FH\",\"ph\":\"M\",\"args\":{\"name\":\"" name "\",\"value\":" value "}}\n"
	(void)state;
	CHECK(FH("77", "/a") FH("77", "/b") FH("77", "/a") FH("78", "/c") FH("78",
		      "/d") "{\"name\":\"x\",\"ph\":\"X\",\"ts\":1,\"args\":{\"fhash\":77}}\n",
		"000000000000 M FH||||||0|1|-@1\n000000000000 M FH||||||0|1|-@2\n"
		"000000000000 M FH||||||0|1|-@3\n000000000000 M FH||||||0|1|-@4\n"
		"000000000000 M FH||||||0|1|-@5\n000000001000 S x||||/a||0|1|-@6\n",
		"F: the hash 77 (0x4d) stands for /a and for /b, and 1 more hash for two names; the first name counts\n");
#undef FH
}

static void spans_of_opentelemetry_are_read(void **state)
{
	(void)state;
	CHECK("{\"resourceSpans\":[{\"resource\":{\"attributes\":[{\"key\":\"process.pid\",\"value\":{\"intValue\":\"77\"}},"
	      "{\"key\":\"host.name\",\"value\":{\"stringValue\":\"n1\"}}]},\"scopeSpans\":[{\"scope\":{\"name\":\"lib\"},"
	      "\"spans\":[{\"spanId\":\"01\",\"name\":\"a\",\"startTimeUnixNano\":\"1000000000\",\"endTimeUnixNano\":\"1000000005\","
	      "\"attributes\":[{\"key\":\"thread.id\",\"value\":{\"intValue\":\"9\"}}],"
	      "\"events\":[{\"timeUnixNano\":\"1000000002\",\"name\":\"e\"}]}]}]}]}\n",
		"001000000000 S a|lib|77|9||n1|5|1|-@1\n001000000002 I e|lib|77|9||n1|0|1|-@1\n",
		"");
	CHECK("{\n\"name\": \"a\",\n\"context\": {\n\"span_id\": \"0x1\"\n},\n\"start_time\": \"1970-01-01T01:00:01.5+01:00\",\n"
	      "\"end_time\": \"1970-01-01T00:00:02Z\",\n\"attributes\": {},\n\"resource\": {\n\"attributes\": {\n\"process.pid\": 5\n}\n}\n}\n",
		"001500000000 S a||5||||500000000|1|-@1\n", "");
	CHECK("{\"Name\":\"a\",\"SpanContext\":{\"SpanID\":\"1\"},\"StartTime\":\"1970-01-01T00:00:01Z\",\"EndTime\":\"1970-01-01T00:00:02Z\","
	      "\"Attributes\":null,\"Resource\":[{\"Key\":\"host.name\",\"Value\":{\"Type\":\"STRING\",\"Value\":\"h\"}}]}\n",
		"001000000000 S a||||"
		"|h|1000000000|1|-@1\n",
		"");
}

#define METRICS(metric)                                                                            \
	"{\"resourceMetrics\":[{\"scopeMetrics\":[{\"scope\":{\"name\":\"s\"},"                    \
	"\"metrics\":[{" metric "}]}]}]}\n"

static void data_points_of_opentelemetry_are_counters(void **state)
{
	(void)state;
	CHECK(METRICS("\"sum\":{\"dataPoints\":[{\"asInt\":\"3\",\"timeUnixNano\":\"2\"},"
		      "{\"asInt\":\"3\"},{\"timeUnixNano\":\"4\"},{\"flags\":1,\"timeUnixNano\":\"5\"},"
		      "{\"asInt\":\"x\",\"timeUnixNano\":\"6\"}]},\"name\":\"n\""),
		"000000000002 C n|s|||||0|1|-@1\n",
		"F:1: a data point that has no time\nF:1: a data point that has no value\n"
		"F:1: a data point that has no value\n");
	CHECK(METRICS("\"name\":\"h\",\"histogram\":{\"dataPoints\":[{\"timeUnixNano\":\"1\"}]}"),
		"000000000001 C h|s|||||0|1|-@1\n", "");
	CHECK("{\"resourceMetrics\":[]}\n" METRICS(
		      "\"name\":\"g\",\"gauge\":{\"dataPoints\":[{\"asDouble\":\"NaN\",\"timeUnixNano\":7}]}"),
		"000000000007 C g|s|||||0|1|-@2\n", "");
}

static void log_records_of_opentelemetry_are_instants(void **state)
{
	(void)state;
	CHECK("{\"resourceLogs\":[{\"scopeLogs\":[{\"logRecords\":["
	      "{\"timeUnixNano\":\"5\",\"severityNumber\":24,\"body\":{\"stringValue\":\"b\"}},"
	      "{\"timeUnixNano\":\"0\",\"observedTimeUnixNano\":\"6\",\"severityText\":\"odd\",\"severityNumber\":1,"
	      "\"eventName\":\"e\",\"body\":{\"stringValue\":\"b\"}},"
	      "{\"body\":{\"stringValue\":\"never\"}}]}]}]}\n",
		"000000000005 I b|FATAL|||||0|1|-@1\n000000000006 I e|odd|||||0|1|-@1\n",
		"F:1: a log record that has no time\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_may_take_several_lines_after_one_that_takes_one),
		cmocka_unit_test(after_the_array_of_events_nothing_is_an_event),
		cmocka_unit_test(documents_may_follow_each_other),
		cmocka_unit_test(brackets_may_be_indented_and_padding_is_nothing),
		cmocka_unit_test(a_bad_first_event_refuses_nothing),
		cmocka_unit_test(a_line_that_is_cut_off_hides_no_other),
		cmocka_unit_test(arguments_may_nest_as_deep_as_they_like),
		cmocka_unit_test(paths_of_windows_and_unknown_phases_lose_nothing),
		cmocka_unit_test(times_count_from_the_base_of_their_document),
		cmocka_unit_test(async_spans_pair_by_category_id_scope_and_name),
		cmocka_unit_test(the_old_form_of_async_spans_is_read),
		cmocka_unit_test(an_end_ends_what_it_names),
		cmocka_unit_test(a_hash_for_two_names_is_told),
		cmocka_unit_test(spans_of_opentelemetry_are_read),
		cmocka_unit_test(data_points_of_opentelemetry_are_counters),
		cmocka_unit_test(log_records_of_opentelemetry_are_instants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
