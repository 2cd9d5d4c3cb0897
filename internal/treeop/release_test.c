/* SPDX-License-Identifier: BSD-3-Clause */
/* Who ends a tree that nobody needs, and when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "treeop/treeop_testing.h"

static struct t_heard h;

static void hear_anew(void)
{
	t_forget_heard(&h);
	h = (struct t_heard){0};
}

static void release(struct t_tree *t, uint32_t rank)
{
	hear_anew();
	cop_treeop_release(t->node[rank].op, t_done, &h);
	t_run(t);
}

static void release_from(struct t_tree *t, uint32_t first, uint32_t last)
{
	for (uint32_t r = first; r <= last; r++)
		release(t, r);
}

static void the_root_hears_when_the_last_is_released(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release(t, 0);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(h.sum.released, 1);
	assert_false(cop_treeop_all_released(&h.sum));
	release_from(t, 1, 5);
	release(t, 0);
	assert_int_equal(h.sum.released, 6);
	assert_false(cop_treeop_all_released(&h.sum));
	release(t, 6);
	release(t, 0);
	assert_true(cop_treeop_all_released(&h.sum));
	t_free(t);
}

static void who_has_a_living_node_above_leaves_it_to_that(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, T_NODES - 1);
	release(t, 3);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 0);
	assert_false(cop_treeop_all_released(&h.sum));
	/* Its parent is dead, not the root. */
	t_cut(t, 1);
	hear_anew();
	cop_treeop_release(t->node[3].op, t_done, &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 0);
	t_free(t);
}

static void the_dead_hold_nobody(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, 0);
	release_from(t, 2, T_NODES - 1);
	t_cut(t, 1);
	hear_anew();
	cop_treeop_release(t->node[0].op, t_done, &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.dead, 1);
	assert_true(cop_treeop_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

static void where_the_root_is_dead_its_children_do_it(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, 5);
	t_cut(t, 0);
	for (unsigned again = 0; again < 2; again++) {
		hear_anew();
		cop_treeop_release(t->node[2].op, t_done, &h);
		t_advance(t, 2 * T_TIMEOUT_MS);
		assert_int_equal(h.times, 1);
		assert_int_equal(h.sum.nodes, T_NODES - 1);
		assert_int_equal(cop_treeop_all_released(&h.sum), again == 1);
		release(t, 6);
	}
	t_free(t);
}

static void of_one_that_gives_no_answer_nothing_is_known(void **state)
{
	struct t_tree *t = t_new();

	(void)state;
	release_from(t, 0, T_NODES - 1);
	t->node[5].status = -ENOMEM;
	t->node[5].unable = true;
	release(t, 0);
	assert_int_equal(h.sum.failed, 1);
	assert_int_equal(h.sum.released, T_NODES - 1);
	assert_false(cop_treeop_all_released(&h.sum));
	t_forget_heard(&h);
	t_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_root_hears_when_the_last_is_released),
		cmocka_unit_test(who_has_a_living_node_above_leaves_it_to_that),
		cmocka_unit_test(the_dead_hold_nobody),
		cmocka_unit_test(where_the_root_is_dead_its_children_do_it),
		cmocka_unit_test(of_one_that_gives_no_answer_nothing_is_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
