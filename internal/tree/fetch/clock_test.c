/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers that stay valid for a time, when clocks stand still or jump. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/clock_testing.h"

#define HOUR_MS 3600000ull
#define DAY_NS (86400 * (int64_t)COP_NS_PER_S)

static struct cop_ask entry(const char *path)
{
	return (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path};
}

static void an_absence_stays_valid_only_while_the_clock_stands_still(void **state)
{
	struct tree *t = *state;
	size_t jobs;

	assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	put_file(t, "late", "x", 1);
	jobs = origin_jobs(t);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	pass(TTL_MS);
	assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	assert_int_equal(origin_jobs(t), jobs);
	pass(1);
	assert_int_equal(ask_and_forget(t, 2, entry("late")), 0);
}

static void after_a_jump_of_an_hour_an_absence_is_asked_again_once(void **state)
{
	struct tree *t = *state;
	size_t jobs;

	assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	jobs = origin_jobs(t);
	pass(HOUR_MS);
	assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	assert_int_equal(origin_jobs(t), jobs + 1);
	assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	assert_int_equal(origin_jobs(t), jobs + 1);
}

static void existing_entries_survive_any_jump_of_the_clock(void **state)
{
	struct tree *t = *state;
	struct cop_attr attr = attr_of(t, 2, "d/f");
	size_t jobs;

	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	assert_int_equal(ask_and_forget(t, 2, chunk(&attr, "d/f", 0)), 0);
	jobs = origin_jobs(t);
	for (int i = 0; i < 10; i++) {
		pass(HOUR_MS);
		wall_ns += i % 2 ? DAY_NS : -2 * DAY_NS;
		assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
		assert_int_equal(ask_and_forget(t, 2, chunk(&attr, "d/f", 0)), 0);
		assert_int_equal(ask_and_forget(t, 2, entry("d/f")), 0);
	}
	assert_int_equal(origin_jobs(t), jobs);
}

static void a_wall_clock_that_jumps_a_day_ends_no_absence_and_prolongs_none(void **state)
{
	struct tree *t = *state;
	size_t jobs;

	assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	jobs = origin_jobs(t);
	for (int i = -1; i <= 1; i += 2) {
		wall_ns += i * DAY_NS;
		pass(TTL_MS / 4);
		assert_int_equal(ask_and_forget(t, 2, entry("late")), -ENOENT);
	}
	assert_int_equal(origin_jobs(t), jobs);
	put_file(t, "late", "x", 1);
	pass(TTL_MS);
	wall_ns -= DAY_NS;
	assert_int_equal(ask_and_forget(t, 2, entry("late")), 0);
}

static void a_young_version_is_checked_once_when_it_is_old_enough(void **state)
{
	struct tree *t = *state;
	size_t jobs;

	for (uint32_t r = 0; r < 3; r++)
		cop_origin_fake_young(t->node[r].origin, true);
	assert_int_equal(ask_and_forget(t, 2, entry("d/f")), 0);
	jobs = origin_jobs(t);
	for (int i = 0; i < 1000; i++)
		assert_int_equal(ask_and_forget(t, 2, entry("d/f")), 0);
	wall_ns += DAY_NS;
	assert_int_equal(ask_and_forget(t, 2, entry("d/f")), 0);
	assert_int_equal(origin_jobs(t), jobs);
	for (uint32_t r = 0; r < 3; r++)
		cop_origin_fake_young(t->node[r].origin, false);
	pass(HOUR_MS);
	assert_int_equal(ask_and_forget(t, 2, entry("d/f")), 0);
	assert_int_equal(origin_jobs(t), jobs + 1);
	pass(HOUR_MS);
	assert_int_equal(ask_and_forget(t, 2, entry("d/f")), 0);
	assert_int_equal(origin_jobs(t), jobs + 1);
}

static void a_check_stays_valid_by_the_monotonic_clock(void **state)
{
	struct tree *t = *state;
	struct cop_ask check = {.kind = COP_ASK_CHECK, .path = "d"};
	struct cop_attr dir;
	struct asked a;

	ask_fetch(t, 2, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	check.version = dir.version;
	assert_true(cop_fetch_fresh(t->node[2].fetch, &check));
	wall_ns -= DAY_NS;
	pass(TTL_MS);
	assert_true(cop_fetch_fresh(t->node[2].fetch, &check));
	wall_ns += 2 * DAY_NS;
	pass(1);
	assert_false(cop_fetch_fresh(t->node[2].fetch, &check));
	assert_int_equal(ask_and_forget(t, 2, check), 0);
	assert_true(cop_fetch_fresh(t->node[2].fetch, &check));
	pass(HOUR_MS);
	assert_false(cop_fetch_fresh(t->node[2].fetch, &check));
}

static void a_resting_ancestor_rests_until_its_pause_is_over(void **state)
{
	struct tree *t = *state;
	struct cop_fetch *c = t->node[2].fetch;

	cop_fetch_rest(c, 1);
	for (int i = 0; i < 1000; i++)
		assert_true(cop_fetch_rests(c, 1));
	wall_ns += DAY_NS;
	assert_true(cop_fetch_rests(c, 1));
	pass(HOUR_MS);
	assert_false(cop_fetch_rests(c, 1));
	/* Its only earlier failure was an hour ago, so the pause is the second one, not the
	 * longest. */
	cop_fetch_rest(c, 1);
	pass(2 * REST_MIN_MS - 1);
	assert_true(cop_fetch_rests(c, 1));
	pass(1);
	assert_false(cop_fetch_rests(c, 1));
}

/* The wait for a kernel counts the ticks of rpc, in which a pause of the machine is short. */
static struct {
	void (*then)(void *arg);
	void *arg;
} pending[8];
static unsigned pending_count;

static int forget_later(void *ctx, const char *dir, void (*then)(void *arg), void *arg)
{
	struct node *n = ctx;

	(void)dir;
	if (n->rank != 1) {
		then(arg);
		return 0;
	}
	assert_true(pending_count < COP_ARRAY_SIZE(pending));
	pending[pending_count].then = then;
	pending[pending_count++].arg = arg;
	return 0;
}

static void a_child_is_not_answered_early_by_a_jump(void **state)
{
	struct tree *t;
	struct cop_attr old;
	struct asked a;

	(void)state;
	pending_count = 0;
	forget_names = forget_later;
	t = open_tree(3, 1, 1, 1 << 20);
	forget_names = NULL;
	put_file(t, "d/f", "hello", 5);
	old = attr_of(t, 2, "d/f");
	put_file(t, "d/f", "other one", 9);
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	pass_time(t, 200);
	cop_endpoint_fake_jump(t->net, HOUR_MS);
	run_until_idle(t);
	assert_int_equal(a.calls, 0);
	pass_time(t, FORGET_MS);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	for (unsigned i = 0; i < pending_count; i++)
		pending[i].then(pending[i].arg);
	close_tree(t);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, open_small_tree, close_clocked_tree)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_absence_stays_valid_only_while_the_clock_stands_still),
		TEST(after_a_jump_of_an_hour_an_absence_is_asked_again_once),
		TEST(existing_entries_survive_any_jump_of_the_clock),
		TEST(a_wall_clock_that_jumps_a_day_ends_no_absence_and_prolongs_none),
		TEST(a_young_version_is_checked_once_when_it_is_old_enough),
		TEST(a_check_stays_valid_by_the_monotonic_clock),
		TEST(a_resting_ancestor_rests_until_its_pause_is_over),
		TEST(a_child_is_not_answered_early_by_a_jump),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
