/* SPDX-License-Identifier: BSD-3-Clause */
/* When a peer counts as silent, and how often that may have consequences. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

#define HOUR_MS 3600000ull

static int setup(void **state)
{
	*state = t_new();
	return 0;
}

static int teardown(void **state)
{
	t_free(*state);
	return 0;
}

static unsigned lates;

static bool on_late(void *arg)
{
	(void)arg;
	lates++;
	return true;
}

/* A call that another node can answer as well. */
static struct t_result *call_late(struct t_world *w, uint8_t op)
{
	struct t_result *t = t_next(w);
	struct cop_rpc_call c = {
		.rank = 1, .op = op, .payload = "hi", .payload_len = 2, .done = t_done, .arg = t};

	c.late = on_late;
	cop_rpc_call(w->node[0].rpc, &c);
	t_run(w);
	return t;
}

static void connect_them(struct t_world *w)
{
	lates = 0;
	t_connect(w, 0, 1);
}

static void one_call_is_named_at_each_tick_of_silence(void **state)
{
	struct t_world *w = *state;
	struct t_result *t[4];

	connect_them(w);
	for (int i = 0; i < 4; i++)
		t[i] = call_late(w, T_HOLD);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t_advance(w, 300);
	assert_int_equal(lates, 0);
	while (!lates)
		t_advance(w, 100);
	assert_in_range(w->ms, 400, 500);
	assert_int_equal(lates, 1);
	t_advance(w, 100);
	assert_int_equal(lates, 2);
	assert_int_equal(t[3]->times, 0);
	t_advance(w, 100);
	assert_int_equal(lates, 2);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(t[i]->times, 1);
		assert_int_equal(t[i]->status, -ETIMEDOUT);
	}
	assert_int_equal(t_stat(w, 0, COP_FABRIC_LAGS), 1);
	assert_int_equal(call_late(w, T_ECHO)->status, -ETIMEDOUT);
}

/* A call that only this peer can answer stays, and is answered when the peer comes back. */
static void other_calls_stay_with_a_peer_that_is_left(void **state)
{
	struct t_world *w = *state;
	struct t_result *only, *landing;
	uint8_t memory[20000];

	connect_them(w);
	only = t_call(w, 0, 1, T_HOLD, NULL, 0);
	for (int i = 0; i < 3; i++)
		(void)call_late(w, T_HOLD);
	cop_endpoint_fake_cut(w->net, "n1", true);
	landing = t_call_body(w, 0, 1, sizeof(memory), memory, sizeof(memory));
	t_advance(w, 1000);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_LAGS), 1);
	assert_int_equal(only->times, 0);
	assert_int_equal(landing->times, 0);
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_advance(w, 4000);
	assert_int_equal(landing->status, 0);
	assert_int_equal(landing->body_hash, t_pattern_hash(sizeof(memory)));
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(only->status, 0);
}

static void a_process_that_was_late_itself_calls_nobody_silent(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	connect_them(w);
	t = call_late(w, T_HOLD);
	for (int i = 0; i < 20; i++) {
		cop_endpoint_fake_jump(w->net, i % 2 ? HOUR_MS : 700);
		t_run(w);
	}
	assert_int_equal(lates, 0);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(t->status, 0);
}

static void a_peer_that_answers_pings_slowly_gets_more_time(void **state)
{
	struct t_world *w = *state;
	struct peer *p;

	connect_them(w);
	p = w->node[0].rpc->peers[1];
	p->lag.rtt[0] = 500;
	p->lag.rtt[1] = 20;
	p->lag.rtts = 2;
	(void)call_late(w, T_HOLD);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t_advance(w, 1400);
	assert_int_equal(lates, 0);
	t_advance(w, 400);
	assert_true(lates > 0);
}

/* In silence, requests are asked twice until a twentieth of the last minute's is used up; after
 * that the peer is left, later. */
static void no_more_than_a_twentieth_is_asked_twice(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	connect_them(w);
	for (int i = 0; i < 12; i++) {
		t = call_late(w, T_HOLD);
		cop_endpoint_fake_cut(w->net, "n1", true);
		t_advance(w, 400);
		cop_endpoint_fake_cut(w->net, "n1", false);
		t_advance(w, 1200);
		t_answer_held(&w->node[1]);
		t_run(w);
		assert_int_equal(t->status, 0);
	}
	assert_int_equal(lates, 3);
	t = call_late(w, T_HOLD);
	cop_endpoint_fake_cut(w->net, "n1", true);
	assert_in_range(t_until(w, t, 2000), 700, 1000);
	assert_int_equal(t->status, -ETIMEDOUT);
	assert_int_equal(lates, 3);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_HEDGES), 3);
}

static void requests_of_an_earlier_minute_do_not_count(void **state)
{
	struct t_world *w = *state;
	struct cop_rpc *r = w->node[0].rpc;

	connect_them(w);
	for (int i = 0; i < 100; i++)
		(void)call_late(w, T_ECHO);
	assert_int_equal(r->minute.sent, 101);
	t_advance(w, 50000);
	(void)call_late(w, T_HOLD);
	for (int i = 0; i < 110; i++)
		t_advance(w, 100);
	assert_int_equal(r->minute.sent, 1);
	for (int i = 0; i < 600; i++)
		t_advance(w, 100);
	assert_int_equal(r->minute.sent, 0);
	t_answer_held(&w->node[1]);
	t_run(w);
}

/* Its address is known, but it does not answer the greeting. */
static void a_peer_that_does_not_greet_is_silent_too(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	lates = 0;
	cop_endpoint_fake_cut(w->net, "n1", true);
	t = call_late(w, T_ECHO);
	while (!lates && w->ms < 2000)
		t_advance(w, 100);
	assert_in_range(w->ms, 400, 800);
	assert_int_equal(t->times, 0);
	assert_int_equal(lates, 1);
}

static void count_end(void *arg, const struct cop_rpc_result *r)
{
	*(int *)arg = r->status;
}

static void the_answer_of_an_abandoned_call_is_not_fetched(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;
	int status = 1;
	struct cop_rpc *outer;

	connect_them(w);
	w->node[1].body_mask = ~0u;
	t = t_call_body(w, 0, 1, 100000, NULL, 0);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t_run(w);
	cop_rpc_enter(w->node[0].rpc, &outer);
	cop_rpc_abandon(w->node[0].rpc, 1, t, count_end, &status);
	cop_rpc_leave(w->node[0].rpc, outer);
	assert_int_equal(status, 1);
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_advance(w, 5000);
	assert_int_equal(status, -ECANCELED);
	assert_int_equal(t->times, 0);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(one_call_is_named_at_each_tick_of_silence),
		T(other_calls_stay_with_a_peer_that_is_left),
		T(a_process_that_was_late_itself_calls_nobody_silent),
		T(a_peer_that_answers_pings_slowly_gets_more_time),
		T(no_more_than_a_twentieth_is_asked_twice),
		T(requests_of_an_earlier_minute_do_not_count),
		T(a_peer_that_does_not_greet_is_silent_too),
		T(the_answer_of_an_abandoned_call_is_not_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
