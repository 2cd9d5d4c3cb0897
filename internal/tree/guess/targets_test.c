/* SPDX-License-Identifier: BSD-3-Clause */
/* The name that a link leads to is requested together with the link. Rank 2 asks rank 1, which asks
 * rank 0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

#define LEAF 2u

static void put_link(struct tree *t, const char *path, const char *target)
{
	for (uint32_t r = 0; r < t->count; r++)
		cop_origin_fake_put(
			t->node[r].origin, path, S_IFLNK | 0777, target, strlen(target));
}

/* Lists the names of a directory without their attributes, as for a large one. */
static int set_up(void **state)
{
	struct tree *t;

	bundle = true;
	*state = t = open_tree(3, 1, 1, 64 << 20);
	put_link(t, "d/libz.so", "libz.so.1.2.13");
	put_link(t, "d/libz.so.1", "libz.so.1.2.13");
	put_file(t, "d/libz.so.1.2.13", "x", 1);
	put_file(t, "d/libz.so.1.2.13.debug", "x", 1);
	put_file(t, "d/libz.so.10", "x", 1);
	put_file(t, "d/python3", "x", 1);
	put_file(t, "d/python3.11", "x", 1);
	put_link(t, "d/alone", "python3");
	put_file(t, "d/alone.d/f", "x", 1);
	for (uint32_t r = 0; r < 3; r++)
		assert_int_equal(
			ask_and_forget(t, r, (struct cop_ask){.kind = COP_ASK_NAMES, .path = "d"}),
			0);
	return 0;
}

static int tear_down(void **state)
{
	close_tree(*state);
	return 0;
}

static uint64_t messages(struct tree *t)
{
	return cop_stats_get(&t->node[LEAF].stats, COP_FABRIC_REQUEST_MESSAGES);
}

static size_t stats_at_root(struct tree *t)
{
	return cop_origin_fake_counts(t->node[0].origin).stats;
}

/* Looks at a name; returns how many names the storage was asked for. */
static size_t look(struct tree *t, const char *path)
{
	size_t before = stats_at_root(t);

	assert_int_equal(
		ask_and_forget(t, LEAF, (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}), 0);
	return stats_at_root(t) - before;
}

static void a_link_comes_with_the_file_that_it_leads_to(void **state)
{
	struct tree *t = *state;
	uint64_t before = messages(t);

	assert_int_equal(look(t, "d/libz.so.1"), 2);
	assert_int_equal(look(t, "d/libz.so.1.2.13"), 0);
	assert_int_equal(messages(t), before + 1);
}

/* From libz.so to libz.so.1, the shortest name that continues it. */
static void of_several_names_the_shortest_comes(void **state)
{
	struct tree *t = *state;

	assert_int_equal(look(t, "d/libz.so"), 2);
	assert_int_equal(look(t, "d/libz.so.1"), 0);
	assert_int_equal(look(t, "d/libz.so.1.2.13"), 1);
	assert_int_equal(look(t, "d/libz.so.10"), 1);
}

static void a_file_comes_alone(void **state)
{
	assert_int_equal(look(*state, "d/python3"), 1);
	assert_int_equal(look(*state, "d/python3.11"), 1);
}

static void a_directory_is_no_target(void **state)
{
	assert_int_equal(look(*state, "d/alone"), 1);
}

static void without_the_option_a_link_comes_alone(void **state)
{
	struct tree *t = *state;

	t->node[LEAF].fetch->conf.bundle = false;
	assert_int_equal(look(t, "d/libz.so.1"), 1);
}

/* If the listing has the attributes, nobody needs to be asked. */
static void a_link_with_attributes_comes_alone(void **state)
{
	struct tree *t = *state;

	assert_int_equal(ask_and_forget(t, LEAF, listing("d")), 0);
	assert_int_equal(look(t, "d/libz.so.1"), 1);
}

/* How many names are requested with a link in a directory of this many names. */
static size_t looked_at_in(struct tree *t, const char *dir, unsigned names)
{
	char path[32];

	for (unsigned i = 2; i < names; i++) {
		snprintf(path, sizeof(path), "%s/%u", dir, i);
		put_file(t, path, "x", 1);
	}
	snprintf(path, sizeof(path), "%s/libz.so.1.2", dir);
	put_file(t, path, "x", 1);
	snprintf(path, sizeof(path), "%s/libz.so.1", dir);
	put_link(t, path, "libz.so.1.2");
	assert_int_equal(
		ask_and_forget(t, LEAF, (struct cop_ask){.kind = COP_ASK_NAMES, .path = dir}), 0);
	return look(t, path);
}

/* Each link would search all names. */
static void in_a_very_large_directory_a_link_comes_alone(void **state)
{
	assert_int_equal(looked_at_in(*state, "most", 8192), 2);
	assert_int_equal(looked_at_in(*state, "more", 8193), 1);
}

/* How many directories the root lists if one is looked at in a directory of this many names, of
 * which none has attributes. */
static size_t listed_with_one_of(struct tree *t, const char *dir, unsigned names)
{
	size_t before;
	char path[32];

	for (unsigned i = 1; i < names; i++) {
		snprintf(path, sizeof(path), "%s/%u", dir, i);
		put_file(t, path, "x", 1);
	}
	snprintf(path, sizeof(path), "%s/sub/f", dir);
	put_file(t, path, "x", 1);
	*strrchr(path, '/') = '\0';
	assert_int_equal(
		ask_and_forget(t, LEAF, (struct cop_ask){.kind = COP_ASK_NAMES, .path = dir}), 0);
	before = cop_origin_fake_counts(t->node[0].origin).lists;
	look(t, path);
	return cop_origin_fake_counts(t->node[0].origin).lists - before;
}

static void a_directory_in_a_large_one_comes_with_its_names(void **state)
{
	assert_int_equal(listed_with_one_of(*state, "large", 65), 1);
}

/* Its attributes are missing because the storage did not answer, and may never do so: each
 * operation more would occupy a worker. */
static void a_directory_that_was_not_answered_for_comes_alone(void **state)
{
	assert_int_equal(listed_with_one_of(*state, "small", 64), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(a_link_comes_with_the_file_that_it_leads_to),
		T(of_several_names_the_shortest_comes),
		T(a_file_comes_alone),
		T(a_directory_is_no_target),
		T(without_the_option_a_link_comes_alone),
		T(a_link_with_attributes_comes_alone),
		T(in_a_very_large_directory_a_link_comes_alone),
		T(a_directory_in_a_large_one_comes_with_its_names),
		T(a_directory_that_was_not_answered_for_comes_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
