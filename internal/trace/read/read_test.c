/* SPDX-License-Identifier: BSD-3-Clause */
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

static void generation_0_quotes_every_number(void **state)
{
	(void)state;
	CHECK("[\n"
	      "{\"id\":\"2\",\"name\":\"read\",\"cat\":\"POSIX\",\"pid\":\"7\",\"tid\":\"8\",\"ts\":\"10\","
	      "\"dur\":\"3430\",\"ph\":\"X\",\"args\":{\"hostname\":\"c237\",\"ret\":18,\"fname\":\"/p/\x01x\"}}\n",
		"000000010000 S read|POSIX|7|8|/p/\x01x|c237|3430000|1|18@2\n", "");
}

static void generation_1_defines_names_before_or_after_their_use(void **state)
{
	(void)state;
	CHECK("[\n"
	      "{\"id\":1,\"name\":\"write\",\"cat\":\"POSIX\",\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":5,\"ph\":\"X\","
	      "\"args\":{\"hhash\":11053064226538014863,\"fhash\":77,\"ret\":4096}}\n"
	      "{\"id\":0,\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":2,\"ph\":\"M\","
	      "\"args\":{\"hhash\":1,\"name\":\"/p/f\",\"value\":77}}\n"
	      "{\"id\":0,\"name\":\"HH\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":2,\"ph\":\"M\","
	      "\"args\":{\"name\":\"node1\",\"value\":11053064226538014863}}\n"
	      "{\"id\":2,\"name\":\"close\",\"cat\":\"POSIX\",\"pid\":1,\"tid\":2,\"ts\":20,\"dur\":5,\"ph\":\"X\","
	      "\"args\":{\"fhash\":78,\"ret\":1}}\n"
	      "]\n",
		"000000000000 M FH|dftracer|1|2||1|0|1|-@3\n"
		"000000000000 M HH|dftracer|1|2|||0|1|-@4\n"
		"000000010000 S write|POSIX|1|2|/p/f|node1|5000|1|4096@2\n"
		"000000020000 S close|POSIX|1|2|78||5000|1|-@5\n",
		"");
}

static void generation_2_has_numbers_for_phases_and_counts(void **state)
{
	(void)state;
	CHECK("{\"id\":1,\"name\":\"read\",\"cat\":\"POSIX\",\"type\":1,\"pid\":1,\"tid\":2,\"ts\":10,\"dur\":5,"
	      "\"ph\":1,\"args\":{\"fhash\":\"00ff\",\"ret\":10}}\n"
	      "{\"name\":\"read\",\"cat\":\"POSIX\",\"type\":1,\"pid\":1,\"tid\":2,\"ts\":20,\"dur\":5,\"ph\":3,"
	      "\"args\":{\"dft_cnt\":4,\"dur_min\":1,\"dur_max\":3,\"dur_sum\":8}}\n"
	      "{\"name\":\"mem\",\"cat\":\"sys\",\"pid\":1,\"tid\":2,\"ts\":30,\"ph\":2}\n"
	      "{\"name\":\"FH\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":2,\"ph\":4,"
	      "\"args\":{\"name\":\"/p/g\",\"value\":\"ff\"}}\n",
		"000000000000 M FH|dftracer|1|2|||0|1|-@4\n"
		"000000010000 S read|POSIX|1|2|/p/g||5000|1|10@1\n"
		"000000020000 A read|POSIX|1|2|||8000|4|-@2\n"
		"000000030000 C mem|sys|1|2|||0|1|-@3\n",
		"");
}

static void perfflowaspect_is_never_closed(void **state)
{
	(void)state;
	CHECK("[\n" X1 ",\n" X2 ",\n", W1 "@2\n" W2 "@3\n", "");
	CHECK("{ \"displayTimeUnit\":\"us\", \"otherData\":{ }, \"traceEvents\":[\n" X1 ",\n" X2
	      ",\n",
		W1 "@2\n" W2 "@3\n", "");
}

static void begins_and_ends_become_spans(void **state)
{
#define HALF(ph, name, tid, ts)                                                                    \
	"{\"name\":\"" name "\",\"cat\":\"m\",\"pid\":1,\"tid\":" tid ",\"ts\":" ts                \
	",\"ph\":\"" ph "\"},\n"
	(void)state;
	CHECK("[\n" HALF("B", "out", "1", "10.5") HALF("B", "in", "1", "11")
			HALF("B", "else", "2", "11.25") HALF("E", "in", "1", "12.125")
				HALF("E", "out", "1", "20.5") HALF("E", "none", "3", "21"),
		"000000010500 S out|m|1|1|||10000|1|-@2\n"
		"000000011000 S in|m|1|1|||1125|1|-@3\n",
		"1 begin of a span has no end\n1 end of a span has no begin\n");
	CHECK("[{\"name\":\"f\",\"cat\":\"m\",\"id\":1,\"scope\":\"s\",\"pid\":1,\"tid\":1,\"ts\":1,\"ph\":\"b\"},\n"
	      "{\"name\":\"g\",\"cat\":\"m\",\"id\":1,\"scope\":\"t\",\"pid\":1,\"tid\":1,\"ts\":2,\"ph\":\"b\"},\n"
	      "{\"name\":\"h\",\"cat\":\"m\",\"id\":1,\"scope\":\"s\",\"pid\":1,\"tid\":2,\"ts\":9,\"ph\":\"e\"},\n",
		"000000001000 S f|m|1|1|||8000|1|-@1\n", "1 begin of a span has no end\n");
}

static void a_document_may_stand_on_any_number_of_lines(void **state)
{
	(void)state;
	CHECK("{\n \"schemaVersion\": 1, \"deviceProperties\": [ {\"traceEvents\": 3} ],\n"
	      " \"traceEvents\": [\n  {\n   \"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::\\u00e9\\\"x\",\n"
	      "   \"pid\": \"Spans\", \"tid\": 3, \"ts\": 1.5e1, \"dur\": 2.0004,\n"
	      "   \"args\": {\"Input Dims\": [[1, 2], []], \"ret\": 5}\n  },\n"
	      "  {\n   \"ph\": \"M\", \"name\": \"process_name\", \"pid\": 1, \"args\": {\"name\": \"python\"}\n  }\n"
	      " ],\n \"traceName\": \"{[x\"\n}\n",
		"000000000000 M process_name||1||||0|1|-@9\n"
		"000000015000 S aten::\xc3\xa9\"x|cpu_op|Spans|3|||2000|1|-@4\n",
		"");
	CHECK("{\"traceEvents\":[" X1 "," X2 "],\"more\":{}}", W1 "@1\n" W2 "@1\n", "");
	CHECK("[" X1 "," X2 "]", W1 "@1\n" W2 "@1\n", "");
	CHECK("{\n\"traceEvents\": [\n" X1 ",\n" X2 "\n],\n\"otherData\": {\n\"a\": 1\n}\n}\n",
		W1 "@3\n" W2 "@4\n", "");
}

/* U+CDDAD, U+C65A9, U+1D800 and a lone surrogate, escaped as in RFC 8259 and encoded as in RFC
 * 3629. */
static void a_pair_of_escapes_is_one_character(void **state)
{
	(void)state;
	CHECK("[\n{\"name\":\"\\udaf7\\uddad@\\uDAD9\\uDDA9\\ud836\\udc00\\udc00\",\"cat\":\"c\",\"pid\":1,"
	      "\"tid\":2,\"ts\":10,\"dur\":5,\"ph\":\"X\"}\n",
		"000000010000 S \xf3\x8d\xb6\xad@\xf3\x86\x96\xa9\xf0\x9d\xa0\x80\xef\xbf\xbd|c|1|2|||5000|1|-@2\n",
		"");
}

static void what_cannot_be_read_is_named_and_the_rest_is_read(void **state)
{
	(void)state;
	CHECK("[\n" X1 "\n{\"name\":\"cut\n\nno event\n{\"ph\":\"X\",\"ts\":\"\"}\n{\"a\":1}\n" X2
	      "\n]\n",
		W1 "@2\n" W2 "@8\n",
		"F:3: the event is cut off\nF:5: no event begins here\n"
		"F:6: no event: it has no time (ts)\n"
		"4 lines or events could not be read; these are the first\n");
	CHECK("{\"traceEvents\":[" X1 ",{\"name\":1,}," X2 ",{\"na", W1 "@1\n" W2 "@1\n",
		"F:1: no event: it has no phase (ph)\nF:1: the event is cut off\n");
}

/* The second number of each pair has an exponent, which the fast path does not handle. */
static void a_number_reads_alike_with_escapes_and_in_any_form(void **state)
{
#define AS(ts, dur, ret)                                                                           \
	"{\"name\":\"a\",\"cat\":\"c\",\"pid\":1,\"tid\":2,\"ts\":\"" ts "\",\"dur\":\"" dur       \
	"\",\"ph\":\"X\",\"args\":{\"ret\":" ret "}}\n"
#define NO(line, why) "F:" #line ": " why "\n"
#define DUR "the duration (dur) is not a number from 0"
	(void)state;
	CHECK("[\n" AS("1\\u0030", "5", "1") AS("1\\u0030", "5", "1e0"), W1 "@2\n" W1 "@3\n", "");
	CHECK("[\n" X1 "\n" AS("\\t20", "5", "1") AS("\\t20", "5", "1e0"), W1 "@2\n",
		NO(3, "no event: it has no time (ts)") NO(4, "no event: it has no time (ts)"));
	CHECK("[\n" X1 "\n" AS("20", "5x", "1") AS("20", "5x", "1e0") AS("20", "5\\n", "1"),
		W1 "@2\n", NO(3, DUR) NO(4, DUR) NO(5, DUR));
#undef AS
#undef NO
#undef DUR
}

static void files_that_are_no_trace_are_told(void **state)
{
	(void)state;
	CHECK("", "", "F: it is empty\n");
	CHECK("hello\n", "", "F: it is neither JSON nor gzip\n");
	CHECK("{\"a\":1}\n", "", "F: it has no traceEvents\n");
	CHECK("[1,2,3]\n", "", "F: it has no event of a format that is known\n");
	CHECK("\x1f\x8bnothing", "", "F: the gzip data is damaged\n");
	CHECK("[\n]\n", "", "");
	CHECK("{\"traceEvents\":[]}", "", "");
}

static void a_beginning_that_is_broken_does_not_end_it(void **state)
{
	(void)state;
	CHECK("f\",\"cat\":\"c\"}\n" X1 "\n" X2 "\n", W1 "@2\n" W2 "@3\n",
		"F:1: no event begins here\n");
	CHECK("\nwarning: late\n[\n" X1 "\n]\n", W1 "@4\n", "F:2: no event begins here\n");
	CHECK("\0\0\0\n[\n" X1 ",\n", W1 "@3\n", "F:1: no event begins here\n");
	CHECK("hello {\"a\":1}\n{\"a\":1}\n", "", "F: it is neither JSON nor gzip\n");
}

/* In each format, the first event may have any length up to the maximum. */
static void the_first_event_may_be_long(void **state)
{
	static const char *const form[][3] = {{"[\n", "\n", "\n"}, {"", "\n", ""},
		{"{\"traceEvents\":[", ",", "]}"}, {"{\n\"traceEvents\": [\n ", ",\n ", "\n]\n}\n"},
		{"{ \"displayTimeUnit\":\"us\", \"otherData\":{ }, \"traceEvents\":[\n", ",\n",
			",\n"}};
	static const size_t size[] = {60000, 65536, 65600, 300000, 1000000};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(form) * COP_ARRAY_SIZE(size); i++) {
		const char *const *f = form[i / COP_ARRAY_SIZE(size)];
		char *text, *got, *filler = calloc(1, size[i % COP_ARRAY_SIZE(size)] + 1);
		struct cop_trace_result result;
		struct cop_buf notes = {0};

		memset(filler, 'y', size[i % COP_ARRAY_SIZE(size)]);
		assert_true(
			asprintf(&text,
				"%s{\"args\":{\"x\":\"%s\"},\"name\":\"a\",\"cat\":\"c\",\"pid\":1,"
				"\"tid\":2,\"ts\":10,\"dur\":5,\"ph\":\"X\"}%s%s%s",
				f[0], filler, f[1], X2, f[2]) > 0);
		got = events_of(text, strlen(text), true, &result, &notes);
		assert_non_null(strstr(got, W1));
		assert_non_null(strstr(got, W2));
		assert_null(notes.data);
		free(got);
		free(text);
		free(filler);
	}
}

/* 20 MB. */
static void add_long_name(struct cop_buf *text)
{
	char part[1001] = "";

	memset(part, 'y', sizeof(part) - 1);
	for (unsigned i = 0; i < 20000; i++)
		cop_buf_str(text, part);
}

/* The input is larger than a block and has lines that are too long in it. */
static void a_line_that_is_too_long_is_skipped(void **state)
{
	struct cop_buf text = {0};
	struct cop_trace_result result;
	struct cop_buf notes = {0};
	char *got;

	(void)state;
	cop_buf_str(&text, "[\n" X1 "\n{\"name\":\"");
	add_long_name(&text);
	cop_buf_str(&text, "\"}\n" X2 "\n");
	got = events_of(text.data, text.len, false, &result, &notes);
	assert_string_equal(got, W1 "@2\n" W2 "@4\n");
	assert_string_equal(notes.data, "F:3: an event of more than 16 MiB\n");
	assert_int_equal(result.broken, 1);
	free(got);
	cop_buf_free(&notes);
	cop_buf_free(&text);
	cop_buf_str(&text, "{ \"resourceSpans\" : [{\"scopeSpans\":[{\"scope\":{\"name\":\"");
	add_long_name(&text);
	cop_buf_str(&text, "\"}}]}]}\n" X2 "\n");
	got = events_of(text.data, text.len, false, &result, &notes);
	assert_string_equal(got, W2 "@2\n");
	assert_string_equal(notes.data,
		"F:1: a line of OpenTelemetry of more than 16 MiB: have the exporter write smaller batches\n");
	free(got);
	cop_buf_free(&notes);
	cop_buf_free(&text);
}

/* ---- clocks ---- */

#define HOST(hash, name)                                                                           \
	"{\"name\":\"HH\",\"ph\":\"M\",\"args\":{\"name\":\"" name "\",\"value\":" hash "}}\n"
#define CLOCK(ts, hash, offset, rtt)                                                               \
	"{\"id\":0,\"name\":\"CO\",\"cat\":\"dftracer\",\"pid\":1,\"tid\":1,\"ts\":" ts            \
	",\"ph\":\"M\",\"args\":{\"hhash\":" hash ",\"name\":\"clock\",\"value\":" offset          \
	",\"rtt\":" rtt "}}\n"
#define AT(ts, dur, hash)                                                                          \
	"{\"name\":\"x\",\"cat\":\"c\",\"pid\":1,\"tid\":1,\"ts\":" ts ",\"dur\":" dur             \
	",\"ph\":\"X\",\"args\":{\"hhash\":" hash "}}\n"

static void the_clock_of_a_host_is_corrected(void **state)
{
	(void)state;
	CHECK(CLOCK("1000", "7", "-100.5", "80") AT("1000", "5", "7") AT("1000", "5", "8")
			HOST("7", "n7"),
		"000000000000 M CO|dftracer|1|1||n7|0|1|-@1\n"
		"000000000000 M HH||||||0|1|-@4\n"
		"000001000000 S x|c|1|1||8|5000|1|-@3\n"
		"000001100500 S x|c|1|1||n7|5000|1|-@2\n",
		"clocks: n7 -100.5 us (± 40 us)\n");
}

static void between_two_offsets_it_changes_evenly(void **state)
{
	(void)state;
	CHECK(HOST("7", "n7") CLOCK("2000", "7", "200", "21") CLOCK("1000", "7", "100", "60")
			AT("500", "0", "7") AT("1250", "500", "7") AT("2500", "1", "7"),
		"000000000000 M CO|dftracer|1|1||n7|0|1|-@2\n"
		"000000000000 M CO|dftracer|1|1||n7|0|1|-@3\n"
		"000000000000 M HH||||||0|1|-@1\n"
		"000000400000 S x|c|1|1||n7|0|1|-@4\n"
		"000001125000 S x|c|1|1||n7|450000|1|-@5\n"
		"000002300000 S x|c|1|1||n7|1000|1|-@6\n",
		"clocks: n7 +100 to +200 us (± 30 us)\n");
}

/* Invalid offsets are ignored; absurdly large ones are interpolated without overflow. */
static void an_offset_that_is_none_corrects_nothing(void **state)
{
	(void)state;
	CHECK(CLOCK("1", "7", "\"x\"", "0") CLOCK("1", "7", "1e30", "0") CLOCK("1", "7", "1", "-1")
			AT("10", "0", "7"),
		"000000000000 M CO|dftracer|1|1||7|0|1|-@1\n"
		"000000000000 M CO|dftracer|1|1||7|0|1|-@2\n"
		"000000000000 M CO|dftracer|1|1||7|0|1|-@3\n"
		"000000010000 S x|c|1|1||7|0|1|-@4\n",
		"");
	CHECK(CLOCK("-9000000000000000", "7", "-9000000000000", "0")
			CLOCK("9000000000000000", "7", "9000000000000", "0") AT("10", "10", "7"),
		"000000000000 M CO|dftracer|1|1||7|0|1|-@1\n"
		"000000000000 M CO|dftracer|1|1||7|0|1|-@2\n"
		"000000009990 S x|c|1|1||7|9990|1|-@3\n",
		"clocks: 7 -9000000000000 to +9000000000000 us (± 0 us)\n");
}

/* ---- only for timelines ---- */

struct kept {
	struct cop_buf text;
};

static int keep_events(void *arg, unsigned worker, const struct cop_trace_event *e, size_t n)
{
	static const char kinds[] = "FPA";
	struct kept *k = arg;

	assert_int_equal(worker, 0);
	for (size_t i = 0; i < n; i++, e++)
		cop_buf_printf(&k->text, "%c%c%c %c%.*s%s %.*s %.*s %.*s %.*s%s\n", e->ph,
			e->bp ? e->bp : '-', e->s ? e->s : '-', kinds[e->id_kind], (int)e->id.len,
			e->id.at, e->id_is_text ? "'" : "", (int)e->of.len, e->of.at,
			(int)e->rank.len, e->rank.at, (int)e->args.len, e->args.at,
			(int)e->end_args.len, e->end_args.at, e->unfinished ? " open" : "");
	return 0;
}

static void check_kept(const char *text, const char *want)
{
	char path[] = "/tmp/copper-trace.XXXXXX", *paths[] = {path};
	struct cop_trace_result result;
	struct cop_trace_files *files;
	struct cop_buf notes = {0};
	struct kept kept = {0};
	int fd = mkstemp(path);

	assert_true(cop_write_full(fd, text, strlen(text)) > 0);
	close(fd);
	assert_int_equal(cop_trace_files_new(paths, 1, &files, &notes, NULL), 0);
	assert_int_equal(cop_trace_read(files,
				 &(struct cop_trace_conf){.threads = 1,
					 .args = true,
					 .unfinished = true,
					 .batch = keep_events,
					 .arg = &kept},
				 &result, &notes, NULL),
		0);
	assert_string_equal(kept.text.data, want);
	cop_trace_files_free(files);
	cop_buf_free(&kept.text);
	cop_buf_free(&notes);
	unlink(path);
}

static void ids_letters_and_args_are_kept(void **state)
{
	(void)state;
	check_kept(
		"{\"ph\":\"s\",\"ts\":1,\"id\":5,\"args\":{\"a\":1}}\n"
		"{\"ph\":\"f\",\"ts\":1,\"id\":\"5\",\"bp\":\"e\"}\n"
		"{\"ph\":\"n\",\"ts\":1,\"id\":1,\"id2\":{\"local\":\"0x7\"}}\n"
		"{\"ph\":\"n\",\"ts\":1,\"id2\":{\"global\":3},\"args\":{\"b\":[1,{\"c\":\"/d\"}]}}\n"
		"{\"ph\":\"i\",\"ts\":1,\"s\":\"g\"}\n",
		"s-- F5   {\"a\":1} \nfe- F5'    \nn-- P0x7'    \n"
		"n-- A3'   {\"b\":[1,{\"c\":\"/d\"}]} \ni-g F    \n");
}

static void names_ranks_and_labels_are_kept(void **state)
{
	(void)state;
	check_kept("{\"ph\":\"M\",\"name\":\"PR\",\"args\":{\"rank\":3}}\n"
		   "{\"ph\":\"M\",\"name\":\"PR\",\"args\":{\"name\":\"rank\",\"value\":\"4\"}}\n"
		   "{\"ph\":\"M\",\"name\":\"process_labels\",\"args\":{\"labels\":\"GPU 0\"}}\n"
		   "{\"ph\":\"M\",\"name\":\"thread_name\",\"args\":{\"name\":\"main\"}}\n",
		"M-- F  3 {\"rank\":3} \nM-- F rank 4 {\"name\":\"rank\",\"value\":\"4\"} \n"
		"M-- F GPU 0  {\"labels\":\"GPU 0\"} \nM-- F main  {\"name\":\"main\"} \n");
}

static void a_begin_without_an_end_is_handed_over_at_the_end(void **state)
{
	(void)state;
	check_kept(
		"{\"ph\":\"B\",\"ts\":1,\"args\":{\"a\":1}}\n{\"ph\":\"B\",\"ts\":2,\"args\":{\"b\":1}}\n"
		"{\"ph\":\"E\",\"ts\":3,\"args\":{\"c\":1}}\n{\"ph\":\"i\",\"ts\":9}\n",
		"i-- F    \nB-- F   {\"b\":1} {\"c\":1}\nB-- F   {\"a\":1}  open\n");
	check_kept("{\"ph\":\"b\",\"ts\":1,\"pid\":1,\"id2\":{\"local\":1}}\n"
		   "{\"ph\":\"e\",\"ts\":2,\"pid\":2,\"id2\":{\"local\":1}}\n"
		   "{\"ph\":\"e\",\"ts\":2,\"pid\":1,\"id2\":{\"local\":1}}\n",
		"b-- P1'    \n");
}

/* The halves of a span are in blocks that several threads parse at the same time. */
static void spans_pair_across_blocks(void **state)
{
	struct cop_buf text = {0}, notes = {0};
	struct cop_trace_result result;
	char *got;

	(void)state;
	cop_buf_str(&text, "[\n");
	for (unsigned depth = 0; depth < 1000; depth++)
		cop_buf_printf(&text,
			"{\"name\":\"f%u\",\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":%u},\n", depth,
			depth);
	for (unsigned i = 0; i < 40000; i++)
		cop_buf_printf(&text,
			"{\"name\":\"counter\",\"ph\":\"M\",\"pid\":1,\"tid\":1,\"ts\":%u},\n%s", i,
			i % 10 ? ""
			       : "{\"name\":\"i\",\"ph\":\"B\",\"pid\":1,\"tid\":1,\"ts\":1},\n{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":2},\n");
	for (unsigned depth = 1000; depth-- > 0;)
		cop_buf_printf(
			&text, "{\"ph\":\"E\",\"pid\":1,\"tid\":1,\"ts\":%u},\n", 100000 - depth);
	got = events_of(text.data, text.len, false, &result, &notes);
	assert_int_equal(result.events[COP_TRACE_SPAN], 5000);
	assert_int_equal(result.unfinished, 0);
	assert_int_equal(result.unmatched, 0);
	assert_int_equal(result.last_ns, 100000000);
	free(got);
	cop_buf_free(&notes);
	cop_buf_free(&text);
}

/* Each cut starts eight threads, which cost the thread sanitizer several thousand pages. */
#ifdef __SANITIZE_THREAD__
#define CUT_STEP 7
#else
#define CUT_STEP 1
#endif

static void a_file_is_cut_at_any_byte(void **state)
{
	static const char text[] = "[\n" X1 "\n" X2 "\n]\n",
			  doc[] = "{\"traceEvents\": [\n" X1 ",\n" X2 "]}";

	(void)state;
	for (int which = 0; which < 2; which++) {
		const char *all = which ? doc : text;

		for (size_t len = 0; len < strlen(all); len += CUT_STEP) {
			struct cop_trace_result result;
			struct cop_buf notes = {0};
			char *got = events_of(all, len, true, &result, &notes);

			assert_true(strlen(got) == 0 || !strncmp(got, W1, strlen(W1)));
			free(got);
			cop_buf_free(&notes);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generation_0_quotes_every_number),
		cmocka_unit_test(generation_1_defines_names_before_or_after_their_use),
		cmocka_unit_test(generation_2_has_numbers_for_phases_and_counts),
		cmocka_unit_test(perfflowaspect_is_never_closed),
		cmocka_unit_test(begins_and_ends_become_spans),
		cmocka_unit_test(a_document_may_stand_on_any_number_of_lines),
		cmocka_unit_test(a_pair_of_escapes_is_one_character),
		cmocka_unit_test(what_cannot_be_read_is_named_and_the_rest_is_read),
		cmocka_unit_test(a_number_reads_alike_with_escapes_and_in_any_form),
		cmocka_unit_test(files_that_are_no_trace_are_told),
		cmocka_unit_test(a_beginning_that_is_broken_does_not_end_it),
		cmocka_unit_test(the_first_event_may_be_long),
		cmocka_unit_test(a_line_that_is_too_long_is_skipped),
		cmocka_unit_test(the_clock_of_a_host_is_corrected),
		cmocka_unit_test(between_two_offsets_it_changes_evenly),
		cmocka_unit_test(an_offset_that_is_none_corrects_nothing),
		cmocka_unit_test(ids_letters_and_args_are_kept),
		cmocka_unit_test(names_ranks_and_labels_are_kept),
		cmocka_unit_test(a_begin_without_an_end_is_handed_over_at_the_end),
		cmocka_unit_test(spans_pair_across_blocks),
		cmocka_unit_test(a_file_is_cut_at_any_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
