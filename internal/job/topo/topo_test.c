/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdlib.h>

#include "job/topo/topo.h"

#define MAX_NODES 600
/* Enough nodes to spread a file evenly. */
#define LARGEST 1000

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
static void check_tree(const struct cop_topo *t, uint32_t tree)
{
	uint32_t child[COP_TOPO_MAX_FANOUT], roots = 0, edges = 0;

	for (uint32_t r = 0; r < t->nodes; r++) {
		uint32_t n = cop_topo_children(t, tree, r, child), below = 1;

		roots += cop_topo_parent(t, tree, r) == COP_TOPO_NONE;
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

static void every_size_fanout_and_tree_count_makes_valid_trees(void **state)
{
	(void)state;
	for (uint32_t n = 1; n <= MAX_NODES; n += n < 100 ? 1 : 31) {
		for (uint32_t k = 1; k <= 9; k++) {
			for (uint32_t trees = 1; trees <= COP_MIN(n, 8u); trees++) {
				struct cop_topo t = {n, k, trees};

				assert_int_equal(cop_topo_check(&t, NULL), 0);
				for (uint32_t s = 0; s < trees; s++)
					check_tree(&t, s);
			}
		}
	}
}

/* How many children each node has in each tree: one row of nodes for each tree. */
static uint8_t *all_children(const struct cop_topo *t)
{
	uint8_t *count = calloc(t->trees, t->nodes);
	uint32_t out[COP_TOPO_MAX_FANOUT];

	assert_non_null(count);
	for (uint32_t s = 0; s < t->trees; s++)
		for (uint32_t r = 0; r < t->nodes; r++)
			count[s * t->nodes + r] = (uint8_t)cop_topo_children(t, s, r, out);
	return count;
}

/* How often the busiest node forwards a group, over the mean: files of this many groups. */
static double busiest(
	const struct cop_topo *t, const uint8_t *children, uint64_t hash, uint64_t groups)
{
	uint32_t sent[LARGEST] = {0}, most = 0;
	uint64_t all = 0;

	for (uint64_t g = 0; g < groups; g++) {
		const uint8_t *row = children + cop_topo_tree_of(t, hash, g, groups) * t->nodes;

		for (uint32_t r = 0; r < t->nodes; r++)
			sent[r] += row[r];
	}
	for (uint32_t r = 0; r < t->nodes; r++) {
		most = COP_MAX(most, sent[r]);
		all += sent[r];
	}
	return most / ((double)all / t->nodes);
}

/* With a single tree the root would forward all bytes as often as it has children. */
static void nobody_forwards_much_more_of_a_large_file_than_others(void **state)
{
	static const uint32_t sizes[] = {2, 3, 8, 16, 17, 64, 100, LARGEST};

	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(sizes); i++) {
		for (uint32_t k = 2; k <= 8; k *= 2) {
			struct cop_topo t = {sizes[i], k, sizes[i]};
			uint8_t *children = all_children(&t);

			for (uint64_t hash = 0; hash < 5; hash++) {
				assert_true(busiest(&t, children, hash, sizes[i]) == 1.0);
				assert_true(busiest(&t, children, hash, 10 * sizes[i] + 3) <= 1.2);
				assert_true(busiest(&t, children, hash, 16) <= 2.5);
			}
			free(children);
		}
	}
}

static void as_many_groups_as_trees_have_a_root_each(void **state)
{
	(void)state;
	for (uint32_t trees = 1; trees <= MAX_NODES; trees++) {
		struct cop_topo t = {.nodes = MAX_NODES, .fanout = 4, .trees = trees};
		uint8_t seen[MAX_NODES] = {0};

		for (uint32_t g = 0; g < trees; g++) {
			uint32_t s = cop_topo_tree_of(
				&t, UINT64_MAX - 5, UINT64_MAX / 2 + g, UINT64_MAX);

			assert_true(s < trees && !seen[s]);
			seen[s] = 1;
		}
	}
}

/* For a file with fewer groups than trees, or for the groups left over. */
static void the_roots_of_few_groups_are_equally_far_apart(void **state)
{
	static const struct {
		uint32_t trees, groups;
	} files[] = {
		{1000, 160}, {1000, 1160}, {1000, 16}, {10000, 32}, {100, 99}, {64, 27}, {7, 1}};

	(void)state;
	for (unsigned i = 0; i < COP_ARRAY_SIZE(files); i++) {
		uint32_t trees = files[i].trees, groups = files[i].groups, few = groups % trees;
		struct cop_topo t = {.nodes = trees, .fanout = 4, .trees = trees};
		uint8_t *seen = calloc(trees, 1);
		uint32_t gap = 0, least = trees, most = 0;

		for (uint32_t g = groups - few; g < groups; g++)
			seen[cop_topo_tree_of(&t, 77, g, groups)] = 1;
		for (uint32_t at = 0; at < 2 * trees; at++) {
			gap++;
			if (!seen[at % trees])
				continue;
			/* The first one may be in the middle of a gap. */
			if (at >= trees) {
				least = COP_MIN(least, gap);
				most = COP_MAX(most, gap);
			}
			gap = 0;
		}
		assert_int_equal(least, trees / few);
		assert_int_equal(most, trees / few + (trees % few != 0));
		free(seen);
	}
}

/* Follows a node that finds all others dead until its own turn. */
static uint32_t asked_before_own_turn(const struct cop_topo *t, uint32_t tree, uint32_t rank)
{
	uint32_t at = cop_topo_parent(t, tree, rank), count = 0;
	bool heir = false;

	while (at != COP_TOPO_NONE) {
		assert_true(at != rank && ++count <= t->nodes);
		at = cop_topo_next(t, tree, rank, at, &heir);
	}
	return count;
}

static void one_node_takes_a_dead_roots_place(void **state)
{
	/* Tree 1 begins at rank 2: 2 -> 3 4, 3 -> 5 6, 4 -> 0 1. */
	struct cop_topo t = {.nodes = 7, .fanout = 2, .trees = 3};
	bool heir = false;

	(void)state;
	assert_int_equal(cop_topo_next(&t, 1, 3, 2, &heir), COP_TOPO_NONE);
	heir = false;
	assert_int_equal(cop_topo_next(&t, 1, 4, 2, &heir), 3);
	assert_int_equal(cop_topo_next(&t, 1, 4, 3, &heir), COP_TOPO_NONE);
	heir = false;
	assert_int_equal(cop_topo_next(&t, 1, 1, 4, &heir), 3);
	assert_int_equal(cop_topo_next(&t, 1, 1, 3, &heir), 2);
	assert_false(heir);
	assert_int_equal(cop_topo_next(&t, 1, 1, 2, &heir), 3);
	assert_true(heir);
	assert_int_equal(cop_topo_next(&t, 1, 1, 3, &heir), COP_TOPO_NONE);
	for (uint32_t k = 1; k <= 9; k++) {
		t = (struct cop_topo){.nodes = 100, .fanout = k, .trees = 100};
		for (uint32_t r = 0; r < t.nodes; r++)
			assert_true(asked_before_own_turn(&t, 17, r) <= 100);
	}
}

/* This is what all children of a node do once it is dead. */
static void the_children_of_a_dead_node_are_divided_among_its_parent_and_siblings(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 9; k++) {
		struct cop_topo t = {.nodes = 500, .fanout = k, .trees = 500};

		for (uint32_t dead = 0; dead < t.nodes; dead++) {
			uint32_t child[COP_TOPO_MAX_FANOUT], asked[COP_TOPO_MAX_FANOUT];
			uint32_t parent = cop_topo_parent(&t, 17, dead);
			uint32_t n = cop_topo_children(&t, 17, dead, child);

			for (uint32_t i = 0; i < n && parent != COP_TOPO_NONE; i++) {
				bool heir = false;

				asked[i] = cop_topo_next(&t, 17, child[i], dead, &heir);
				assert_false(heir);
				assert_int_not_equal(asked[i], dead);
				assert_int_equal(
					i ? cop_topo_parent(&t, 17, asked[i]) : asked[i], parent);
				for (uint32_t j = 0; j < i; j++)
					assert_int_not_equal(asked[i], asked[j]);
			}
		}
	}
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
		cmocka_unit_test(nobody_forwards_much_more_of_a_large_file_than_others),
		cmocka_unit_test(as_many_groups_as_trees_have_a_root_each),
		cmocka_unit_test(the_roots_of_few_groups_are_equally_far_apart),
		cmocka_unit_test(one_node_takes_a_dead_roots_place),
		cmocka_unit_test(
			the_children_of_a_dead_node_are_divided_among_its_parent_and_siblings),
		cmocka_unit_test(below_agrees_with_walking_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
