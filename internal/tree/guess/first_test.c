/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries that bring the first bytes along: what they bring, to whom, and for whom. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"
#include "tree/guess/first_testing.h"

/* ---- what comes ---- */

static void one_request_brings_the_entry_and_the_bytes(void **state)
{
	uint64_t requests[3];

	(void)state;
	for (int packed = 0; packed < 2; packed++) {
		struct tree *t;

		packs = packed;
		t = open_nodes(3, BUDGET);
		for (uint32_t r = 1; r < 3; r++)
			requests[r] = stat_of(t, r, COP_FABRIC_REQUESTS_SENT);
		opens(t, LEAF, 0);
		for (uint32_t r = 1; r < 3; r++)
			assert_int_equal(stat_of(t, r, COP_FABRIC_REQUESTS_SENT), requests[r] + 1);
		assert_int_equal(stats_of(t, 0), 1);
		assert_int_equal(reads_of(t, 0), 1);
		assert_true(has_bytes(t, 1, path_of(0)) && has_bytes(t, 0, path_of(0)));
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 1);
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_BYTES), LEN);
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_FILES), 1);
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_BYTES), LEN);
		/* The nodes that passed it on decided nothing. */
		assert_int_equal(
			stat_of(t, 1, COP_BUNDLE_FILES) + stat_of(t, 0, COP_BUNDLE_FILES), 0);
		nothing_is_reserved(t);
		close_tree(t);
	}
	packs = false;
}

static void what_is_here_already_costs_the_storage_nothing(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	uint64_t requests;

	(void)state;
	opens(t, 1, 0);
	requests = stat_of(t, 1, COP_FABRIC_REQUESTS_SENT);
	opens(t, LEAF, 0);
	assert_int_equal(stat_of(t, 1, COP_FABRIC_REQUESTS_SENT), requests);
	assert_int_equal(stats_of(t, 0) + reads_of(t, 0), 2);
	/* The entry alone is here: the bytes follow. */
	looks_up(t, 1, path_of(1));
	looks_up(t, 1, path_of(2));
	looks_up(t, 1, path_of(3));
	assert_false(has_bytes(t, 1, path_of(3)));
	requests = stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT);
	opens(t, LEAF, 3);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUESTS_SENT), requests + 1);
	assert_true(has_bytes(t, 1, path_of(3)));
	close_tree(t);
}

static void other_names_are_plain_entries(void **state)
{
	static const char *const paths[] = {
		"d/dir.py", "d/empty.py", "d/big.py", "d/link.py", "d/f00"};
	static const uint8_t big[CHUNK + 1];
	struct tree *t = open_nodes(3, BUDGET);

	(void)state;
	put_file(t, "d/empty.py", "", 0);
	put_file(t, "d/big.py", big, sizeof(big));
	put_file(t, "d/f00", "x", 1);
	cop_origin_fake_put(t->node[0].origin, "d/dir.py", S_IFDIR | 0755, "", 0);
	cop_origin_fake_put(t->node[0].origin, "d/link.py", S_IFLNK | 0777, "f00", 3);
	for (size_t i = 0; i < COP_ARRAY_SIZE(paths); i++)
		looks_up(t, LEAF, paths[i]);
	assert_int_equal(ask_and_forget(t, LEAF, entry("d/none.py")), -ENOENT);
	cop_origin_fake_young(t->node[0].origin, true);
	looks_up(t, LEAF, path_of(0));
	cop_origin_fake_young(t->node[0].origin, false);
	for (uint32_t r = 0; r < 3; r++)
		t->node[r].fetch->conf.max_cacheable = LEN - 1;
	looks_up(t, LEAF, path_of(1));
	assert_int_equal(reads_of(t, 0), 0);
	assert_int_equal(stats_of(t, 0), COP_ARRAY_SIZE(paths) + 3);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_CORRUPT), 0);
	nothing_is_reserved(t);
	close_tree(t);
}

static void without_the_option_nobody_asks_for_bytes(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);

	(void)state;
	t->node[LEAF].fetch->conf.bundle = false;
	looks_up(t, LEAF, path_of(0));
	assert_false(cop_fetch_ask_first(t->node[LEAF].fetch, path_of(1), false));
	assert_int_equal(reads_of(t, 0), 0);
	/* Who passes it on does not decide. */
	t->node[LEAF].fetch->conf.bundle = true;
	t->node[1].fetch->conf.bundle = t->node[0].fetch->conf.bundle = false;
	looks_up(t, LEAF, path_of(2));
	assert_true(has_bytes(t, LEAF, path_of(2)));
	close_tree(t);
}

static void two_that_nobody_reads_are_the_last_until_one_is_read(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		looks_up(t, LEAF, path_of(i));
	assert_int_equal(reads_of(t, 0), 2);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 2);
	reads_as(t, LEAF, 0, 0);
	looks_up(t, LEAF, path_of(10));
	assert_int_equal(reads_of(t, 0), 3);
	looks_up(t, LEAF, path_of(11));
	assert_int_equal(reads_of(t, 0), 3);
	close_tree(t);
}

static void a_file_that_came_and_is_read_counts_as_a_miss_of_its_directory(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);

	(void)state;
	assert_int_equal(atomic_load(&t->node[LEAF].fetch->guess->collections), 0);
	opens(t, LEAF, 0);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 1);
	/* It has too many files of the kind for siblings. */
	assert_int_equal(cop_bundle_is_counted(
				 &t->node[LEAF].fetch->guess->policy, cop_bundle_id(path_of(0))),
		true);
	close_tree(t);
}

/* ---- what else begins with a file ---- */

/* Few files of a kind among many names: they come with their entries, too. */
static void siblings_come_where_the_listing_has_no_attributes(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	char path[4][16];
	uint64_t messages;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(path[i], sizeof(path[i]), "d/s%u.so", i);
		put_file(t, path[i], "0123456789", 10);
	}
	for (uint32_t r = 0; r < 3; r++)
		cop_cache_drop_under(t->node[r].cache, "");
	assert_int_equal(ask_and_forget(t, LEAF, listing("d")), 0);
	for (unsigned i = 0; i < 2; i++) {
		struct cop_attr attr;
		struct asked a;

		looks_up(t, LEAF, path[i]);
		assert_false(i && has_bytes(t, LEAF, path[0]) && knows(t, LEAF, entry(path[2])));
		attr = known(t, LEAF, path[i]);
		ask_fetch(t, LEAF, chunk(&attr, path[i], 0), &a);
		assert_int_equal(a.calls, 1);
		messages = stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES);
		cop_fetch_used(a.node->fetch, a.obj);
		forget(&a);
		run_until_idle(t);
	}
	/* The second one brought the others, in one message. */
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES), messages + 1);
	assert_true(has_bytes(t, LEAF, path[2]) && has_bytes(t, LEAF, path[3]));
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 4);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_BYTES), 40);
	assert_int_equal(t->node[LEAF].fetch->guess->policy.brought_bytes, 40);
	close_tree(t);
}

/* A page has the attributes of all names, so nothing is asked for twice. */
static void siblings_come_without_their_entries_where_a_page_is_here(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct cop_listing_entry e;
	struct cop_obj *list;
	struct cop_ask what;
	struct asked a;
	char path[4][16];

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		snprintf(path[i], sizeof(path[i]), "d/s%u.so", i);
		put_file(t, path[i], "0123456789", 10);
	}
	for (uint32_t r = 0; r < 3; r++)
		cop_cache_drop_under(t->node[r].cache, "");
	ask_fetch(t, LEAF, listing("d"), &a);
	run_until_idle(t);
	what = cop_fetch_page_ask("d", a.obj->data, "s0.so", 5);
	forget(&a);
	assert_int_equal(ask_and_forget(t, LEAF, what), 0);
	list = cop_fetch_listed(t->node[LEAF].fetch, "d", 1);
	for (unsigned i = 0; i < 2; i++) {
		assert_true(cop_listing_find(list->data, path[i] + 2, 5, &e) && e.has_attr);
		ask_fetch(t, LEAF, chunk(&e.attr, path[i], 0), &a);
		run_until_idle(t);
		assert_int_equal(a.rc, 0);
		forget(&a);
	}
	cop_obj_put(t->node[LEAF].cache, list);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 2);
	assert_int_equal(stats_of(t, 0), 0);
	assert_int_equal(reads_of(t, 0), 4);
	close_tree(t);
}

#define MODULES (COP_ORIGIN_LISTING_ATTRS + 6)

static const char *module(const char *dir, unsigned i, const char *ending)
{
	static char path[2][48];
	static unsigned at;

	snprintf(path[++at % 2], sizeof(path[0]), "lib/%sm%u%s", dir, i, ending);
	return path[at % 2];
}

static const char *compiled(unsigned i)
{
	return module("__pycache__/", i, ".cpython-311.pyc");
}

/* A program has read from the collection, and its sources are known by name. */
static struct tree *open_modules(void)
{
	struct cop_attr attr;
	struct tree *t;
	struct asked a;

	bundle = true;
	t = open_tree(3, 1, 1, BUDGET);
	for (unsigned i = 0; i < MODULES; i++) {
		put_file(t, module("", i, ".py"), "source", 6);
		put_file(t, compiled(i), "compiled", 8);
	}
	assert_int_equal(ask_and_forget(t, LEAF, listing("lib")), 0);
	assert_int_equal(ask_and_forget(t, LEAF, listing("lib/__pycache__")), 0);
	looks_up(t, LEAF, compiled(0));
	attr = known(t, LEAF, compiled(0));
	ask_fetch(t, LEAF, chunk(&attr, compiled(0), 0), &a);
	assert_int_equal(a.calls, 1);
	cop_fetch_used(a.node->fetch, a.obj);
	forget(&a);
	return t;
}

static void a_source_that_is_looked_up_brings_what_it_was_compiled_to(void **state)
{
	struct tree *t = open_modules();
	uint64_t messages[3];

	(void)state;
	for (uint32_t r = 1; r < 3; r++)
		messages[r] = stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES);
	looks_up(t, LEAF, module("", 5, ".py"));
	for (uint32_t r = 1; r < 3; r++)
		assert_int_equal(stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES), messages[r] + 1);
	assert_true(has_bytes(t, LEAF, compiled(5)));
	/* As for any mentioned file: 32 more than are used. */
	for (unsigned i = 6; i < 60; i++)
		looks_up(t, LEAF, module("", i, ".py"));
	assert_true(has_bytes(t, LEAF, compiled(31)));
	assert_false(knows(t, LEAF, entry(compiled(50))));
	close_tree(t);
}

static void a_compiled_file_that_is_mentioned_brings_its_sources_entry(void **state)
{
	struct tree *t = open_modules();

	(void)state;
	cop_guess_bring_source(t->node[LEAF].fetch->guess, "lib/__pycache__/", compiled(7) + 16);
	run_until_idle(t);
	known(t, LEAF, module("", 7, ".py"));
	assert_false(has_bytes(t, LEAF, module("", 7, ".py")));
	/* What is not there, or not beside such a directory, is not asked for. */
	cop_guess_bring_source(
		t->node[LEAF].fetch->guess, "lib/__pycache__/", "none.cpython-311.pyc");
	cop_guess_bring_source(t->node[LEAF].fetch->guess, "lib/", "m8.cpython-311.pyc");
	cop_guess_bring_source(t->node[LEAF].fetch->guess, "", "m9.cpython-311.pyc");
	run_until_idle(t);
	assert_int_equal(stats_of(t, 0), 2);
	close_tree(t);
}

/* ---- others ask meanwhile ---- */

static void who_asks_for_the_entry_meanwhile_joins(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct asked a[6];

	(void)state;
	for (unsigned i = 0; i < 6; i++)
		ask_fetch(t, i % 3, entry(path_of(0)), &a[i]);
	run_until_idle(t);
	for (unsigned i = 0; i < 6; i++) {
		assert_int_equal(a[i].calls, 1);
		assert_int_equal(a[i].rc, 0);
		forget(&a[i]);
	}
	assert_int_equal(stats_of(t, 0), 1);
	assert_int_equal(reads_of(t, 0), 1);
	for (uint32_t r = 0; r < 3; r++)
		reads_as(t, r, 0, 0);
	assert_int_equal(reads_of(t, 0), 1);
	nothing_is_reserved(t);
	close_tree(t);
}

/* The bytes are here, or a reader has asked for them, under the same key. */
static void bytes_that_are_here_or_in_flight_are_not_replaced(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct cop_attr attr = attr_of(t, 0, path_of(0));
	struct asked bytes, name;

	(void)state;
	for (int in_flight = 0; in_flight < 2; in_flight++) {
		const char *path = path_of((unsigned)in_flight);

		attr = attr_of(t, 0, path);
		ask_fetch(t, LEAF, chunk(&attr, path, 0), &bytes);
		if (!in_flight)
			run_until_idle(t);
		ask_fetch(t, LEAF, entry(path), &name);
		run_until_idle(t);
		assert_int_equal(bytes.calls + name.calls, 2);
		assert_int_equal(bytes.rc | name.rc, 0);
		forget(&bytes);
		forget(&name);
		reads_as(t, LEAF, (unsigned)in_flight, (uint8_t)in_flight);
	}
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_FILES), 0);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_CORRUPT), 0);
	nothing_is_reserved(t);
	close_tree(t);
}

/* ---- requests that nobody waits for ---- */

static void what_is_asked_for_ahead_brings_its_bytes_on_any_node(void **state)
{
	(void)state;
	for (uint32_t rank = 0; rank < 3; rank++) {
		struct tree *t = open_nodes(3, BUDGET);
		uint64_t requests = stat_of(t, rank, COP_FABRIC_REQUESTS_SENT);

		assert_true(cop_fetch_ask_first(t->node[rank].fetch, path_of(0), false));
		/* Twice is once. */
		cop_fetch_ask_first(t->node[rank].fetch, path_of(0), false);
		run_until_idle(t);
		assert_true(has_bytes(t, rank, path_of(0)));
		assert_true(cop_fetch_has_first(t->node[rank].fetch, path_of(0)));
		assert_false(cop_fetch_has_first(t->node[rank].fetch, path_of(1)));
		assert_int_equal(
			stat_of(t, rank, COP_FABRIC_REQUESTS_SENT), requests + (rank ? 1 : 0));
		assert_int_equal(stats_of(t, 0) + reads_of(t, 0), 2);
		assert_int_equal(stat_of(t, rank, COP_BUNDLE_FILES), 1);
		reads_as(t, rank, 0, 0);
		assert_int_equal(stat_of(t, rank, COP_BUNDLE_USED_FILES), 1);
		assert_false(cop_fetch_ask_first(t->node[rank].fetch, path_of(0), false));
		nothing_is_reserved(t);
		close_tree(t);
	}
}

/* The entry came without bytes, because no memory was free at the parent or a program asked. */
static void the_bytes_of_an_entry_that_is_here_are_asked_for_alone(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);

	(void)state;
	t->node[LEAF].fetch->conf.bundle = false;
	looks_up(t, LEAF, path_of(0));
	t->node[LEAF].fetch->conf.bundle = true;
	assert_false(cop_fetch_has_first(t->node[LEAF].fetch, path_of(0)));
	assert_true(cop_fetch_ask_first(t->node[LEAF].fetch, path_of(0), false));
	run_until_idle(t);
	assert_true(has_bytes(t, LEAF, path_of(0)));
	assert_int_equal(stats_of(t, 0), 1);
	close_tree(t);
}

static void unused_bytes_are_bounded_however_they_are_asked_for(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct cop_bundle *policy = &t->node[LEAF].fetch->guess->policy;

	(void)state;
	assert_true(cop_fetch_ask_first(t->node[LEAF].fetch, path_of(0), false));
	run_until_idle(t);
	assert_int_equal(policy->brought_bytes, LEN);
	while (cop_bundle_may_come(policy))
		cop_bundle_came_first(policy, 0, LEN);
	assert_false(cop_fetch_ask_first(t->node[LEAF].fetch, path_of(1), false));
	looks_up(t, LEAF, path_of(2));
	assert_false(has_bytes(t, LEAF, path_of(2)));
	close_tree(t);
}

/* A root reads ahead what a program there has looked up, if the kind has earned it. */
static void a_program_at_a_root_finds_the_bytes_on_their_way(void **state)
{
	struct tree *t = open_nodes(1, BUDGET);

	(void)state;
	opens(t, 0, 0);
	assert_int_equal(stats_of(t, 0) + reads_of(t, 0), 2);
	assert_int_equal(stat_of(t, 0, COP_BUNDLE_USED_FILES), 1);
	for (unsigned i = 1; i < 6; i++)
		looks_up(t, 0, path_of(i));
	assert_int_equal(reads_of(t, 0), 3);
	close_tree(t);
}

/* The entry is asked for in the background. When a program wants it, both parts become
 * urgent at the storage. */
static void a_program_that_joins_makes_the_entry_and_the_bytes_urgent(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct asked a;

	(void)state;
	assert_true(cop_fetch_ask_first(t->node[LEAF].fetch, path_of(0), false));
	cop_endpoint_fake_run(t->net, 100000);
	/* The entry is here at the root; the bytes wait behind everything urgent. */
	assert_int_equal(cop_origin_fake_run(t->node[0].origin, 1), 1);
	cop_endpoint_fake_run(t->net, 100000);
	assert_int_equal(reads_of(t, 0), 1);
	ask_fetch(t, LEAF, entry(path_of(0)), &a);
	cop_endpoint_fake_run(t->net, 100000);
	assert_int_equal(a.calls, 0);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).raises, 1);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	forget(&a);
	assert_true(has_bytes(t, LEAF, path_of(0)));
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_request_brings_the_entry_and_the_bytes),
		cmocka_unit_test(what_is_here_already_costs_the_storage_nothing),
		cmocka_unit_test(other_names_are_plain_entries),
		cmocka_unit_test(without_the_option_nobody_asks_for_bytes),
		cmocka_unit_test(two_that_nobody_reads_are_the_last_until_one_is_read),
		cmocka_unit_test(a_file_that_came_and_is_read_counts_as_a_miss_of_its_directory),
		cmocka_unit_test(siblings_come_where_the_listing_has_no_attributes),
		cmocka_unit_test(siblings_come_without_their_entries_where_a_page_is_here),
		cmocka_unit_test(a_source_that_is_looked_up_brings_what_it_was_compiled_to),
		cmocka_unit_test(a_compiled_file_that_is_mentioned_brings_its_sources_entry),
		cmocka_unit_test(who_asks_for_the_entry_meanwhile_joins),
		cmocka_unit_test(bytes_that_are_here_or_in_flight_are_not_replaced),
		cmocka_unit_test(what_is_asked_for_ahead_brings_its_bytes_on_any_node),
		cmocka_unit_test(the_bytes_of_an_entry_that_is_here_are_asked_for_alone),
		cmocka_unit_test(unused_bytes_are_bounded_however_they_are_asked_for),
		cmocka_unit_test(a_program_at_a_root_finds_the_bytes_on_their_way),
		cmocka_unit_test(a_program_that_joins_makes_the_entry_and_the_bytes_urgent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
