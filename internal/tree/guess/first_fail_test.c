/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries that bring the first bytes along, when memory is short, nodes die, files change, and
 * answers lie: the entry comes, and nothing that is wrong. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"
#include "tree/guess/first_testing.h"

/* ---- what can go wrong ---- */

static void without_memory_the_entry_comes_alone(void **state)
{
	(void)state;
	/* One node has no room for what nobody reads yet. */
	for (uint32_t poor = 0; poor < 3; poor++) {
		struct tree *t = open_nodes(3, BUDGET);
		struct cop_cache_usage u;
		struct cop_obj *filler;
		struct cop_key key = {.table = COP_TABLE_DATA, .path = "x", .path_len = 1};
		struct node *n = &t->node[poor];

		assert_int_equal(cop_cache_find(n->cache, &key, NULL, &filler), COP_FOUND_LEAD);
		cop_cache_usage(n->cache, &u);
		cop_cache_complete(n->cache, filler,
			&(struct cop_completion){.data = malloc(BUDGET / 8 * 7),
				.len = BUDGET / 8 * 7,
				.keep = true});
		looks_up(t, LEAF, path_of(0));
		cop_cache_usage(n->cache, &u);
		assert_true(u.used_bytes <= u.limit_bytes);
		assert_false(has_bytes(t, LEAF, path_of(0)));
		assert_int_equal(reads_of(t, 0), 0);
		reads_as(t, LEAF, 0, 0);
		nothing_is_reserved(t);
		close_tree(t);
	}
}

static void a_node_that_has_no_memory_at_all_is_passed_over(void **state)
{
	(void)state;
	for (uint32_t poor = 0; poor < 2; poor++)
		for (int after = 0; after < 4; after++) {
			struct tree *t = open_nodes(3, BUDGET);

			cop_cache_starve(t->node[poor].cache, after);
			looks_up(t, LEAF, path_of(0));
			cop_cache_starve(t->node[poor].cache, -1);
			reads_as(t, LEAF, 0, 0);
			nothing_is_reserved(t);
			close_tree(t);
		}
}

static void the_parent_dies_and_another_one_answers(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct asked a;

	(void)state;
	ask_fetch(t, LEAF, entry(path_of(0)), &a);
	cop_endpoint_fake_cut(t->net, "n1", true);
	pass_time(t, 20000);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	forget(&a);
	assert_true(has_bytes(t, LEAF, path_of(0)));
	reads_as(t, LEAF, 0, 0);
	cop_endpoint_fake_cut(t->net, "n0", true);
	assert_true(cop_fetch_ask_first(t->node[LEAF].fetch, path_of(1), false));
	pass_time(t, 20000);
	assert_true(has_bytes(t, LEAF, path_of(1)));
	assert_int_equal(reads_of(t, LEAF), 1);
	reads_as(t, LEAF, 1, 1);
	close_tree(t);
}

static void a_node_that_ends_answers_with_the_entry(void **state)
{
	struct tree *t = open_nodes(2, BUDGET);
	struct asked a;

	(void)state;
	ask_fetch(t, 1, entry(path_of(0)), &a);
	cop_endpoint_fake_run(t->net, 100000);
	atomic_store(&t->node[0].fetch->closing, true);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	forget(&a);
	assert_int_equal(reads_of(t, 0), 0);
	close_tree(t);
}

/* The file is another one since the root learned its name: nobody has read it, so nothing that
 * anybody knows of the directory changes. A reader finds out. */
static void a_file_that_has_changed_changes_nothing_before_it_is_read(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct cop_attr attr;

	(void)state;
	looks_up(t, 0, path_of(0));
	cop_cache_drop_under(t->node[0].cache, path_of(0));
	t->node[0].fetch->conf.bundle = false;
	looks_up(t, 0, path_of(0));
	fill(t, 0, 'n');
	looks_up(t, LEAF, path_of(0));
	assert_false(has_bytes(t, LEAF, path_of(0)));
	for (uint32_t r = 0; r < 3; r++)
		assert_true(knows(t, r, entry(path_of(0))) && knows(t, r, listing("d")));
	attr = known(t, LEAF, path_of(0));
	assert_int_equal(ask_and_forget(t, LEAF, chunk(&attr, path_of(0), 0)), -ESTALE);
	for (uint32_t r = 0; r < 3; r++)
		assert_false(knows(t, r, entry(path_of(0))));
	looks_up(t, LEAF, path_of(0));
	reads_as(t, LEAF, 0, 'n');
	close_tree(t);
}

/* The same, but a reader waits for the bytes that go with the entry of somebody else. */
static void a_reader_who_joins_finds_out_that_a_file_has_changed(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct cop_attr attr;
	struct asked name, bytes;

	(void)state;
	t->node[0].fetch->conf.bundle = false;
	looks_up(t, 0, path_of(0));
	attr = known(t, 0, path_of(0));
	fill(t, 0, 'n');
	ask_fetch(t, LEAF, entry(path_of(0)), &name);
	cop_endpoint_fake_run(t->net, 100000);
	ask_fetch(t, 0, chunk(&attr, path_of(0), 0), &bytes);
	run_until_idle(t);
	assert_int_equal(name.rc, 0);
	assert_int_equal(bytes.calls, 1);
	assert_int_equal(bytes.rc, -ESTALE);
	forget(&name);
	forget(&bytes);
	assert_int_equal(reads_of(t, 0), 1);
	assert_false(knows(t, 0, entry(path_of(0))));
	close_tree(t);
}

/* The bytes are on their way from the root to a node in between that has the entry. */
static void a_reader_who_joins_on_the_way_makes_all_nodes_forget(void **state)
{
	struct tree *t = open_nodes(3, BUDGET);
	struct cop_attr attr;
	struct asked name, bytes;

	(void)state;
	t->node[1].fetch->conf.bundle = t->node[0].fetch->conf.bundle = false;
	looks_up(t, 1, path_of(0));
	attr = known(t, 1, path_of(0));
	fill(t, 0, 'n');
	ask_fetch(t, LEAF, entry(path_of(0)), &name);
	/* The request for the bytes is at the root, and the answer there. */
	cop_endpoint_fake_run(t->net, 100000);
	assert_int_equal(reads_of(t, 0), 1);
	assert_int_equal(cop_origin_fake_run(t->node[0].origin, 1), 1);
	ask_fetch(t, 1, chunk(&attr, path_of(0), 0), &bytes);
	run_until_idle(t);
	assert_int_equal(name.rc, 0);
	assert_int_equal(bytes.calls, 1);
	assert_int_equal(bytes.rc, -ESTALE);
	forget(&name);
	forget(&bytes);
	assert_int_equal(reads_of(t, 0), 2);
	for (uint32_t r = 0; r < 2; r++)
		assert_false(knows(t, r, entry(path_of(0))));
	close_tree(t);
}

/* ---- answers that lie ---- */

enum lie {
	TRUTH,
	NO_ENTRY,
	BAD_ENTRY,
	LONG_ENTRY,
	OF_A_DIRECTORY,
	OF_AN_EMPTY_FILE,
	OF_A_LONG_FILE,
	BAD_SUM,
	SHORT_BYTES,
	LONG_BYTES,
	NO_BYTES,
	PACKED,
	NOT_ASKED_FOR,
	LIES,
};
static enum lie lie;
static unsigned lies;

/* Answers a request for the entry of the first file as the root would, or as it never would. */
static bool lie_about_entry(struct node *n, struct cop_rpc_req *req)
{
	static uint8_t bytes[LEN + 1];
	struct cop_attr attr = {.ino = 5,
		.mode = lie == OF_A_DIRECTORY ? S_IFDIR | 0755 : S_IFREG | 0644,
		.size = lie == OF_AN_EMPTY_FILE ? 0
			: lie == OF_A_LONG_FILE ? CHUNK + 1
						: LEN,
		.blocks = 8,
		.nlink = 1};
	struct cop_rpc_answer a = {.body = bytes, .body_len = LEN, .has_sum = true};
	uint8_t op = cop_rpc_req_op(req), head[COP_RPC_HEAD_MAX];
	struct cop_wr w = cop_wr_init(head, sizeof(head));
	size_t len;
	void *blob;

	if (n->rank != 0 || op != (lie == NOT_ASKED_FOR ? COP_ASK_LISTING : COP_ASK_ENTRY))
		return false;
	lies++;
	memset(bytes, 'l', sizeof(bytes));
	attr.version = cop_attr_version(&attr);
	assert_int_equal(cop_entry_build(&attr, NULL, 0, &blob, &len), 0);
	if (lie == SHORT_BYTES || lie == LONG_BYTES)
		a.body_len = lie == LONG_BYTES ? LEN + 1 : LEN - 1;
	if (lie == NO_BYTES)
		a.body_len = 0;
	((uint8_t *)blob)[0] ^= lie == BAD_ENTRY;
	cop_wr_u64(&w, cop_hash64(bytes, a.body_len, 0) ^ (lie == BAD_SUM));
	cop_wr_u8(&w, ANSWER_FIRST | (lie == PACKED ? ANSWER_PACKED : 0));
	cop_wr_bytes(&w, blob, lie == NO_ENTRY ? 0 : len);
	if (lie == LONG_ENTRY)
		cop_wr_u8(&w, 0);
	free(blob);
	a.head = head;
	a.head_len = cop_wr_len(&w);
	cop_rpc_reply(req, &a);
	return true;
}

static void a_lie_reaches_nobody(void **state)
{
	(void)state;
	for (lie = TRUTH; lie < LIES; lie++) {
		struct tree *t = open_nodes(2, BUDGET);

		cop_cache_drop_under(t->node[1].cache, "");
		lies = 0;
		serve_instead = lie_about_entry;
		if (lie == NOT_ASKED_FOR)
			assert_int_equal(ask_and_forget(t, 1, listing("d")), 0);
		else
			looks_up(t, 1, path_of(0));
		serve_instead = NULL;
		assert_int_equal(lies, lie == TRUTH ? 1 : 3);
		assert_int_equal(stat_of(t, 1, COP_FABRIC_CORRUPT), lie == TRUTH ? 0 : 3);
		if (lie == TRUTH)
			reads_as(t, 1, 0, 'l');
		else if (lie != NOT_ASKED_FOR)
			reads_as(t, 1, 0, 0);
		nothing_is_reserved(t);
		close_tree(t);
	}
}

/* The request did not ask for bytes. */
static void bytes_that_were_not_asked_for_are_corrupt(void **state)
{
	struct tree *t = open_nodes(2, BUDGET);

	(void)state;
	lie = TRUTH;
	lies = 0;
	serve_instead = lie_about_entry;
	t->node[1].fetch->conf.bundle = false;
	looks_up(t, 1, path_of(0));
	serve_instead = NULL;
	assert_int_equal(lies, 3);
	assert_int_equal(stat_of(t, 1, COP_FABRIC_CORRUPT), 3);
	assert_false(has_bytes(t, 1, path_of(0)));
	reads_as(t, 1, 0, 0);
	close_tree(t);
}

/* A body longer than any file that may come is not fetched. */
static bool answer_too_long(struct node *n, struct cop_rpc_req *req)
{
	static uint8_t bytes[COP_MIB];
	uint8_t head[9] = {0};

	if (n->rank != 0 || cop_rpc_req_op(req) != COP_ASK_ENTRY)
		return false;
	lies++;
	cop_rpc_reply(req, &(struct cop_rpc_answer){.head = head,
				   .head_len = sizeof(head),
				   .body = bytes,
				   .body_len = sizeof(bytes),
				   .has_sum = true});
	return true;
}

static void an_endless_body_is_not_fetched(void **state)
{
	struct tree *t = open_nodes(2, BUDGET);
	uint64_t in = stat_of(t, 1, COP_FABRIC_BYTES_IN);

	(void)state;
	lies = 0;
	serve_instead = answer_too_long;
	looks_up(t, 1, path_of(0));
	serve_instead = NULL;
	assert_int_equal(lies, 3);
	assert_in_range(stat_of(t, 1, COP_FABRIC_BYTES_IN), in, in + CHUNK);
	nothing_is_reserved(t);
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_the_entry_comes_alone),
		cmocka_unit_test(a_node_that_has_no_memory_at_all_is_passed_over),
		cmocka_unit_test(the_parent_dies_and_another_one_answers),
		cmocka_unit_test(a_node_that_ends_answers_with_the_entry),
		cmocka_unit_test(a_file_that_has_changed_changes_nothing_before_it_is_read),
		cmocka_unit_test(a_reader_who_joins_finds_out_that_a_file_has_changed),
		cmocka_unit_test(a_reader_who_joins_on_the_way_makes_all_nodes_forget),
		cmocka_unit_test(a_lie_reaches_nobody),
		cmocka_unit_test(bytes_that_were_not_asked_for_are_corrupt),
		cmocka_unit_test(an_endless_body_is_not_fetched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
