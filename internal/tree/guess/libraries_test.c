/* SPDX-License-Identifier: BSD-3-Clause */
/* Names of libraries that are requested because a program has read a file that needs them. Rank 2
 * asks rank 1, which asks rank 0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"
#include "tree/guess/guess_priv.h"

#define LEAF 2u

static const char program[] = "\177ELF\2\1\1\0liba.so.1\0libb.so.2\0libgone.so\0";
static const char library[] = "\177ELF\2\1\1\0libc.so.6\0libd.so\0liba.so.1\0";

/* Names without attributes, as in a large directory. */
static int set_up(void **state)
{
	struct tree *t;

	bundle = true;
	*state = t = open_tree(3, 1, 1, 64 << 20);
	put_file(t, "bin/program", program, sizeof(program));
	put_file(t, "lib/liba.so.1", library, sizeof(library));
	for (uint32_t r = 0; r < t->count; r++)
		cop_origin_fake_put(t->node[r].origin, "lib/libb.so.2", S_IFLNK | 0777,
			"libb.so.2.0", strlen("libb.so.2.0"));
	put_file(t, "lib/libb.so.2.0", "x", 1);
	put_file(t, "lib/libc.so.6", "x", 1);
	put_file(t, "lib/libd.so", "x", 1);
	put_file(t, "lib/libe.so", "x", 1);
	put_file(t, "lib/libgone.so/x", "x", 1);
	for (uint32_t r = 0; r < 3; r++)
		assert_int_equal(ask_and_forget(t, r,
					 (struct cop_ask){.kind = COP_ASK_NAMES, .path = "lib"}),
			0);
	assert_int_equal(ask_and_forget(t, LEAF, listing("bin")), 0);
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

/* Looks at a name; returns how many messages that took. */
static uint64_t look(struct tree *t, const char *path)
{
	uint64_t before = messages(t);

	assert_int_equal(
		ask_and_forget(t, LEAF, (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}), 0);
	return messages(t) - before;
}

/* A program reads the file. */
static void reads(struct tree *t, const char *path)
{
	struct cop_attr attr;
	struct asked a;

	ask_fetch(t, LEAF, (struct cop_ask){.kind = COP_ASK_ENTRY, .path = path}, &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	cop_entry_get(a.obj->data, &attr, NULL, NULL);
	forget(&a);
	ask_fetch(t, LEAF, chunk(&attr, path, 0), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	cop_fetch_used(a.node->fetch, a.obj);
	forget(&a);
}

static void the_first_library_brings_the_others(void **state)
{
	struct tree *t = *state;

	reads(t, "bin/program");
	assert_int_equal(look(t, "lib/liba.so.1"), 1);
	/* A link comes with the file that it leads to; a directory is no library. */
	assert_int_equal(look(t, "lib/libb.so.2"), 0);
	assert_int_equal(look(t, "lib/libb.so.2.0"), 0);
	assert_int_equal(look(t, "lib/libgone.so"), 1);
	assert_int_equal(look(t, "lib/libc.so.6"), 1);
}

/* Once the directory is known, they come with the next request, whatever that is. */
static void what_a_library_needs_comes_with_the_next_request(void **state)
{
	struct tree *t = *state;

	reads(t, "bin/program");
	reads(t, "lib/liba.so.1");
	assert_int_equal(look(t, "lib/libe.so"), 1);
	assert_int_equal(look(t, "lib/libc.so.6"), 0);
	assert_int_equal(look(t, "lib/libd.so"), 0);
}

/* A name that nobody needs tells nothing of the directory. */
static void other_names_bring_nothing(void **state)
{
	struct tree *t = *state;

	reads(t, "bin/program");
	assert_int_equal(look(t, "lib/libe.so"), 1);
	assert_int_equal(look(t, "lib/libb.so.2"), 1);
	assert_int_equal(look(t, "lib/liba.so.1"), 0);
}

static void without_the_option_they_come_alone(void **state)
{
	struct tree *t = *state;

	t->node[LEAF].fetch->conf.bundle = false;
	reads(t, "bin/program");
	assert_int_equal(look(t, "lib/liba.so.1"), 1);
	assert_int_equal(look(t, "lib/libb.so.2"), 1);
}

/* More names than are kept: the oldest leave. */
static void the_number_of_names_is_limited(void **state)
{
	struct tree *t = *state;
	char many[2048] = "\177ELF";
	size_t len = 5;

	for (unsigned i = 0; i < NEEDED_NAMES - 1; i++)
		len += (size_t)snprintf(many + len, sizeof(many) - len, "libx%u.so", i) + 1;
	put_file(t, "bin/many", many, len);
	reads(t, "bin/program");
	reads(t, "bin/many");
	assert_int_equal(look(t, "lib/libb.so.2"), 1);
	/* libb and libgone were still there, liba was not. */
	assert_int_equal(look(t, "lib/liba.so.1"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(the_first_library_brings_the_others),
		T(what_a_library_needs_comes_with_the_next_request),
		T(other_names_bring_nothing),
		T(without_the_option_they_come_alone),
		T(the_number_of_names_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
