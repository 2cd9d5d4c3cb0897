/* SPDX-License-Identifier: BSD-3-Clause */
/* Small files that are fetched beside others. Rank 2 asks rank 1, which asks rank 0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"
#include "tree/guess/guess_priv.h"

#define FILES 6u
#define LEN(i) (100u + (i))

static const char *path_of(unsigned i)
{
	static char path[8][16];

	snprintf(path[i], sizeof(path[i]), "d/f%u.py", i);
	return path[i];
}

static void fill(struct tree *t, unsigned i, uint8_t with)
{
	uint8_t data[LEN(FILES)];

	memset(data, with, sizeof(data));
	put_file(t, path_of(i), data, LEN(i));
}

/* FILES files of a kind, and files that are no siblings of theirs. */
static struct tree *open_three(uint64_t budget)
{
	static const uint8_t big[CHUNK + 1];
	struct tree *t;

	bundle = true;
	t = open_tree(3, 1, 1, budget);
	for (unsigned i = 0; i < FILES; i++)
		fill(t, i, (uint8_t)('a' + i));
	put_file(t, "d/big.py", big, sizeof(big));
	put_file(t, "d/empty.py", "", 0);
	put_file(t, "d/other.so", "x", 1);
	for (uint32_t r = 0; r < 3; r++)
		cop_origin_fake_put(t->node[r].origin, "d/secret.py", S_IFREG | 0600, "y", 1);
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	return t;
}

/* The attributes as this rank knows them. */
static struct cop_attr known(struct tree *t, uint32_t rank, unsigned i)
{
	struct cop_obj *list = cop_fetch_peek(
		t->node[rank].fetch, &(struct cop_ask){.kind = COP_ASK_LISTING, .path = "d"});
	const char *name = path_of(i) + 2;
	struct cop_listing_entry e;

	assert_non_null(list);
	assert_true(cop_listing_find(list->data, name, strlen(name), &e) && e.has_attr);
	cop_obj_put(t->node[rank].cache, list);
	return e.attr;
}

/* A program on this rank reads the file. */
static void start_reading(struct tree *t, uint32_t rank, unsigned i, struct asked *a)
{
	struct cop_attr attr = known(t, rank, i);

	ask_fetch(t, rank, chunk(&attr, path_of(i), 0), a);
}

static void has_read(struct asked *a, unsigned i, uint8_t with)
{
	assert_int_equal(a->calls, 1);
	assert_int_equal(a->rc, 0);
	assert_int_equal(a->obj->len, LEN(i));
	for (unsigned at = 0; at < LEN(i); at++)
		assert_int_equal(((uint8_t *)a->obj->data)[at], with);
	cop_fetch_used(a->node->fetch, a->obj);
	forget(a);
}

static void reads(struct tree *t, uint32_t rank, unsigned i)
{
	struct asked a;

	start_reading(t, rank, i, &a);
	run_until_idle(t);
	has_read(&a, i, (uint8_t)('a' + i));
}

static uint64_t stat_of(struct tree *t, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&t->node[rank].stats, c);
}

static void the_second_file_brings_the_rest_in_one_message(void **state)
{
	struct tree *t = open_three(1 << 20);
	uint64_t messages[3];

	(void)state;
	reads(t, 2, 0);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), 0);
	for (uint32_t r = 1; r < 3; r++)
		messages[r] = stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES);
	reads(t, 2, 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), FILES - 2);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_BYTES), LEN(2) + LEN(3) + LEN(4) + LEN(5));
	for (uint32_t r = 1; r < 3; r++)
		assert_int_equal(stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES), messages[r] + 1);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, FILES);
	for (unsigned i = 2; i < FILES - 1; i++)
		reads(t, 2, i);
	reads(t, 2, 2);
	assert_int_equal(stat_of(t, 2, COP_FABRIC_REQUEST_MESSAGES), messages[2] + 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_USED_FILES), FILES - 3);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_USED_BYTES), LEN(2) + LEN(3) + LEN(4));
	/* The nodes that passed them on decided nothing. */
	assert_int_equal(stat_of(t, 1, COP_BUNDLE_FILES) + stat_of(t, 0, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

static void without_the_option_nothing_is_brought(void **state)
{
	struct tree *t;

	(void)state;
	t = open_three(1 << 20);
	t->node[2].fetch->conf.bundle = false;
	for (unsigned i = 0; i < 3; i++)
		reads(t, 2, i);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 3);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

static void what_bypasses_the_tree_is_not_brought(void **state)
{
	struct tree *t = open_three(1 << 20);

	(void)state;
	t->node[2].fetch->conf.max_cacheable = LEN(3);
	reads(t, 2, 0);
	reads(t, 2, 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), 2);
	close_tree(t);
}

static void a_root_brings_them_for_itself(void **state)
{
	struct tree *t = open_three(1 << 20);

	(void)state;
	reads(t, 0, 0);
	reads(t, 0, 1);
	assert_int_equal(stat_of(t, 0, COP_BUNDLE_FILES), FILES - 2);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, FILES);
	close_tree(t);
}

static void who_asks_meanwhile_joins_the_flight(void **state)
{
	struct tree *t = open_three(1 << 20);
	struct asked a, b, c;

	(void)state;
	reads(t, 2, 0);
	start_reading(t, 2, 1, &a);
	start_reading(t, 2, 2, &b);
	start_reading(t, 2, 2, &c);
	run_until_idle(t);
	has_read(&a, 1, 'b');
	has_read(&b, 2, 'c');
	has_read(&c, 2, 'c');
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, FILES);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_USED_FILES), 1);
	close_tree(t);
}

/* Reads other files until no more than an eighth of the budget is free. */
static void fill_cache(struct tree *t, uint32_t rank)
{
	static const uint8_t data[CHUNK];
	struct cop_attr attr;
	char path[32];

	for (unsigned i = 0; i < 1000 && cop_cache_has_headroom(t->node[rank].cache, 100); i++) {
		snprintf(path, sizeof(path), "fill/%u", i);
		put_file(t, path, data, sizeof(data));
		attr = attr_of(t, rank, path);
		assert_int_equal(ask_and_forget(t, rank, chunk(&attr, path, 0)), 0);
	}
	assert_false(cop_cache_has_headroom(t->node[rank].cache, 100));
}

static void nothing_is_brought_where_memory_is_short(void **state)
{
	struct tree *t = open_three(1 << 20);

	(void)state;
	reads(t, 2, 0);
	fill_cache(t, 2);
	reads(t, 2, 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), 0);
	assert_int_equal(stat_of(t, 2, COP_CACHE_EVICTIONS), 0);
	close_tree(t);
}

static void a_young_file_is_not_brought(void **state)
{
	struct tree *t;

	(void)state;
	bundle = true;
	t = open_tree(3, 1, 1, 1 << 20);
	cop_origin_fake_young(t->node[0].origin, true);
	for (unsigned i = 0; i < FILES; i++)
		fill(t, i, (uint8_t)('a' + i));
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	reads(t, 2, 0);
	reads(t, 2, 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

/* A program that has read two files of a directory continues to see that version of it, even if a
 * third one, which nobody has read, was replaced and is fetched in vain. */
static void a_replaced_sibling_changes_no_name(void **state)
{
	struct tree *t = open_three(1 << 20);
	struct cop_attr before = known(t, 2, 2);
	struct asked a;

	(void)state;
	reads(t, 2, 0);
	fill(t, 2, 'X');
	reads(t, 2, 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), FILES - 3);
	for (uint32_t r = 0; r < 3; r++)
		assert_true(known(t, r, 2).version == before.version);
	reads(t, 2, 3);
	/* A program that reads the file learns of the change, and from then on the names are
	 * new. */
	start_reading(t, 2, 2, &a);
	run_until_idle(t);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	assert_true(known(t, 2, 2).version != before.version);
	start_reading(t, 2, 2, &a);
	run_until_idle(t);
	has_read(&a, 2, 'X');
	close_tree(t);
}

/* The same if the reader joins the sibling's flight: one ESTALE, then the new file. */
static void a_reader_who_joins_hears_of_the_change_once(void **state)
{
	struct tree *t = open_three(1 << 20);
	struct asked a, b;

	(void)state;
	reads(t, 2, 0);
	fill(t, 2, 'X');
	start_reading(t, 2, 1, &a);
	/* The requests have reached the root, whose storage has not answered. */
	cop_endpoint_fake_run(t->net, 100000);
	start_reading(t, 2, 2, &b);
	run_until_idle(t);
	has_read(&a, 1, 'b');
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.rc, -ESTALE);
	forget(&b);
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	start_reading(t, 2, 2, &b);
	run_until_idle(t);
	has_read(&b, 2, 'X');
	close_tree(t);
}

static void a_parent_that_dies_is_passed_over(void **state)
{
	struct tree *t = open_three(1 << 20);
	struct asked a;

	(void)state;
	reads(t, 2, 0);
	start_reading(t, 2, 1, &a);
	cop_endpoint_fake_cut(t->net, "n1", true);
	pass_time(t, 20000);
	has_read(&a, 1, 'b');
	for (unsigned i = 2; i < FILES; i++)
		reads(t, 2, i);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_USED_FILES), FILES - 2);
	close_tree(t);
}

static void a_collection_is_left_alone(void **state)
{
	struct tree *t;

	(void)state;
	bundle = true;
	t = open_tree(3, 1, 1, 1 << 20);
	for (unsigned i = 0; i < COP_BUNDLE_MOST_FILES; i++) {
		char path[32];

		snprintf(path, sizeof(path), "d/g%u.py", i);
		put_file(t, path, "z", 1);
	}
	fill(t, 0, 'a');
	fill(t, 1, 'b');
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	reads(t, 2, 0);
	reads(t, 2, 1);
	assert_int_equal(stat_of(t, 2, COP_BUNDLE_FILES), 0);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_second_file_brings_the_rest_in_one_message),
		cmocka_unit_test(without_the_option_nothing_is_brought),
		cmocka_unit_test(what_bypasses_the_tree_is_not_brought),
		cmocka_unit_test(a_root_brings_them_for_itself),
		cmocka_unit_test(who_asks_meanwhile_joins_the_flight),
		cmocka_unit_test(nothing_is_brought_where_memory_is_short),
		cmocka_unit_test(a_young_file_is_not_brought),
		cmocka_unit_test(a_replaced_sibling_changes_no_name),
		cmocka_unit_test(a_reader_who_joins_hears_of_the_change_once),
		cmocka_unit_test(a_parent_that_dies_is_passed_over),
		cmocka_unit_test(a_collection_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
