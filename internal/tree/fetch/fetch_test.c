/* SPDX-License-Identifier: BSD-3-Clause */
/* Trees of nodes in one process: fake fabric, fake origins, the real rpc, cache and fetch. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "tree/fetch/fetch_testing.h"

static void seven_nodes_cost_the_origin_one_listing(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 1 << 20);
	struct asked a[7];
	struct cop_listing_entry e;

	(void)state;
	put_file(t, "d/f", "hello", 5);
	for (uint32_t r = 0; r < 7; r++)
		ask_fetch(t, r, listing("d"), &a[r]);
	run_until_idle(t);
	for (uint32_t r = 0; r < 7; r++) {
		assert_int_equal(a[r].calls, 1);
		assert_int_equal(a[r].rc, 0);
		assert_true(cop_listing_find(a[r].obj->data, "f", 1, &e));
		assert_int_equal(e.attr.size, 5);
		forget(&a[r]);
	}
	assert_int_equal(origin_jobs(t), 1);
	close_tree(t);
}

static void sixty_four_readers_of_a_cold_chunk_are_one_read(void **state)
{
	struct tree *t = open_tree(3, 2, 1, 1 << 20);
	struct cop_attr attr;
	struct asked a[64];

	(void)state;
	put_file(t, "f", "0123456789", 10);
	attr = attr_of(t, 2, "f");
	for (int i = 0; i < 64; i++)
		ask_fetch(t, 2, chunk(&attr, "f", 0), &a[i]);
	run_until_idle(t);
	for (int i = 0; i < 64; i++) {
		assert_int_equal(a[i].calls, 1);
		assert_memory_equal(a[i].obj->data, "0123456789", 10);
		forget(&a[i]);
	}
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 1);
	close_tree(t);
}

static void read_whole(struct tree *t, uint32_t rank, const struct cop_attr *attr, const char *path,
	const uint8_t *data, size_t len)
{
	uint8_t plain[CHUNK];
	struct asked a;

	for (size_t i = 0; i * CHUNK < len; i++) {
		ask_fetch(t, rank, chunk(attr, path, i), &a);
		run_until_idle(t);
		pass_time(t, a.calls ? 0 : 8000);
		assert_int_equal(a.calls, 1);
		assert_int_equal(a.rc, 0);
		assert_int_equal(a.obj->packed, packs);
		if (packs)
			assert_int_equal(cop_pack_read(a.obj->data, 0,
						 COP_MIN(CHUNK, len - i * CHUNK), plain),
				0);
		else
			memcpy(plain, a.obj->data, COP_MIN(CHUNK, len - i * CHUNK));
		assert_memory_equal(plain, data + i * CHUNK, COP_MIN(CHUNK, len - i * CHUNK));
		forget(&a);
	}
}

static void a_file_larger_than_the_budget_is_read_right_by_every_node(void **state)
{
	struct tree *t = open_tree(7, 2, 1, 60000);
	size_t len = 40 * CHUNK + 17;
	uint8_t *data = malloc(len);
	struct cop_attr attr;

	(void)state;
	fill_bytes(data, len);
	put_file(t, "big", data, len);
	attr = attr_of(t, 6, "big");
	for (uint32_t r = 0; r < 7; r++) {
		struct cop_cache_usage u;

		read_whole(t, r, &attr, "big", data, len);
		cop_cache_usage(t->node[r].cache, &u);
		assert_true(u.used_bytes <= 60000);
	}
	free(data);
	close_tree(t);
}

static void chunks_packed_by_the_root_are_sent_and_kept_packed(void **state)
{
	size_t len = 5 * CHUNK + 100;
	uint8_t *data = malloc(len);
	struct cop_attr attr;
	struct tree *t;

	(void)state;
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i / 64);
	packs = true;
	t = open_tree(3, 1, 1, 1 << 20);
	put_file(t, "text", data, len);
	attr = attr_of(t, 2, "text");
	read_whole(t, 2, &attr, "text", data, len);
	free(data);
	close_tree(t);
	packs = false;
}

static void groups_of_a_large_file_go_round_the_trees(void **state)
{
	struct tree *t = open_tree(9, 3, 3, 64 << 20);
	size_t len = 6 * GROUP_MAX * CHUNK;
	uint8_t *data = malloc(len);
	struct cop_attr attr;

	(void)state;
	fill_bytes(data, len);
	put_file(t, "big", data, len);
	attr = attr_of(t, 5, "big");
	read_whole(t, 5, &attr, "big", data, len);
	/* Two groups for each of the three roots, which reads each group in one job. */
	for (uint32_t r = 0; r < 9; r++)
		assert_int_equal(
			cop_origin_fake_counts(t->node[r].origin).reads, r % 3 == 0 ? 2 : 0);
	assert_int_equal(cop_fetch_window(t->node[5].fetch, len), COP_FETCH_WINDOW_MAX);
	free(data);
	close_tree(t);
}

static void only_the_run_that_is_named_is_read(void **state)
{
	struct tree *t = open_tree(1, 1, 1, 64 << 20);
	size_t len = 2 * GROUP_MAX * CHUNK;
	uint8_t *data = malloc(len);
	struct cop_attr attr;
	struct cop_ask ask;
	struct asked a;

	(void)state;
	fill_bytes(data, len);
	put_file(t, "big", data, len);
	attr = attr_of(t, 0, "big");
	ask = chunk(&attr, "big", 3);
	ask.background = true;
	ask.run_end = 6;
	ask_fetch(t, 0, ask, &a);
	run_until_idle(t);
	forget(&a);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 1);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).read_bytes, 3 * CHUNK);
	/* A run does not end with its group. */
	ask.index = GROUP_MAX - 1;
	ask.run_end = GROUP_MAX + 2;
	ask_fetch(t, 0, ask, &a);
	run_until_idle(t);
	forget(&a);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).read_bytes, 4 * CHUNK);
	/* A program reads on from where it is. */
	ask_fetch(t, 0, chunk(&attr, "big", 6), &a);
	run_until_idle(t);
	forget(&a);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).reads, 3);
	assert_int_equal(
		cop_origin_fake_counts(t->node[0].origin).read_bytes, (GROUP_MAX - 3) * CHUNK);
	free(data);
	close_tree(t);
}

/* Each node keeps its own share, and whoever reads the file leaves that alone. */
static void a_file_larger_than_each_cache_is_read_once(void **state)
{
	struct tree *t = open_tree(4, 4, 4, 170 * CHUNK);
	size_t len = 8 * GROUP_MAX * CHUNK, reads = 0;
	uint8_t *data = malloc(len);
	struct cop_attr attr;

	(void)state;
	fill_bytes(data, len);
	put_file(t, "big", data, len);
	for (unsigned round = 0; round < 2; round++) {
		for (uint32_t r = 0; r < 4; r++) {
			attr = attr_of(t, r, "big");
			read_whole(t, r, &attr, "big", data, len);
		}
	}
	for (uint32_t r = 0; r < 4; r++)
		reads += cop_origin_fake_counts(t->node[r].origin).read_bytes;
	assert_int_equal(reads, len);
	free(data);
	close_tree(t);
}

/* Node 1 is between node 2 and the root of tree 0; all its memory for copies is in use. */
static void a_node_without_memory_for_a_copy_sends_its_child_on(void **state)
{
	struct tree *t = open_tree(3, 1, 3, 24 * CHUNK);
	struct cop_cache *cache = t->node[1].cache;
	size_t len = 64 * CHUNK;
	uint8_t *data = calloc(1, len);
	struct cop_obj *taken;
	struct cop_attr attr;
	uint64_t index = 0;
	struct asked a;

	(void)state;
	put_file(t, "big", data, len);
	attr = attr_of(t, 2, "big");
	while (cop_fetch_tree_of(t->node[2].fetch,
		&(struct cop_ask){
			.kind = COP_ASK_CHUNK, .path = "big", .size = len, .index = index}))
		index++;
	assert_int_equal(
		cop_cache_find(cache, &(struct cop_key){.table = COP_TABLE_DATA, .path = "other"},
			NULL, &taken),
		COP_FOUND_LEAD);
	cop_cache_set_duty(cache, taken, COP_DUTY_COPY);
	assert_true(cop_cache_try_reserve(cache, taken, 20 * CHUNK));
	ask_fetch(t, 2, chunk(&attr, "big", index), &a);
	run_until_idle(t);
	assert_int_equal(a.calls, 1);
	assert_int_equal(a.rc, 0);
	forget(&a);
	assert_int_equal(cop_fetch_held(t->node[1].fetch, &(struct cop_ask){.kind = COP_ASK_CHUNK,
								  .path = "big",
								  .version = attr.version,
								  .size = len,
								  .index = index}),
		COP_HELD_NOT);
	assert_int_equal(cop_stats_get(&t->node[2].stats, COP_FABRIC_FAILOVERS), 0);
	cop_cache_complete(cache, taken, &(struct cop_completion){.rc = -EIO});
	free(data);
	close_tree(t);
}

static void names_and_small_files_have_one_way(void **state)
{
	struct tree *t = open_tree(9, 3, 3, 64 << 20);
	size_t len = 64 * CHUNK - 1;
	uint8_t *data = malloc(len);

	(void)state;
	fill_bytes(data, len);
	for (unsigned i = 0; i < 10; i++) {
		char path[16];
		struct cop_attr attr;

		snprintf(path, sizeof(path), "d%u/f", i);
		put_file(t, path, data, len);
		attr = attr_of(t, 5, path);
		read_whole(t, 5, &attr, path, data, len);
		assert_int_equal(ask_and_forget(t, 5, listing("d0")), 0);
	}
	for (uint32_t r = 1; r < 9; r++) {
		assert_int_equal(cop_origin_fake_counts(t->node[r].origin).reads, 0);
		assert_int_equal(cop_origin_fake_counts(t->node[r].origin).lists, 0);
	}
	assert_int_equal(cop_fetch_window(t->node[5].fetch, len), 8);
	free(data);
	close_tree(t);
}

/* The first request waits with the root for the storage. */
static void answers_that_were_at_hand_are_counted(void **state)
{
	struct tree *t = open_tree(3, 2, 1, 1 << 20);

	(void)state;
	put_file(t, "d/f", "hello", 5);
	(void)attr_of(t, 1, "d/f");
	assert_int_equal(cop_stats_get(&t->node[1].stats, COP_FABRIC_HELD), 0);
	(void)attr_of(t, 2, "d/f");
	assert_int_equal(cop_stats_get(&t->node[2].stats, COP_FABRIC_HELD), 1);
	close_tree(t);
}

static void an_io_error_reaches_everyone_and_is_asked_again_next_time(void **state)
{
	static const int errors[] = {EIO, 0};
	struct tree *t = open_tree(3, 2, 1, 1 << 20);
	struct asked a[3];

	(void)state;
	put_file(t, "d/f", "hello", 5);
	for (unsigned i = 0; i < 2; i++) {
		cop_origin_fake_fail(t->node[0].origin, "d", errors[i]);
		for (uint32_t r = 0; r < 3; r++)
			ask_fetch(t, r, listing("d"), &a[r]);
		run_until_idle(t);
		for (uint32_t r = 0; r < 3; r++) {
			assert_int_equal(a[r].calls, 1);
			assert_int_equal(a[r].rc, -errors[i]);
			forget(&a[r]);
		}
		assert_int_equal(origin_jobs(t), i + 1);
	}
	close_tree(t);
}

static uint64_t clock_ns;

static uint64_t standing_clock(void)
{
	return clock_ns;
}

static void a_refusal_is_kept_until_the_ttl_is_over(void **state)
{
	struct tree *t;

	(void)state;
	clock_ns = 1000 * COP_NS_PER_S;
	cop_clocks_for_test(standing_clock, NULL);
	t = open_tree(1, 2, 1, 1 << 20);
	put_file(t, "d/f", "hello", 5);
	cop_origin_fake_fail(t->node[0].origin, "d", EACCES);
	assert_int_equal(ask_and_forget(t, 0, listing("d")), -EACCES);
	cop_origin_fake_fail(t->node[0].origin, "d", 0);
	clock_ns += ttl_ms * COP_NS_PER_MS;
	assert_int_equal(ask_and_forget(t, 0, listing("d")), -EACCES);
	assert_int_equal(origin_jobs(t), 1);
	clock_ns += COP_NS_PER_MS;
	assert_int_equal(ask_and_forget(t, 0, listing("d")), 0);
	assert_int_equal(origin_jobs(t), 2);
	close_tree(t);
	cop_clocks_for_test(NULL, NULL);
}

static void a_file_that_changed_gives_estale_and_its_name_is_asked_again(void **state)
{
	struct tree *t = open_tree(3, 2, 1, 1 << 20);
	struct cop_attr old, new;
	struct asked a;

	(void)state;
	put_file(t, "d/f", "old content", 11);
	old = attr_of(t, 2, "d/f");
	ask_fetch(t, 2, listing("d"), &a);
	run_until_idle(t);
	forget(&a);
	put_file(t, "d/f", "new and longer content", 22);
	ask_fetch(t, 2, chunk(&old, "d/f", 0), &a);
	run_until_idle(t);
	assert_int_equal(a.rc, -ESTALE);
	forget(&a);
	new = attr_of(t, 2, "d/f");
	assert_int_equal(new.size, 22);
	assert_true(new.version != old.version);
	ask_fetch(t, 2, chunk(&new, "d/f", 0), &a);
	run_until_idle(t);
	assert_memory_equal(a.obj->data, "new and longer content", 22);
	forget(&a);
	close_tree(t);
}

/* Node 2 prefetches through node 1, and node 0's storage is still reading when a program on node 2
 * asks for the same object. */
static void a_reader_of_a_prefetched_chunk_raises_its_priority_at_the_origin(void **state)
{
	struct cop_ask background = {.kind = COP_ASK_ENTRY, .path = "f", .background = true},
		       now = {.kind = COP_ASK_ENTRY, .path = "f"};
	struct tree *t = open_tree(3, 1, 1, 1 << 20);
	struct asked prefetch, between, program[2];

	(void)state;
	put_file(t, "f", "x", 1);
	ask_fetch(t, 2, background, &prefetch);
	cop_endpoint_fake_run(t->net, 100000);
	ask_fetch(t, 1, background, &between);
	cop_endpoint_fake_run(t->net, 100000);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).raises, 0);
	for (int i = 0; i < 2; i++)
		ask_fetch(t, 2, now, &program[i]);
	cop_endpoint_fake_run(t->net, 100000);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).raises, 1);
	assert_int_equal(cop_origin_fake_counts(t->node[0].origin).stats, 1);
	run_until_idle(t);
	assert_int_equal(prefetch.calls + between.calls + program[0].calls + program[1].calls, 4);
	assert_int_equal(program[1].rc, 0);
	forget(&prefetch);
	forget(&between);
	forget(&program[0]);
	forget(&program[1]);
	close_tree(t);
}

static void called(void *arg, const struct cop_rpc_result *r)
{
	*(int *)arg = r->status;
}

static void a_malformed_request_is_refused(void **state)
{
	struct tree *t = open_tree(2, 2, 1, 1 << 20);
	uint8_t payload[200] = {0};
	int status = 1;

	(void)state;
	for (size_t len = 0; len < 40; len++) {
		struct cop_rpc_call call = {.rank = 0,
			.op = COP_ASK_CHUNK,
			.payload = payload,
			.payload_len = len,
			.done = called,
			.arg = &status};

		status = 1;
		payload[24] = 200; /* a path longer than what follows */
		cop_rpc_call(t->node[1].rpc, &call);
		run_until_idle(t);
		assert_int_equal(status, -EINVAL);
	}
	close_tree(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seven_nodes_cost_the_origin_one_listing),
		cmocka_unit_test(sixty_four_readers_of_a_cold_chunk_are_one_read),
		cmocka_unit_test(a_file_larger_than_the_budget_is_read_right_by_every_node),
		cmocka_unit_test(chunks_packed_by_the_root_are_sent_and_kept_packed),
		cmocka_unit_test(groups_of_a_large_file_go_round_the_trees),
		cmocka_unit_test(only_the_run_that_is_named_is_read),
		cmocka_unit_test(a_file_larger_than_each_cache_is_read_once),
		cmocka_unit_test(a_node_without_memory_for_a_copy_sends_its_child_on),
		cmocka_unit_test(names_and_small_files_have_one_way),
		cmocka_unit_test(answers_that_were_at_hand_are_counted),
		cmocka_unit_test(an_io_error_reaches_everyone_and_is_asked_again_next_time),
		cmocka_unit_test(a_refusal_is_kept_until_the_ttl_is_over),
		cmocka_unit_test(a_file_that_changed_gives_estale_and_its_name_is_asked_again),
		cmocka_unit_test(a_reader_of_a_prefetched_chunk_raises_its_priority_at_the_origin),
		cmocka_unit_test(a_malformed_request_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
