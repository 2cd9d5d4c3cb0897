/* SPDX-License-Identifier: BSD-3-Clause */
/* A parent that is silent but not dead: stopped, or on a machine that thrashes. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

#define CHUNKS 8

static uint8_t file[CHUNKS * CHUNK];

/* Nodes in this set keep requests for chunks until let_go. */
static unsigned keeping;
static struct {
	struct node *node;
	struct cop_rpc_req *req;
} kept[64];
static unsigned kept_count;

static bool keep(struct node *n, struct cop_rpc_req *req)
{
	if (!(keeping >> n->rank & 1) || cop_rpc_req_op(req) != COP_ASK_CHUNK)
		return false;
	assert_true(kept_count < COP_ARRAY_SIZE(kept));
	kept[kept_count].node = n;
	kept[kept_count++].req = req;
	return true;
}

/* The node answers what it kept. */
static void let_go(struct tree *t, uint32_t rank)
{
	keeping &= ~(1u << rank);
	for (unsigned i = 0; i < kept_count; i++) {
		if (!kept[i].req || kept[i].node->rank != rank)
			continue;
		assert_true(cop_fetch_serve(kept[i].node->fetch, kept[i].req));
		kept[i].req = NULL;
	}
	run_until_idle(t);
}

/* n0 - n1 - n2, where everybody knows the file's attributes. */
static struct tree *chain(struct cop_attr *attr)
{
	struct tree *t = open_tree(3, 1, 1, 1 << 20);

	keeping = kept_count = 0;
	serve_instead = keep;
	fill_bytes(file, sizeof(file));
	put_file(t, "d/f", file, sizeof(file));
	*attr = attr_of(t, 2, "d/f");
	return t;
}

static void end(struct tree *t)
{
	for (uint32_t r = 0; r < t->count; r++)
		let_go(t, r);
	close_tree(t);
	serve_instead = NULL;
}

static uint64_t count(struct tree *t, uint32_t rank, enum cop_counter c)
{
	return cop_stats_get(&t->node[rank].stats, c);
}

static void is_answered(struct asked *a, uint64_t index)
{
	assert_int_equal(a->calls, 1);
	assert_int_equal(a->rc, 0);
	assert_memory_equal(a->obj->data, file + index * CHUNK, CHUNK);
	forget(a);
}

static void the_ancestor_above_a_silent_parent_is_asked_within_a_second(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	cop_endpoint_fake_cut(t->net, "n1", true);
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	pass_time(t, 200);
	assert_int_equal(a.calls, 0);
	pass_time(t, 400);
	is_answered(&a, 0);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES), 1);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES_WON), 1);
	assert_int_equal(count(t, 2, COP_FABRIC_LAGS), 0);
	assert_int_equal(count(t, 2, COP_ORIGIN_FALLBACKS), 0);
	end(t);
}

static void all_requests_in_flight_move_within_a_second(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a[CHUNKS];

	(void)state;
	cop_endpoint_fake_cut(t->net, "n1", true);
	for (unsigned i = 0; i < CHUNKS; i++)
		ask_fetch(t, 2, chunk(&attr, "d/f", i), &a[i]);
	pass_time(t, 900);
	for (unsigned i = 0; i < CHUNKS; i++)
		is_answered(&a[i], i);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES), 2);
	assert_int_equal(count(t, 2, COP_FABRIC_LAGS), 1);
	assert_int_equal(count(t, 2, COP_FABRIC_FAILOVERS), 1);
	/* The parent is not asked while it is left: nothing waits any more. */
	assert_int_equal(ask_and_forget(t, 2, listing("d")), 0);
	assert_int_equal(cop_fetch_parent(t->node[2].fetch), 0);
	end(t);
}

static void leave_parent(struct tree *t, const struct cop_attr *attr)
{
	struct asked a[CHUNKS];

	cop_endpoint_fake_cut(t->net, "n1", true);
	for (unsigned i = 0; i < CHUNKS; i++)
		ask_fetch(t, 2, chunk(attr, "d/f", i), &a[i]);
	pass_time(t, 1000);
	for (unsigned i = 0; i < CHUNKS; i++)
		is_answered(&a[i], i);
	assert_int_equal(count(t, 2, COP_FABRIC_LAGS), 1);
}

static void a_left_parent_is_asked_again_once_it_has_answered_for_ten_seconds(void **state)
{
	static const unsigned stops_ms[] = {1000, 20000};

	(void)state;
	/* The second time it is dead in between. */
	for (size_t i = 0; i < COP_ARRAY_SIZE(stops_ms); i++) {
		struct cop_attr attr;
		struct tree *t = chain(&attr);
		uint64_t served;

		leave_parent(t, &attr);
		pass_time(t, stops_ms[i]);
		cop_endpoint_fake_cut(t->net, "n1", false);
		served = count(t, 1, COP_FABRIC_REQUESTS_SERVED);
		pass_time(t, 5000);
		(void)ask_and_forget(t, 2, listing("e"));
		assert_int_equal(count(t, 1, COP_FABRIC_REQUESTS_SERVED), served);
		pass_time(t, 30000);
		assert_int_equal(ask_and_forget(t, 2, listing("")), 0);
		assert_int_equal(count(t, 1, COP_FABRIC_REQUESTS_SERVED), served + 1);
		assert_int_equal(cop_fetch_parent(t->node[2].fetch), 1);
		end(t);
	}
}

static void a_parent_that_waits_for_the_storage_is_never_silent(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 1u << 1;
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	pass_time(t, 20000);
	assert_int_equal(a.calls, 0);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES), 0);
	let_go(t, 1);
	is_answered(&a, 0);
	end(t);
}

static void a_silent_root_is_waited_for(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 1;
	ask_fetch(t, 1, chunk(&attr, "d/f", 0), &a);
	run_until_idle(t);
	cop_endpoint_fake_cut(t->net, "n0", true);
	pass_time(t, 2000);
	cop_endpoint_fake_cut(t->net, "n0", false);
	assert_int_equal(a.calls, 0);
	let_go(t, 0);
	is_answered(&a, 0);
	assert_int_equal(count(t, 1, COP_FABRIC_HEDGES), 0);
	assert_int_equal(count(t, 1, COP_ORIGIN_FALLBACKS), 0);
	end(t);
}

/* The parent has the request, and its bytes land when the flight is long gone. */
static void a_late_answer_is_dropped(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a, b;

	(void)state;
	keeping = 1u << 1;
	ask_fetch(t, 2, chunk(&attr, "d/f", 3), &a);
	run_until_idle(t);
	cop_endpoint_fake_cut(t->net, "n1", true);
	pass_time(t, 800);
	is_answered(&a, 3);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES_WON), 1);
	cop_cache_forget(t->node[2].cache, &(struct cop_key){.table = COP_TABLE_DATA,
						   .path = "d/f",
						   .path_len = 3,
						   .version = attr.version,
						   .size = attr.size,
						   .index = 3});
	cop_endpoint_fake_cut(t->net, "n1", false);
	let_go(t, 1);
	pass_time(t, 5000);
	ask_fetch(t, 2, chunk(&attr, "d/f", 3), &b);
	run_until_idle(t);
	is_answered(&b, 3);
	assert_int_equal(count(t, 2, COP_FABRIC_CORRUPT), 0);
	end(t);
}

/* Both keep the request, and the first one is quicker after all. */
static void the_first_answer_counts_whoever_gives_it(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 3;
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	run_until_idle(t);
	cop_endpoint_fake_cut(t->net, "n1", true);
	pass_time(t, 600);
	assert_int_equal(kept_count, 2);
	cop_endpoint_fake_cut(t->net, "n1", false);
	keeping = 0;
	/* Node 1 has to ask the root. */
	let_go(t, 1);
	is_answered(&a, 0);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES_WON), 0);
	let_go(t, 0);
	pass_time(t, 1000);
	end(t);
}

static void the_second_answer_counts_if_the_first_node_dies(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 1;
	cop_endpoint_fake_cut(t->net, "n1", true);
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	pass_time(t, 10000);
	assert_int_equal(a.calls, 0);
	/* It was asked once: the flight that lost its first request waits for this one. */
	assert_int_equal(kept_count, 1);
	let_go(t, 0);
	is_answered(&a, 0);
	end(t);
}

static void the_first_answer_counts_if_the_second_node_dies(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 3;
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	run_until_idle(t);
	cop_endpoint_fake_cut(t->net, "n1", true);
	cop_endpoint_fake_cut(t->net, "n0", true);
	pass_time(t, 600);
	cop_endpoint_fake_cut(t->net, "n1", false);
	pass_time(t, 5000);
	assert_int_equal(a.calls, 0);
	let_go(t, 1);
	pass_time(t, 5000);
	is_answered(&a, 0);
	end(t);
}

/* Without memory for a second buffer, the request is not asked twice; the third time the parent is
 * left all the same. */
static void without_memory_the_parent_is_left_all_the_same(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 1u << 1;
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	run_until_idle(t);
	cop_endpoint_fake_cut(t->net, "n1", true);
	cop_cache_starve(t->node[2].cache, 0);
	pass_time(t, 800);
	cop_cache_starve(t->node[2].cache, -1);
	pass_time(t, 9000);
	is_answered(&a, 0);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES), 0);
	end(t);
}

static void a_tree_may_end_with_requests_asked_twice(void **state)
{
	struct cop_attr attr;
	struct tree *t = chain(&attr);
	struct asked a;

	(void)state;
	keeping = 3;
	ask_fetch(t, 2, chunk(&attr, "d/f", 0), &a);
	run_until_idle(t);
	cop_endpoint_fake_cut(t->net, "n1", true);
	pass_time(t, 600);
	assert_int_equal(count(t, 2, COP_FABRIC_HEDGES), 1);
	cop_rpc_quiet(t->node[2].rpc);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, -ESHUTDOWN);
	forget(&a);
	end(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_ancestor_above_a_silent_parent_is_asked_within_a_second),
		cmocka_unit_test(all_requests_in_flight_move_within_a_second),
		cmocka_unit_test(a_left_parent_is_asked_again_once_it_has_answered_for_ten_seconds),
		cmocka_unit_test(a_parent_that_waits_for_the_storage_is_never_silent),
		cmocka_unit_test(a_silent_root_is_waited_for),
		cmocka_unit_test(a_late_answer_is_dropped),
		cmocka_unit_test(the_first_answer_counts_whoever_gives_it),
		cmocka_unit_test(the_second_answer_counts_if_the_first_node_dies),
		cmocka_unit_test(the_first_answer_counts_if_the_second_node_dies),
		cmocka_unit_test(without_memory_the_parent_is_left_all_the_same),
		cmocka_unit_test(a_tree_may_end_with_requests_asked_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
