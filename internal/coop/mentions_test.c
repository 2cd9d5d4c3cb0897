/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of a collection that are fetched because a program's file mentions them, and directories.
 * Rank 2 asks rank 1, which asks rank 0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "coop/coop_testing.h"

#define LEAF 2
#define MODULES (COP_BUNDLE_MOST_FILES + 5)
#define LEN 1500

static const char *path_of(unsigned i)
{
	static char path[4][64];
	char *to = path[i % 4];

	snprintf(to, sizeof(path[0]), "lib/__pycache__/m%u.cpython-311.pyc", i);
	return to;
}

/* A compiled module that uses these names, which are separated by spaces. */
static void put_module(struct tree *t, const char *path, const char *names)
{
	uint8_t data[LEN] = {3495 & 0xff, 3495 >> 8, '\r', '\n', [16] = 'c', [37] = 's'};
	size_t at = 42;
	const char *end;

	memcpy(data + at, ")\0)", 4);
	for (const char *n = names; *n; n = *end ? end + 1 : end) {
		end = n + strcspn(n, " ");
		data[at + 3]++;
		data[at + 4] = 0;
	}
	at += 4;
	for (const char *n = names; *n; n = *end ? end + 1 : end) {
		end = n + strcspn(n, " ");
		data[at++] = 'Z';
		data[at++] = (uint8_t)(end - n);
		memcpy(data + at, n, (size_t)(end - n));
		at += (size_t)(end - n);
	}
	put_file(t, path, data, LEN);
}

static uint64_t stat_of(struct tree *t, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&t->node[rank].stats, c);
}

/* The attributes in the listing that the leaf has. */
static struct cop_attr known(struct tree *t, const char *path)
{
	const char *name = strrchr(path, '/') + 1;
	struct cop_listing_entry e;
	struct cop_obj *list;
	char dir[64];

	snprintf(dir, sizeof(dir), "%.*s", (int)(name - 1 - path), path);
	list = cop_coop_peek(
		t->node[LEAF].coop, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = dir});
	assert_non_null(list);
	assert_true(cop_listing_find(list->data, name, strlen(name), &e) && e.has_attr);
	cop_obj_put(t->node[LEAF].cache, list);
	return e.attr;
}

/* A program at the leaf reads the file. */
static void reads(struct tree *t, const char *path)
{
	struct cop_attr attr = known(t, path);
	struct asked a;

	ask_coop(t, LEAF, chunk(&attr, path, 0), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	cop_coop_used(a.node->coop, a.obj);
	forget(&a);
}

/* The same without a message. */
static void has(struct tree *t, const char *path)
{
	uint64_t before = stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES);

	reads(t, path);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES), before);
}

static void lists(struct tree *t, const char *path)
{
	assert_int_equal(ask_and_forget(t, LEAF, listing(path)), 0);
}

/* Module i of the collection mentions module i + 1, unless the test says otherwise. */
static struct tree *open_collection_of_modules(void)
{
	struct tree *t;
	char name[16];

	bundle = true;
	t = open_tree(3, 1, 1, 4 << 20);
	for (unsigned i = 0; i < MODULES; i++) {
		snprintf(name, sizeof(name), "m%u", i + 1);
		put_module(t, path_of(i), name);
	}
	return t;
}

static void what_a_file_mentions_comes_with_the_next_request(void **state)
{
	struct tree *t = open_collection_of_modules();
	uint64_t messages[3];

	(void)state;
	put_module(t, path_of(0), "m10 os m20 sys.path m0 m1000");
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	/* Nobody waits for anything yet. */
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 0);
	for (uint32_t r = 1; r < 3; r++)
		messages[r] = stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES);
	reads(t, path_of(5));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 2);
	for (uint32_t r = 1; r < 3; r++)
		assert_int_equal(stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES), messages[r] + 1);
	has(t, path_of(10));
	has(t, path_of(20));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_FILES), 2);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_BYTES), 2 * LEN);
	assert_int_equal(stat_of(t, 1, COP_BUNDLE_FILES) + stat_of(t, 0, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

static void what_came_mentions_others_before_it_is_read(void **state)
{
	struct tree *t = open_collection_of_modules();

	(void)state;
	put_module(t, path_of(0), "m10");
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	reads(t, path_of(30));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 1);
	/* 10 has come and mentions 11; 30 mentions 31. */
	reads(t, path_of(35));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 3);
	has(t, path_of(11));
	has(t, path_of(31));
	close_tree(t);
}

static void files_in_other_places_mention_them_too(void **state)
{
	struct tree *t = open_collection_of_modules();

	(void)state;
	put_module(t, "app/__pycache__/x.cpython-311.pyc", "m40");
	/* Names mean other files where the ending is another one. */
	put_module(t, "app/__pycache__/y.cpython-39.pyc", "m41");
	lists(t, "lib/__pycache__");
	lists(t, "app/__pycache__");
	/* Before a program has read from the collection, nobody looks into it. */
	reads(t, "app/__pycache__/y.cpython-39.pyc");
	reads(t, path_of(0));
	reads(t, "app/__pycache__/x.cpython-311.pyc");
	reads(t, path_of(20));
	has(t, path_of(40));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_FILES), 1);
	close_tree(t);
}

static void the_bytes_may_be_packed(void **state)
{
	struct cop_attr attr;
	struct asked a;
	struct tree *t;

	(void)state;
	packs = true;
	t = open_collection_of_modules();
	put_module(t, path_of(0), "m10");
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	reads(t, path_of(30));
	has(t, path_of(10));
	attr = known(t, path_of(10));
	ask_coop(t, LEAF, chunk(&attr, path_of(10), 0), &a);
	assert_true(a.obj->packed);
	forget(&a);
	packs = false;
	close_tree(t);
}

static void a_file_that_is_no_module_mentions_nothing(void **state)
{
	struct tree *t = open_collection_of_modules();
	uint8_t junk[LEN];

	(void)state;
	for (unsigned i = 0; i < LEN; i++)
		junk[i] = (uint8_t)(i * 7);
	put_file(t, path_of(0), junk, LEN);
	put_file(t, path_of(1), "m10", 3);
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	reads(t, path_of(1));
	reads(t, path_of(30));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

static void what_is_not_used_ends_it(void **state)
{
	struct tree *t = open_collection_of_modules();
	char names[512] = "";

	(void)state;
	for (unsigned i = 1; i < 40; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%sm%u",
			i > 1 ? " " : "", i);
	put_module(t, path_of(0), names);
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	reads(t, path_of(MODULES - 1));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 16);
	close_tree(t);
}

static void without_the_option_nothing_is_mentioned(void **state)
{
	struct tree *t = open_collection_of_modules();

	(void)state;
	t->node[LEAF].coop->conf.bundle = false;
	put_module(t, path_of(0), "m10");
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	reads(t, path_of(30));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

/* The listing of the package comes, and that of the directory in it that packages have. */
static void directories_that_are_mentioned_are_listed(void **state)
{
	struct tree *t = open_collection_of_modules();
	uint64_t before;

	(void)state;
	put_module(t, path_of(0), "pack m7");
	put_module(t, "lib/pack/__pycache__/__init__.cpython-311.pyc", "sys");
	for (unsigned i = 0; i < 3; i++) {
		char path[32];

		snprintf(path, sizeof(path), "other%u/__pycache__/x.pyc", i);
		put_file(t, path, "x", 1);
		*strrchr(path, '/') = '\0';
		lists(t, path);
	}
	lists(t, "");
	lists(t, "lib");
	lists(t, "lib/__pycache__");
	before = stat_of(t, LEAF, COP_BUNDLE_LISTINGS);
	reads(t, path_of(0));
	reads(t, path_of(30));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), before + 2);
	before = stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES);
	lists(t, "lib/pack");
	lists(t, "lib/pack/__pycache__");
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES), before);
	assert_int_equal(
		stat_of(t, LEAF, COP_BUNDLE_USED_LISTINGS), stat_of(t, LEAF, COP_BUNDLE_LISTINGS));
	close_tree(t);
}

int main(void)
{
#define T(name) cmocka_unit_test(name)
	const struct CMUnitTest tests[] = {
		T(what_a_file_mentions_comes_with_the_next_request),
		T(what_came_mentions_others_before_it_is_read),
		T(files_in_other_places_mention_them_too),
		T(the_bytes_may_be_packed),
		T(a_file_that_is_no_module_mentions_nothing),
		T(what_is_not_used_ends_it),
		T(without_the_option_nothing_is_mentioned),
		T(directories_that_are_mentioned_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
