/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "fabric/rpc/rpc_testing.h"

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

static void a_call_under_way_is_taken_back(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_HOLD, NULL, 0);

	t_run(w);
	assert_int_equal(w->node[1].held_count, 1);
	assert_int_equal(t->times, 0);
	cop_rpc_quiet(w->node[0].rpc);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -ECANCELED);
	assert_false(t->answered);
	t_answer_held(&w->node[1]);
	t_run(w);
	assert_int_equal(t->times, 1);
}

static void a_call_that_has_no_address_yet_is_taken_back(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	w->node[0].mute_resolver = true;
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	cop_rpc_quiet(w->node[0].rpc);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -ECANCELED);
}

static void calls_that_come_later_end_the_same_way(void **state)
{
	struct t_world *w = *state;
	struct t_result *t;

	cop_rpc_quiet(w->node[0].rpc);
	t = t_call(w, 0, 1, T_ECHO, NULL, 0);
	t_run(w);
	assert_int_equal(t->times, 1);
	assert_int_equal(t->status, -ECANCELED);
	assert_int_equal(w->node[1].served, 0);
}

static void others_are_still_served(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 1, 0, T_HOLD, NULL, 0), *later;

	t_run(w);
	cop_rpc_quiet(w->node[0].rpc);
	t_answer_held(&w->node[0]);
	later = t_call_body(w, 2, 0, 100000, NULL, 0);
	t_run(w);
	assert_int_equal(t->status, 0);
	assert_true(t->answered);
	assert_int_equal(later->status, 0);
	assert_true(later->body_hash == t_pattern_hash(100000));
}

static void nothing_lands_in_memory_that_was_given_back(void **state)
{
	struct t_world *w = *state;
	static uint8_t landing[100000], empty[sizeof(landing)];
	struct t_result *t, *back;

	/* This makes the link carry a request of the other side, too. */
	back = t_connect(w, 1, 0);
	t_connect(w, 0, 1);
	t = t_call_body(w, 0, 1, sizeof(landing), landing, sizeof(landing));
	/* Waits until the answer is being written. */
	while (!w->node[1].bodies)
		assert_int_equal(cop_endpoint_fake_run(w->net, 1), 1);
	assert_int_equal(t->times, 0);
	cop_rpc_quiet(w->node[0].rpc);
	assert_int_equal(t->times, 1);
	memset(landing, 0, sizeof(landing));
	t_advance(w, 5000);
	assert_memory_equal(landing, empty, sizeof(landing));
	back = t_call(w, 1, 0, T_ECHO, "x", 1);
	assert_true(t_until(w, back, 10000) != UINT64_MAX);
	assert_int_equal(back->status, 0);
}

static void a_call_that_asks_on_ends_too(void **state)
{
	struct t_world *w = *state;
	struct t_result *t = t_call(w, 0, 1, T_FORWARD, "x", 1);

	/* Rank 1 asks rank 2 and ends before rank 2 answers. */
	for (int i = 0; i < 200 && !w->node[1].served; i++)
		cop_endpoint_fake_run(w->net, 1);
	cop_rpc_quiet(w->node[1].rpc);
	assert_true(t_until(w, t, 10000) != UINT64_MAX);
	assert_true(t->answered);
	assert_int_equal(t->status, -ECANCELED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_call_under_way_is_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_call_that_has_no_address_yet_is_taken_back, setup, teardown),
		cmocka_unit_test_setup_teardown(
			calls_that_come_later_end_the_same_way, setup, teardown),
		cmocka_unit_test_setup_teardown(others_are_still_served, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nothing_lands_in_memory_that_was_given_back, setup, teardown),
		cmocka_unit_test_setup_teardown(a_call_that_asks_on_ends_too, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
