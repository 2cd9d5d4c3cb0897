/* SPDX-License-Identifier: BSD-3-Clause */
#include "prof/telemetry/telemetry_testing.h"

/* Returns a node's records as a sum of just that node. */
static struct cop_telemetry_sum *sum_of(struct cop_telemetry *t, uint32_t job_nodes)
{
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(job_nodes);

	assert_int_equal(cop_telemetry_sum_add(s, t, 0), 0);
	cop_telemetry_finish(s);
	return s;
}

static uint64_t total_of(const struct cop_telemetry_node *n, unsigned metric)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < n->intervals; i++)
		sum = metric_add(metric, sum, n->series[i][metric]);
	return sum;
}

static void the_series_adds_up_however_long_the_job_lasts(void **state)
{
	static const unsigned lengths_s[] = {
		1, 5, 127, 128, 129, 255, 256, 257, 1000, 5000, 100000};

	(void)state;
	for (size_t l = 0; l < COP_ARRAY_SIZE(lengths_s); l++) {
		struct cop_telemetry *t;
		struct cop_telemetry_sum *s;
		const struct cop_telemetry_node *n;
		struct cop_stats stats = {0};
		uint64_t most = 0, read = 0, end_ns;

		clock_ns = STARTED_NS;
		end_ns = STARTED_NS + lengths_s[l] * COP_NS_PER_S;
		t = cop_telemetry_new(STARTED_NS);
		while (clock_ns < end_ns) {
			uint64_t used = cop_hash64(&clock_ns, sizeof(clock_ns), 1) >> 34;
			uint64_t bytes = cop_hash64(&clock_ns, sizeof(clock_ns), 2) >> 30;

			cop_stats_add(&stats, COP_FUSE_READ_BYTES, bytes);
			cop_stats_add(&stats, COP_FUSE_LOOKUP, 1);
			read += bytes;
			most = COP_MAX(most, used);
			cop_telemetry_look(t, &stats, used, 7);
			/* Some samples are late. */
			pass_ms(cop_telemetry_pause_ms(t) + (bytes % 8 ? 1 : 300));
		}
		clock_ns = end_ns;
		cop_telemetry_look(t, &stats, 0, 7);
		s = sum_of(t, 1);
		n = cop_telemetry_sum_node(s, 0);
		assert_true(n->intervals <= INTERVALS);
		assert_true(n->intervals >= COP_MIN(lengths_s[l], INTERVALS / 2));
		assert_true(cop_telemetry_sum_seconds(s) * n->intervals >= lengths_s[l]);
		assert_int_equal(total_of(n, COP_TELEMETRY_READ_BYTES), read);
		assert_int_equal(n->total[COP_TELEMETRY_ALL_READ_BYTES], read);
		assert_int_equal(total_of(n, COP_TELEMETRY_CACHE_BYTES), most);
		assert_int_equal(n->total[COP_TELEMETRY_CACHE_PEAK_BYTES], most);
		assert_int_equal(n->total[COP_TELEMETRY_CACHE_LIMIT_BYTES], 7);
		cop_telemetry_sum_free(s);
		cop_telemetry_free(t);
	}
}

static void what_was_done_stands_where_it_was_done(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	const struct cop_telemetry_node *n;
	struct cop_telemetry_sum *s;
	struct cop_stats stats = {0};

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		cop_telemetry_look(t, &stats, 0, 0);
		cop_stats_add(&stats, COP_FUSE_READ, i == 4 ? 1000 : 0);
		pass_ms(1000);
	}
	cop_telemetry_look(t, &stats, 0, 0);
	s = sum_of(t, 1);
	n = cop_telemetry_sum_node(s, 0);
	assert_int_equal(n->intervals, 10);
	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(n->series[i][COP_TELEMETRY_REQUESTS], i == 4 ? 1000 : 0);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void the_grid_is_that_of_the_job_not_of_the_node(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	const struct cop_telemetry_node *n;
	struct cop_telemetry_sum *s;
	struct cop_stats stats = {0};

	(void)state;
	/* Rank 0 started half a second earlier. */
	cop_telemetry_began(t, (int64_t)STARTED_NS - 500000000, 77);
	cop_telemetry_look(t, &stats, 0, 0);
	pass_ms(1000);
	cop_stats_add(&stats, COP_ORIGIN_BYTES, 100);
	cop_telemetry_look(t, &stats, 0, 0);
	s = sum_of(t, 1);
	n = cop_telemetry_sum_node(s, 0);
	assert_int_equal(n->intervals, 2);
	assert_int_equal(n->series[0][COP_TELEMETRY_ORIGIN_BYTES], 50);
	assert_int_equal(n->series[1][COP_TELEMETRY_ORIGIN_BYTES], 50);
	assert_int_equal(n->start_us, 500000);
	assert_int_equal(n->stopped_us, 1500000);
	assert_int_equal(cop_telemetry_sum_unix_ns(s), 77);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void counters_that_are_set_to_zero_go_on(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	const struct cop_telemetry_node *n;
	struct cop_telemetry_sum *s;
	struct cop_stats stats = {0}, drained = {0};

	(void)state;
	cop_stats_add(&stats, COP_FUSE_OPEN, 100);
	cop_telemetry_look(t, &stats, 0, 0);
	cop_stats_drain(&stats, &drained);
	cop_stats_add(&stats, COP_FUSE_OPEN, 30);
	pass_ms(1000);
	cop_telemetry_look(t, &stats, 0, 0);
	s = sum_of(t, 1);
	n = cop_telemetry_sum_node(s, 0);
	assert_int_equal(n->total[COP_TELEMETRY_ALL_REQUESTS], 130);
	assert_int_equal(total_of(n, COP_TELEMETRY_REQUESTS), 130);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void the_phases_add_up_to_the_time_until_it_was_ready(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	const struct cop_telemetry_node *n;
	struct cop_telemetry_sum *s;
	uint64_t all = 0;

	(void)state;
	for (unsigned i = 0; i < 3 * COP_TELEMETRY_PHASES; i++) {
		clock_ns += 1234567;
		cop_telemetry_phase(t, i % COP_TELEMETRY_PHASES);
	}
	pass_ms(3);
	cop_telemetry_event(t, COP_TELEMETRY_READY, "%s", "");
	s = sum_of(t, 1);
	n = cop_telemetry_sum_node(s, 0);
	for (unsigned p = 0; p < COP_TELEMETRY_PHASES; p++) {
		assert_true(n->phase_us[p] >= 3 * 1234);
		all += n->phase_us[p];
	}
	assert_int_equal(all, n->ready_us - n->start_us);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void events_are_bounded_by_kind_and_leave_room_for_those_of_every_node(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	unsigned of[COP_TELEMETRY_KINDS] = {0};
	struct cop_telemetry_sum *s;
	const struct cop_telemetry_event *e;

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		for (unsigned k = 0; k < COP_TELEMETRY_READY; k++)
			cop_telemetry_event(t, k, "number %u", i);
	cop_telemetry_event(t, COP_TELEMETRY_READY, "%s", "");
	cop_telemetry_event(t, COP_TELEMETRY_STOP, "stopped");
	s = sum_of(t, 1);
	for (size_t i = 0; (e = cop_telemetry_sum_event(s, i)); i++)
		of[e->kind]++;
	assert_int_equal(of[COP_TELEMETRY_READY], 1);
	assert_int_equal(of[COP_TELEMETRY_STOP], 1);
	for (unsigned k = 0; k < COP_TELEMETRY_READY; k++)
		assert_true(of[k] > 0 && of[k] <= COP_TELEMETRY_EVENTS_KIND);
	assert_int_equal(cop_telemetry_sum_dropped(s) + s->events, 1000 * COP_TELEMETRY_READY + 2);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void an_event_that_repeats_itself_is_told_once_and_in_one_line(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	struct cop_telemetry_sum *s;

	(void)state;
	for (unsigned i = 0; i < 5; i++)
		cop_telemetry_event(t, COP_TELEMETRY_FILE_CHANGED, "/a\nb");
	cop_telemetry_event(t, COP_TELEMETRY_PEER_DEAD, "/a\nb");
	s = sum_of(t, 1);
	assert_int_equal(s->events, 2);
	assert_string_equal(cop_telemetry_sum_event(s, 0)->detail, "/a?b");
	assert_int_equal(cop_telemetry_sum_dropped(s), 0);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void a_full_budget_is_an_event_where_it_begins(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	static const unsigned waits[] = {0, 3, 5, 0, 0, 1};
	struct cop_stats stats = {0};
	struct cop_telemetry_sum *s;

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(waits); i++) {
		cop_stats_add(&stats, COP_CACHE_WAITS, waits[i]);
		cop_telemetry_look(t, &stats, 0, 4096);
		pass_ms(1000);
	}
	s = sum_of(t, 1);
	assert_int_equal(s->events, 2);
	assert_int_equal(cop_telemetry_sum_event(s, 0)->at_us, 1000000);
	assert_string_equal(cop_telemetry_sum_event(s, 0)->detail,
		"3 fetches had to wait for room in 4096 bytes");
	assert_int_equal(cop_telemetry_sum_event(s, 1)->at_us, 5000000);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void looks_become_rarer_as_time_goes_on(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	struct cop_stats stats = {0};
	unsigned looks = 0;

	(void)state;
	assert_int_equal(cop_telemetry_pause_ms(t), 1000);
	for (; clock_ns < STARTED_NS + 86400 * COP_NS_PER_S; looks++) {
		cop_telemetry_look(t, &stats, 0, 0);
		pass_ms(cop_telemetry_pause_ms(t));
	}
	assert_int_equal(cop_telemetry_pause_ms(t), 16000);
	assert_true(looks < 86400 / 16 + 2048);
	cop_telemetry_free(t);
}

struct worker {
	struct cop_telemetry *t;
	struct cop_stats *stats;
};

static void *report(void *arg)
{
	struct worker *w = arg;

	for (unsigned i = 0; i < 2000; i++) {
		cop_stats_add(w->stats, COP_FUSE_READ, 1);
		cop_telemetry_event(w->t, i % COP_TELEMETRY_READY, "number %u", i);
	}
	return NULL;
}

static void threads_report_while_another_one_looks(void **state)
{
	struct cop_telemetry *t = cop_telemetry_new(STARTED_NS);
	struct cop_stats stats = {0};
	struct worker w = {t, &stats};
	struct cop_telemetry_sum *s;
	pthread_t thread[4];

	(void)state;
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(cop_thread_start(&thread[i], "reporter", report, &w), 0);
	for (unsigned i = 0; i < 200; i++)
		cop_telemetry_look(t, &stats, i, 4096);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cop_telemetry_look(t, &stats, 0, 4096);
	s = sum_of(t, 1);
	assert_int_equal(total_of(cop_telemetry_sum_node(s, 0), COP_TELEMETRY_REQUESTS), 8000);
	assert_true(s->events <= COP_TELEMETRY_EVENTS);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(t);
}

static void a_node_that_keeps_nothing_can_be_told_everything(void **state)
{
	struct cop_telemetry_sum *s = cop_telemetry_sum_new(1);

	(void)state;
	cop_telemetry_phase(NULL, COP_TELEMETRY_MOUNT);
	cop_telemetry_began(NULL, 0, 0);
	cop_telemetry_event(NULL, COP_TELEMETRY_STOP, "stopped");
	cop_telemetry_look(NULL, &(struct cop_stats){0}, 0, 0);
	assert_int_equal(cop_telemetry_sum_add(s, NULL, 0), 0);
	assert_int_equal(cop_telemetry_sum_nodes(s), 0);
	cop_telemetry_sum_free(s);
	cop_telemetry_free(NULL);
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, stop_clock, start_clock)
	const struct CMUnitTest tests[] = {
		T(the_series_adds_up_however_long_the_job_lasts),
		T(what_was_done_stands_where_it_was_done),
		T(the_grid_is_that_of_the_job_not_of_the_node),
		T(counters_that_are_set_to_zero_go_on),
		T(the_phases_add_up_to_the_time_until_it_was_ready),
		T(events_are_bounded_by_kind_and_leave_room_for_those_of_every_node),
		T(an_event_that_repeats_itself_is_told_once_and_in_one_line),
		T(a_full_budget_is_an_event_where_it_begins),
		T(looks_become_rarer_as_time_goes_on),
		T(threads_report_while_another_one_looks),
		T(a_node_that_keeps_nothing_can_be_told_everything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
