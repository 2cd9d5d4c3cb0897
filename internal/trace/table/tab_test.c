/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trace/table/table.h"

static struct cop_trace_str str(const char *text)
{
	return (struct cop_trace_str){text, strlen(text)};
}

static struct cop_trace_event event(const char *name, const char *pid, const char *file,
	int64_t ts_ns, uint64_t dur_ns, int64_t size)
{
	return (struct cop_trace_event){.kind = COP_TRACE_SPAN,
		.name = str(name),
		.cat = str("POSIX"),
		.pid = str(pid),
		.tid = str("1"),
		.file = str(file),
		.host = str(""),
		.rank = str(""),
		.args = str(""),
		.end_args = str(""),
		.ts_ns = ts_ns,
		.dur_ns = dur_ns,
		.dur_min_ns = dur_ns,
		.dur_max_ns = dur_ns,
		.count = 1,
		.size = size < 0 ? 0 : (uint64_t)size,
		.has_size = size >= 0};
}

/* Spreads the events over two threads and checks their table as CSV. */
static void check(struct cop_tab_conf *conf, const struct cop_trace_event *e, size_t n,
	const char *sort, const char *want)
{
	struct cop_tab *t = cop_tab_new(conf, 2, 1000);
	struct cop_rows rows;
	struct cop_buf out = {0};
	struct cop_err err;

	assert_non_null(t);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(cop_tab_add(t, i % 2, &e[i]), 0);
	assert_int_equal(cop_tab_rows(t, &rows, &err), 0);
	cop_rows_sort(&rows, sort);
	cop_rows_show(&rows, COP_GRID_CSV, 0, &out);
	assert_string_equal(out.data, want);
	cop_buf_free(&out);
	cop_rows_free(&rows);
}

static struct cop_tab_conf conf_of(const char *by, const char *per, const char *cols)
{
	struct cop_tab_conf conf = {.interval_ns = 30};
	struct cop_err err;

	assert_int_equal(cop_tab_keys(by, false, &conf, &err), 0);
	assert_int_equal(cop_tab_keys(per, true, &conf, &err), 0);
	assert_int_equal(cop_tab_cols(cols, &conf, &err), 0);
	return conf;
}

static void groups_add_up_over_threads(void **state)
{
	const struct cop_trace_event e[] = {
		event("read", "1", "/a/f", 1000, 1000000000, 10),
		event("read", "1", "/a/f", 1000, 3000000000, 30),
		event("open", "2", "/a/f", 1000, 500000000, -1),
		event("read", "2", "/b/f", 1000, 2000000000, 20),
	};
	struct cop_tab_conf conf = conf_of("name", "", "count,dur,size,bandwidth,dur:std,size:50%");

	(void)state;
	check(&conf, e, 4, NULL,
		"name,count,dur,size,bandwidth,dur:std,size:50%\n"
		"read,3,6.000000000,60,10,1.000000000,20\n"
		"open,1,0.500000000,0,,,\n");
	conf = conf_of("dir", "", "count");
	check(&conf, e, 4, "dir", "dir,count\n/a,3\n/b,1\n");
	conf = conf_of("size", "", "size");
	check(&conf, e, 4, "size", "size,size:sum\n10,10\n20,20\n30,30\n,0\n");
}

static void set_then(struct cop_tab_conf *conf, const char *list)
{
	struct cop_err err = {0};

	memset(conf->then, 0, sizeof(conf->then));
	assert_int_equal(cop_tab_thens(list, conf, &err), 0);
}

static void then_reduces_what_per_has_added_up(void **state)
{
	const struct cop_trace_event e[] = {
		event("w", "1", "", 0, 1000000000, -1),
		event("w", "1", "", 0, 1000000000, -1),
		event("w", "2", "", 0, 5000000000, -1),
	};
	struct cop_tab_conf conf = conf_of("name", "pid", "count,dur,size:max");

	(void)state;
	set_then(&conf, "max");
	check(&conf, e, 3, NULL, "name,count,dur,size:max\nw,2,5.000000000,\n");
	set_then(&conf, "sum");
	check(&conf, e, 3, NULL, "name,count,dur,size:max\nw,3,7.000000000,\n");
	set_then(&conf, "mean");
	check(&conf, e, 3, NULL, "name,count,dur,size:max\nw,1.500,3.500000000,\n");
	set_then(&conf, "dur=max,sum");
	check(&conf, e, 3, NULL, "name,count,dur,size:max\nw,3,5.000000000,\n");
	set_then(&conf, "dur=min,sum");
	check(&conf, e, 3, NULL, "name,count,dur,size:max\nw,3,2.000000000,\n");
}

static void then_may_differ_from_column_to_column(void **state)
{
	const struct cop_trace_event e[] = {
		event("w", "1", "", 0, 1000000000, 10),
		event("w", "2", "", 0, 5000000000, 20),
	};
	struct cop_tab_conf conf = conf_of("name", "pid", "");
	struct cop_err err = {0};

	(void)state;
	set_then(&conf, "dur=max,size=sum");
	check(&conf, e, 2, NULL, "name,dur,size\nw,5.000000000,30\n");
	conf = conf_of("name", "pid", "count,dur");
	assert_int_equal(cop_tab_thens("dur=max", &conf, &err), -EINVAL);
	assert_non_null(strstr(err.text, "what becomes of the column 'count'?"));
	assert_int_equal(cop_tab_thens("dur=most", &conf, &err), -EINVAL);
	assert_int_equal(cop_tab_thens("size=max", &conf, &err), -EINVAL);
	assert_non_null(strstr(err.text, "the column 'size' is not shown"));
}

/* Without a host, the file tells processes apart; with one, files do not. */
static void processes_are_told_apart_by_their_files_or_hosts(void **state)
{
	struct cop_trace_event e[] = {
		event("step", "1", "", 0, 100000, -1),
		event("step", "1", "", 0, 200000, -1),
	};
	struct cop_tab_conf conf = conf_of("name", "pid", "dur");

	(void)state;
	e[1].source = 1;
	set_then(&conf, "max");
	check(&conf, e, 2, NULL, "name,dur\nstep,0.000200000\n");
	e[0].host = e[1].host = str("node1");
	check(&conf, e, 2, NULL, "name,dur\nstep,0.000300000\n");
	e[1].host = str("node2");
	check(&conf, e, 2, NULL, "name,dur\nstep,0.000200000\n");
	/* An event without a host belongs to the host that its file names for this pid. */
	e[0].source = 1;
	e[0].host = str("");
	check(&conf, e, 2, NULL, "name,dur\nstep,0.000300000\n");
	conf = conf_of("name", "tid", "dur");
	set_then(&conf, "max");
	e[0].source = 0;
	check(&conf, e, 2, NULL, "name,dur\nstep,0.000200000\n");
}

static void counters_have_values_over_time(void **state)
{
	struct cop_trace_event e[] = {
		event("loss", "1", "", 1000, 0, -1),
		event("loss", "1", "", 3000, 0, -1),
		event("loss", "1", "", 2000, 0, -1),
		event("read", "1", "", 1000, 5, 7),
	};
	struct cop_tab_conf conf = conf_of("name,series", "",
		"count,value,value:first,value:min,value:max,value:mean,value:std,value:50%");

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		e[i].kind = COP_TRACE_COUNTER;
	e[0].args = str("{\"train\":0.5,\"what\":\"x\"}");
	e[1].args = str("{\"train\":-1e-3,\"eval\":\"3\"}");
	e[2].args = str("{\"train\":0.1}");
	check(&conf, e, 4, "series",
		"name,series,count,value,value:first,value:min,value:max,value:mean,value:std,value:50%\n"
		"loss,eval,1,3,3,3,3,3,,3\n"
		"loss,train,3,-0.001,0.5,-0.001,0.5,0.19966666666666666,0.26495345503188544,0.1\n");
	conf = conf_of("time", "", "value");
	conf.interval_ns = 1;
	check(&conf, e, 1, "time", "time,value\n0,0.5\n");
}

/* A double has 53 bits; counters such as bytes and device times have 64. */
static void whole_values_of_64_bits_are_exact(void **state)
{
	struct cop_trace_event e[] = {
		event("n", "1", "", 1000, 0, -1),
		event("n", "2", "", 3000, 0, -1),
		event("n", "1", "", 5000, 0, -1),
	};
	struct cop_tab_conf conf =
		conf_of("series", "", "value,value:first,value:min,value:max,value:50%");

	(void)state;
	for (unsigned i = 0; i < 3; i++)
		e[i].kind = COP_TRACE_COUNTER;
	e[0].args = str("{\"a\":9007199254740993,\"b\":-9223372036854775807,\"c\":1e18}");
	e[1].args = str("{\"a\":\"18446744073709551615\",\"b\":-9223372036854775808,\"c\":0.1}");
	e[2].args = str("{\"a\":18446744073709551613,\"b\":9223372036854775807,\"c\":1e25}");
	check(&conf, e, 3, "series",
		"series,value,value:first,value:min,value:max,value:50%\n"
		"a,18446744073709551613,9007199254740993,9007199254740993,18446744073709551615,"
		"18446744073709551613\n"
		"b,9223372036854775807,-9223372036854775807,-9223372036854775808,"
		"9223372036854775807,-9223372036854775807\n"
		"c,1e+25,1000000000000000000,0.1,1e+25,1000000000000000000\n");
	conf = conf_of("name", "pid", "value");
	set_then(&conf, "max");
	check(&conf, e, 2, NULL, "name,value\nn,18446744073709551615\n");
}

static void begins_without_an_end_are_counted_if_asked_for(void **state)
{
	struct cop_trace_event e[] = {
		event("w", "1", "", 1000, 2000000000, 5),
		event("hang", "1", "", 3000001000, 0, -1),
	};
	struct cop_tab_conf conf = conf_of("name", "", "count,dur,size,dur:mean,unfinished");

	(void)state;
	e[1].unfinished = true;
	check(&conf, e, 2, "name",
		"name,count,dur,size,dur:mean,unfinished\nhang,0,,0,,1\nw,1,2.000000000,5,2.000000000,0\n");
	conf = conf_of("name", "", "count,first,last");
	check(&conf, e, 2, NULL, "name,count,first,last\nw,1,0.000000000,2.000000000\n");
}

static void busy_time_is_covered_time(void **state)
{
	const struct cop_trace_event e[] = {
		event("k", "1", "", 0, 2000000000, -1),
		event("k", "1", "", 1000000000, 2000000000, -1),
		event("k", "2", "", 5000000000, 1000000000, -1),
	};
	struct cop_tab_conf conf = conf_of("name", "", "dur,busy,dur:90%,dur:p90,size:count");

	(void)state;
	check(&conf, e, 3, NULL,
		"name,dur,busy,dur:90%,dur:p90,size:count\n"
		"k,5.000000000,4.000000000,2.000000000,2.000000000,0\n");
}

static void arguments_are_keys(void **state)
{
	struct cop_trace_event e[] = {
		event("k", "1", "", 0, 1000000000, -1),
		event("k", "1", "", 0, 2000000000, -1),
		event("k", "1", "", 0, 4000000000, -1),
	};
	struct cop_tab_conf conf = conf_of("arg:step", "", "dur");

	(void)state;
	e[0].args = str("{\"stream\":7,\"step\":\"a\\u00e9\"}");
	e[1].args = str("{\"x\":{\"step\":3},\"step\":12}");
	e[2].end_args = str("{\"step\":12}");
	check(&conf, e, 3, "arg:step", "arg:step,dur\n12,6.000000000\na\303\251,1.000000000\n");
}

/* ---- self time ---- */

static int add_self(void *arg, const struct cop_trace_event *e, uint64_t self_ns)
{
	return cop_tab_add_self(arg, 0, e, self_ns);
}

static void time_inside_of_a_span_is_not_its_own(void **state)
{
	struct cop_trace_event e[] = {
		event("outer", "1", "", 0, 100, -1),
		event("inner", "1", "", 10, 40, -1),
		event("leaf", "1", "", 10, 10, -1),
		event("other", "2", "", 15, 50, -1),
		event("beyond", "1", "", 90, 20, -1), /* ends after outer */
		event("async", "1", "", 95, 50, -1),
	};
	struct cop_tab_conf conf = conf_of("name", "", "dur,self");
	struct cop_tab *t = cop_tab_new(&conf, 1, 0);
	struct cop_self *self = cop_self_new(add_self, t);
	struct cop_rows rows;
	struct cop_buf out = {0};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(e); i++) {
		e[i].ph = i == 5 ? 'b' : 'X';
		assert_int_equal(cop_self_add(self, &e[i]), 0);
	}
	assert_int_equal(cop_self_end(self), 0);
	cop_self_free(self);
	assert_int_equal(cop_tab_rows(t, &rows, NULL), 0);
	cop_rows_sort(&rows, "name");
	cop_rows_show(&rows, COP_GRID_CSV, 0, &out);
	assert_string_equal(out.data,
		"name,dur,self\nasync,0.000000050,0.000000050\nbeyond,0.000000020,0.000000020\n"
		"inner,0.000000040,0.000000030\nleaf,0.000000010,0.000000010\n"
		"other,0.000000050,0.000000050\nouter,0.000000100,0.000000050\n");
	cop_buf_free(&out);
	cop_rows_free(&rows);
}

static void a_class_has_neither_digits_nor_dashes(void **state)
{
	const struct cop_trace_event e[] = {
		event("w", "1", "/p/s-1/layer-0-1-600-0.pt", 0, 1, -1),
		event("w", "1", "/p/layer-12.pt", 0, 1, -1),
		event("w", "1", "", 0, 1, -1),
	};
	struct cop_tab_conf conf = conf_of("class", "", "count");

	(void)state;
	check(&conf, e, 3, NULL, "class,count\nlayer.pt,2\n,1\n");
}

static void intervals_begin_at_the_first_event(void **state)
{
	const struct cop_trace_event e[] = {
		event("w", "1", "", 1000, 1, -1),
		event("w", "1", "", 1029, 1, -1),
		event("w", "1", "", 1030, 1, -1),
		event("w", "1", "", 999, 1, -1),
	};
	struct cop_tab_conf conf = conf_of("interval", "", "count");

	(void)state;
	check(&conf, e, 4, "interval", "interval,count\n-0.00000003,1\n0,2\n0.00000003,1\n");
}

static void aggregates_count_for_what_they_stand_for(void **state)
{
	struct cop_trace_event e[] = {event("r", "1", "", 0, 1000000000, -1)};
	struct cop_tab_conf conf =
		conf_of("name", "", "count,dur,dur:mean,dur:min,dur:50%,dur:max");

	(void)state;
	e[0].kind = COP_TRACE_AGGREGATE;
	e[0].count = 4;
	e[0].dur_min_ns = 100000000;
	e[0].dur_max_ns = 400000000;
	check(&conf, e, 1, NULL,
		"name,count,dur,dur:mean,dur:min,dur:50%,dur:max\n"
		"r,4,1.000000000,0.250000000,0.100000000,0.250000000,0.400000000\n");
}

static void what_is_no_span_counts_for_nothing(void **state)
{
	struct cop_trace_event e[] = {event("c", "1", "", 0, 0, -1)};
	struct cop_tab_conf conf = conf_of("name", "", "count");

	(void)state;
	e[0].kind = COP_TRACE_COUNTER;
	check(&conf, e, 1, NULL, "name,count\n");
}

static void unknown_words_are_named_with_those_that_there_are(void **state)
{
	struct cop_tab_conf conf = {0};
	struct cop_err err;

	(void)state;
	assert_int_equal(cop_tab_keys("name,size,nam", false, &conf, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no key 'nam'; the keys are name, cat, "));
	assert_int_equal(cop_tab_cols("dur,dur:80%", &conf, &err), -EINVAL);
	assert_non_null(strstr(err.text, "no column 'dur:80%'; the columns are count, dur, "));
	assert_int_equal(cop_tab_check_sort(&conf, "size:max", &err), -EINVAL);
	assert_string_equal(
		err.text, "--sort: 'size:max' is not in the table, which has name, size, dur");
}

static void json_has_numbers_where_keys_are_numbers(void **state)
{
	const struct cop_trace_event e[] = {event("a\"b", "007", "", 0, 1500, -1)};
	struct cop_tab_conf conf = conf_of("name,pid,tid,size", "", "dur,size:max");
	struct cop_tab *t = cop_tab_new(&conf, 1, 0);
	struct cop_rows rows;
	struct cop_buf out = {0};

	(void)state;
	assert_int_equal(cop_tab_add(t, 0, &e[0]), 0);
	assert_int_equal(cop_tab_rows(t, &rows, NULL), 0);
	cop_rows_show(&rows, COP_GRID_JSON, 0, &out);
	assert_string_equal(out.data,
		"[\n{\"name\":\"a\\\"b\",\"pid\":\"007\",\"tid\":1,\"size\":null,\"dur\":0.000001500,"
		"\"size:max\":null}\n]\n");
	cop_buf_free(&out);
	cop_rows_free(&rows);
}

static struct cop_select *select_of(struct cop_select_conf *conf)
{
	struct cop_select *s;
	struct cop_err err;

	assert_int_equal(cop_select_new(conf, 1, &s, &err), 0);
	return s;
}

static void selections_match_anywhere_and_exclude(void **state)
{
	static const char *const yes[] = {"^re", "x$"}, *const no[] = {"dir"}, *const pid[] = {"7"};
	struct cop_select_conf conf = {.to_s = -1};
	const struct cop_trace_event all[] = {event("read", "7", "", 0, 1, -1),
		event("fx", "7", "", 0, 1, -1), event("readdir", "7", "", 0, 1, -1),
		event("write", "7", "", 0, 1, -1), event("read", "8", "", 0, 1, -1)};
	static const bool want[] = {true, true, false, false, false};
	struct cop_select *s;

	(void)state;
	s = select_of(&conf);
	assert_true(cop_select_is_all(s));
	cop_select_free(s);
	conf.text[COP_SELECT_NAME] = (struct cop_words){yes, 2};
	conf.not_text[COP_SELECT_NAME] = (struct cop_words){no, 1};
	conf.number[COP_SELECT_PID] = (struct cop_words){pid, 1};
	s = select_of(&conf);
	assert_false(cop_select_is_all(s));
	for (int again = 0; again < 2; again++)
		for (size_t i = 0; i < COP_ARRAY_SIZE(all); i++)
			assert_int_equal(cop_select_test(s, 0, &all[i]), want[i]);
	cop_select_free(s);
}

static void an_expression_that_does_not_compile_is_told_with_the_place(void **state)
{
	static const struct {
		const char *text;
		unsigned byte;
	} wrong[] = {{"a(b[c", 4}, {"ab)c(", 5}, {"(abc", 1}, {"*[", 1}, {"x{2,1}", 6}};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(wrong); i++) {
		struct cop_select_conf conf = {.to_s = -1};
		struct cop_select *s;
		struct cop_err err;
		char place[32];

		conf.not_text[COP_SELECT_FILE] = (struct cop_words){&wrong[i].text, 1};
		assert_int_equal(cop_select_new(&conf, 1, &s, &err), -EINVAL);
		snprintf(place, sizeof(place), "(byte %u)", wrong[i].byte);
		assert_non_null(strstr(err.text, "--not-file '"));
		if (!strstr(err.text, place))
			fail_msg("%s", err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(groups_add_up_over_threads),
		cmocka_unit_test(then_reduces_what_per_has_added_up),
		cmocka_unit_test(then_may_differ_from_column_to_column),
		cmocka_unit_test(processes_are_told_apart_by_their_files_or_hosts),
		cmocka_unit_test(counters_have_values_over_time),
		cmocka_unit_test(whole_values_of_64_bits_are_exact),
		cmocka_unit_test(begins_without_an_end_are_counted_if_asked_for),
		cmocka_unit_test(busy_time_is_covered_time),
		cmocka_unit_test(arguments_are_keys),
		cmocka_unit_test(time_inside_of_a_span_is_not_its_own),
		cmocka_unit_test(a_class_has_neither_digits_nor_dashes),
		cmocka_unit_test(intervals_begin_at_the_first_event),
		cmocka_unit_test(aggregates_count_for_what_they_stand_for),
		cmocka_unit_test(what_is_no_span_counts_for_nothing),
		cmocka_unit_test(unknown_words_are_named_with_those_that_there_are),
		cmocka_unit_test(json_has_numbers_where_keys_are_numbers),
		cmocka_unit_test(selections_match_anywhere_and_exclude),
		cmocka_unit_test(an_expression_that_does_not_compile_is_told_with_the_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
