/* SPDX-License-Identifier: BSD-3-Clause */
/* Listings that are requested along with that of the directory above. Rank 2 asks rank 1, which
 * asks rank 0. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>

#include "tree/fetch/fetch_testing.h"
#include "tree/guess/guess_priv.h"

#define LEAF 2u
#define DIRS 12u

/* Directories p0, p1, … with a directory c in each, and the other directories that are
 * requested. */
static struct tree *open_three(uint64_t budget)
{
	struct tree *t = open_tree(3, 1, 1, budget);
	char path[32];

	for (unsigned i = 0; i < DIRS; i++) {
		snprintf(path, sizeof(path), "p%u/c/f", i);
		put_file(t, path, "x", 1);
		snprintf(path, sizeof(path), "p%u/none", i);
		put_file(t, path, "y", 1);
	}
	return t;
}

static int set_up(void **state)
{
	bundle = true;
	*state = open_three(16 << 20);
	return 0;
}

static int tear_down(void **state)
{
	close_tree(*state);
	return 0;
}

static uint64_t stat_of(struct tree *t, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&t->node[rank].stats, c);
}

static struct cop_ask list_of(unsigned i, const char *below)
{
	static char path[2][32];
	char *at = path[*below != 0];

	snprintf(at, sizeof(path[0]), "p%u%s", i, below);
	return listing(at);
}

static void lists(struct tree *t, unsigned i, const char *below)
{
	assert_int_equal(ask_and_forget(t, LEAF, list_of(i, below)), 0);
}

/* A program lists the directories p0 to p2 and the one in each of them. */
static void show_pairs(struct tree *t)
{
	assert_int_equal(ask_and_forget(t, LEAF, listing("")), 0);
	for (unsigned i = 0; i < 3; i++) {
		lists(t, i, "");
		lists(t, i, "/c");
	}
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), 0);
}

static size_t lists_at_root(struct tree *t)
{
	return cop_origin_fake_counts(t->node[0].origin).lists;
}

static void the_fourth_pair_leaves_in_one_message(void **state)
{
	struct tree *t = *state;
	uint64_t messages[3];

	show_pairs(t);
	for (uint32_t r = 1; r < 3; r++)
		messages[r] = stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES);
	for (unsigned i = 3; i < 6; i++) {
		lists(t, i, "");
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), i - 2);
		assert_int_equal(lists_at_root(t), 7 + 2 * (i - 2));
		lists(t, i, "/c");
		lists(t, i, "/c");
		assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_LISTINGS), i - 2);
	}
	for (uint32_t r = 1; r < 3; r++)
		assert_int_equal(stat_of(t, r, COP_FABRIC_REQUEST_MESSAGES), messages[r] + 3);
	assert_int_equal(lists_at_root(t), 13);
	/* A node that passes the requests on decides nothing. */
	assert_int_equal(
		stat_of(t, 1, COP_BUNDLE_LISTINGS) + stat_of(t, 0, COP_BUNDLE_LISTINGS), 0);
}

static void who_comes_meanwhile_joins_and_raises_no_priority(void **state)
{
	struct tree *t = *state;
	struct asked a, b;
	uint64_t messages;

	show_pairs(t);
	messages = stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES);
	ask_fetch(t, LEAF, list_of(3, ""), &a);
	ask_fetch(t, LEAF, list_of(3, "/c"), &b);
	run_until_idle(t);
	assert_int_equal(a.calls + b.calls, 2);
	assert_int_equal(a.rc, 0);
	assert_int_equal(b.rc, 0);
	assert_int_equal(cop_listing_count(b.obj->data), 1);
	forget(&a);
	forget(&b);
	assert_int_equal(stat_of(t, LEAF, COP_FABRIC_REQUEST_MESSAGES), messages + 1);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_LISTINGS), 1);
}

static void without_the_option_nothing_is_guessed(void **state)
{
	struct tree *t = *state;

	t->node[LEAF].fetch->conf.bundle = false;
	show_pairs(t);
	lists(t, 3, "");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), 0);
	assert_int_equal(lists_at_root(t), 8);
}

static void nothing_is_guessed_where_memory_is_short(void **state)
{
	struct tree *t = *state;
	struct cop_cache *cache = t->node[LEAF].cache;
	struct cop_cache_usage u;
	struct cop_obj *obj;

	show_pairs(t);
	cop_cache_usage(cache, &u);
	for (uint64_t i = 1; i <= u.limit_bytes / COP_MIB * 7 / 8; i++) {
		struct cop_key key = {.path = "x", .path_len = 1, .version = i, .size = 1};

		assert_int_equal(cop_cache_find(cache, &key, NULL, &obj), COP_FOUND_LEAD);
		cop_cache_complete(cache, obj,
			&(struct cop_completion){
				.data = malloc(COP_MIB), .len = COP_MIB, .keep = true});
	}
	lists(t, 3, "");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), 0);
	assert_int_equal(stat_of(t, LEAF, COP_CACHE_EVICTIONS), 0);
}

/* The attributes of q say that it has no subdirectory. If one is created there, it is seen. */
static void a_wrong_guess_costs_the_storage_nothing_and_is_not_kept(void **state)
{
	struct tree *t = *state;

	show_pairs(t);
	assert_int_equal(ask_and_forget(t, LEAF, listing("p11")), 0);
	assert_int_equal(ask_and_forget(t, LEAF, listing("p11/c")), 0);
	put_file(t, "q/f", "x", 1);
	for (uint32_t r = 0; r < 3; r++)
		cop_fetch_forget_name(t->node[r].fetch, "q");
	assert_int_equal(ask_and_forget(t, LEAF, listing("")), 0);
	assert_int_equal(lists_at_root(t), 10);
	assert_int_equal(ask_and_forget(t, LEAF, listing("q")), 0);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), 2);
	assert_int_equal(lists_at_root(t), 11);
	for (uint32_t r = 0; r < 3; r++)
		assert_null(cop_fetch_peek(t->node[r].fetch,
			&(struct cop_ask){.kind = COP_ASK_LISTING, .path = "q/c"}));
	put_file(t, "q/c/f", "x", 1);
	assert_int_equal(ask_and_forget(t, LEAF, listing("q/c")), 0);
}

/* The root does not know the directory above, so it refuses the guess; by then a program waits. */
static void a_reader_of_a_refused_guess_gets_the_storages_answer(void **state)
{
	struct tree *t = *state;
	struct asked a, b;

	show_pairs(t);
	cop_fetch_forget_name(t->node[0].fetch, "any");
	ask_fetch(t, LEAF, list_of(3, ""), &a);
	ask_fetch(t, LEAF, list_of(3, "/c"), &b);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.rc, 0);
	forget(&a);
	forget(&b);
}

/* The same if a reader joins on the way, at that very moment. */
static void so_does_a_reader_on_the_way(void **state)
{
	struct tree *t = *state;
	struct asked a, b = {.w.completed = completed, .tree = t, .node = &t->node[1]};
	struct cop_key key = {.table = COP_TABLE_TREE, .path = "p3/c", .path_len = 4};
	struct cop_obj *obj;

	show_pairs(t);
	cop_fetch_forget_name(t->node[0].fetch, "any");
	ask_fetch(t, LEAF, list_of(3, ""), &a);
	while (!cop_cache_has(b.node->cache, &key))
		assert_int_equal(cop_endpoint_fake_run(t->net, 1), 1);
	assert_int_equal(cop_cache_find(b.node->cache, &key, &b.w, &obj), COP_FOUND_JOINED);
	run_until_idle(t);
	assert_int_equal(a.rc, 0);
	assert_int_equal(b.calls, 1);
	assert_int_equal(b.rc, 0);
	forget(&a);
	forget(&b);
}

static void a_guess_that_is_refused_is_asked_for_when_it_is_needed(void **state)
{
	struct tree *t = *state;

	show_pairs(t);
	cop_fetch_forget_name(t->node[0].fetch, "any");
	lists(t, 3, "");
	assert_int_equal(lists_at_root(t), 8);
	lists(t, 3, "/c");
	assert_int_equal(lists_at_root(t), 9);
}

static void what_is_not_used_is_not_guessed_any_more(void **state)
{
	struct tree *t = *state;

	show_pairs(t);
	for (unsigned i = 3; i < 8; i++)
		lists(t, i, "");
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_LISTINGS), 2);
	assert_int_equal(stat_of(t, LEAF, COP_BUNDLE_USED_LISTINGS), 0);
}

/* Looking up a name in an automounter's file system may mount it. */
static void nothing_is_guessed_on_other_devices(void **state)
{
	struct tree *t = *state;
	struct cop_attr dir = {.ino = 2, .mode = S_IFDIR | 0755, .nlink = 3, .version = 2};
	struct cop_attr above = dir;
	const struct {
		uint64_t above, dir;
		uint32_t nlink;
		uint8_t flags;
		bool likely;
	} cases[] = {{2, 3, 3, COP_LISTING_COMPLETE, true}, {2, 3, 1, COP_LISTING_COMPLETE, true},
		{2, 3, 2, COP_LISTING_COMPLETE, false}, {2, 3, 3, 0, false},
		{(uint64_t)1 << 63 | 2, 3, 3, COP_LISTING_COMPLETE, false},
		{2, (uint64_t)1 << 63 | 3, 3, COP_LISTING_COMPLETE, false}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_listing_builder b = {0};
		struct cop_key key = {.table = COP_TABLE_TREE, .path = "m", .path_len = 1};
		struct cop_cache *cache = t->node[0].cache;
		struct cop_completion l = {.keep = true};
		struct cop_obj *obj;

		above.ino = cases[i].above;
		dir.ino = cases[i].dir;
		dir.nlink = cases[i].nlink;
		assert_int_equal(cop_listing_add(&b, "d", 1, DT_DIR, &dir, NULL, 0), 0);
		assert_int_equal(cop_listing_build(&b, &above, cases[i].flags, &l.data, &l.len), 0);
		assert_int_equal(cop_cache_find(cache, &key, NULL, &obj), COP_FOUND_LEAD);
		cop_cache_complete(cache, obj, &l);
		assert_int_equal(
			cop_guess_is_likely(t->node[0].fetch->guess, "m/d/c"), cases[i].likely);
		assert_false(cop_guess_is_likely(t->node[0].fetch->guess, "m/e/c"));
		assert_false(cop_guess_is_likely(t->node[0].fetch->guess, "n/d/c"));
		assert_false(cop_guess_is_likely(t->node[0].fetch->guess, "m"));
		cop_cache_forget(cache, &key);
	}
}

static void keep(struct cop_cache *cache, const struct cop_key *key, void *data, size_t len)
{
	struct cop_obj *obj;

	assert_int_equal(cop_cache_find(cache, key, NULL, &obj), COP_FOUND_LEAD);
	cop_cache_complete(
		cache, obj, &(struct cop_completion){.data = data, .len = len, .keep = true});
}

/* Without attributes in the listing above, the type decides, or the directory's entry if somebody
 * has asked for it. */
static void in_a_large_directory_a_root_looks_unless_an_entry_tells(void **state)
{
	struct tree *t = *state;
	struct cop_attr above = {.ino = 1, .mode = S_IFDIR | 0755, .nlink = 5, .version = 4};
	const struct {
		uint8_t type;
		uint64_t ino;
		uint32_t nlink; /* as the entry has it; 0: there is no entry */
		bool likely;
	} cases[] = {{DT_DIR, 2, 0, true}, {DT_DIR, 2, 3, true}, {DT_DIR, 2, 2, false},
		{DT_REG, 2, 0, false}, {DT_UNKNOWN, 2, 0, false}, {DT_LNK, 2, 0, false},
		{DT_DIR, (uint64_t)1 << 63 | 2, 0, false}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(cases); i++) {
		struct cop_listing_builder b = {0};
		struct cop_key list = {.table = COP_TABLE_TREE, .path = "m", .path_len = 1};
		struct cop_key name = {.table = COP_TABLE_METADATA, .path = "m/d", .path_len = 3};
		struct cop_attr dir = {
			.ino = 2, .mode = S_IFDIR | 0755, .nlink = cases[i].nlink, .version = 2};
		struct cop_cache *cache = t->node[0].cache;
		void *blob;
		size_t len;

		assert_int_equal(cop_listing_add_bare(&b, "d", 1, cases[i].type, cases[i].ino), 0);
		assert_int_equal(
			cop_listing_build(&b, &above, COP_LISTING_COMPLETE, &blob, &len), 0);
		keep(cache, &list, blob, len);
		if (cases[i].nlink) {
			assert_int_equal(cop_entry_build(&dir, NULL, 0, &blob, &len), 0);
			keep(cache, &name, blob, len);
		}
		assert_int_equal(
			cop_guess_is_likely(t->node[0].fetch->guess, "m/d/c"), cases[i].likely);
		cop_cache_forget(cache, &list);
		cop_cache_forget(cache, &name);
	}
}

static void a_parent_that_dies_is_passed_over(void **state)
{
	struct tree *t = *state;
	struct asked a, b;

	show_pairs(t);
	ask_fetch(t, LEAF, list_of(3, ""), &a);
	cop_endpoint_fake_cut(t->net, "n1", true);
	ask_fetch(t, LEAF, list_of(3, "/c"), &b);
	pass_time(t, 20000);
	assert_int_equal(a.calls + b.calls, 2);
	assert_int_equal(a.rc, 0);
	assert_int_equal(b.rc, 0);
	forget(&a);
	forget(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		T(the_fourth_pair_leaves_in_one_message),
		T(who_comes_meanwhile_joins_and_raises_no_priority),
		T(without_the_option_nothing_is_guessed),
		T(nothing_is_guessed_where_memory_is_short),
		T(a_wrong_guess_costs_the_storage_nothing_and_is_not_kept),
		T(a_reader_of_a_refused_guess_gets_the_storages_answer),
		T(so_does_a_reader_on_the_way),
		T(a_guess_that_is_refused_is_asked_for_when_it_is_needed),
		T(what_is_not_used_is_not_guessed_any_more),
		T(nothing_is_guessed_on_other_devices),
		T(in_a_large_directory_a_root_looks_unless_an_entry_tells),
		T(a_parent_that_dies_is_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
