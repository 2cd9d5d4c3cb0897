/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "coop/coop_testing.h"

#define TTL_MS 2000
#define MOST_MS 60000
#define LEAF 2

static uint64_t now_ns;

static uint64_t test_now(void)
{
	return now_ns;
}

static int64_t test_wall(void)
{
	return 1700000000 * (int64_t)COP_NS_PER_S + (int64_t)now_ns;
}

static void pass(uint64_t ms)
{
	now_ns += ms * COP_NS_PER_MS;
}

static int set_up(void **state)
{
	struct tree *t;

	now_ns = 1000 * COP_NS_PER_S;
	cop_clocks_for_test(test_now, test_wall);
	ttl_ms = TTL_MS;
	most_ms = MOST_MS;
	*state = t = open_tree(3, 1, 1, 64 << 20);
	put_file(t, "d000/f", "x", 1);
	/* Not young any more. */
	pass(10 * TTL_MS);
	return 0;
}

static int tear_down(void **state)
{
	close_tree(*state);
	cop_clocks_for_test(NULL, NULL);
	return 0;
}

static void list(struct tree *t, const char *path, struct asked *a)
{
	ask_coop(t, LEAF, listing(path), a);
	run_until_idle(t);
	assert_int_equal(a->calls, 1);
	assert_int_equal(a->rc, 0);
}

/* Looks for an absent name in a directory as fs does. Returns whether a check was necessary. */
static bool look(struct tree *t, unsigned i)
{
	struct cop_coop *c = t->node[LEAF].coop;
	char path[16];
	struct asked a;
	struct cop_attr dir;
	bool due;

	snprintf(path, sizeof(path), "d%03u", i);
	list(t, path, &a);
	due = !cop_coop_absent_ms(c, a.obj);
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

static void a_directory_is_believed_as_long_again_as_it_was_the_same(void **state)
{
	struct tree *t = *state;
	uint64_t waited_ms = 0, last_ms = 0;

	assert_false(look(t, 0));
	for (unsigned checks = 0; checks < 8;) {
		pass(100);
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

	t->node[LEAF].coop->conf.enoent_most_ms = TTL_MS;
	assert_false(look(t, 0));
	for (unsigned i = 0; i < 20; i++) {
		pass(TTL_MS - 1);
		assert_false(look(t, 0));
		pass(1);
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
	pass(10 * TTL_MS);
	assert_int_equal(ask_and_forget(t, 1, check), 0);
	ask_coop(t, 1, listing("d000"), &a);
	assert_int_equal(cop_coop_absent_ms(t->node[1].coop, a.obj), 10 * TTL_MS);
	forget(&a);
	put_file(t, "d000/new", "y", 1);
	pass(TTL_MS + 1);
	assert_int_equal(ask_and_forget(t, LEAF, check), -ESTALE);
}

static void a_directory_that_changed_is_checked_as_often_as_at_first(void **state)
{
	struct tree *t = *state;
	struct cop_coop *c = t->node[LEAF].coop;
	struct asked a;
	struct cop_attr dir;

	look(t, 0);
	pass(100 * TTL_MS);
	assert_true(look(t, 0));
	list(t, "d000", &a);
	assert_true(cop_coop_absent_ms(c, a.obj) > 10 * TTL_MS);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	put_file(t, "d000/new", "y", 1);
	pass(10 * TTL_MS);
	assert_int_equal(
		ask_and_forget(t, LEAF,
			(struct cop_ask){
				.kind = COP_ASK_NEWER, .path = "d000", .version = dir.version}),
		0);
	list(t, "d000", &a);
	assert_int_equal(cop_listing_count(a.obj->data), 2);
	assert_int_equal(cop_coop_absent_ms(c, a.obj), TTL_MS);
	forget(&a);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_directory_is_believed_as_long_again_as_it_was_the_same),
		TEST(a_time_that_was_given_does_not_grow),
		TEST(a_node_on_the_way_does_not_answer_for_as_long_as_it_believes),
		TEST(a_directory_that_changed_is_checked_as_often_as_at_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
