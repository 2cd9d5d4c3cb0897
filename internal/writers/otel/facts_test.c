/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "writers/otel/otel_priv.h"

#define MS 1000000ull

static uint64_t now_ns;

static uint64_t now(void)
{
	return now_ns;
}

static int64_t wall(void)
{
	return 1000000000000 + (int64_t)now_ns;
}

static int set_clocks(void **state)
{
	(void)state;
	cop_clocks_for_test(now, wall);
	return 0;
}

static int reset_clocks(void **state)
{
	(void)state;
	cop_clocks_for_test(NULL, NULL);
	return 0;
}

static const char *host_of(void *ctx, uint32_t rank)
{
	static char name[16];

	(void)ctx;
	snprintf(name, sizeof(name), "n%u", rank);
	return name;
}

/* Adds a node that starts at second 1 of the clock, prepares for prepare_ms, and then waits until
 * second 3. */
static void add_node(struct cop_telemetry_sum *sum, uint32_t rank, unsigned prepare_ms)
{
	struct cop_telemetry *t;

	now_ns = 1000 * MS;
	t = cop_telemetry_new(now_ns);
	assert_non_null(t);
	cop_telemetry_began(t, (int64_t)now_ns, wall());
	now_ns += prepare_ms * MS;
	cop_telemetry_phase(t, COP_TELEMETRY_PREPARE);
	now_ns = 3000 * MS;
	cop_telemetry_phase(t, COP_TELEMETRY_BARRIER);
	cop_telemetry_event(t, COP_TELEMETRY_FAILOVER, "of %u", rank);
	assert_int_equal(cop_telemetry_sum_add(sum, t, rank), 0);
	cop_telemetry_free(t);
}

static void the_slowest_nodes_come_first(void **state)
{
	struct cop_telemetry_sum *sum = cop_telemetry_sum_new(20);
	struct facts f = {.nodes = 0};

	(void)state;
	/* 7 and 20 have no common divisor, so each rank gets a different value. */
	for (uint32_t rank = 0; rank < 20; rank++)
		add_node(sum, rank, 10 + rank * 7 % 20);
	cop_telemetry_finish(sum);
	cop_otel_take_facts(&f, sum, host_of, NULL);
	assert_int_equal(f.nodes, SLOWEST);
	for (unsigned i = 0; i < SLOWEST; i++) {
		const struct node_start *s = &f.slowest[i];
		unsigned prepare_ms = 29 - i;

		assert_int_equal(s->rank * 7 % 20 + 10, prepare_ms);
		assert_string_equal(s->host, host_of(NULL, s->rank));
		assert_int_equal(s->phase_us[COP_TELEMETRY_PREPARE], prepare_ms * 1000);
		assert_int_equal(s->phase_us[COP_TELEMETRY_BARRIER], (2000 - prepare_ms) * 1000);
		assert_int_equal(s->start_ns, 1000000000000 + 1000 * (int64_t)MS);
		assert_int_equal(s->reached_ns, s->start_ns + prepare_ms * (int64_t)MS);
	}
	cop_otel_free_facts(&f);
	cop_telemetry_sum_free(sum);
}

static void events_are_copied_with_their_hosts(void **state)
{
	struct cop_telemetry_sum *sum = cop_telemetry_sum_new(2);
	struct facts f = {.nodes = 0};

	(void)state;
	add_node(sum, 0, 1);
	add_node(sum, 1, 2);
	cop_telemetry_finish(sum);
	cop_otel_take_facts(&f, sum, host_of, NULL);
	cop_telemetry_sum_free(sum);
	assert_int_equal(f.n, 2);
	assert_int_equal(f.dropped, 0);
	for (uint32_t i = 0; i < 2; i++) {
		char detail[16];

		snprintf(detail, sizeof(detail), "of %u", f.fact[i].rank);
		assert_string_equal(f.fact[i].detail, detail);
		assert_string_equal(f.fact[i].host, host_of(NULL, f.fact[i].rank));
		assert_int_equal(f.fact[i].kind, COP_TELEMETRY_FAILOVER);
		assert_int_equal(f.fact[i].wall_ns, 1000000000000 + 3000 * (int64_t)MS);
	}
	cop_otel_free_facts(&f);
}

static size_t count(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* Every event becomes a record, in lines of 64; the job's span has the first 128. */
static void many_events_are_many_lines_and_some_are_left_out_of_the_span(void **state)
{
	static const struct cop_otlp_source from = {{NULL, 0}, "1"};
	struct cop_otel *o = calloc(1, sizeof(*o));
	struct cop_buf logs = {0}, traces = {0};

	(void)state;
	o->facts.n = 200;
	o->facts.fact = calloc(o->facts.n, sizeof(*o->facts.fact));
	for (size_t i = 0; i < o->facts.n; i++)
		o->facts.fact[i] = (struct fact){.wall_ns = 5,
			.kind = i % 2 ? COP_TELEMETRY_PEER_DEAD : COP_TELEMETRY_READY,
			.host = strdup("h"),
			.detail = strdup("d")};
	cop_otel_end_records(o, &from, 9, &logs);
	assert_int_equal(count(logs.data, "\n"), 5);
	assert_int_equal(count(logs.data, "\"eventName\":\"copper.peer_dead\""), 100);
	assert_int_equal(count(logs.data, "\"eventName\""), 201);
	for (size_t i = 0; i < o->facts.n; i++)
		o->facts.fact[i].kind = COP_TELEMETRY_FAILOVER;
	cop_otel_end_spans(o, &from, 9, &traces);
	assert_int_equal(count(traces.data, "\"name\":\"copper.failover\""), 128);
	assert_non_null(strstr(traces.data, "\"droppedEventsCount\":72"));
	cop_otel_free_facts(&o->facts);
	cop_buf_free(&logs);
	cop_buf_free(&traces);
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slowest_nodes_come_first),
		cmocka_unit_test(events_are_copied_with_their_hosts),
		cmocka_unit_test(many_events_are_many_lines_and_some_are_left_out_of_the_span),
	};

	return cmocka_run_group_tests(tests, set_clocks, reset_clocks);
}
