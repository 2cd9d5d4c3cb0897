/* SPDX-License-Identifier: BSD-3-Clause */
/* What the nodes of a tree know about a directory that changes on the storage (names.c). */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

static uint64_t version_in(const struct asked *a, const char *name)
{
	struct cop_listing_entry e;

	return cop_listing_find(a->obj->data, name, strlen(name), &e) ? e.attr.version : 0;
}

static uint64_t dir_version(const struct asked *a)
{
	struct cop_attr dir;

	cop_listing_dir(a->obj->data, &dir);
	return dir.version;
}

/* Asks and expects this result. */
static void asked_for(struct tree *t, uint32_t rank, struct cop_ask what, int rc, struct asked *a)
{
	ask_fetch(t, rank, what, a);
	run_until_idle(t);
	assert_int_equal(a->calls, 1);
	assert_int_equal(a->rc, rc);
}

static struct cop_ask check(uint64_t version)
{
	return (struct cop_ask){.kind = COP_ASK_CHECK, .path = "d", .version = version};
}

static struct cop_ask newer(uint64_t version)
{
	return (struct cop_ask){.kind = COP_ASK_NEWER, .path = "d", .version = version};
}

/* Asks this node for the listing of "d" and returns the directory's version. */
static uint64_t listed(struct tree *t, uint32_t rank)
{
	uint64_t version;
	struct asked a;

	asked_for(t, rank, listing("d"), 0, &a);
	version = dir_version(&a);
	forget(&a);
	return version;
}

static void a_check_finds_out_whether_a_directory_has_changed(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	uint64_t version;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "x", 1);
	version = listed(t, 2);
	usleep(5000);
	asked_for(t, 2, check(version), 0, &a);
	forget(&a);
	put_file(t, "d/g", "y", 1);
	usleep(5000);
	asked_for(t, 2, check(version), -ESTALE, &a);
	forget(&a);
	asked_for(t, 2, newer(version), 0, &a);
	assert_int_equal(cop_listing_count(a.obj->data), 2);
	assert_int_not_equal(dir_version(&a), version);
	forget(&a);
	close_tree(t);
}

/* Node 3 asks through node 1; nodes 2 and 4 have nothing cached. */
static void in_a_changed_directory_known_names_stay_and_new_ones_come_on_every_node(void **state)
{
	struct tree *t = open_tree(5, 2, 1, 1 << 20);
	uint64_t version, old, now;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "old", 3);
	asked_for(t, 3, listing("d"), 0, &a);
	version = dir_version(&a);
	old = version_in(&a, "f");
	forget(&a);
	put_file(t, "d/f", "newer", 5);
	put_file(t, "d/g", "g", 1);
	asked_for(t, 3, newer(version), 0, &a);
	assert_int_equal(version_in(&a, "f"), old);
	assert_true(version_in(&a, "g"));
	now = dir_version(&a);
	forget(&a);
	for (uint32_t r = 0; r < 5; r++) {
		asked_for(t, r, listing("d"), 0, &a);
		assert_int_equal(version_in(&a, "f"), old);
		assert_true(version_in(&a, "g"));
		assert_int_equal(dir_version(&a), now);
		forget(&a);
	}
	/* One job for the names, one for the newer ones. */
	assert_int_equal(origin_jobs(t), 2);
	close_tree(t);
}

static void an_outdated_child_gets_the_parents_listing_without_the_origin(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	uint64_t version;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "old", 3);
	version = listed(t, 2);
	put_file(t, "d/g", "g", 1);
	asked_for(t, 1, newer(version), 0, &a);
	forget(&a);
	assert_int_equal(origin_jobs(t), 2);
	asked_for(t, 2, newer(version), 0, &a);
	assert_true(version_in(&a, "g"));
	forget(&a);
	assert_int_equal(origin_jobs(t), 2);
	close_tree(t);
}

static void known_names_survive_when_the_directory_cannot_be_read(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	uint64_t version;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "old", 3);
	version = listed(t, 2);
	cop_origin_fake_fail(t->node[0].origin, "d", EIO);
	asked_for(t, 2, newer(version), -EIO, &a);
	forget(&a);
	asked_for(t, 2, listing("d"), 0, &a);
	assert_int_equal(dir_version(&a), version);
	forget(&a);
	close_tree(t);
}

/* With several trees, a chunk of a large file takes another path through the nodes than the
 * names. */
static void when_bytes_are_gone_the_whole_directory_is_replaced(void **state)
{
	uint64_t usual = striped_bytes;

	(void)state;
	striped_bytes = 0;
	for (uint32_t trees = 1; trees <= 3; trees++) {
		struct tree *t = open_tree(6, 1, trees, 1 << 20);
		struct cop_listing_entry e;
		struct asked a;

		put_file(t, "d/f", "old", 3);
		put_file(t, "d/g", "old", 3);
		asked_for(t, 5, listing("d"), 0, &a);
		assert_true(cop_listing_find(a.obj->data, "f", 1, &e));
		put_file(t, "d/f", "newer", 5);
		put_file(t, "d/g", "newer", 5);
		forget(&a);
		asked_for(t, 5, chunk(&e.attr, "d/f", 0), -ESTALE, &a);
		forget(&a);
		for (uint32_t r = 0; r < 6; r++) {
			asked_for(t, r, listing("d"), 0, &a);
			assert_true(cop_listing_find(a.obj->data, "f", 1, &e));
			assert_int_equal(e.attr.size, 5);
			assert_true(cop_listing_find(a.obj->data, "g", 1, &e));
			assert_int_equal(e.attr.size, 5);
			forget(&a);
		}
		close_tree(t);
	}
	striped_bytes = usual;
}

static void a_young_listing_is_read_again_once_it_is_old_enough(void **state)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	struct cop_ask ask_check = {.kind = COP_ASK_CHECK, .path = "d"};
	struct cop_attr dir;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "x", 1);
	cop_origin_fake_young(t->node[0].origin, true);
	ask_fetch(t, 2, listing("d"), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &dir);
	forget(&a);
	ask_check.version = dir.version;
	usleep(5000);
	ask_fetch(t, 2, ask_check, &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	cop_origin_fake_young(t->node[0].origin, false);
	usleep(5000);
	ask_fetch(t, 2, ask_check, &a);
	run_until_idle(t);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	ask_fetch(t, 2, newer(ask_check.version), &a);
	run_until_idle(t);
	cop_listing_dir(a.obj->data, &dir);
	assert_int_not_equal(dir.version, ask_check.version);
	assert_true(cop_version_same(dir.version, ask_check.version));
	forget(&a);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).lists, 2);
	close_tree(t);
}

/* The fake origin's timestamps are whole seconds. */
static void after_two_ticks_a_young_entry_and_its_bytes_are_fetched_again(void **state)
{
	struct tree *t = open_tree(2, 1, 1, 1 << 20);
	struct cop_attr young, old;
	struct asked a;

	(void)state;
	put_file(t, "f", "one", 3);
	cop_origin_fake_young(t->node[0].origin, true);
	young = attr_of(t, 1, "f");
	ask_fetch(t, 1, chunk(&young, "f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	cop_origin_fake_young(t->node[0].origin, false);
	assert_int_equal(attr_of(t, 1, "f").version, young.version);
	usleep(2050000);
	old = attr_of(t, 1, "f");
	assert_int_not_equal(old.version, young.version);
	assert_true(cop_version_same(old.version, young.version));
	ask_fetch(t, 1, chunk(&old, "f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 2);
	usleep(2050000);
	assert_int_equal(attr_of(t, 1, "f").version, old.version);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).stats, 2);
	/* A program that has the file open can still read it. */
	cop_cache_drop_under(t->node[0].cache, "");
	cop_cache_drop_under(t->node[1].cache, "");
	ask_fetch(t, 1, chunk(&young, "f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	forget(&a);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_check_finds_out_whether_a_directory_has_changed),
		cmocka_unit_test(
			in_a_changed_directory_known_names_stay_and_new_ones_come_on_every_node),
		cmocka_unit_test(an_outdated_child_gets_the_parents_listing_without_the_origin),
		cmocka_unit_test(known_names_survive_when_the_directory_cannot_be_read),
		cmocka_unit_test(when_bytes_are_gone_the_whole_directory_is_replaced),
		cmocka_unit_test(a_young_listing_is_read_again_once_it_is_old_enough),
		cmocka_unit_test(after_two_ticks_a_young_entry_and_its_bytes_are_fetched_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
