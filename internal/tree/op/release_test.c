/* SPDX-License-Identifier: BSD-3-Clause */
/* Who ends a tree that is no longer needed, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree/op/op_testing.h"

#define LONG_MS 100000 /* after this time every node checks again */

static struct t_heard h;
static uint64_t now_ms;

/* Asks, as the keeper of a node does repeatedly. */
static void ask(struct t_tree *t, uint32_t rank)
{
	t_forget_heard(&h);
	h = (struct t_heard){0};
	cop_op_release(t->node[rank].op, now_ms, t_done, &h);
	t_run(t);
}

static void ask_later(struct t_tree *t, uint32_t rank)
{
	now_ms += LONG_MS;
	ask(t, rank);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
}

static void release_from(struct t_tree *t, uint32_t first, uint32_t last)
{
	for (uint32_t r = first; r <= last; r++)
		ask(t, r);
}

/* How many requests all nodes together got. */
static unsigned requests(const struct t_tree *t)
{
	unsigned sum = 0;

	for (uint32_t r = 0; r < T_NODES; r++)
		sum += t->node[r].asked + t->node[r].looked;
	return sum;
}

static void the_root_hears_when_the_last_is_released(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, 5);
	ask(t, 0);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 0);
	ask(t, 6);
	assert_int_equal(h.sum.nodes, 0);
	ask(t, 0);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_true(cop_op_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

static void it_does_not_matter_who_is_the_last(void **state)
{
	(void)state;
	for (uint32_t last = 0; last < T_NODES; last++) {
		struct t_tree *t = t_new();

		for (uint32_t r = T_NODES; r-- > 0;)
			if (r != last)
				ask(t, r);
		assert_int_equal(h.sum.nodes, 0);
		ask(t, last);
		if (last)
			ask(t, 0);
		assert_true(cop_op_all_released(&h.sum));
		t_forget_heard(&h);
		t_free(t);
	}
}

/* Keepers ask each second for three hours, and one program still runs. */
static void a_tree_that_waits_is_quiet(void **state)
{
	struct t_tree *t = t_new();
	unsigned hour_s = 3600, before;

	(void)state;
	release_from(t, 0, 5);
	/* 3, 4 and 5 told the node above, and so did 1; no node was asked. */
	assert_int_equal(requests(t), 4);
	for (unsigned s = 0; s < 3 * hour_s; s++) {
		now_ms += 1000;
		release_from(t, 0, 5);
	}
	/* Every 20 s the root asks six nodes, and five look above. */
	assert_true(requests(t) <= 4 + 3 * hour_s / 20 * 11 + 5 * 11);
	before = requests(t);
	ask(t, 6);
	/* This node tells 2, which tells the root; the root asks all nodes once. */
	ask(t, 0);
	assert_true(cop_op_all_released(&h.sum));
	assert_int_equal(requests(t) - before, 2 + T_NODES - 1);
	t_forget_heard(&h);
	t_free(t);
}

static void a_root_that_waits_asks_again_less_and_less_often(void **state)
{
	struct t_tree *t = t_new();
	unsigned asked[6] = {0}; /* by the end of second 1, 3, 7, 15, 31, 51 */
	unsigned ends[] = {1, 3, 7, 15, 31, 51};

	(void)state;
	for (unsigned s = 0, i = 0; s <= 51; s++, now_ms += 1000) {
		ask(t, 0);
		if (s == ends[i])
			asked[i++] = requests(t);
	}
	for (unsigned i = 0; i < 6; i++)
		assert_int_equal(asked[i], (i + 1) * (T_NODES - 1));
	t_forget_heard(&h);
	t_free(t);
}

static void a_node_below_a_live_one_leaves_the_stop_to_it(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, T_NODES - 1);
	ask_later(t, 3);
	assert_int_equal(h.sum.nodes, 0);
	assert_false(cop_op_all_released(&h.sum));
	/* Its parent is dead, but the root is not. */
	t_cut(t, 1);
	ask_later(t, 3);
	assert_int_equal(h.sum.nodes, 0);
	t_free(t);
}

static void dead_nodes_do_not_delay_the_end(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	ask(t, 0);
	release_from(t, 2, T_NODES - 1);
	t_cut(t, 1);
	ask_later(t, 0);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.dead, 1);
	assert_true(cop_op_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

/* Dead nodes may take longer to find out than an answer is valid. */
static void a_root_whose_answer_came_too_late_asks_again_at_once(void **state)
{
	struct t_tree *t = t_new();
	unsigned before;

	(void)state;
	ask(t, 0);
	release_from(t, 2, T_NODES - 1);
	t_cut(t, 1);
	ask_later(t, 0);
	assert_true(cop_op_all_released(&h.sum));
	before = requests(t);
	ask(t, 0);
	assert_int_equal(h.sum.nodes, 0);
	cop_op_release_again(t->node[0].op);
	ask(t, 0);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_true(cop_op_all_released(&h.sum));
	assert_int_equal(requests(t) - before, T_NODES - 2);
	t_forget_heard(&h);
	t_free(t);
}

static void who_is_below_a_dead_node_tells_the_one_above_it(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	t_cut(t, 1);
	ask(t, 0);
	ask(t, 2);
	release_from(t, 4, 6);
	t_advance(t, 2 * T_TIMEOUT_MS);
	ask(t, 3);
	t_advance(t, 2 * T_TIMEOUT_MS);
	/* The root need not wait for its next check. */
	ask(t, 0);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_true(cop_op_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

static void if_the_root_is_dead_its_children_stop_the_tree(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, 5);
	t_cut(t, 0);
	ask_later(t, 2);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_false(cop_op_all_released(&h.sum));
	ask(t, 6);
	t_advance(t, 2 * T_TIMEOUT_MS);
	/* It has heard of the last one, and knows that the root is dead. */
	ask(t, 2);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_true(cop_op_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

/* A program that starts late; t_advance moves the time of the requests, and a promise runs by the
 * real clock. */
static void a_node_that_is_held_is_needed_until_its_next_release(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, T_NODES - 1);
	assert_int_equal(cop_op_hold(t->node[5].op, cop_now_ms()), 0);
	t_advance(t, 2 * T_TIMEOUT_MS);
	ask_later(t, 0);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(h.sum.released, T_NODES - 1);
	assert_false(cop_op_all_released(&h.sum));
	/* The root hears of it at once, and need not wait for its next check. */
	ask(t, 5);
	t_advance(t, 2 * T_TIMEOUT_MS);
	ask(t, 0);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_true(cop_op_all_released(&h.sum));
	/* Now the tree may be stopped. */
	assert_int_equal(cop_op_hold(t->node[5].op, cop_now_ms()), -EAGAIN);
	assert_int_equal(cop_op_hold(t->node[5].op, cop_now_ms() + 2 * COP_OP_RELEASED_MS), 0);
	t_forget_heard(&h);
	t_free(t);
}

static void a_node_without_an_answer_counts_as_needed(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, T_NODES - 1);
	t->node[5].status = -ENOMEM;
	t->node[5].unable = true;
	ask_later(t, 0);
	assert_int_equal(h.sum.failed, 1);
	assert_int_equal(h.sum.released, T_NODES - 1);
	assert_false(cop_op_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

/* A node was slow and declared dead, so those below it told the root; but the node is still
 * needed. */
static void what_was_told_is_asked_again(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	ask(t, 0);
	release_from(t, 2, T_NODES - 1);
	cop_op_released_below(t->node[0].op, 3, false);
	cop_op_released_below(t->node[0].op, 4, false);
	ask(t, 0);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(h.sum.released, T_NODES - 1);
	assert_false(cop_op_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_root_hears_when_the_last_is_released),
		cmocka_unit_test(it_does_not_matter_who_is_the_last),
		cmocka_unit_test(a_tree_that_waits_is_quiet),
		cmocka_unit_test(a_root_that_waits_asks_again_less_and_less_often),
		cmocka_unit_test(a_node_below_a_live_one_leaves_the_stop_to_it),
		cmocka_unit_test(dead_nodes_do_not_delay_the_end),
		cmocka_unit_test(a_root_whose_answer_came_too_late_asks_again_at_once),
		cmocka_unit_test(who_is_below_a_dead_node_tells_the_one_above_it),
		cmocka_unit_test(if_the_root_is_dead_its_children_stop_the_tree),
		cmocka_unit_test(a_node_that_is_held_is_needed_until_its_next_release),
		cmocka_unit_test(a_node_without_an_answer_counts_as_needed),
		cmocka_unit_test(what_was_told_is_asked_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
