/* SPDX-License-Identifier: BSD-3-Clause */
/* Names that a directory does not list and the storage was asked for. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/clock_testing.h"

static uint64_t list_d(struct tree *t, uint32_t rank)
{
	struct cop_obj *obj;
	struct cop_attr dir;

	assert_int_equal(ask_and_forget(t, rank, listing("d")), 0);
	obj = cop_fetch_peek(
		t->node[rank].fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"});
	assert_non_null(obj);
	cop_listing_dir(obj->data, &dir);
	cop_obj_put(t->node[rank].cache, obj);
	return dir.version;
}

static int check_d(struct tree *t, uint32_t rank, uint64_t version)
{
	return ask_and_forget(
		t, rank, (struct cop_ask){.kind = COP_ASK_CHECK, .path = "d", .version = version});
}

static int ask_name(struct tree *t, uint32_t rank, const char *path)
{
	return ask_and_forget(t, rank, (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path});
}

/* The only question at the storage in all this time is whether the directory is the same. */
static void the_storage_is_asked_once_while_the_directory_is_the_same(void **state)
{
	struct tree *t = *state;
	uint64_t version = list_d(t, 2);
	size_t jobs;

	assert_int_equal(list_d(t, 1), version);
	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	for (int i = 0; i < 5; i++) {
		pass(TTL_MS + 1);
		assert_int_equal(check_d(t, 2, version), 0);
		jobs = origin_jobs(t);
		assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
		assert_int_equal(check_d(t, 1, version), 0);
		assert_int_equal(ask_name(t, 1, "d/none"), -ENOENT);
		assert_int_equal(origin_jobs(t), jobs);
	}
}

static void nodes_that_come_later_do_not_ask_the_storage(void **state)
{
	struct tree *t = *state;
	size_t jobs;

	list_d(t, 0);
	assert_int_equal(ask_name(t, 0, "d/none"), -ENOENT);
	jobs = origin_jobs(t);
	for (uint32_t rank = 1; rank < 3; rank++) {
		pass(10 * TTL_MS);
		list_d(t, rank);
		assert_int_equal(ask_name(t, rank, "d/none"), -ENOENT);
	}
	assert_int_equal(origin_jobs(t), jobs);
}

static void without_a_listing_it_is_asked_again_after_the_ttl(void **state)
{
	struct tree *t = *state;
	size_t jobs;

	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	pass(TTL_MS + 1);
	jobs = origin_jobs(t);
	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	assert_int_equal(origin_jobs(t), jobs + 1);
}

static void it_is_asked_again_when_the_directory_has_changed(void **state)
{
	struct tree *t = *state;
	uint64_t version = list_d(t, 2), newer;
	struct cop_ask ask = {.kind = COP_ASK_NEWER, .path = "d", .version = version};
	size_t jobs;

	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	pass(TTL_MS + 1);
	put_file(t, "d/other", "x", 1);
	assert_int_equal(check_d(t, 2, version), -ESTALE);
	assert_int_equal(ask_and_forget(t, 2, ask), 0);
	newer = list_d(t, 2);
	assert_true(newer != version);
	jobs = origin_jobs(t);
	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	assert_true(origin_jobs(t) > jobs);
}

/* It says nothing about the directory as it was listed later. */
static void an_absence_from_before_the_listing_ends_with_its_ttl(void **state)
{
	struct tree *t = *state;
	uint64_t version;
	size_t jobs;

	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	pass(1);
	version = list_d(t, 2);
	pass(TTL_MS + 1);
	assert_int_equal(check_d(t, 2, version), 0);
	jobs = origin_jobs(t);
	assert_int_equal(ask_name(t, 2, "d/none"), -ENOENT);
	assert_int_equal(origin_jobs(t), jobs + 1);
}

static void a_name_that_is_made_and_listed_is_found(void **state)
{
	struct tree *t = *state;
	uint64_t version = list_d(t, 2);

	assert_int_equal(ask_name(t, 2, "d/late"), -ENOENT);
	pass(TTL_MS + 1);
	put_file(t, "d/late", "x", 1);
	assert_int_equal(check_d(t, 2, version), -ESTALE);
	assert_int_equal(
		ask_and_forget(t, 2,
			(struct cop_ask){.kind = COP_ASK_NEWER, .path = "d", .version = version}),
		0);
	assert_int_equal(ask_name(t, 2, "d/late"), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, open_small_tree, close_clocked_tree)
	const struct CMUnitTest tests[] = {
		T(the_storage_is_asked_once_while_the_directory_is_the_same),
		T(nodes_that_come_later_do_not_ask_the_storage),
		T(without_a_listing_it_is_asked_again_after_the_ttl),
		T(it_is_asked_again_when_the_directory_has_changed),
		T(an_absence_from_before_the_listing_ends_with_its_ttl),
		T(a_name_that_is_made_and_listed_is_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
