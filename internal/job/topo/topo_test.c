/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "job/topo/topo.h"

#define MAX_NODES 600

static void a_tree_without_nodes_is_refused(void **state)
{
	struct cop_topo t = {.nodes = 0, .fanout = 8, .trees = 1};
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_topo_check(&t, &err), -EINVAL);
	assert_non_null(strstr(err.text, "at least 1"));
}

static void a_fanout_out_of_range_is_named_with_its_range(void **state)
{
	struct cop_topo t = {.nodes = 4, .fanout = 65, .trees = 1};
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_topo_check(&t, &err), -EINVAL);
	assert_string_equal(err.text, "fan-out 65 is out of range 1..64");
	t.fanout = 0;
	assert_int_equal(cop_topo_check(&t, NULL), -EINVAL);
	t.fanout = 64;
	assert_int_equal(cop_topo_check(&t, NULL), 0);
}

static void more_trees_than_nodes_are_refused(void **state)
{
	struct cop_topo t = {.nodes = 3, .fanout = 8, .trees = 4};
	struct cop_err err = {0};

	(void)state;
	assert_int_equal(cop_topo_check(&t, &err), -EINVAL);
	assert_string_equal(err.text, "4 trees is out of range 1..3 for 3 nodes");
	t.trees = 0;
	assert_int_equal(cop_topo_check(&t, NULL), -EINVAL);
	t = (struct cop_topo){.nodes = 1000, .fanout = 8, .trees = 65};
	assert_int_equal(cop_topo_check(&t, NULL), -EINVAL);
}

/* Goes up to the root; more steps than a tree has levels mean a cycle. */
static uint32_t depth_of(const struct cop_topo *t, uint32_t tree, uint32_t rank)
{
	uint32_t depth = 0;

	while ((rank = cop_topo_parent(t, tree, rank)) != COP_TOPO_NONE)
		assert_true(++depth < t->nodes);
	return depth;
}

static void one_node_is_the_root_of_its_only_tree(void **state)
{
	struct cop_topo t = {.nodes = 1, .fanout = 8, .trees = 1};
	uint32_t child[COP_TOPO_MAX_FANOUT];

	(void)state;
	assert_int_equal(cop_topo_check(&t, NULL), 0);
	assert_int_equal(cop_topo_root(&t, 0), 0);
	assert_int_equal(cop_topo_parent(&t, 0, 0), COP_TOPO_NONE);
	assert_int_equal(cop_topo_children(&t, 0, 0, child), 0);
	assert_int_equal(depth_of(&t, 0, 0), 0);
	assert_int_equal(cop_topo_subtree(&t, 0, 0), 1);
	assert_true(cop_topo_below(&t, 0, 0, 0));
}

static void a_small_tree_is_as_drawn(void **state)
{
	/* Tree 1 of 7 nodes, k = 2, T = 3 begins at rank 2: 2 -> 3 4, 3 -> 5 6, 4 -> 0 1. */
	struct cop_topo t = {.nodes = 7, .fanout = 2, .trees = 3};
	uint32_t child[COP_TOPO_MAX_FANOUT];

	(void)state;
	assert_int_equal(cop_topo_root(&t, 1), 2);
	assert_int_equal(cop_topo_parent(&t, 1, 1), 4);
	assert_int_equal(cop_topo_children(&t, 1, 4, child), 2);
	assert_int_equal(child[0], 0);
	assert_int_equal(child[1], 1);
	assert_int_equal(depth_of(&t, 1, 6), 2);
	assert_int_equal(cop_topo_subtree(&t, 1, 3), 3);
	assert_true(cop_topo_below(&t, 1, 3, 6));
	assert_false(cop_topo_below(&t, 1, 3, 4));
}

static void positions_do_not_overflow_at_the_largest_size(void **state)
{
	struct cop_topo t = {.nodes = UINT32_MAX - 1, .fanout = 64, .trees = 64};
	uint32_t child[COP_TOPO_MAX_FANOUT], last = t.nodes - 1;

	(void)state;
	assert_int_equal(cop_topo_check(&t, NULL), 0);
	for (uint32_t s = 0; s < t.trees; s++) {
		uint32_t parent = cop_topo_parent(&t, s, last);

		assert_true(parent < t.nodes);
		assert_true(depth_of(&t, s, last) <= 6);
		assert_int_equal(cop_topo_subtree(&t, s, cop_topo_root(&t, s)), t.nodes);
		assert_true(cop_topo_children(&t, s, cop_topo_root(&t, s), child) == 64);
		assert_true(cop_topo_below(&t, s, cop_topo_root(&t, s), last));
	}
}

/* Counts the nodes at or below the root, going down from child to child. */
static uint32_t reached(const struct cop_topo *t, uint32_t tree)
{
	uint32_t queue[MAX_NODES + COP_TOPO_MAX_FANOUT] = {cop_topo_root(t, tree)}, n = 1;

	for (uint32_t at = 0; at < n && n <= MAX_NODES; at++)
		n += cop_topo_children(t, tree, queue[at], queue + n);
	return n;
}

/* Parent and children name each other, so each node but the root is exactly one node's child. All
 * are reached from the root, so there are no cycles: each node has one path to the root. */
static void check_tree(const struct cop_topo *t, uint32_t tree, uint8_t interior[MAX_NODES])
{
	uint32_t child[COP_TOPO_MAX_FANOUT], roots = 0, edges = 0;

	for (uint32_t r = 0; r < t->nodes; r++) {
		uint32_t n = cop_topo_children(t, tree, r, child), below = 1;

		roots += cop_topo_parent(t, tree, r) == COP_TOPO_NONE;
		interior[r] += n > 0;
		edges += n;
		assert_true(n <= t->fanout);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(cop_topo_parent(t, tree, child[i]) == r);
			below += cop_topo_subtree(t, tree, child[i]);
		}
		assert_true(cop_topo_subtree(t, tree, r) == below);
	}
	assert_int_equal(roots, 1);
	assert_int_equal(edges, t->nodes - 1);
	assert_int_equal(reached(t, tree), t->nodes);
	assert_true(cop_topo_parent(t, tree, cop_topo_root(t, tree)) == COP_TOPO_NONE);
}

static void check_interior(const struct cop_topo *t, const uint8_t interior[MAX_NODES])
{
	uint32_t places = (t->nodes - 1 + t->fanout - 1) / t->fanout, most = 0;
	bool possible = t->trees * places <= t->nodes;

	for (uint32_t r = 0; r < t->nodes; r++)
		most = COP_MAX(most, interior[r]);
	if (t->trees <= t->fanout / 2)
		assert_true(possible);
	if (possible)
		assert_true(most <= 1);
	else if (t->trees <= t->fanout)
		assert_true(most <= 2);
}

static void every_size_fanout_and_tree_count_makes_valid_trees(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MAX_NODES; n++) {
		for (uint32_t k = 1; k <= 9; k++) {
			for (uint32_t trees = 1; trees <= COP_MIN(n, 8u); trees++) {
				struct cop_topo t = {n, k, trees};
				uint8_t interior[MAX_NODES] = {0};

				assert_int_equal(cop_topo_check(&t, NULL), 0);
				for (uint32_t s = 0; s < trees; s++)
					check_tree(&t, s, interior);
				check_interior(&t, interior);
			}
		}
	}
}

static void the_defaults_keep_trees_apart_at_every_size(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= 20000; n++) {
		struct cop_topo t = {.nodes = n, .fanout = 8, .trees = cop_topo_trees(n, 8)};
		uint32_t places = (n - 1 + 7) / 8;

		assert_int_equal(cop_topo_check(&t, NULL), 0);
		assert_true(t.trees * places <= n);
		assert_true(n < COP_TOPO_MANY_NODES ? t.trees == 1 : t.trees >= 5);
	}
	assert_int_equal(cop_topo_trees(16, 8), 8);
	assert_int_equal(cop_topo_trees(10000, 8), 8);
	assert_int_equal(cop_topo_trees(100000, 64), 8);
	assert_int_equal(cop_topo_trees(1000, 1), 1);
	assert_int_equal(cop_topo_trees(0, 8), 1);
	assert_int_equal(cop_topo_trees(1000, 0), 1);
}

/* Each node forwards a share of every byte; with a single tree the root would forward all bytes as
 * often as it has children. */
static void nobody_forwards_much_more_than_others(uint32_t fanout)
{
	static const uint32_t sizes[] = {16, 17, 64, 100, 1000, 8300, 10000};

	for (unsigned i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		struct cop_topo t = {sizes[i], fanout, cop_topo_trees(sizes[i], fanout)};
		uint32_t most = 0, out[COP_TOPO_MAX_FANOUT];

		for (uint32_t r = 0; r < t.nodes; r++) {
			uint32_t children = 0;

			for (uint32_t s = 0; s < t.trees; s++)
				children += cop_topo_children(&t, s, r, out);
			most = COP_MAX(most, children);
		}
		/* A child in one tree gets 1 / trees of the bytes; the mean is just below 1. */
		assert_true((double)most / t.trees <= (t.trees == fanout ? 1.0 : 1.7));
	}
}

/* 4 is the default of conf. */
static void with_the_trees_chosen_nobody_forwards_much_more_than_others(void **state)
{
	(void)state;
	nobody_forwards_much_more_than_others(4);
	nobody_forwards_much_more_than_others(8);
}

static void below_agrees_with_walking_up(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 5; k++) {
		struct cop_topo t = {61, k, 3};

		for (uint32_t a = 0; a < t.nodes; a++) {
			for (uint32_t r = 0; r < t.nodes; r++) {
				uint32_t up = r;

				while (up != a && up != COP_TOPO_NONE)
					up = cop_topo_parent(&t, 2, up);
				assert_true(cop_topo_below(&t, 2, a, r) == (up == a));
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_without_nodes_is_refused),
		cmocka_unit_test(a_fanout_out_of_range_is_named_with_its_range),
		cmocka_unit_test(more_trees_than_nodes_are_refused),
		cmocka_unit_test(one_node_is_the_root_of_its_only_tree),
		cmocka_unit_test(a_small_tree_is_as_drawn),
		cmocka_unit_test(positions_do_not_overflow_at_the_largest_size),
		cmocka_unit_test(every_size_fanout_and_tree_count_makes_valid_trees),
		cmocka_unit_test(the_defaults_keep_trees_apart_at_every_size),
		cmocka_unit_test(with_the_trees_chosen_nobody_forwards_much_more_than_others),
		cmocka_unit_test(below_agrees_with_walking_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
