/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers that succeed: in any order, after restarts, past a dead parent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tree/start/start_testing.h"

static void seven_ranks_come_in_any_order_and_all_hear_the_end(void **state)
{
	static const uint32_t orders[][NODES] = {{0, 1, 2, 3, 4, 5, 6}, {6, 5, 4, 3, 2, 1, 0},
		{3, 5, 0, 6, 1, 4, 2}, {1, 0, 4, 2, 6, 3, 5}};

	(void)state;
	for (size_t o = 0; o < COP_ARRAY_SIZE(orders); o++) {
		struct world *w;

		new_world((void **)&w);
		for (unsigned i = 0; i < NODES; i++) {
			assert_int_equal(count_ready(w), 0);
			start(w, orders[o][i]);
			pass_time(w, 700);
		}
		/* After a look-up that found nobody, rpc pauses before the next one. */
		pass_time(w, 15000);
		assert_int_equal(count_ready(w), NODES);
		for (uint32_t r = 0; r < NODES; r++) {
			assert_true(w->node[r].told);
			assert_int_equal(w->node[r].untold, 0);
			assert_false(cop_start_is_secondhand(w->node[r].join));
		}
		free_world((void **)&w);
	}
}

static void the_last_one_to_come_ends_it_for_all_at_once(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES; r++)
		up(w, r);
	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, 60000);
	assert_int_equal(count_ready(w), 0);
	atomic_store(&w->node[0].wakes, 0);
	start(w, NODES - 1);
	cop_endpoint_fake_run(w->net, 1000000);
	assert_int_equal(atomic_load(&w->node[0].wakes), 1);
	pass_time(w, TICK_MS);
	assert_int_equal(count_ready(w), NODES);
}

/* Its children may be ready before it is; their readiness is still passed up. */
static void the_root_knows_of_ready_ranks_below_one_that_is_not_ready(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES; r++)
		if (r == 1)
			up(w, r);
		else
			start(w, r);
	pass_time(w, 1000);
	assert_int_equal(w->node[0].join->arrivals, NODES - 1);
	assert_true(w->node[0].join->arrival[3].ready);
	assert_false(w->node[0].join->arrival[1].ready);
	assert_string_equal(w->node[0].join->arrival[3].address, "fake://n3.0");
}

static void a_node_that_is_alone_is_ready_at_its_first_step(void **state)
{
	struct world *w = *state;
	struct cop_job_hosts none = {.count = 0};
	struct cop_start_conf conf = {.topo = {1, 2, 1},
		.hosts = &none,
		.ready_timeout_ms = 1000,
		.ctx = &w->node[0],
		.wake = woken,
		.barrier_ended = barrier_ended};
	struct cop_start *j = cop_start_new(&conf);

	cop_start_start(j, w->now_ms);
	assert_false(cop_start_is_ready(j));
	assert_true(cop_start_step(j, w->now_ms, false));
	assert_true(cop_start_is_ready(j));
	cop_start_tell_below(j, w->now_ms);
	assert_int_equal(cop_start_tell_left_ms(j, w->now_ms), 0);
	cop_start_free(j);
}

struct onlooker {
	struct world *w;
	_Atomic bool enough;
	_Atomic unsigned looks;
};

static void *look_on(void *arg)
{
	struct onlooker *o = arg;

	while (!atomic_load(&o->enough)) {
		for (uint32_t r = 0; r < NODES; r++) {
			struct cop_start *j = o->w->node[r].join;

			cop_start_looked(j, o->w->node[r].rank / 2, NULL, "nobody listens there");
			if (*cop_start_why(j) || cop_start_is_secondhand(j))
				abort();
			(void)cop_start_is_ready(j);
		}
		atomic_fetch_add(&o->looks, 1);
	}
	return NULL;
}

static void other_threads_may_look_at_any_time(void **state)
{
	struct world *w = *state;
	struct onlooker o = {.w = w};
	pthread_t thread;

	for (uint32_t r = 0; r < NODES; r++)
		up(w, r);
	assert_int_equal(cop_thread_start(&thread, "onlooker", look_on, &o), 0);
	for (uint32_t r = 0; r < NODES; r++) {
		unsigned before = atomic_load(&o.looks);

		while (atomic_load(&o.looks) == before)
			usleep(100);
		start(w, r);
		pass_time(w, 3000);
	}
	atomic_store(&o.enough, true);
	pthread_join(thread, NULL);
	assert_int_equal(count_ready(w), NODES);
}

/* ---- in a tree that is ready ---- */

static void any_restarted_rank_joins_a_ready_tree(void **state)
{
	struct world *w = *state;

	start_all(w);
	pass_time(w, 15000);
	assert_int_equal(count_ready(w), NODES);
	for (uint32_t r = 0; r < NODES; r++) {
		kill_node(w, r);
		assert_int_equal(count_ready(w), NODES - 1);
		start(w, r);
		/* The others notice after a while that it was restarted. */
		pass_time(w, 15000);
		assert_true(is_ready(w, r));
		assert_true(w->node[r].told);
	}
}

static uint64_t moment_ns;
static int64_t real_ns;

static uint64_t moment(void)
{
	return moment_ns;
}

static int64_t real(void)
{
	return real_ns;
}

static void is_of_the_job(struct world *w, int64_t began_ns, int64_t unix_ns)
{
	int64_t mono, when;

	for (uint32_t r = 0; r < NODES; r++) {
		cop_start_job_began(w->node[r].join, &mono, &when);
		assert_int_equal(mono, began_ns);
		assert_int_equal(when, unix_ns);
	}
}

static void all_ranks_know_when_the_job_began_also_after_a_restart(void **state)
{
	struct world *w = *state;
	int64_t began_ns;

	cop_clocks_for_test(moment, real);
	moment_ns = 500 * COP_NS_PER_S;
	began_ns = (int64_t)moment_ns;
	/* Each rank has its own idea of the time. */
	for (uint32_t r = 0; r < NODES; r++) {
		real_ns = (int64_t)(7000 - 100 * r) * 1000000000;
		start(w, r);
		moment_ns += COP_NS_PER_S;
	}
	pass_time(w, 15000);
	assert_int_equal(count_ready(w), NODES);
	is_of_the_job(w, began_ns, INT64_C(7000000000000));
	moment_ns += 1000 * COP_NS_PER_S;
	for (uint32_t r = 0; r < NODES; r += 3) {
		kill_node(w, r);
		start(w, r);
		pass_time(w, 15000);
		assert_true(is_ready(w, r));
	}
	is_of_the_job(w, began_ns, INT64_C(7000000000000));
	cop_clocks_for_test(NULL, NULL);
}

static void past_a_dead_parent_the_next_upstream_rank_answers(void **state)
{
	struct world *w = *state;

	start_all(w);
	pass_time(w, 15000);
	kill_node(w, 1);
	kill_node(w, 4);
	start(w, 4);
	pass_time(w, 1000);
	/* The look-up of the parent found nobody, and the root was asked. */
	assert_true(is_ready(w, 4));
	assert_int_equal(w->node[4].join->upstream, 0);
}

static void with_all_upstream_dead_the_roots_children_say_that_the_tree_is_ready(void **state)
{
	struct world *w = *state;

	start_all(w);
	pass_time(w, 15000);
	kill_node(w, 0);
	kill_node(w, 1);
	kill_node(w, 4);
	start(w, 4);
	pass_time(w, 15000);
	assert_true(is_ready(w, 4));
}

/* A parent that is ending cannot answer and says so. */
static void a_rank_whose_parent_leaves_asks_further_up(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES; r++)
		if (r != 1 && r != 6)
			start(w, r);
	up(w, 1);
	pass_time(w, 15000);
	assert_int_equal(w->node[3].join->upstream, 1);
	cop_start_leave(w->node[1].join);
	pass_time(w, 300);
	assert_int_equal(w->node[3].join->upstream, 0);
	assert_int_equal(count_ready(w), 0);
	kill_node(w, 1);
	start(w, 1);
	start(w, 6);
	pass_time(w, 20000);
	assert_int_equal(count_ready(w), NODES);
}

/* ---- books ---- */

static void expect_in_book(struct world *w, const char *line, bool there)
{
	char path[128], *text;
	size_t len;

	snprintf(path, sizeof(path), "%s/logs/copper_address_book.txt", w->job_dir);
	assert_int_equal(cop_read_file(path, 65536, &text, &len), 0);
	if ((strstr(text, line) != NULL) != there)
		fail_msg("'%s' is %s the book:\n%s", line, there ? "not in" : "in", text);
	free(text);
}

static void the_root_writes_the_book_before_the_barrier_ends(void **state)
{
	struct world *w = *state;
	char path[128];

	make_job_dir(w);
	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, 3000);
	snprintf(path, sizeof(path), "%s/logs/copper_address_book.txt", w->job_dir);
	assert_int_equal(access(path, F_OK), -1);
	start(w, NODES - 1);
	cop_endpoint_fake_run(w->net, 1000000);
	assert_false(is_ready(w, 0));
	assert_true(cop_start_step(w->node[0].join, w->now_ms, false));
	expect_in_book(w, "h6 fake://n6.0", true);
	expect_in_book(w, "h0 fake://n0.0", true);
}

static void a_rank_that_comes_back_elsewhere_is_written_anew(void **state)
{
	struct world *w = *state;

	make_job_dir(w);
	start_all(w);
	pass_time(w, 15000);
	kill_node(w, 5);
	start(w, 5);
	pass_time(w, 15000);
	expect_in_book(w, "h5 fake://n5.1", true);
	expect_in_book(w, "h5 fake://n5.0", false);
	expect_in_book(w, "h6 fake://n6.0", true);
}

static void a_root_that_comes_back_keeps_the_others_addresses(void **state)
{
	struct world *w = *state;

	make_job_dir(w);
	start_all(w);
	pass_time(w, 15000);
	kill_node(w, 0);
	start(w, 0);
	pass_time(w, 15000);
	assert_true(is_ready(w, 0));
	expect_in_book(w, "h0 fake://n0.1", true);
	expect_in_book(w, "h3 fake://n3.0", true);
}

int main(void)
{
#define IN_A_WORLD(f) cmocka_unit_test_setup_teardown(f, new_world, free_world)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seven_ranks_come_in_any_order_and_all_hear_the_end),
		IN_A_WORLD(the_last_one_to_come_ends_it_for_all_at_once),
		IN_A_WORLD(the_root_knows_of_ready_ranks_below_one_that_is_not_ready),
		IN_A_WORLD(a_node_that_is_alone_is_ready_at_its_first_step),
		IN_A_WORLD(other_threads_may_look_at_any_time),
		IN_A_WORLD(any_restarted_rank_joins_a_ready_tree),
		IN_A_WORLD(all_ranks_know_when_the_job_began_also_after_a_restart),
		IN_A_WORLD(past_a_dead_parent_the_next_upstream_rank_answers),
		IN_A_WORLD(with_all_upstream_dead_the_roots_children_say_that_the_tree_is_ready),
		IN_A_WORLD(a_rank_whose_parent_leaves_asks_further_up),
		IN_A_WORLD(the_root_writes_the_book_before_the_barrier_ends),
		IN_A_WORLD(a_rank_that_comes_back_elsewhere_is_written_anew),
		IN_A_WORLD(a_root_that_comes_back_keeps_the_others_addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
