/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks that stand still or jump by an hour, as when a machine is suspended: no living peer is
 * declared dead, and a dead one is found in the usual time afterwards. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

#define TIMEOUT 3000
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

static void jump(struct t_world *w, uint64_t ms)
{
	cop_endpoint_fake_jump(w->net, ms);
	t_run(w);
}

static void a_call_that_waits_outlives_a_jump(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *later;

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	for (int i = 0; i < 5; i++) {
		t_advance(w, 1000);
		jump(w, HOUR_MS);
	}
	t_advance(w, 2 * TIMEOUT);
	assert_int_equal(held->times, 0);
	later = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(later->status, 0);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(held->times, 1);
	assert_int_equal(held->status, 0);
	assert_int_equal(w->node[0].resolves, 1);
	assert_int_equal(t_stat(w, 0, COP_FABRIC_RETRIES), 0);
}

/* The peer has been silent for a moment when the clock jumps: that is not an hour of silence. */
static void a_jump_of_the_clock_is_not_silence(void **state)
{
	struct t_world *w = *state;
	struct t_result *held;

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	cop_endpoint_fake_cut(w->net, "n1", true);
	t_advance(w, TIMEOUT / 3);
	jump(w, HOUR_MS);
	cop_endpoint_fake_cut(w->net, "n1", false);
	t_advance(w, 2 * TIMEOUT);
	assert_int_equal(held->times, 0);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(held->status, 0);
}

static void a_dead_peer_is_found_out_in_time_after_a_jump(void **state)
{
	struct t_world *w = *state;
	struct t_result *held;

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	jump(w, HOUR_MS);
	cop_endpoint_fake_cut(w->net, "n1", true);
	assert_in_range(t_until(w, held, 3 * TIMEOUT), TIMEOUT - 1000, TIMEOUT + 200);
	assert_int_equal(held->status, -EHOSTDOWN);
}

/* Ticks come but time does not pass: nothing times out, and everything does once time passes
 * again. */
static void a_clock_that_stands_still_ends_nothing(void **state)
{
	struct t_world *w = *state;
	struct t_result *held, *fresh;

	t_connect(w, 0, 1);
	held = t_call(w, 0, 1, T_HOLD, NULL, 0);
	t_run(w);
	cop_endpoint_fake_cut(w->net, "n1", true);
	for (int i = 0; i < 1000; i++)
		jump(w, 0);
	assert_int_equal(held->times, 0);
	cop_endpoint_fake_cut(w->net, "n1", false);
	fresh = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(fresh->status, 0);
	cop_endpoint_fake_cut(w->net, "n1", true);
	assert_true(t_until(w, held, 3 * TIMEOUT) <= TIMEOUT + 200);
	assert_int_equal(held->status, -EHOSTDOWN);
}

static void the_pause_of_a_dead_peer_ends_after_a_jump(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	cop_endpoint_fake_cut(w->net, "n1", true);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	assert_true(t_until(w, t, 2 * TIMEOUT) != UINT64_MAX);
	cop_endpoint_fake_cut(w->net, "n1", false);
	jump(w, HOUR_MS);
	t_advance(w, 1100);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	assert_true(t_until(w, t, TIMEOUT) != UINT64_MAX);
	assert_int_equal(t->status, 0);
}

/* The jump may come at any moment, even after the server has announced a body and waits for the
 * caller's buffer. */
static void a_body_arrives_wherever_the_clock_jumps(void **state)
{
	struct t_world *w = *state;

	t_connect(w, 0, 1);
	for (size_t events = 0; events < 20; events++) {
		struct t_result *t = t_call_body(w, 0, 1, 3 * COP_MIB, NULL, 0);

		cop_endpoint_fake_run(w->net, events);
		jump(w, HOUR_MS);
		assert_true(t_until(w, t, TIMEOUT) != UINT64_MAX);
		assert_int_equal(t->times, 1);
		assert_int_equal(t->status, 0);
		assert_int_equal(t->body_len, 3 * COP_MIB);
		assert_int_equal(t->body_hash, t_pattern_hash(3 * COP_MIB));
	}
	assert_int_equal(w->node[1].releases, 20);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_call_that_waits_outlives_a_jump),
		TEST(a_jump_of_the_clock_is_not_silence),
		TEST(a_dead_peer_is_found_out_in_time_after_a_jump),
		TEST(a_clock_that_stands_still_ends_nothing),
		TEST(the_pause_of_a_dead_peer_ends_after_a_jump),
		TEST(a_body_arrives_wherever_the_clock_jumps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
