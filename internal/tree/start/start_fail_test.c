/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers that fail: every rank hears the reason in time. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tree/start/start_testing.h"

#define GRACE_MS 5000

static void expect_why(struct world *w, uint32_t rank, const char *text)
{
	assert_false(is_ready(w, rank));
	assert_string_equal(why(w, rank), text);
}

/* Its children ask the rank above it. */
static void every_rank_hears_in_time_which_one_never_came(void **state)
{
	struct world *w = *state;
	uint64_t from = w->now_ms;

	for (uint32_t r = 0; r < NODES; r++)
		if (r != 2)
			start(w, r);
	pass_time(w, READY_TIMEOUT_MS - 1000);
	for (uint32_t r = 0; r < NODES; r++)
		assert_false(w->node[r].over);
	pass_time(w, 1000 + GRACE_MS);
	for (uint32_t r = 0; r < NODES; r++) {
		if (r == 2)
			continue;
		expect_why(w, r,
			r == 0 || r == 1 || r == 3 || r == 4
				? "3 of 7 nodes not ready after 120 s: h2, h5, h6"
				: why(w, r));
		assert_true(w->node[r].over_ms - from <= READY_TIMEOUT_MS + GRACE_MS);
		/* A rank that ran out of time writes no reason of its own. */
		assert_true(cop_start_is_secondhand(w->node[r].join));
	}
	/* Their reports cannot get past their parent; they name it, or have heard from the root. */
	assert_non_null(strstr(why(w, 5), "h2"));
	assert_non_null(strstr(why(w, 6), "h2"));
}

static void a_leaf_that_never_comes_is_the_only_one_named(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, READY_TIMEOUT_MS + GRACE_MS);
	for (uint32_t r = 0; r < NODES - 1; r++)
		expect_why(w, r, "1 of 7 nodes not ready after 120 s: h6");
}

static void without_a_root_a_rank_names_the_one_that_does_not_answer(void **state)
{
	struct world *w = *state;

	start(w, 3);
	pass_time(w, READY_TIMEOUT_MS + GRACE_MS - 1000);
	assert_false(w->node[3].over);
	pass_time(w, 1000);
	expect_why(w, 3,
		"no start signal from the root after 120 s; h0 (rank 0, above this node): Host is down");
}

/* A firewall lets the rendezvous through and drops what goes to the fabric port. */
static void a_parent_that_is_known_but_not_reached_is_named_with_its_address(void **state)
{
	struct world *w = *state;

	up(w, 0);
	cop_endpoint_fake_cut(w->net, "n0.0", true);
	start(w, 2);
	pass_time(w, READY_TIMEOUT_MS + GRACE_MS);
	expect_why(w, 2,
		"no start signal from the root after 120 s; h0 (rank 0, this node's parent and the root): its rendezvous answered, but its fabric address fake://n0.0 did not");
}

static void a_root_that_waits_for_others_is_not_said_to_be_silent(void **state)
{
	struct world *w = *state;

	up(w, 0);
	start(w, 2);
	pass_time(w, READY_TIMEOUT_MS + GRACE_MS);
	expect_why(w, 2,
		"no start signal from the root after 120 s; h0 (rank 0, the root) answers, and still waits for others");
}

/* ---- reasons ---- */

/* Nobody can tell which of the two is wrong. */
static void one_with_another_config_hash_ends_it_for_all(void **state)
{
	struct world *w = *state;

	make_job_dir(w);
	w->node[5].config_hash = 1;
	start_all(w);
	pass_time(w, 15000);
	for (uint32_t r = 0; r < NODES; r++) {
		const char *text = why(w, r);

		assert_true(w->node[r].over);
		assert_non_null(strstr(text, ") was started with other options: --source"));
		assert_true(strstr(text, "h5 (rank 5) ") == text ||
			    strstr(text, "h2 (rank 2) ") == text);
		/* The rank that found it reports it, and the root repeats it. */
		assert_int_equal(
			cop_start_is_secondhand(w->node[r].join), r != 0 && r != 2 && r != 5);
	}
}

static void a_mismatch_changes_nothing_when_the_tree_is_ready(void **state)
{
	struct world *w = *state;

	start_all(w);
	pass_time(w, 15000);
	cop_start_mismatch(w->node[2].join, 5);
	cop_start_mismatch(w->node[2].join, 4000000);
	pass_time(w, 1000);
	assert_int_equal(count_ready(w), NODES);
	assert_string_equal(why(w, 2), "");
}

static void a_rank_that_gives_up_tells_those_below(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, 15000);
	cop_start_give_up(w->node[1].join, "was interrupted");
	pass_time(w, TICK_MS);
	expect_why(w, 1, "h1 (rank 1) was interrupted");
	expect_why(w, 3, "h1 (rank 1) was interrupted");
	expect_why(w, 4, "h1 (rank 1) was interrupted");
	/* The failure is this rank's own, and the others repeat it. */
	assert_false(cop_start_is_secondhand(w->node[1].join));
	assert_true(cop_start_is_secondhand(w->node[3].join));
	assert_false(w->node[0].over);
}

static void a_rank_that_asks_after_the_end_is_answered_at_once(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES; r++)
		if (r != 4 && r != 6)
			start(w, r);
	pass_time(w, READY_TIMEOUT_MS + GRACE_MS);
	expect_why(w, 1, "2 of 7 nodes not ready after 120 s: h4, h6");
	start(w, 4);
	pass_time(w, 2 * TICK_MS);
	assert_true(w->node[4].over);
	expect_why(w, 4, "2 of 7 nodes not ready after 120 s: h4, h6");
}

/* ---- words of failure in the job directory ---- */

static void every_rank_hears_of_a_node_that_could_not_start(void **state)
{
	struct world *w = *state;
	char text[COP_STARTNOTE_WHY_SIZE];

	make_job_dir(w);
	for (uint32_t r = 0; r < NODES; r++)
		if (r != 6)
			start(w, r);
	pass_time(w, 3000);
	assert_false(w->node[0].over);
	assert_false(cop_start_failure_heard(w->node[0].join, w->now_ms + 1000, text));
	cop_job_failure_write(w->job_dir, 6, "no fuse here");
	pass_time(w, 15000);
	for (uint32_t r = 0; r < NODES - 1; r++)
		expect_why(w, r, "h6 (rank 6) did not start: no fuse here");
	assert_false(cop_start_is_secondhand(w->node[0].join));
	assert_true(cop_start_is_secondhand(w->node[5].join));
}

static void that_the_tree_is_not_ready_is_said_without_a_name(void **state)
{
	struct world *w = *state;

	make_job_dir(w);
	start(w, 0);
	cop_job_failure_write(w->job_dir, 3, COP_STARTNOTE_NOT_READY "h1 (rank 1) was ended");
	pass_time(w, 2000);
	expect_why(w, 0, "h1 (rank 1) was ended");
}

static void a_failure_counts_for_nothing_while_all_are_being_stopped(void **state)
{
	struct world *w = *state;

	make_job_dir(w);
	start(w, 0);
	cop_job_failure_write(w->job_dir, 6, "no fuse here");
	for (int s = 1; s < 10; s++)
		assert_false(cop_start_step(w->node[0].join, w->now_ms + s * 1000, true));
}

/* A second process of a running node. */
static void a_failure_of_a_rank_that_is_ready_counts_for_nothing(void **state)
{
	struct world *w = *state;

	make_job_dir(w);
	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, 3000);
	cop_job_failure_write(w->job_dir, 2, "it runs already");
	pass_time(w, 5000);
	assert_false(w->node[0].over);
}

/* ---- those below are told ---- */

static void a_child_that_does_not_say_that_it_knows_is_waited_for_and_named(void **state)
{
	struct world *w = *state;
	char name[16];

	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, 15000);
	/* The rank reported, and hangs when the barrier ends. */
	name_of(&w->node[3], name);
	cop_endpoint_fake_cut(w->net, name, true);
	start(w, NODES - 1);
	pass_time(w, 1000);
	assert_true(is_ready(w, 1));
	assert_true(w->node[2].told);
	assert_false(w->node[1].told);
	assert_int_equal(cop_start_name_untold(w->node[1].join), 1);
	assert_in_range(cop_start_tell_left_ms(w->node[1].join, w->now_ms), 8000, 9500);
	assert_int_equal(cop_start_tell_left_ms(w->node[1].join, w->now_ms + 10000), 0);
	assert_int_equal(cop_start_name_untold(w->node[1].join), 1);
	/* It is declared dead before that, so nobody waits for it. */
	pass_time(w, 9000);
	assert_true(w->node[1].told);
	assert_true(w->node[4].told);
}

static void one_that_never_came_is_not_waited_for(void **state)
{
	struct world *w = *state;

	for (uint32_t r = 0; r < NODES - 1; r++)
		start(w, r);
	pass_time(w, 10000);
	cop_start_give_up(w->node[2].join, "was interrupted");
	pass_time(w, 2 * TICK_MS);
	assert_true(w->node[2].told);
	assert_int_equal(w->node[2].untold, 0);
	assert_true(w->node[5].over);
}

/* ---- from outside ---- */

struct shot {
	unsigned times;
	int status;
};

static void hit(void *arg, const struct cop_rpc_result *r)
{
	struct shot *s = arg;

	s->times++;
	s->status = r->status;
}

static int shoot(struct world *w, uint32_t from, uint32_t to, struct cop_rpc_call call)
{
	struct shot s = {0};

	call.rank = to;
	call.done = hit;
	call.arg = &s;
	cop_rpc_call(w->node[from].rpc, &call);
	cop_endpoint_fake_run(w->net, 1000000);
	assert_int_equal(s.times, 1);
	return s.status;
}

static int tell_ready(struct world *w, uint32_t rank, size_t address_len, size_t cut)
{
	static const char long_text[600] = {[0 ... 598] = 'a'};
	uint8_t bytes[1024];
	struct cop_wr wr = cop_wr_init(bytes, sizeof(bytes));

	cop_wr_u32(&wr, rank);
	cop_wr_str(&wr, long_text, address_len);
	cop_wr_str(&wr, "", 0);
	return shoot(w, 1, 0,
		(struct cop_rpc_call){.op = COP_START_OP_READY,
			.payload = bytes,
			.payload_len = cop_wr_len(&wr) - cut});
}

static void a_malformed_report_of_readiness_is_refused(void **state)
{
	struct world *w = *state;

	up(w, 0);
	up(w, 1);
	assert_int_equal(tell_ready(w, NODES, 10, 0), -EINVAL);
	assert_int_equal(tell_ready(w, UINT32_MAX, 10, 0), -EINVAL);
	assert_int_equal(tell_ready(w, 1, 513, 0), -EINVAL);
	assert_int_equal(tell_ready(w, 1, 10, 1), -EINVAL);
	assert_int_equal(w->node[0].join->arrivals, 0);
	assert_int_equal(tell_ready(w, 1, 512, 0), 0);
	assert_int_equal(tell_ready(w, 1, 512, 0), 0);
	assert_int_equal(w->node[0].join->arrivals, 1);
}

static int tell_end(struct world *w, uint32_t from, uint32_t to, size_t why_len)
{
	static const char text[1100] = {[0 ... 1098] = 'w'};
	uint8_t bytes[1200];
	struct cop_wr wr = cop_wr_init(bytes, sizeof(bytes));

	cop_wr_u8(&wr, 0);
	cop_wr_str(&wr, text, why_len);
	return shoot(w, from, to,
		(struct cop_rpc_call){
			.op = COP_START_OP_TOLD, .payload = bytes, .payload_len = cop_wr_len(&wr)});
}

static void only_the_parent_may_tell_how_it_ended(void **state)
{
	struct world *w = *state;

	up(w, 0);
	up(w, 1);
	up(w, 4);
	assert_int_equal(tell_end(w, 0, 4, 5), -EPERM);
	assert_int_equal(tell_end(w, 4, 1, 5), -EPERM);
	assert_int_equal(tell_end(w, 1, 4, COP_STARTNOTE_WHY_SIZE), -EINVAL);
	assert_int_equal(shoot(w, 1, 4, (struct cop_rpc_call){.op = COP_START_OP_TOLD}), -EINVAL);
	assert_false(cop_start_has_ended(w->node[4].join));
	assert_int_equal(tell_end(w, 1, 4, 5), 0);
	assert_string_equal(why(w, 4), "wwwww");
}

static void an_operation_of_another_module_is_left_alone(void **state)
{
	struct world *w = *state;

	up(w, 0);
	up(w, 1);
	assert_int_equal(shoot(w, 1, 0, (struct cop_rpc_call){.op = 35}), -EOPNOTSUPP);
}

int main(void)
{
#define IN_A_WORLD(f) cmocka_unit_test_setup_teardown(f, new_world, free_world)
	const struct CMUnitTest tests[] = {
		IN_A_WORLD(every_rank_hears_in_time_which_one_never_came),
		IN_A_WORLD(a_leaf_that_never_comes_is_the_only_one_named),
		IN_A_WORLD(without_a_root_a_rank_names_the_one_that_does_not_answer),
		IN_A_WORLD(a_parent_that_is_known_but_not_reached_is_named_with_its_address),
		IN_A_WORLD(a_root_that_waits_for_others_is_not_said_to_be_silent),
		IN_A_WORLD(one_with_another_config_hash_ends_it_for_all),
		IN_A_WORLD(a_mismatch_changes_nothing_when_the_tree_is_ready),
		IN_A_WORLD(a_rank_that_gives_up_tells_those_below),
		IN_A_WORLD(a_rank_that_asks_after_the_end_is_answered_at_once),
		IN_A_WORLD(every_rank_hears_of_a_node_that_could_not_start),
		IN_A_WORLD(that_the_tree_is_not_ready_is_said_without_a_name),
		IN_A_WORLD(a_failure_counts_for_nothing_while_all_are_being_stopped),
		IN_A_WORLD(a_failure_of_a_rank_that_is_ready_counts_for_nothing),
		IN_A_WORLD(a_child_that_does_not_say_that_it_knows_is_waited_for_and_named),
		IN_A_WORLD(one_that_never_came_is_not_waited_for),
		IN_A_WORLD(a_malformed_report_of_readiness_is_refused),
		IN_A_WORLD(only_the_parent_may_tell_how_it_ended),
		IN_A_WORLD(an_operation_of_another_module_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
