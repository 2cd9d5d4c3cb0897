/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tree/guess/policy_priv.h"

/* Returns the number of bytes, and sets files to the number of files. */
static unsigned files;

static size_t allow(struct cop_bundle *b, struct cop_bundle_id id, unsigned siblings)
{
	return cop_bundle_allow(b, id, siblings, &files);
}

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct cop_bundle));
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static void a_kind_is_what_follows_the_last_dot(void **state)
{
	(void)state;
	assert_true(cop_bundle_id("a/b.py").kind == cop_bundle_id("c/d.e.py").kind);
	assert_true(cop_bundle_id("a/b.py").kind != cop_bundle_id("a/b.pyc").kind);
	assert_true(cop_bundle_id("a/b.py").place == cop_bundle_id("a/c.py").place);
	assert_true(cop_bundle_id("a/b.py").place != cop_bundle_id("a/c.so").place);
	assert_true(cop_bundle_id("a/b.py").place != cop_bundle_id("b/b.py").place);
	assert_true(cop_bundle_id("b.py").kind != 0);
	assert_true(cop_bundle_id("x.y/README").kind == 0);
	assert_true(cop_bundle_id("a/.hidden").kind == 0);
	assert_true(cop_bundle_id("a/ends.").kind == 0);
	assert_true(cop_bundle_id("a/").kind == 0);
	assert_true(cop_bundle_id("").kind == 0);
	assert_false(cop_bundle_missed(*state, cop_bundle_id("README")));
	assert_int_equal(allow(*state, cop_bundle_id("README"), 2), 0);
}

static void the_second_miss_in_a_small_directory_brings_four(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = cop_bundle_id("a/b.py");

	assert_false(cop_bundle_missed(b, id));
	assert_int_equal(allow(b, id, 5), 0);
	assert_false(cop_bundle_missed(b, cop_bundle_id("a/b.pyc")));
	assert_false(cop_bundle_missed(b, cop_bundle_id("other/b.py")));
	assert_true(cop_bundle_missed(b, cop_bundle_id("a/c.py")));
	assert_int_equal(allow(b, id, COP_BUNDLE_MOST_FILES), COP_BUNDLE_MOST_BYTES);
	assert_int_equal(files, 4);
}

static void a_collection_never_is(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = cop_bundle_id("a/b.py");

	cop_bundle_missed(b, id);
	assert_true(cop_bundle_missed(b, id));
	assert_int_equal(allow(b, id, COP_BUNDLE_MOST_FILES + 1), 0);
	assert_false(cop_bundle_missed(b, id));
	assert_int_equal(allow(b, id, 2), 0);
}

/* Misses a file twice, and brings n files of 1000 bytes. */
static struct cop_bundle_id bring(struct cop_bundle *b, const char *path, unsigned n)
{
	struct cop_bundle_id id = cop_bundle_id(path);

	cop_bundle_missed(b, id);
	assert_true(cop_bundle_missed(b, id));
	assert_true(allow(b, id, n) > 0);
	cop_bundle_brought(b, id, n, 1000 * (size_t)n);
	return id;
}

static void use(struct cop_bundle *b, struct cop_bundle_id id, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		cop_bundle_used(b, id, 1000);
}

static void more_comes_only_where_half_was_used(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = bring(b, "a/b.py", 4);

	assert_false(cop_bundle_missed(b, id));
	use(b, id, 1);
	assert_false(cop_bundle_missed(b, id));
	use(b, id, 1);
	assert_true(cop_bundle_missed(b, id));
	assert_true(allow(b, id, 4) > 0);
	assert_int_equal(files, 8);
	cop_bundle_brought(b, id, 0, 0);
	assert_true(allow(b, id, 4) > 0);
	assert_int_equal(files, 16);
	for (unsigned i = 0; i < 10; i++)
		cop_bundle_brought(b, id, 0, 0);
	assert_true(allow(b, id, 4) > 0);
	assert_int_equal(files, COP_BUNDLE_MOST_FILES);
}

static void a_kind_that_was_used_is_brought_at_the_first_miss(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = bring(b, "a/b.py", 8);

	use(b, id, 3);
	assert_false(cop_bundle_missed(b, cop_bundle_id("b/x.py")));
	use(b, id, 1);
	assert_true(cop_bundle_missed(b, cop_bundle_id("c/x.py")));
	assert_true(allow(b, cop_bundle_id("c/x.py"), 2) > 0);
	assert_int_equal(files, COP_BUNDLE_MOST_FILES);
	assert_false(cop_bundle_missed(b, cop_bundle_id("c/x.js")));
	/* Waste elsewhere takes the credit back. */
	bring(b, "d/x.py", 8);
	assert_false(cop_bundle_missed(b, cop_bundle_id("e/x.py")));
}

static void what_was_wasted_so_far_has_a_bound(void **state)
{
	struct cop_bundle *b = *state;
	uint64_t brought = 0;
	size_t allowed;
	char path[32];

	for (unsigned i = 0; i < 100; i++) {
		struct cop_bundle_id id;

		snprintf(path, sizeof(path), "%u/x.py", i);
		id = cop_bundle_id(path);
		cop_bundle_missed(b, id);
		cop_bundle_missed(b, id);
		allowed = allow(b, id, 2);
		if (!allowed)
			continue;
		cop_bundle_brought(b, id, 1, allowed);
		brought += allowed;
	}
	assert_true(brought == COP_BUNDLE_WASTE);
	cop_bundle_used(b, cop_bundle_id("0/x.py"), 700000);
	cop_bundle_missed(b, cop_bundle_id("new/x.py"));
	cop_bundle_missed(b, cop_bundle_id("new/x.py"));
	assert_int_equal(allow(b, cop_bundle_id("new/x.py"), 2), 1000000);
}

static void more_uses_than_were_brought_count_for_nothing(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = bring(b, "a/b.py", 2);

	use(b, id, 100);
	assert_true(b->used_bytes == 2000);
	/* A file whose place and kind are not known. */
	use(b, cop_bundle_id("z/z.zz"), 1);
	assert_true(b->used_bytes <= b->brought_bytes);
}

/* A program lists this directory. Returns the companions that are brought, or "". */
static const char *list(struct cop_bundle *b, const char *path)
{
	static char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME];
	char below[256];
	unsigned n = cop_bundle_listed(b, path, name);

	if (!n)
		return "";
	assert_int_equal(n, 1);
	snprintf(below, sizeof(below), "%s/%s", path, name[0]);
	cop_bundle_expect(b, below, false);
	return name[0];
}

static void the_third_of_a_name_makes_it_a_companion(void **state)
{
	struct cop_bundle *b = *state;

	assert_string_equal(list(b, ""), "");
	assert_string_equal(list(b, "a"), "");
	assert_string_equal(list(b, "a/c"), "");
	assert_string_equal(list(b, "d"), "");
	assert_string_equal(list(b, "d/c"), "");
	assert_string_equal(list(b, "g"), "");
	assert_string_equal(list(b, "g/c"), "");
	assert_string_equal(list(b, "e/f"), "c");
	/* A directory below one of the same name is not its companion. */
	assert_string_equal(list(b, "x/c"), "");
	assert_false(cop_bundle_met(b, "e/f"));
	assert_false(cop_bundle_met(b, "e/c"));
	assert_true(cop_bundle_met(b, "e/f/c"));
	assert_false(cop_bundle_met(b, "e/f/c"));
}

static void a_name_among_many_others_is_none(void **state)
{
	struct cop_bundle *b = *state;
	char path[16];

	list(b, "a/c");
	for (unsigned i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "d%u", i);
		assert_string_equal(list(b, path), "");
	}
	list(b, "b/c");
	assert_string_equal(list(b, "e"), "");
	list(b, "e/c");
	assert_string_equal(list(b, "f"), "");
	list(b, "f/c");
	assert_string_equal(list(b, "g"), "c");
}

static void a_companion_that_is_not_used_is_none_any_more(void **state)
{
	struct cop_bundle *b = *state;

	list(b, "a/c");
	list(b, "b/c");
	list(b, "c/c");
	assert_string_equal(list(b, "d0"), "c");
	assert_string_equal(list(b, "d1"), "c");
	assert_string_equal(list(b, "d2"), "");
	/* Half of them is enough. */
	assert_true(cop_bundle_met(b, "d1/c"));
	assert_string_equal(list(b, "d3"), "c");
	assert_string_equal(list(b, "d4"), "");
}

static void three_may_fail_and_no_more(void **state)
{
	struct cop_bundle *b = *state;
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME];

	for (unsigned i = 0; i < 3; i++) {
		static const char *const dirs[3][2] = {
			{"a/x", "a/y"}, {"b/x", "b/y"}, {"c/x", "c/y"}};

		list(b, dirs[i][0]);
		list(b, dirs[i][1]);
	}
	assert_int_equal(cop_bundle_listed(b, "d", name), 2);
	cop_bundle_expect(b, "d/x", false);
	cop_bundle_expect(b, "d/y", false);
	assert_int_equal(cop_bundle_listed(b, "e", name), 2);
	cop_bundle_expect(b, "e/x", false);
	assert_int_equal(cop_bundle_listed(b, "f", name), 0);
	assert_true(cop_bundle_met(b, "d/x"));
	assert_int_equal(cop_bundle_listed(b, "g", name), 0);
	assert_true(cop_bundle_met(b, "d/y"));
	assert_int_equal(cop_bundle_listed(b, "h", name), 2);
	assert_string_equal(name[0], "x");
	assert_string_equal(name[1], "y");
}

static void long_names_are_no_companions(void **state)
{
	struct cop_bundle *b = *state;
	char name[COP_BUNDLE_BELOW_NAME + 1], path[2 * COP_BUNDLE_BELOW_NAME];

	for (unsigned len = COP_BUNDLE_BELOW_NAME - 1; len <= COP_BUNDLE_BELOW_NAME; len++) {
		memset(name, 'a' + (int)(len % 2), len);
		name[len] = '\0';
		for (unsigned i = 0; i < 3; i++) {
			snprintf(path, sizeof(path), "%u/%s", i, name);
			list(b, path);
		}
		assert_string_equal(list(b, "d"), len < COP_BUNDLE_BELOW_NAME ? name : "");
		memset(b, 0, sizeof(*b));
	}
}

/* A name that recurs stays, however many others there are. */
static void the_table_of_names_has_a_bound(void **state)
{
	struct cop_bundle *b = *state;
	char path[32];

	for (unsigned i = 0; i < 4 * COP_BUNDLE_BELOW; i++) {
		snprintf(path, sizeof(path), "p%u", i);
		cop_bundle_met(b, "p/c");
		list(b, path);
		strcat(path, "/c");
		if (!cop_bundle_met(b, path))
			list(b, path);
	}
	assert_string_equal(list(b, "last"), "c");
}

/* ---- what files mention ---- */

static struct cop_bundle_id collection(struct cop_bundle *b)
{
	struct cop_bundle_id id = cop_bundle_id("lib/x.pyc");

	assert_false(cop_bundle_is_counted(b, id));
	assert_false(cop_bundle_missed(b, id));
	assert_int_equal(allow(b, id, COP_BUNDLE_MOST_FILES + 1), 0);
	assert_true(cop_bundle_is_counted(b, id));
	return id;
}

static void files_of_a_collection_come_while_they_are_used(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = collection(b);
	unsigned n = 0;

	assert_true(cop_bundle_is_counted(b, cop_bundle_id("README")));
	while (cop_bundle_mentioned(b, id, 10, true))
		n++;
	assert_int_equal(n, 32);
	cop_bundle_used(b, id, 10);
	/* One is used, so one more of those that came may go unused, besides the one that left. */
	assert_true(cop_bundle_mentioned(b, id, 10, true));
	assert_true(cop_bundle_mentioned(b, id, 10, true));
	assert_false(cop_bundle_mentioned(b, id, 10, true));
	assert_int_equal(b->brought_bytes, 340);
	assert_int_equal(b->used_bytes, 10);
}

static void a_collection_tells_nothing_of_small_directories(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = collection(b), other = cop_bundle_id("small/x.pyc");

	for (unsigned i = 0; i < 12; i++) {
		assert_true(cop_bundle_mentioned(b, id, 1, true));
		cop_bundle_used(b, id, 1);
	}
	assert_false(cop_bundle_missed(b, other));
	assert_int_equal(allow(b, other, 5), 0);
	assert_true(cop_bundle_missed(b, other));
	assert_true(allow(b, other, 5) > 0);
	assert_int_equal(files, 4);
}

static void bytes_for_mentioned_files_are_limited(void **state)
{
	struct cop_bundle *b = *state;
	struct cop_bundle_id id = collection(b);
	unsigned n = 0;

	while (cop_bundle_mentioned(b, id, COP_BUNDLE_FILE_BYTES, true))
		n++;
	assert_int_equal(n, COP_BUNDLE_WASTE / COP_BUNDLE_FILE_BYTES);
}

static void mentioned_listings_have_a_limit_of_their_own(void **state)
{
	struct cop_bundle *b = *state;
	char name[COP_BUNDLE_COMPANIONS][COP_BUNDLE_BELOW_NAME], path[16];
	unsigned n = 0;

	list(b, "a/c");
	list(b, "b/c");
	list(b, "d/c");
	for (; cop_bundle_may_list_mentioned(b); n++) {
		/* The guess needs no trial: the directory above is known to exist. */
		assert_int_equal(cop_bundle_companions(b, "m", true, name), 1);
		assert_string_equal(name[0], "c");
		snprintf(path, sizeof(path), "m%u/c", n);
		cop_bundle_expect(b, path, true);
	}
	assert_int_equal(n, 24);
	/* Guesses go on as if nothing had been mentioned. */
	assert_int_equal(b->listings, 0);
	assert_true(cop_bundle_met(b, "m3/c"));
	assert_false(cop_bundle_met(b, "m3/c"));
	assert_int_equal(b->used_listings, 0);
	assert_true(cop_bundle_may_list_mentioned(b));
}

/* ---- bytes that come with an entry ---- */

static void a_kind_gets_two_tries_and_then_half_must_be_used(void **state)
{
	struct cop_bundle b = {0};
	uint64_t py = cop_bundle_kind("a.py", 4), so = cop_bundle_kind("a.so", 4);

	(void)state;
	assert_false(cop_bundle_may_ask_first(&b, 0));
	for (unsigned i = 0; i < 2; i++) {
		assert_true(cop_bundle_may_ask_first(&b, py));
		cop_bundle_came_first(&b, py, 100);
	}
	assert_false(cop_bundle_may_ask_first(&b, py));
	assert_true(cop_bundle_may_ask_first(&b, so));
	cop_bundle_used_first(&b, py, 100);
	assert_true(cop_bundle_may_ask_first(&b, py));
	cop_bundle_came_first(&b, py, 100);
	assert_false(cop_bundle_may_ask_first(&b, py));
	cop_bundle_used_first(&b, py, 100);
	cop_bundle_used_first(&b, py, 100);
	/* More uses than came, as when a slot was displaced, are no credit. */
	cop_bundle_used_first(&b, py, 100);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(cop_bundle_may_ask_first(&b, py));
		cop_bundle_came_first(&b, py, 100);
	}
	assert_false(cop_bundle_may_ask_first(&b, py));
}

static void bytes_that_came_count_as_waste_until_they_are_used(void **state)
{
	struct cop_bundle b = {0};
	uint64_t py = cop_bundle_kind("a.py", 4);
	unsigned came = 0;

	(void)state;
	for (; cop_bundle_may_come(&b); came++)
		cop_bundle_came_first(&b, 0, COP_BUNDLE_FILE_BYTES);
	assert_int_equal(came, COP_BUNDLE_WASTE / COP_BUNDLE_FILE_BYTES);
	assert_false(cop_bundle_may_ask_first(&b, py));
	cop_bundle_used(&b, cop_bundle_id("d/a.py"), COP_BUNDLE_FILE_BYTES);
	assert_true(cop_bundle_may_ask_first(&b, py));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_kind_is_what_follows_the_last_dot),
		T(the_second_miss_in_a_small_directory_brings_four),
		T(a_collection_never_is),
		T(more_comes_only_where_half_was_used),
		T(a_kind_that_was_used_is_brought_at_the_first_miss),
		T(what_was_wasted_so_far_has_a_bound),
		T(more_uses_than_were_brought_count_for_nothing),
		T(the_third_of_a_name_makes_it_a_companion),
		T(a_name_among_many_others_is_none),
		T(a_companion_that_is_not_used_is_none_any_more),
		T(three_may_fail_and_no_more),
		T(long_names_are_no_companions),
		T(the_table_of_names_has_a_bound),
		T(files_of_a_collection_come_while_they_are_used),
		T(a_collection_tells_nothing_of_small_directories),
		T(bytes_for_mentioned_files_are_limited),
		T(mentioned_listings_have_a_limit_of_their_own),
		cmocka_unit_test(a_kind_gets_two_tries_and_then_half_must_be_used),
		cmocka_unit_test(bytes_that_came_count_as_waste_until_they_are_used),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
