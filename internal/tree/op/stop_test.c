/* SPDX-License-Identifier: BSD-3-Clause */
/* Stops that are requested once, twice, too late, and by a node that dies before the answer
 * comes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree/op/op_testing.h"

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

static void ask_stop(struct t_tree *t, uint32_t from, struct t_heard *h)
{
	t_ask_all(t, from, COP_OP_STOP, "", h);
}

static unsigned unconfirmed(struct t_tree *t, uint32_t rank)
{
	uint32_t who;

	return cop_rpc_unconfirmed(t->node[rank].rpc, &who, 1);
}

static void a_stop_ends_all_nodes_and_the_root_has_the_sums(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	ask_stop(t, 4, &h);
	t_run(t);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(h.sum.missing + h.sum.unwritten, 0);
	assert_int_equal(t_counted(&h), T_ALL);
	/* The root counts itself only once it has written, so these are the nodes below it. */
	assert_int_equal(t->node[0].wrote_nodes, T_NODES);
	assert_int_equal(t->node[0].wrote_count, T_ALL);
	for (uint32_t r = 0; r < T_NODES; r++) {
		assert_int_equal(t->node[r].ends, 1);
		assert_int_equal(t->node[r].completed, 1);
		assert_true(cop_op_is_stopping(t->node[r].op));
		assert_int_equal(unconfirmed(t, r), 0);
		assert_int_equal(t->node[r].gate.inside, 0);
	}
	t_forget_heard(&h);
}

static void nobody_unmounts_before_those_below_have_answered(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[3].slow = true;
	ask_stop(t, 0, &h);
	t_run(t);
	assert_int_equal(h.times, 0);
	assert_true(t->node[2].ended);
	assert_false(t->node[1].ending);
	assert_false(t->node[0].ending);
	t->node[3].slow = false;
	t_run(t);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES);
	t_forget_heard(&h);
}

static void a_second_stop_while_one_is_under_way_gets_the_same_answer(void **state)
{
	struct t_tree *t = *state;
	struct t_heard first, second, late;

	t->node[6].slow = true;
	ask_stop(t, 3, &first);
	t_run(t);
	ask_stop(t, 5, &second);
	t_run(t);
	assert_int_equal(first.times + second.times, 0);
	t->node[6].slow = false;
	t_run(t);
	assert_int_equal(first.times, 1);
	assert_int_equal(second.times, 1);
	/* This works even when all have ended. */
	ask_stop(t, 1, &late);
	t_run(t);
	assert_int_equal(late.times, 1);
	for (uint32_t r = 0; r < T_NODES; r++) {
		assert_int_equal(t->node[r].completed, 1);
		assert_int_equal(t->node[r].asked, r ? 1 : 3);
	}
	assert_int_equal(first.sum.nodes, T_NODES);
	assert_int_equal(second.sum.nodes, T_NODES);
	assert_int_equal(late.sum.nodes, T_NODES);
	assert_int_equal(t_counted(&first), T_ALL);
	assert_int_equal(t_counted(&second), T_ALL);
	assert_int_equal(t_counted(&late), T_ALL);
	t_forget_heard(&first);
	t_forget_heard(&second);
	t_forget_heard(&late);
}

static void one_that_was_stopped_alone_is_missing_but_not_those_below(void **state)
{
	struct t_tree *t = *state;
	struct t_heard alone, again, all;

	t_ask_here(t, 1, COP_OP_STOP, "", false, &alone);
	t_run(t);
	assert_int_equal(alone.times, 1);
	assert_int_equal(alone.sum.nodes, 1);
	assert_true(t->node[1].ended);
	assert_false(t->node[3].ending);
	assert_false(cop_op_is_stopping(t->node[1].op));
	assert_true(cop_op_is_ending(t->node[1].op));
	assert_false(cop_op_is_ending(t->node[3].op));
	/* There is nothing left to do. */
	t_ask_here(t, 1, COP_OP_STOP, "", false, &again);
	assert_int_equal(again.times, 1);
	assert_int_equal(again.sum.nodes, 1);
	ask_stop(t, 0, &all);
	t_run(t);
	assert_int_equal(all.sum.nodes, T_NODES - 1);
	assert_int_equal(all.sum.failed, 1);
	assert_int_equal(all.sum.lost[0], 1);
	assert_non_null(strstr(t_text(&all), "host1 (rank 1) failed: it is ending"));
	assert_true(t->node[3].ended && t->node[4].ended);
	t_forget_heard(&alone);
	t_forget_heard(&again);
	t_forget_heard(&all);
}

static void a_stop_alone_meanwhile_waits_for_the_other(void **state)
{
	struct t_tree *t = *state;
	struct t_heard all, alone;

	t->node[3].slow = true;
	ask_stop(t, 0, &all);
	t_run(t);
	t_ask_here(t, 1, COP_OP_STOP, "", false, &alone);
	t_run(t);
	assert_int_equal(alone.times, 0);
	t->node[3].slow = false;
	t_run(t);
	assert_int_equal(alone.times, 1);
	assert_int_equal(alone.sum.nodes, 1);
	assert_int_equal(all.sum.nodes, T_NODES);
	t_forget_heard(&all);
	t_forget_heard(&alone);
}

static void a_node_that_a_signal_ends_meanwhile_does_not_wait_for_those_below(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[3].slow = true;
	ask_stop(t, 0, &h);
	t_run(t);
	t->node[1].ended = true;
	cop_op_ended(t->node[1].op, NULL, NULL, false);
	t_run(t);
	assert_int_equal(h.times, 1);
	/* The sum lacks what 4 counted, and the answer of 3 comes too late. */
	assert_int_equal(h.sum.nodes, 5);
	assert_int_equal(t->node[1].completed, 0);
	t->node[3].slow = false;
	t_run(t);
	assert_int_equal(unconfirmed(t, 3), 0);
	assert_int_equal(t->node[1].completed, 0);
	t_forget_heard(&h);
	/* A second requester gets the same answer as the first. */
	t_ask_here(t, 1, COP_OP_STOP, "", true, &h);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 1);
	t_forget_heard(&h);
}

static void the_end_of_a_node_is_said_once(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	cop_op_ended(t->node[3].op, "first", NULL, false);
	cop_op_ended(t->node[3].op, "second", NULL, false);
	t_ask_here(t, 3, COP_OP_STOP, "", true, &h);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 1);
	assert_string_equal(t_text(&h), "first");
	t_forget_heard(&h);
}

/* ---- what is said with the sums ---- */

static void failures_are_counted_by_node(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[5].unwritten = "the disk is full";
	t->node[0].cannot_complete = "the cluster files, too";
	t->node[6].remark = "host6: held by a shell";
	t->node[6].mounted = true;
	t->node[3].remark = "host3: held by a daemon";
	ask_stop(t, 1, &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(h.sum.unwritten, 2);
	assert_int_equal(h.sum.mounted, 1);
	assert_int_equal(h.sum.missing, 0);
	assert_non_null(strstr(t_text(&h), "host6: held by a shell"));
	assert_non_null(strstr(t_text(&h), "host3: held by a daemon"));
	t_forget_heard(&h);
}

static void a_node_without_two_kinds_of_files_is_one_node(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;
	struct cop_buf lines = {0};

	t->node[0].unwritten = "the disk is full";
	t->node[0].cannot_complete = "no cluster files";
	ask_stop(t, 0, &h);
	t_run(t);
	assert_int_equal(h.sum.unwritten, 1);
	cop_op_sum_say_unwritten(&h.sum, &lines);
	assert_string_equal(lines.data, "host0: no cluster files\n");
	cop_buf_free(&lines);
	t_forget_heard(&h);
}

/* ---- whoever asked ---- */

/* Returns how long the node stays. Its clock advances with that of the network. */
static unsigned stays(struct t_tree *t, uint32_t rank, unsigned most_ms)
{
	struct awaited w = {.began_ms = 1, .there_ms = 1};
	unsigned ms = 0;

	while (ms < most_ms && cop_op_is_awaited(t->node[rank].op, &w, 1 + ms)) {
		t_advance(t, 100);
		ms += 100;
	}
	return ms;
}

static void a_node_whose_answer_came_does_not_stay(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	ask_stop(t, 0, &h);
	t_run(t);
	for (uint32_t r = 0; r < T_NODES; r++)
		assert_int_equal(stays(t, r, 10000), 0);
	t_forget_heard(&h);
}

static void a_parent_that_dies_before_it_has_the_answer_is_passed_over(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;
	unsigned ms;

	t->node[3].slow = true;
	ask_stop(t, 0, &h);
	t_run(t);
	t_cut(t, 1);
	t->node[3].slow = false;
	t_run(t);
	/* 3 has answered and nobody got the answer: it stays until it knows that 1 is dead and the
	 * living node above that has asked. */
	assert_true(t->node[3].ended);
	assert_int_equal(unconfirmed(t, 3), 1);
	ms = stays(t, 3, 60000);
	assert_in_range(ms, 2 * T_TIMEOUT_MS, 5 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.dead, 1);
	assert_int_equal(h.sum.lost[0], 1);
	assert_int_equal(t_counted(&h), T_ALL - 2);
	assert_int_equal(t->node[3].completed, 1);
	assert_int_equal(t->node[3].asked, 2);
	t_forget_heard(&h);
}

static void a_client_that_leaves_is_not_waited_for_long(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[0].slow = true;
	ask_stop(t, T_CLIENT, &h);
	t_run(t);
	t_cut(t, T_CLIENT);
	t->node[0].slow = false;
	t_run(t);
	assert_int_equal(unconfirmed(t, 0), 1);
	assert_in_range(stays(t, 0, 60000), 2 * T_TIMEOUT_MS, 3 * T_TIMEOUT_MS);
	/* It declares all of them dead. */
	t_advance(t, 8 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.dead, T_NODES);
	t_forget_heard(&h);
}

static void a_client_stops_the_tree(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t_cut(t, 0);
	ask_stop(t, T_CLIENT, &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.dead, 1);
	assert_int_equal(cop_op_sum_silents(&h.sum), 1);
	assert_int_equal(cop_op_sum_silent(&h.sum, 0), 0);
	assert_int_equal(t_counted(&h), T_ALL - 1);
	t_forget_heard(&h);
}

/* What a node says about itself may contain the words in which the user reads of a silent one. */
static void a_client_takes_no_sentence_for_a_silent_node(void **state)
{
	struct t_tree *t = *state;
	struct cop_buf said = {0};
	struct t_heard h;

	t->node[2].remark = "host1 (rank 1) did not answer";
	snprintf(t->node[3].host, sizeof(t->node[3].host), "x (rank 2)");
	t_cut(t, 3);
	ask_stop(t, T_CLIENT, &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_string_equal(t_text(&h), "host1 (rank 1) did not answer");
	assert_int_equal(cop_op_sum_silents(&h.sum), 1);
	assert_int_equal(cop_op_sum_silent(&h.sum, 0), 3);
	cop_op_say_silent(t->node[T_CLIENT].op, &h.sum, &said);
	assert_string_equal(said.data, "x (rank 2) (rank 3) did not answer\n");
	cop_buf_free(&said);
	t_forget_heard(&h);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_stop_ends_all_nodes_and_the_root_has_the_sums),
		T(nobody_unmounts_before_those_below_have_answered),
		T(a_second_stop_while_one_is_under_way_gets_the_same_answer),
		T(one_that_was_stopped_alone_is_missing_but_not_those_below),
		T(a_stop_alone_meanwhile_waits_for_the_other),
		T(a_node_that_a_signal_ends_meanwhile_does_not_wait_for_those_below),
		T(the_end_of_a_node_is_said_once),
		T(failures_are_counted_by_node),
		T(a_node_without_two_kinds_of_files_is_one_node),
		T(a_node_whose_answer_came_does_not_stay),
		T(a_parent_that_dies_before_it_has_the_answer_is_passed_over),
		T(a_client_that_leaves_is_not_waited_for_long),
		T(a_client_stops_the_tree),
		T(a_client_takes_no_sentence_for_a_silent_node),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
