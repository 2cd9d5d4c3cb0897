/* SPDX-License-Identifier: BSD-3-Clause */
/* Files and listings that are fetched because a module that a program has read imports them. Rank 2
 * asks rank 1, which asks rank 0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"
#include "tree/guess/guess_priv.h"

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

/* A compiled module of Python 3.11 that imports these names, which are separated by spaces. */
static void put_module(struct tree *t, const char *path, const char *names)
{
	uint8_t data[LEN] = {3495 & 0xff, 3495 >> 8, '\r', '\n', [16] = 'c', [37] = 's'};
	size_t at = 42;
	uint8_t count = 0;
	const char *end;

	for (const char *n = names; *n; n = *end ? end + 1 : end) {
		end = n + strcspn(n, " ");
		data[at++] = 108; /* IMPORT_NAME */
		data[at++] = count++;
	}
	data[38] = (uint8_t)(at - 42);
	memcpy(data + at, ")\0)", 3);
	data[at + 3] = count;
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
	list = cop_fetch_peek(
		t->node[LEAF].fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = dir});
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

	ask_fetch(t, LEAF, chunk(&attr, path, 0), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	cop_fetch_used(a.node->fetch, a.obj);
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
	ask_fetch(t, LEAF, chunk(&attr, path_of(10), 0), &a);
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

/* What is not fetched stays noted until more have been used. */
static void what_is_not_used_ends_it_for_a_while(void **state)
{
	struct tree *t = open_collection_of_modules();
	char names[512] = "";

	(void)state;
	for (unsigned i = 1; i < 40; i++)
		snprintf(names + strlen(names), sizeof(names) - strlen(names), "%sm%u",
			i > 1 ? " " : "", i);
	for (unsigned i = 1; i < MODULES; i++)
		put_module(t, path_of(i), "sys");
	put_module(t, path_of(0), names);
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	reads(t, path_of(MODULES - 1));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 32);
	has(t, path_of(1));
	reads(t, path_of(MODULES - 2));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 34);
	reads(t, path_of(34));
	close_tree(t);
}

/* A program that was started before asks whether directories are as they were. */
static void a_check_brings_nothing(void **state)
{
	struct tree *t = open_collection_of_modules();
	struct cop_obj *list;
	struct cop_attr dir;
	struct cop_ask check = {.kind = COP_ASK_CHECK, .path = "lib"};

	(void)state;
	put_module(t, path_of(0), "m10");
	lists(t, "lib");
	lists(t, "lib/__pycache__");
	reads(t, path_of(0));
	list = cop_fetch_peek(
		t->node[LEAF].fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "lib"});
	cop_listing_dir(list->data, &dir);
	cop_obj_put(t->node[LEAF].cache, list);
	check.version = dir.version;
	assert_int_equal(ask_and_forget(t, LEAF, check), 0);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 0);
	reads(t, path_of(30));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 1);
	close_tree(t);
}

/* A limit on bytes is reached first. */
static void what_was_read_last_is_followed_first(void **state)
{
	static uint8_t big[COP_BUNDLE_FILE_BYTES];
	struct tree *t;
	unsigned most = COP_BUNDLE_WASTE / CHUNK;
	char names[2048] = "first";
	char path[64];

	(void)state;
	bundle = true;
	t = open_tree(3, 1, 1, 64 << 20);
	for (unsigned i = 0; i < 60; i++) {
		snprintf(names + strlen(names), sizeof(names) - strlen(names), " m%u", i);
		snprintf(path, sizeof(path), "p/__pycache__/m%u.cpython-311.pyc", i);
		put_file(t, path, big, CHUNK);
	}
	put_module(t, "p/__pycache__/__init__.cpython-311.pyc", names);
	put_module(t, "p/__pycache__/first.cpython-311.pyc", "m59 m58");
	put_module(t, "p/__pycache__/other.cpython-311.pyc", "sys");
	lists(t, "p");
	lists(t, "p/__pycache__");
	/* Room for four files. */
	t->node[LEAF].fetch->guess->policy.brought_bytes = (uint64_t)(most - 4) * CHUNK;
	reads(t, "p/__pycache__/__init__.cpython-311.pyc");
	reads(t, "p/__pycache__/first.cpython-311.pyc");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 4);
	/* All that there was room for came with first, which had not been read by then. */
	t->node[LEAF].fetch->guess->policy.brought_bytes = (uint64_t)(most - 2) * CHUNK;
	reads(t, "p/__pycache__/other.cpython-311.pyc");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 6);
	has(t, "p/__pycache__/m59.cpython-311.pyc");
	has(t, "p/__pycache__/m58.cpython-311.pyc");
	close_tree(t);
}

static void without_the_option_nothing_is_mentioned(void **state)
{
	struct tree *t = open_collection_of_modules();

	(void)state;
	t->node[LEAF].fetch->conf.bundle = false;
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
	/* The package itself was noted when the listing came. */
	reads(t, path_of(35));
	has(t, "lib/pack/__pycache__/__init__.cpython-311.pyc");
	close_tree(t);
}

#define INIT "__pycache__/__init__.cpython-311.pyc"

/* A package in a directory of its own, all of whose directories are listed. */
static struct tree *open_package(const char *names)
{
	struct tree *t;

	bundle = true;
	t = open_tree(3, 1, 1, 4 << 20);
	put_module(t, "site/p/" INIT, names);
	put_module(t, "site/p/__pycache__/a.cpython-311.pyc", "b");
	put_module(t, "site/p/__pycache__/b.cpython-311.pyc", "sys");
	put_module(t, "site/p/__pycache__/b.cpython-310.pyc", "sys");
	put_module(t, "site/p/q/" INIT, "sys");
	put_module(t, "site/p/q/__pycache__/c.cpython-311.pyc", "sys");
	put_file(t, "site/p/_fast.cpython-311-x86_64-linux-gnu.so", "bytes", 5);
	put_file(t, "site/p/_fast.txt", "bytes", 5);
	put_file(t, "site/p/_abi.abi3.so", "bytes", 5);
	put_file(t, "site/p/_other.unknown.so", "bytes", 5);
	lists(t, "");
	lists(t, "site");
	lists(t, "site/p");
	lists(t, "site/p/__pycache__");
	lists(t, "site/p/q");
	lists(t, "site/p/q/__pycache__");
	return t;
}

static bool extension_first;

/* Which files come when a program has read the package, and then a file that mentions nothing. */
static void assert_imports(const char *names, unsigned files, const char *path)
{
	/* Python looks for a name with each of three endings. */
	static const char *const looked_for[] = {"x.cpython-311-x86_64-linux-gnu.so", "x.abi3.so",
		"x.so", "y.abi3.so", "z.txt", "so", ".so", "x"};
	struct tree *t = open_package(names);

	for (size_t i = 0; i < COP_ARRAY_SIZE(looked_for) && extension_first; i++)
		cop_fetch_looked_for(t->node[LEAF].fetch, looked_for[i], strlen(looked_for[i]));
	reads(t, "site/p/" INIT);
	reads(t, "site/p/_fast.txt");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), files);
	if (path)
		has(t, path);
	close_tree(t);
}

static void modules_of_a_package_come(void **state)
{
	(void)state;
	assert_imports("a", 1, "site/p/__pycache__/a.cpython-311.pyc");
	assert_imports("a b a", 2, "site/p/__pycache__/b.cpython-311.pyc");
	assert_imports("c sys", 0, NULL);
}

static void packages_in_a_package_come(void **state)
{
	(void)state;
	assert_imports("q", 1, "site/p/q/" INIT);
	assert_imports("q.c", 2, "site/p/q/__pycache__/c.cpython-311.pyc");
	assert_imports("q.none q.c.none", 2, "site/p/q/" INIT);
	assert_imports(".q q. . q..c", 1, "site/p/q/" INIT);
}

/* From a directory above the module's own. */
static void whole_names_lead_to_the_same(void **state)
{
	(void)state;
	assert_imports("p.q.c", 2, "site/p/q/__pycache__/c.cpython-311.pyc");
	assert_imports("site.p.a", 1, "site/p/__pycache__/a.cpython-311.pyc");
	assert_imports("x.q.c", 0, NULL);
}

/* Those that are called like extensions that programs have looked for. */
static void extensions_come(void **state)
{
	(void)state;
	assert_imports("_fast", 0, NULL);
	extension_first = true;
	assert_imports("_fast", 1, "site/p/_fast.cpython-311-x86_64-linux-gnu.so");
	assert_imports("p._abi", 1, "site/p/_abi.abi3.so");
	assert_imports("_fast.x", 1, "site/p/_fast.cpython-311-x86_64-linux-gnu.so");
	assert_imports("_fas fast _other", 0, NULL);
	extension_first = false;
}

/* It is part of Python. os.py tells which directory is the standard library's. */
static void what_python_imports_at_its_start_does_not_come(void **state)
{
	static const char *const source[] = {"site/p/os.py", "site/p/oss.py"};

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct tree *t;

		bundle = true;
		t = open_tree(3, 1, 1, 4 << 20);
		put_module(t, "site/p/" INIT, "os abc");
		put_module(t, "site/p/__pycache__/os.cpython-311.pyc", "sys");
		put_module(t, "site/p/__pycache__/abc.cpython-311.pyc", "sys");
		put_file(t, source[i], "bytes", 5);
		put_file(t, "site/p/x", "bytes", 5);
		lists(t, "");
		lists(t, "site");
		lists(t, "site/p");
		lists(t, "site/p/__pycache__");
		reads(t, "site/p/" INIT);
		reads(t, "site/p/x");
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 2 * i);
		close_tree(t);
	}
}

/* Who may read the one may not read the other. */
static void files_of_other_people_do_not_come(void **state)
{
	struct tree *t = open_package("a b");

	(void)state;
	put_module(t, "site/o/" INIT, "secret open");
	for (uint32_t r = 0; r < t->count; r++) {
		cop_origin_fake_put(t->node[r].origin, "site/o/__pycache__/secret.cpython-311.pyc",
			S_IFREG | 0600, "x", 1);
		cop_origin_fake_put(t->node[r].origin, "site/o/__pycache__/open.cpython-311.pyc",
			S_IFREG | 0755, "x", 1);
	}
	lists(t, "site/o");
	lists(t, "site/o/__pycache__");
	reads(t, "site/o/" INIT);
	reads(t, "site/p/_fast.txt");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 1);
	has(t, "site/o/__pycache__/open.cpython-311.pyc");
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
		T(what_is_not_used_ends_it_for_a_while),
		T(a_check_brings_nothing),
		T(what_was_read_last_is_followed_first),
		T(without_the_option_nothing_is_mentioned),
		T(directories_that_are_mentioned_are_listed),
		T(modules_of_a_package_come),
		T(packages_in_a_package_come),
		T(whole_names_lead_to_the_same),
		T(extensions_come),
		T(what_python_imports_at_its_start_does_not_come),
		T(files_of_other_people_do_not_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
