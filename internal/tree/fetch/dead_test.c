/* SPDX-License-Identifier: BSD-3-Clause */
/* What nodes do in place of a dead parent, root or home. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

/* All others are the dead node's children in its tree. */
static void a_dead_nodes_share_is_read_by_one_other(void **state)
{
	struct tree *t = open_tree(5, 4, 5, 64 << 20);
	size_t len = 5 * GROUP_MAX * CHUNK, bytes = 0;
	uint8_t *data = malloc(len);
	struct cop_attr attr;

	(void)state;
	fill_bytes(data, len);
	put_file(t, "big", data, len);
	attr = attr_of(t, 0, "big");
	cop_endpoint_fake_cut(t->net, "n3", true);
	for (uint32_t r = 0; r < 5; r++) {
		struct asked a;

		for (uint64_t i = 0; r != 3 && i < len / CHUNK; i++) {
			ask_fetch(t, r, chunk(&attr, "big", i), &a);
			run_until_idle(t);
			if (!a.calls)
				pass_time(t, 8000);
			assert_int_equal(a.rc, 0);
			forget(&a);
		}
	}
	for (uint32_t r = 0; r < 5; r++)
		bytes += cop_origin_fake_counts(t->node[r].origin).read_bytes;
	assert_int_equal(bytes, len);
	free(data);
	close_tree(t);
}

/* Of tree 0: 1, 2 and 3 are below the root, and 4, 5 and 6 below 1. */
static void the_children_of_a_dead_node_ask_different_nodes(void **state)
{
	struct tree *t = open_tree(13, 3, 13, 64 << 20);
	size_t len = 13 * GROUP_MAX * CHUNK;
	uint8_t *data = calloc(1, len);
	struct cop_ask ask = {.kind = COP_ASK_CHUNK, .path = "big", .size = len};
	struct cop_attr attr;

	(void)state;
	put_file(t, "big", data, len);
	attr = attr_of(t, 0, "big");
	ask.version = attr.version;
	while (cop_fetch_tree_of(t->node[4].fetch, &ask))
		ask.index++;
	cop_endpoint_fake_cut(t->net, "n1", true);
	for (uint32_t r = 4; r <= 6; r++) {
		struct asked a;

		ask_fetch(t, r, chunk(&attr, "big", ask.index), &a);
		pass_time(t, 8000);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		forget(&a);
	}
	for (uint32_t r = 0; r <= 6; r++) {
		assert_int_equal(cop_fetch_has(t->node[r].fetch, &ask), r != 1);
		assert_int_equal(cop_origin_fake_counts(t->node[r].origin).reads, r == 0);
	}
	free(data);
	close_tree(t);
}

static void what_is_read_in_place_of_a_dead_root_is_counted(void **state)
{
	struct tree *t = open_tree(2, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	(void)attr_of(t, 0, "d/f");
	assert_int_equal(cop_stats_get(&t->node[0].stats, COP_ORIGIN_FALLBACKS), 0);
	cop_endpoint_fake_cut(t->net, "n0", true);
	ask_fetch(t, 1, listing("d"), &a);
	run_until_idle(t);
	pass_time(t, 8000);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_stats_get(&t->node[1].stats, COP_ORIGIN_FALLBACKS), 1);
	forget(&a);
	close_tree(t);
}

static void children_of_a_dead_parent_get_their_answer_from_its_parent(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	(void)attr_of(t, 3, "d/f");
	cop_endpoint_fake_cut(t->net, "n1", true);
	ask_fetch(t, 3, listing("d"), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 0);
	pass_time(t, 8000);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_stats_get(&t->node[3].stats, COP_FABRIC_HEDGES_WON), 1);
	assert_int_equal(cop_stats_get(&t->node[3].stats, COP_FABRIC_FAILOVERS), 0);
	assert_int_equal(cop_stats_get(&t->node[3].stats, COP_ORIGIN_FALLBACKS), 0);
	/* Only the root asked the origin: once for the entry, once for the listing. */
	assert_int_equal(origin_jobs(t), 2);
	forget(&a);
	close_tree(t);
}

static void with_every_ancestor_dead_a_node_reads_the_origin_itself(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	cop_endpoint_fake_cut(t->net, "n1", true);
	cop_endpoint_fake_cut(t->net, "n0", true);
	ask_fetch(t, 4, listing("d"), &a);
	pass_time(t, 16000);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_origin_fake_counts(t->node[4].origin).lists, 1);
	forget(&a);
	close_tree(t);
}

static void a_parent_that_comes_back_is_used_again(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	struct asked a;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	put_file(t, "e/f", "hello", 5);
	cop_endpoint_fake_cut(t->net, "n1", true);
	ask_fetch(t, 2, listing("d"), &a);
	pass_time(t, 8000);
	assert_int_equal(a.rc, 0);
	forget(&a);
	cop_endpoint_fake_cut(t->net, "n1", false);
	pass_time(t, 12000);
	ask_fetch(t, 2, listing("e"), &a);
	pass_time(t, 8000);
	assert_int_equal(a.rc, 0);
	assert_int_equal(cop_fetch_parent(t->node[2].fetch), 1);
	forget(&a);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_dead_nodes_share_is_read_by_one_other),
		cmocka_unit_test(the_children_of_a_dead_node_ask_different_nodes),
		cmocka_unit_test(what_is_read_in_place_of_a_dead_root_is_counted),
		cmocka_unit_test(children_of_a_dead_parent_get_their_answer_from_its_parent),
		cmocka_unit_test(with_every_ancestor_dead_a_node_reads_the_origin_itself),
		cmocka_unit_test(a_parent_that_comes_back_is_used_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
