/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>

#include "storage/manifest/manifest_testing.h"

static void assert_set(struct cop_manifest_set *s, const char *want)
{
	struct cop_buf b = {0};

	write_all(s, "/s", &b);
	assert_string_equal(b.data, want);
	cop_buf_free(&b);
}

static void add_item(struct cop_manifest_set *s, struct cop_manifest_item i, uint64_t order)
{
	assert_int_equal(cop_manifest_set_add(s, &i, order), 0);
}

static void a_set_keeps_the_order_of_first_need_and_merges_what_comes_again(void **state)
{
	struct cop_manifest_set *s = cop_manifest_set_new(COP_MIB);

	(void)state;
	add_item(s, item(COP_MANIFEST_DIR, "b"), 0);
	add_item(s, item(COP_MANIFEST_NAME, "b"), 0);
	add_item(s, file("a", 100, 0, 10), 0);
	add_item(s, item(COP_MANIFEST_DIR, "b"), 0);
	add_item(s, file("a", 100, 10, 20), 0);
	add_item(s, file("a", 200, 50, 60), 0);
	add_item(s, item(COP_MANIFEST_DIR, ""), 0);
	assert_int_equal(cop_manifest_set_count(s), 4);
	assert_set(s,
		"copper-manifest 2\nsource /s\nd b\nn b\nf 200 1700000000.123456789 0-20,50-60 a\nd .\nend 4\n");
	cop_manifest_set_free(s);
}

static void what_was_not_needed_stays_behind_the_rest_until_it_is_needed(void **state)
{
	struct cop_manifest_set *s = cop_manifest_set_new(COP_MIB);
	struct cop_manifest_item i;

	(void)state;
	i = file("old", 7, 0, 7);
	assert_int_equal(cop_manifest_set_keep(s, &i, 2), 0);
	i = item(COP_MANIFEST_DIR, "a");
	assert_int_equal(cop_manifest_set_keep(s, &i, 1), 0);
	i = file("late", 9, 0, 9);
	assert_int_equal(cop_manifest_set_keep(s, &i, 1), 0);
	i = item(COP_MANIFEST_DIR, "..");
	assert_int_equal(cop_manifest_set_keep(s, &i, 1), -EINVAL);
	add_item(s, item(COP_MANIFEST_DIR, "z"), 0);
	assert_set(s,
		"copper-manifest 2\nsource /s\nd z\nunused 1\nd a\nf 9 1700000000.123456789 0-9 late\nunused 2\n"
		"f 7 1700000000.123456789 0-7 old\nend 4\n");
	add_item(s, file("old", 8, 0, 3), 0);
	i = item(COP_MANIFEST_DIR, "z");
	assert_int_equal(cop_manifest_set_keep(s, &i, 1), 0);
	assert_set(s,
		"copper-manifest 2\nsource /s\nf 8 1700000000.123456789 0-7 old\nd z\nunused 1\nd a\n"
		"f 9 1700000000.123456789 0-9 late\nend 4\n");
	cop_manifest_set_free(s);
}

/* The union over ranks does not depend on the order in which they are read. */
static void with_orders_given_the_least_one_holds(void **state)
{
	static const char want[] = "copper-manifest 2\nsource /s\nd x\nd y\nd a\nd z\nend 4\n";

	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		struct cop_manifest_set *s = cop_manifest_set_new(COP_MIB);

		add_item(s, item(COP_MANIFEST_DIR, turn ? "z" : "x"), turn ? 9 : 1);
		add_item(s, item(COP_MANIFEST_DIR, "y"), turn ? 2 : 7);
		add_item(s, item(COP_MANIFEST_DIR, turn ? "x" : "z"), turn ? 1 : 9);
		add_item(s, item(COP_MANIFEST_DIR, "y"), turn ? 7 : 2);
		add_item(s, item(COP_MANIFEST_DIR, "a"), 9);
		add_item(s, item(COP_MANIFEST_DIR, "x"), 3);
		assert_set(s, want);
		cop_manifest_set_free(s);
	}
}

static void a_set_is_bounded_and_counts_what_did_not_fit(void **state)
{
	struct cop_manifest_set *s = cop_manifest_set_new(2000);
	struct cop_manifest_item i;
	char name[32];
	int rc = 0, n = 0;

	(void)state;
	for (; !rc && n < 1000; n++) {
		snprintf(name, sizeof(name), "name%d", n);
		i = file(name, 5, 0, 5);
		rc = cop_manifest_set_add(s, &i, 0);
	}
	assert_int_equal(rc, -ENOMEM);
	assert_in_range(n, 5, 50);
	assert_int_equal(cop_manifest_set_count(s), n - 1);
	/* What is in it can still grow, to one range around all. */
	i = file("name0", 100, 50, 60);
	assert_int_equal(cop_manifest_set_add(s, &i, 0), 0);
	assert_int_equal(cop_manifest_set_count(s), n - 1);
	cop_manifest_set_free(s);
}

static void a_set_refuses_paths_that_cannot_stand_in_a_manifest(void **state)
{
	struct cop_manifest_set *s = cop_manifest_set_new(COP_MIB);
	struct cop_manifest_item i = item(COP_MANIFEST_DIR, "../x");

	(void)state;
	assert_int_equal(cop_manifest_set_add(s, &i, 0), -EINVAL);
	i = item(COP_MANIFEST_NAME, "");
	assert_int_equal(cop_manifest_set_add(s, &i, 0), -EINVAL);
	assert_int_equal(cop_manifest_set_count(s), 0);
	cop_manifest_set_free(s);
}

static void *touch(void *arg)
{
	char name[32];

	for (int k = 0; k < 3000; k++) {
		struct cop_manifest_item i;

		snprintf(name, sizeof(name), "d/%d", k);
		i = file(name, 4096, (uint64_t)k % 7 * 100, (uint64_t)k % 7 * 100 + 50);
		cop_manifest_set_add(arg, &i, 0);
	}
	return NULL;
}

static void threads_add_each_item_once(void **state)
{
	struct cop_manifest_set *s = cop_manifest_set_new(64 * COP_MIB);
	struct cop_buf b = {0};
	pthread_t t[4];

	(void)state;
	for (int k = 0; k < 4; k++)
		assert_int_equal(cop_thread_start(&t[k], "touch", touch, s), 0);
	write_all(s, "/", &b);
	for (int k = 0; k < 4; k++)
		pthread_join(t[k], NULL);
	assert_int_equal(cop_manifest_set_count(s), 3000);
	cop_buf_free(&b);
	cop_manifest_set_free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_set_keeps_the_order_of_first_need_and_merges_what_comes_again),
		cmocka_unit_test(what_was_not_needed_stays_behind_the_rest_until_it_is_needed),
		cmocka_unit_test(with_orders_given_the_least_one_holds),
		cmocka_unit_test(a_set_is_bounded_and_counts_what_did_not_fit),
		cmocka_unit_test(a_set_refuses_paths_that_cannot_stand_in_a_manifest),
		cmocka_unit_test(threads_add_each_item_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
