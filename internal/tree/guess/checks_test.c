/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/clock_testing.h"
#include "tree/guess/guess_priv.h"

#define MOST_MS 60000
#define LEAF 2
#define DIRS 200
#define AHEAD_FEW 2 /* while it is unknown where the program goes on */

static void pass_both(uint64_t ms)
{
	pass(ms);
	wall_ns += (int64_t)(ms * COP_NS_PER_MS);
}

static void put_dir(struct tree *t, unsigned i)
{
	char path[32];

	snprintf(path, sizeof(path), "d%03u/f", i);
	put_file(t, path, "x", 1);
}

static int set_up(void **state)
{
	struct tree *t;

	most_ms = MOST_MS;
	bundle = true;
	*state = t = open_clocked_tree(64 << 20);
	for (unsigned i = 0; i < DIRS; i++)
		put_dir(t, i);
	/* The directory is not young any more. */
	pass_both(10 * TTL_MS);
	return 0;
}

static uint64_t stat_of(struct tree *t, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&t->node[rank].stats, c);
}

static void list(struct tree *t, const char *path, struct asked *a)
{
	ask_fetch(t, LEAF, listing(path), a);
	run_until_idle(t);
	assert_int_equal(a->calls, 1);
	assert_int_equal(a->rc, 0);
}

/* Looks for an absent name in a directory, as fs does. Returns whether a check was necessary. */
static bool look(struct tree *t, unsigned i)
{
	struct cop_fetch *c = t->node[LEAF].fetch;
	char path[16];
	struct asked a;
	struct cop_attr dir;
	bool due;

	snprintf(path, sizeof(path), "d%03u", i);
	list(t, path, &a);
	due = !cop_fetch_missed_ms(c, a.obj);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	if (due)
		assert_int_equal(ask_and_forget(t, LEAF,
					 (struct cop_ask){.kind = COP_ASK_CHECK,
						 .path = path,
						 .version = dir.version}),
			0);
	return due;
}

static unsigned look_in_all(struct tree *t, unsigned first, unsigned end)
{
	unsigned checks = 0;

	for (unsigned i = first; i < end; i++)
		checks += look(t, i);
	return checks;
}

static void a_directory_is_believed_as_long_again_as_it_was_the_same(void **state)
{
	struct tree *t = *state;
	uint64_t waited_ms = 0, last_ms = 0;

	assert_false(look(t, 0));
	for (unsigned checks = 0; checks < 8;) {
		pass_both(100);
		waited_ms += 100;
		if (!look(t, 0))
			continue;
		/* A name that appeared just after the last check is seen now. */
		assert_true(waited_ms - last_ms <= COP_MAX(TTL_MS, last_ms) + 100);
		assert_true(waited_ms - last_ms <= MOST_MS + 100);
		assert_true(waited_ms - last_ms >= COP_MIN(COP_MAX(TTL_MS, last_ms), MOST_MS));
		last_ms = waited_ms;
		checks++;
	}
	/* After 2, 4, 8, 16, 32, 64 s, and then each minute. */
	assert_int_equal(last_ms, 184000);
}

static void a_time_that_was_given_does_not_grow(void **state)
{
	struct tree *t = *state;

	t->node[LEAF].fetch->conf.enoent_most_ms = TTL_MS;
	assert_false(look(t, 0));
	for (unsigned i = 0; i < 20; i++) {
		pass_both(TTL_MS - 1);
		assert_false(look(t, 0));
		pass_both(1);
		assert_true(look(t, 0));
	}
}

static void a_node_on_the_way_does_not_answer_for_as_long_as_it_believes(void **state)
{
	struct tree *t = *state;
	struct cop_ask check = {.kind = COP_ASK_CHECK, .path = "d000"};
	struct cop_attr dir;
	struct asked a;

	list(t, "d000", &a);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	check.version = dir.version;
	pass_both(10 * TTL_MS);
	assert_int_equal(ask_and_forget(t, 1, check), 0);
	ask_fetch(t, 1, listing("d000"), &a);
	assert_int_equal(cop_fetch_absent_ms(t->node[1].fetch, a.obj), 10 * TTL_MS);
	forget(&a);
	put_file(t, "d000/new", "y", 1);
	pass_both(TTL_MS + 1);
	assert_int_equal(ask_and_forget(t, LEAF, check), -ESTALE);
}

static void a_directory_that_changed_is_checked_as_often_as_at_first(void **state)
{
	struct tree *t = *state;
	struct cop_fetch *c = t->node[LEAF].fetch;
	struct asked a;
	struct cop_attr dir;

	look(t, 0);
	pass_both(100 * TTL_MS);
	assert_true(look(t, 0));
	list(t, "d000", &a);
	assert_true(cop_fetch_absent_ms(c, a.obj) > 10 * TTL_MS);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	put_file(t, "d000/new", "y", 1);
	pass_both(10 * TTL_MS);
	assert_int_equal(
		ask_and_forget(t, LEAF,
			(struct cop_ask){
				.kind = COP_ASK_NEWER, .path = "d000", .version = dir.version}),
		0);
	list(t, "d000", &a);
	assert_int_equal(cop_listing_count(a.obj->data), 2);
	assert_int_equal(cop_fetch_absent_ms(c, a.obj), TTL_MS);
	forget(&a);
}

static void who_asks_in_the_same_order_again_has_few_checks_to_wait_for(void **state)
{
	struct tree *t = *state;
	uint64_t messages, ahead;
	unsigned checks;

	assert_int_equal(look_in_all(t, 0, DIRS), 0);
	for (unsigned time = 1; time <= 3; time++) {
		pass_both(20 * time * TTL_MS);
		messages = stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES);
		ahead = stat_of(t, LEAF, COP_ENOENT_AHEAD);
		checks = look_in_all(t, 0, DIRS);
		ahead = stat_of(t, LEAF, COP_ENOENT_AHEAD) - ahead;
		/* 1 + 2, 1 + 4, ... 1 + 63, 1 + 63, and the rest. */
		assert_int_equal(checks, 8);
		assert_int_equal(checks + ahead, DIRS);
		assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES), messages + checks);
		/* A directory that is still believed is not checked. */
		assert_int_equal(look_in_all(t, 0, DIRS), 0);
	}
	assert_int_equal(stat_of(t, LEAF, COP_ENOENT_AHEAD), 3 * (DIRS - 8));
}

static void who_catches_up_with_a_check_joins_it(void **state)
{
	struct tree *t = *state;
	struct cop_ask check[2] = {
		{.kind = COP_ASK_CHECK, .path = "d000"}, {.kind = COP_ASK_CHECK, .path = "d001"}};
	struct asked a[2];
	struct cop_attr dir;
	uint64_t sent;

	look_in_all(t, 0, 3);
	pass_both(10 * TTL_MS);
	for (unsigned i = 0; i < 2; i++) {
		list(t, check[i].path, &a[i]);
		cop_listing_dir(a[i].obj->data, &dir);
		forget(&a[i]);
		check[i].version = dir.version;
	}
	sent = stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT);
	for (unsigned i = 0; i < 2; i++)
		ask_fetch(t, LEAF, check[i], &a[i]);
	run_until_idle(t);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(a[i].calls, 1);
		assert_int_equal(a[i].rc, 0);
		forget(&a[i]);
	}
	assert_int_equal(stat_of(t, LEAF, COP_ENOENT_AHEAD), 2);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT), sent + 3);
}

/* The requester looked at the listing when it was due, and another's check ends before it asks. */
static void who_comes_after_another_check_sends_no_other(void **state)
{
	struct tree *t = *state;
	struct cop_ask check = {.kind = COP_ASK_CHECK, .path = "d000"};
	struct cop_attr dir;
	struct asked a;
	uint64_t sent;

	list(t, check.path, &a);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	check.version = dir.version;
	pass_both(10 * TTL_MS);
	sent = stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT);
	for (unsigned i = 0; i < 2; i++)
		assert_int_equal(ask_and_forget(t, LEAF, check), 0);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT), sent + 1);
	/* No answer without a check makes the listing look younger. */
	pass_both(10 * TTL_MS - 1);
	assert_int_equal(ask_and_forget(t, LEAF, check), 0);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT), sent + 1);
	pass_both(1);
	assert_int_equal(ask_and_forget(t, LEAF, check), 0);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT), sent + 2);
}

static void who_goes_elsewhere_causes_few_checks_for_nothing(void **state)
{
	struct tree *t = *state;

	look_in_all(t, 0, DIRS);
	pass_both(100 * TTL_MS);
	for (unsigned i = 0; i < 10; i++)
		look(t, 2 + i * 77 % 190);
	assert_in_range(stat_of(t, LEAF, COP_ENOENT_AHEAD), 10, 20);
}

static unsigned look_slowly(struct tree *t, uint64_t pause_ms)
{
	unsigned checks = 0;

	for (unsigned i = 0; i < DIRS; i++) {
		checks += look(t, i);
		pass_both(pause_ms);
	}
	return checks;
}

static void a_slow_program_causes_no_check_that_is_over_when_it_comes(void **state)
{
	struct tree *t = *state;
	uint64_t ahead;
	unsigned checks;

	t->node[LEAF].fetch->conf.enoent_most_ms = TTL_MS;
	look_in_all(t, 0, DIRS);
	pass_both(100 * TTL_MS);
	checks = look_slowly(t, TTL_MS / 20);
	ahead = stat_of(t, LEAF, COP_ENOENT_AHEAD);
	assert_in_range(checks, DIRS / 20, DIRS / 5);
	/* At the end the checks may begin again, so that the first directories are checked. */
	assert_in_range(checks + ahead, DIRS, DIRS + 10);
	pass_both(100 * TTL_MS);
	assert_int_equal(look_slowly(t, 2 * TTL_MS), DIRS);
	assert_in_range(stat_of(t, LEAF, COP_ENOENT_AHEAD) - ahead, 0, AHEAD_FEW);
}

static void a_directory_that_changed_is_not_believed_for_being_checked_ahead(void **state)
{
	struct tree *t = *state;
	struct cop_fetch *c = t->node[LEAF].fetch;
	struct asked a;

	look_in_all(t, 0, 4);
	put_file(t, "d001/new", "y", 1);
	pass_both(10 * TTL_MS);
	assert_true(look(t, 0));
	assert_int_equal(stat_of(t, LEAF, COP_ENOENT_AHEAD), 2);
	list(t, "d001", &a);
	assert_int_equal(cop_fetch_absent_ms(c, a.obj), 0);
	forget(&a);
	list(t, "d002", &a);
	assert_true(cop_fetch_absent_ms(c, a.obj) > 0);
	forget(&a);
}

static void listings_that_are_gone_are_forgotten(void **state)
{
	struct tree *t = *state;

	look_in_all(t, 0, 10);
	assert_int_equal(t->node[LEAF].fetch->guess->absence.dirs.count, 10);
	pass_both(10 * TTL_MS);
	for (unsigned i = 1; i < 10; i++) {
		char path[16];

		snprintf(path, sizeof(path), "d%03u", i);
		cop_cache_drop_under(t->node[LEAF].cache, path);
	}
	assert_true(look(t, 0));
	assert_int_equal(stat_of(t, LEAF, COP_ENOENT_AHEAD), 0);
	assert_int_equal(t->node[LEAF].fetch->guess->absence.dirs.count, 1);
}

static void without_bundles_each_is_checked_alone(void **state)
{
	struct tree *t = *state;

	t->node[LEAF].fetch->conf.bundle = false;
	look_in_all(t, 0, DIRS);
	for (unsigned i = 0; i < 3; i++) {
		pass_both(20 * TTL_MS * (i + 1));
		assert_int_equal(look_in_all(t, 0, DIRS), DIRS);
	}
	assert_int_equal(stat_of(t, LEAF, COP_ENOENT_AHEAD), 0);
	assert_int_equal(t->node[LEAF].fetch->guess->absence.dirs.count, 0);
}

static void only_so_many_directories_are_remembered(void **state)
{
	struct tree *t = *state;
	const unsigned many = 4200;

	for (unsigned i = DIRS; i < many; i++)
		put_dir(t, i);
	look_in_all(t, 0, many);
	pass_both(100 * TTL_MS);
	look_in_all(t, 0, many);
	assert_int_equal(t->node[LEAF].fetch->guess->absence.dirs.count, 4096);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, close_clocked_tree)
	const struct CMUnitTest tests[] = {
		TEST(a_directory_is_believed_as_long_again_as_it_was_the_same),
		TEST(a_time_that_was_given_does_not_grow),
		TEST(a_node_on_the_way_does_not_answer_for_as_long_as_it_believes),
		TEST(a_directory_that_changed_is_checked_as_often_as_at_first),
		TEST(who_asks_in_the_same_order_again_has_few_checks_to_wait_for),
		TEST(who_catches_up_with_a_check_joins_it),
		TEST(who_comes_after_another_check_sends_no_other),
		TEST(who_goes_elsewhere_causes_few_checks_for_nothing),
		TEST(a_slow_program_causes_no_check_that_is_over_when_it_comes),
		TEST(a_directory_that_changed_is_not_believed_for_being_checked_ahead),
		TEST(listings_that_are_gone_are_forgotten),
		TEST(without_bundles_each_is_checked_alone),
		TEST(only_so_many_directories_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
