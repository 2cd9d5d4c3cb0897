/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files of a root that has no room for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

#define FILES 60
#define ROOM (32 * CHUNK) /* of each node, in bytes */

static char path[FILES][8];
static struct cop_attr attr[FILES];

static struct tree *open_set(uint32_t nodes)
{
	struct tree *t = open_tree(nodes, 2, 1, ROOM);
	uint8_t data[CHUNK] = {0};

	for (unsigned i = 0; i < FILES; i++) {
		snprintf(path[i], sizeof(path[i]), "f%u", i);
		data[0] = (uint8_t)i;
		put_file(t, path[i], data, CHUNK);
		attr[i] = attr_of(t, 0, path[i]);
	}
	return t;
}

/* Each node begins elsewhere. */
static void read_set(struct tree *t, uint32_t rank)
{
	struct asked a;

	for (unsigned n = 0; n < FILES; n++) {
		unsigned i = (n + 17 * rank) % FILES;

		ask_fetch(t, rank, chunk(&attr[i], path[i], 0), &a);
		run_until_idle(t);
		if (!a.calls)
			pass_time(t, 8000);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(((const uint8_t *)a.obj->data)[0], i);
		forget(&a);
	}
}

static void files_that_all_nodes_can_hold_are_read_once(void **state)
{
	struct tree *t = open_set(5);

	(void)state;
	for (unsigned round = 0; round < 3; round++)
		for (uint32_t r = 0; r < 5; r++)
			read_set(t, r);
	assert_int_equal(origin_reads(t), FILES);
	for (uint32_t r = 0; r < 5; r++)
		cop_cache_check(t->node[r].cache);
	close_tree(t);
}

static void as_long_as_the_root_has_room_it_reads_alone(void **state)
{
	struct tree *t = open_set(5);
	struct asked a;

	(void)state;
	for (unsigned i = 0; i < 10; i++) {
		ask_fetch(t, 4, chunk(&attr[i], path[i], 0), &a);
		run_until_idle(t);
		forget(&a);
	}
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 10);
	assert_int_equal(origin_reads(t), 10);
	close_tree(t);
}

/* As with --spill, whose disk makes room in memory. */
static void a_root_that_has_room_again_leaves_chunks_to_their_homes(void **state)
{
	struct tree *t = open_set(5);
	bool lent[FILES];
	size_t before;
	struct asked a;

	(void)state;
	for (unsigned i = 0; i < FILES; i++) {
		before = cop_origin_fake_counts(t->node[0].origin).reads;
		ask_fetch(t, 4, chunk(&attr[i], path[i], 0), &a);
		run_until_idle(t);
		forget(&a);
		lent[i] = cop_origin_fake_counts(t->node[0].origin).reads == before;
	}
	assert_true(lent[FILES - 1]);
	for (unsigned i = 0; i < FILES; i++)
		cop_cache_drop_under(t->node[0].cache, path[i]);
	before = origin_reads(t);
	for (unsigned i = 0; i < FILES; i++) {
		if (!lent[i])
			continue;
		ask_fetch(t, 3, chunk(&attr[i], path[i], 0), &a);
		run_until_idle(t);
		assert_int_equal(a.rc, 0);
		forget(&a);
	}
	assert_int_equal(origin_reads(t), before);
	close_tree(t);
}

static void a_dead_homes_share_is_read_once_more_by_another(void **state)
{
	struct tree *t = open_set(5);
	size_t before, lost;

	(void)state;
	for (uint32_t r = 0; r < 5; r++)
		read_set(t, r);
	lost = cop_origin_fake_counts(t->node[4].origin).reads;
	assert_true(lost > 0);
	before = origin_reads(t);
	cop_endpoint_fake_cut(t->net, "n4", true);
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t r = 0; r < 4; r++)
			read_set(t, r);
	assert_in_range(origin_reads(t) - before, 1, lost);
	close_tree(t);
}

static size_t served(struct tree *t, uint32_t first, uint32_t last)
{
	size_t n = 0;

	for (uint32_t r = first; r <= last; r++)
		n += cop_stats_get(&t->node[r].stats, COP_FABRIC_REQUESTS_SERVED);
	return n;
}

static void a_full_root_answers_no_more_than_the_others(void **state)
{
	struct tree *t = open_set(8);
	size_t of_root, of_others;

	(void)state;
	for (uint32_t r = 0; r < 8; r++)
		read_set(t, r);
	of_root = served(t, 0, 0);
	of_others = served(t, 1, 7);
	for (uint32_t r = 0; r < 8; r++)
		read_set(t, r);
	assert_true(served(t, 1, 7) - of_others > 7 * 8);
	assert_in_range(served(t, 0, 0) - of_root, 0, (served(t, 1, 7) - of_others) / 7);
	assert_int_equal(origin_reads(t), FILES);
	close_tree(t);
}

/* The first reader fills the root; then its chunks are asked for at their homes. */
static void what_the_root_has_from_before_is_not_read_again(void **state)
{
	struct tree *t = open_set(5);

	(void)state;
	read_set(t, 4);
	assert_int_equal(origin_reads(t), FILES);
	for (uint32_t r = 0; r < 4; r++)
		read_set(t, r);
	assert_int_equal(origin_reads(t), FILES);
	close_tree(t);
}

static void without_the_root_homes_read_what_only_it_had(void **state)
{
	struct tree *t = open_set(5);
	size_t of_root;

	(void)state;
	read_set(t, 4);
	of_root = cop_origin_fake_counts(t->node[0].origin).reads;
	cop_endpoint_fake_cut(t->net, "n0", true);
	for (unsigned round = 0; round < 2; round++)
		for (uint32_t r = 1; r < 5; r++)
			read_set(t, r);
	assert_in_range(origin_reads(t), FILES, FILES + of_root);
	close_tree(t);
}

static void after_an_invalidation_the_root_reads_alone_again(void **state)
{
	struct tree *t = open_set(5);
	size_t before, of_root;
	struct asked a;

	(void)state;
	for (uint32_t r = 0; r < 5; r++)
		read_set(t, r);
	for (uint32_t r = 0; r < 5; r++) {
		cop_cache_drop_under(t->node[r].cache, "");
		cop_fetch_forget_name(t->node[r].fetch, "");
	}
	before = origin_reads(t);
	of_root = cop_origin_fake_counts(t->node[0].origin).reads;
	for (unsigned i = 0; i < 10; i++) {
		ask_fetch(t, 4, chunk(&attr[i], path[i], 0), &a);
		run_until_idle(t);
		assert_int_equal(a.rc, 0);
		forget(&a);
	}
	assert_int_equal(origin_reads(t) - before, 10);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads - of_root, 10);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_full_root_answers_no_more_than_the_others),
		cmocka_unit_test(what_the_root_has_from_before_is_not_read_again),
		cmocka_unit_test(without_the_root_homes_read_what_only_it_had),
		cmocka_unit_test(after_an_invalidation_the_root_reads_alone_again),
		cmocka_unit_test(files_that_all_nodes_can_hold_are_read_once),
		cmocka_unit_test(as_long_as_the_root_has_room_it_reads_alone),
		cmocka_unit_test(a_root_that_has_room_again_leaves_chunks_to_their_homes),
		cmocka_unit_test(a_dead_homes_share_is_read_once_more_by_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
