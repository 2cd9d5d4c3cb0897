/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/timeline/timeline.h"

static char dir[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/copper-order.XXXXXX");
	return mkdtemp(dir) ? 0 : -1;
}

/* Fails if a file is left behind. */
static int teardown(void **state)
{
	(void)state;
	return rmdir(dir);
}

static int add(struct cop_order *o, unsigned worker, int64_t ts_ns, uint64_t line, const char *name)
{
	struct cop_trace_event e = {.kind = COP_TRACE_SPAN,
		.name = {name, strlen(name)},
		.cat = {"c", 1},
		.pid = {"", 0},
		.tid = {"", 0},
		.file = {"/file", 5},
		.host = {"", 0},
		.ts_ns = ts_ns,
		.line = line,
		.size = line,
		.has_size = true};

	return cop_order_add(o, worker, &e);
}

struct seen {
	uint64_t n, stop;
	int64_t last;
	uint64_t last_line;
};

static int look(void *arg, const struct cop_trace_event *e)
{
	struct seen *s = arg;
	char name[32];

	assert_true(e->ts_ns > s->last || (e->ts_ns == s->last && e->line > s->last_line));
	snprintf(name, sizeof(name), "n%lld", (long long)e->ts_ns);
	assert_int_equal(e->name.len, strlen(name));
	assert_memory_equal(e->name.at, name, e->name.len);
	assert_memory_equal(e->file.at, "/file", 5);
	assert_true(e->has_size && e->size == e->line);
	s->last = e->ts_ns;
	s->last_line = e->line;
	return ++s->n == s->stop ? -ECANCELED : 0;
}

static struct cop_order *filled(size_t buffer, uint64_t limit, unsigned n)
{
	struct cop_order *o = cop_order_new(&(struct cop_order_conf){
		.threads = 2, .dir = dir, .limit = limit, .buffer_bytes = buffer});

	assert_non_null(o);
	srand(3);
	for (unsigned i = 0; i < n; i++) {
		int64_t ts = rand() % 5000 - 100;
		char name[32];

		snprintf(name, sizeof(name), "n%lld", (long long)ts);
		assert_int_equal(add(o, i % 2, ts, i + 1, name), 0);
	}
	return o;
}

static void events_come_by_time_then_by_line(void **state)
{
	struct cop_order *o = filled(0, 0, 10000);
	struct seen s = {.last = INT64_MIN};

	(void)state;
	assert_int_equal(cop_order_runs_for_test(o), 0);
	assert_int_equal(cop_order_each(o, look, &s), 0);
	assert_int_equal(s.n, 10000);
	cop_order_free(o);
}

static void what_does_not_fit_is_written_and_merged(void **state)
{
	struct cop_order *o = filled(16 * COP_KIB, 0, 20000);
	struct seen s = {.last = INT64_MIN};

	(void)state;
	assert_true(cop_order_runs_for_test(o) > 50);
	assert_int_equal(cop_order_each(o, look, &s), 0);
	assert_int_equal(s.n, 20000);
	cop_order_free(o);
}

static void a_limit_keeps_the_first_and_writes_nothing(void **state)
{
	struct cop_order *o = filled(16 * COP_KIB, 20, 20000);
	struct seen s = {.last = INT64_MIN};

	(void)state;
	assert_int_equal(cop_order_runs_for_test(o), 0);
	assert_int_equal(cop_order_each(o, look, &s), 0);
	assert_int_equal(s.n, 20);
	assert_true(s.last < -90);
	cop_order_free(o);
	o = filled(16 * COP_KIB, 1000, 20000);
	s = (struct seen){.last = INT64_MIN};
	assert_true(cop_order_runs_for_test(o) > 0);
	assert_int_equal(cop_order_each(o, look, &s), 0);
	assert_int_equal(s.n, 1000);
	cop_order_free(o);
}

static int note(void *arg, const struct cop_trace_event *e)
{
	cop_buf_printf(arg, "%.*s%llu%.*s ", (int)e->name.len, e->name.at,
		(unsigned long long)e->dur_ns, (int)e->args.len, e->args.at);
	return 0;
}

static void the_longer_comes_before_what_begins_with_it(void **state)
{
	struct cop_order *o =
		cop_order_new(&(struct cop_order_conf){.threads = 2, .dir = dir, .whole = true});
	const struct cop_trace_str none = {"", 0};
	struct cop_trace_event e = {.name = {"a", 1},
		.cat = none,
		.pid = none,
		.tid = none,
		.file = none,
		.host = none,
		.id = none,
		.scope = none,
		.args = {"{}", 2},
		.end_args = none};
	struct cop_buf got = {0};

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		e.line = i;
		e.dur_ns = i % 3;
		assert_int_equal(cop_order_add(o, i % 2, &e), 0);
	}
	assert_int_equal(cop_order_each(o, note, &got), 0);
	assert_string_equal(got.data, "a2{} a1{} a0{} a0{} ");
	cop_buf_free(&got);
	cop_order_free(o);
}

static void whoever_looks_may_stop(void **state)
{
	struct cop_order *o = filled(16 * COP_KIB, 0, 5000);
	struct seen s = {.last = INT64_MIN, .stop = 7};

	(void)state;
	assert_int_equal(cop_order_each(o, look, &s), -ECANCELED);
	assert_int_equal(s.n, 7);
	cop_order_free(o);
}

static void a_directory_that_is_not_there_is_an_error(void **state)
{
	struct cop_order *o = cop_order_new(&(struct cop_order_conf){
		.threads = 1, .dir = "/nonexistent", .buffer_bytes = 4 * COP_KIB});
	int rc = 0;

	(void)state;
	for (unsigned i = 0; i < 100 && !rc; i++)
		rc = add(o, 0, i, i, "n");
	assert_int_equal(rc, -ENOENT);
	cop_order_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_come_by_time_then_by_line),
		cmocka_unit_test(what_does_not_fit_is_written_and_merged),
		cmocka_unit_test(a_limit_keeps_the_first_and_writes_nothing),
		cmocka_unit_test(the_longer_comes_before_what_begins_with_it),
		cmocka_unit_test(whoever_looks_may_stop),
		cmocka_unit_test(a_directory_that_is_not_there_is_an_error),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
