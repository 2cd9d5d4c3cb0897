/* SPDX-License-Identifier: BSD-3-Clause */
/* A node's own failure is never reported as an answer of the storage. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

static const int shortages[] = {ENOMEM, EMFILE, ENFILE, ENOBUFS};

/* A chain of four nodes: each is the only child of the one before. */
static struct tree *open_chain(void)
{
	struct tree *t = open_tree(4, 1, 1, 1 << 20);

	put_file(t, "d/f", "hello", 5);
	put_file(t, "e/f", "hello", 5);
	return t;
}

static size_t lists_of(struct tree *t, uint32_t rank)
{
	return cop_origin_fake_counts(t->node[rank].origin).lists;
}

static void a_shortage_of_the_root_makes_its_child_read_the_storage(void **state)
{
	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(shortages); i++) {
		struct tree *t = open_chain();

		cop_origin_fake_fail(t->node[0].origin, "d", shortages[i]);
		assert_int_equal(ask_and_forget(t, 3, listing("d")), 0);
		assert_int_equal(lists_of(t, 0), 1);
		assert_int_equal(lists_of(t, 1), 1);
		assert_int_equal(lists_of(t, 2) + lists_of(t, 3), 0);
		assert_int_equal(ask_and_forget(t, 0, listing("d")), -shortages[i]);
		close_tree(t);
	}
}

static void a_storage_error_reaches_the_reader_from_the_root_alone(void **state)
{
	static const int errors[] = {EIO, EACCES, ENOENT, ENOTDIR, ELOOP, ENOSPC, EAGAIN, EINTR,
		ETIMEDOUT, ENODEV, EHOSTDOWN};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(errors); i++) {
		struct tree *t = open_chain();

		cop_origin_fake_fail(t->node[0].origin, "d", errors[i]);
		assert_int_equal(ask_and_forget(t, 3, listing("d")), -errors[i]);
		assert_int_equal(lists_of(t, 0), 1);
		assert_int_equal(lists_of(t, 1) + lists_of(t, 2) + lists_of(t, 3), 0);
		assert_int_equal(cop_stats_get(&t->node[3].stats, COP_FABRIC_FAILOVERS), 0);
		close_tree(t);
	}
}

/* An allocation fails, any one, at any node on the way. */
static void a_node_without_memory_is_passed_over(void **state)
{
	(void)state;
	for (uint32_t poor = 0; poor < 3; poor++)
		for (int after = 0; after < 3; after++) {
			struct tree *t = open_chain();
			struct cop_attr attr = attr_of(t, 3, "d/f");
			struct asked a;

			cop_cache_starve(t->node[poor].cache, after);
			ask_fetch(t, 3, chunk(&attr, "d/f", 0), &a);
			run_until_idle(t);
			assert_int_equal(a.calls, 1);
			assert_int_equal(a.rc, 0);
			assert_memory_equal(a.obj->data, "hello", 5);
			forget(&a);
			assert_int_equal(cop_origin_fake_counts(t->node[poor ? 0 : 1].origin).reads,
				poor || after < 2);
			assert_int_equal(cop_origin_fake_counts(t->node[3].origin).reads, 0);
			cop_cache_starve(t->node[poor].cache, -1);
			close_tree(t);
		}
}

static void only_a_nodes_own_programs_see_its_shortage(void **state)
{
	struct tree *t = open_chain();
	struct asked above, below;

	(void)state;
	(void)ask_and_forget(t, 2, listing("e"));
	cop_cache_starve(t->node[1].cache, 0);
	ask_fetch(t, 1, listing("d"), &above);
	ask_fetch(t, 2, listing("d"), &below);
	run_until_idle(t);
	assert_int_equal(above.rc, -ENOMEM);
	assert_int_equal(below.rc, 0);
	forget(&below);
	close_tree(t);
}

/* A program on node 1 and a request of node 2 wait for the same flight of node 1, which fails
 * there. */
static void when_a_shared_flight_fails_the_child_asks_elsewhere(void **state)
{
	struct tree *t = open_chain();
	struct asked above, below;

	(void)state;
	cop_origin_fake_fail(t->node[0].origin, "d", ENFILE);
	cop_origin_fake_fail(t->node[1].origin, "d", EMFILE);
	ask_fetch(t, 1, listing("d"), &above);
	ask_fetch(t, 2, listing("d"), &below);
	run_until_idle(t);
	assert_int_equal(above.rc, -EMFILE);
	assert_int_equal(below.rc, 0);
	assert_int_equal(lists_of(t, 1), 1);
	assert_int_equal(lists_of(t, 2), 1);
	forget(&above);
	forget(&below);
	close_tree(t);
}

static void if_every_node_is_short_the_reader_gets_its_own_nodes_error(void **state)
{
	struct tree *t = open_chain();
	uint64_t sent;

	(void)state;
	for (uint32_t r = 0; r < 4; r++) {
		cop_origin_fake_fail(t->node[r].origin, "d", r == 3 ? EMFILE : ENOMEM);
		t->node[r].fetch->resting.min_ms = 60000;
	}
	assert_int_equal(ask_and_forget(t, 3, listing("d")), -EMFILE);
	/* Each node below asks it once, and does not ask it again when others fail too. */
	for (uint32_t r = 0; r < 4; r++)
		assert_in_range(lists_of(t, r), 1, r == 3 ? 1 : 3 - r);
	sent = cop_stats_get(&t->node[3].stats, COP_FABRIC_REQUESTS_SENT);
	assert_in_range(sent, 1, 3);
	/* All of them rest now, so the next reader asks none of them. */
	assert_int_equal(ask_and_forget(t, 3, listing("d")), -EMFILE);
	assert_int_equal(cop_stats_get(&t->node[3].stats, COP_FABRIC_REQUESTS_SENT), sent);
	close_tree(t);
}

static void end_pause(struct cop_fetch *c, uint32_t rank)
{
	pthread_mutex_lock(&c->resting.lock);
	c->resting.slot[rank].until_ms = cop_now_ms();
	pthread_mutex_unlock(&c->resting.lock);
}

static void an_ancestor_that_recovers_is_asked_again_after_a_pause(void **state)
{
	struct tree *t = open_chain();
	uint64_t sent;

	(void)state;
	t->node[2].fetch->resting.min_ms = REST_MAX_MS;
	cop_cache_starve(t->node[1].cache, 0);
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	assert_int_equal(cop_fetch_parent(t->node[2].fetch), 0);
	assert_int_equal(cop_stats_get(&t->node[2].stats, COP_FABRIC_FAILOVERS), 1);
	cop_cache_starve(t->node[1].cache, -1);
	sent = cop_stats_get(&t->node[1].stats, COP_FABRIC_REQUESTS_SERVED);
	(void)attr_of(t, 2, "d/f");
	assert_int_equal(cop_stats_get(&t->node[1].stats, COP_FABRIC_REQUESTS_SERVED), sent);
	end_pause(t->node[2].fetch, 1);
	assert_int_equal(ask_and_forget(t, 2, listing("e")), 0);
	assert_int_equal(cop_fetch_parent(t->node[2].fetch), 1);
	assert_int_equal(cop_stats_get(&t->node[1].stats, COP_FABRIC_REQUESTS_SERVED), sent + 1);
	assert_int_equal(lists_of(t, 2), 0);
	close_tree(t);
}

static void failures_at_the_same_time_count_as_one_for_the_pause(void **state)
{
	struct tree *t = open_chain();
	struct cop_fetch *c = t->node[3].fetch;

	(void)state;
	c->resting.min_ms = 4000;
	for (int i = 0; i < 10; i++)
		cop_fetch_rest(c, 2);
	assert_int_equal(c->resting.slot[2].pause_ms, 4000);
	end_pause(c, 2);
	assert_false(cop_fetch_rests(c, 2));
	cop_fetch_rest(c, 2);
	assert_int_equal(c->resting.slot[2].pause_ms, 8000);
	c->resting.slot[2].pause_ms = 9000;
	end_pause(c, 2);
	cop_fetch_rest(c, 2);
	assert_int_equal(c->resting.slot[2].pause_ms, REST_MAX_MS);
	cop_fetch_rested(c, 2);
	assert_false(cop_fetch_rests(c, 2));
	assert_int_equal(atomic_load(&c->resting.count), 0);
	close_tree(t);
}

/* The root cannot tell whether the directory is unchanged. It keeps the listing. */
static void a_check_that_failed_everywhere_proves_nothing(void **state)
{
	struct tree *t = open_chain();
	struct cop_attr dir;
	struct cop_obj *obj;
	struct asked a;
	struct cop_ask check = {.kind = COP_ASK_CHECK, .path = "d"};

	(void)state;
	ask_fetch(t, 1, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	check.version = dir.version;
	usleep(5000);
	for (uint32_t r = 0; r < 2; r++)
		cop_origin_fake_fail(t->node[r].origin, "d", EMFILE);
	assert_int_equal(ask_and_forget(t, 1, check), -EMFILE);
	obj = cop_fetch_peek(
		t->node[1].fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"});
	assert_non_null(obj);
	cop_obj_put(t->node[1].cache, obj);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_shortage_of_the_root_makes_its_child_read_the_storage),
		cmocka_unit_test(a_storage_error_reaches_the_reader_from_the_root_alone),
		cmocka_unit_test(a_node_without_memory_is_passed_over),
		cmocka_unit_test(only_a_nodes_own_programs_see_its_shortage),
		cmocka_unit_test(when_a_shared_flight_fails_the_child_asks_elsewhere),
		cmocka_unit_test(if_every_node_is_short_the_reader_gets_its_own_nodes_error),
		cmocka_unit_test(an_ancestor_that_recovers_is_asked_again_after_a_pause),
		cmocka_unit_test(failures_at_the_same_time_count_as_one_for_the_pause),
		cmocka_unit_test(a_check_that_failed_everywhere_proves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
