/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <errno.h>

#include <cmocka.h>

#include "base/base/json.h"
#include "tree/op/op_priv.h"

#define NODES 10000
#define FANOUT 8

static void add_flight(uint32_t rank, unsigned i, struct cop_json *j)
{
	char path[160];

	snprintf(path, sizeof(path),
		"lus/flare/projects/someone/conda/envs/big/lib/python3.12/site-packages/torch/lib/libtorch_%016llx.so",
		(unsigned long long)cop_hash64(&i, sizeof(i), rank));
	cop_json_object(j, NULL);
	cop_json_str(j, "table", "data");
	cop_json_str(j, "path", path);
	cop_json_u64(j, "index", i);
	cop_json_u64(j, "ms", rank);
	cop_json_u64(j, "waiters", 1);
	cop_json_end(j);
}

static void add_peer(uint32_t rank, unsigned i, struct cop_json *j)
{
	cop_json_object(j, NULL);
	cop_json_u64(j, "rank", rank * FANOUT + i);
	cop_json_str(j, "state", "up");
	cop_json_u64(j, "calls", i);
	cop_json_u64(j, "oldest_ms", 130);
	cop_json_str(j, "waits_for", "answer");
	cop_json_end(j);
}

/* The report of a busy node: every counter has a large value of its own, sixteen reads wait, eight
 * children ask. */
static void add_row(uint32_t rank, struct cop_buf *out)
{
	struct cop_stats stats = {0};
	struct cop_json j = cop_json_to(out);
	char text[64];

	for (unsigned c = 0; c < COP_COUNTERS; c++)
		cop_stats_add(&stats, c, cop_hash64(&rank, sizeof(rank), c) >> 24);
	cop_json_object(&j, NULL);
	cop_json_u64(&j, "rank", rank);
	cop_json_u64(&j, "nodes", NODES);
	cop_json_bool(&j, "ready", true);
	cop_json_u64(&j, "pid", rank * 7 + 1000);
	snprintf(text, sizeof(text), "x3004c0s%ub0n0.hsn.cm.example.org", rank);
	cop_json_str(&j, "host", text);
	cop_json_str(&j, "mountpoint", "/tmp/someone/copper");
	cop_json_str(&j, "source", "/");
	cop_json_str(&j, "provider", "cxi");
	cop_json_str(&j, "network", "cxi0");
	cop_json_str(&j, "cpus", "0-103");
	cop_stats_json(&stats, &j);
	cop_json_object(&j, "waiting");
	cop_json_array(&j, "oldest");
	for (unsigned i = 0; i < 16; i++)
		add_flight(rank, i, &j);
	cop_json_end(&j);
	cop_json_array(&j, "peers");
	for (unsigned i = 0; i < FANOUT; i++)
		add_peer(rank, i, &j);
	cop_json_end(&j);
	cop_json_end(&j);
	cop_json_end(&j);
}

/* Encodes the part as the node below does, then decodes it and adds it here. Returns the bytes on
 * the wire. */
static size_t pass_up(struct cop_op_sum *into, struct cop_op_sum *part)
{
	struct cop_op_sum there = {0};
	struct cop_buf body = {0};
	size_t len;

	assert_int_equal(cop_op_sum_encode(part, &body), 0);
	len = body.len;
	assert_true(len <= COP_RPC_BODY_MAX);
	assert_int_equal(cop_op_sum_decode(body.data, body.len, &there), 0);
	cop_op_sum_add(into, &there, ',');
	cop_buf_free(&body);
	cop_op_sum_free(&there);
	cop_op_sum_free(part);
	return len;
}

/* This does not use strstr, for which the thread sanitizer checks all the text that follows each
 * time. */
static size_t count_of(const char *text, const char *what)
{
	size_t n = 0, len = strlen(what);

	for (const char *at = text; *at; at++)
		n += *at == *what && strncmp(at, what, len) == 0;
	return n;
}

static void the_statistics_of_ten_thousand_nodes_fit(void **state)
{
	struct cop_op_sum all = {0}, part = {0}, root = {0};
	size_t wire;

	(void)state;
	for (uint32_t rank = 0; rank < NODES; rank++) {
		struct cop_op_sum one = {.nodes = 1};

		add_row(rank, &one.text);
		cop_op_sum_add(&part, &one, ',');
		cop_op_sum_free(&one);
		if ((rank + 1) % (NODES / FANOUT) == 0)
			pass_up(&all, &part);
	}
	/* The initiator may be any node: the total goes over the wire once more. */
	wire = pass_up(&root, &all);
	assert_int_equal(root.nodes, NODES);
	assert_int_equal(root.cut, 0);
	assert_int_equal(count_of(root.text.data, "\"rank\":0,\"nodes\""), 1);
	assert_int_equal(count_of(root.text.data, "{\"rank\":9999,\"nodes\""), 1);
	assert_int_equal(count_of(root.text.data, "}{"), 0);
	assert_int_equal(count_of(root.text.data, "\"mountpoint\":"), NODES);
	assert_true(root.text.len <= COP_OP_TEXT_MAX);
	print_message("%u rows: %zu bytes as text, %zu on the wire\n", NODES, root.text.len, wire);
	cop_op_sum_free(&root);
}

static void a_text_beyond_the_limit_is_left_out_and_counted(void **state)
{
	static char row[] = "{}";
	struct cop_op_sum into = {.nodes = 7, .text = {.data = row, .len = COP_OP_TEXT_MAX - 10}};
	struct cop_op_sum part = {.nodes = 3, .text = {.data = row, .len = 10}};

	(void)state;
	cop_op_sum_add(&into, &part, ',');
	assert_int_equal(into.nodes, 10);
	assert_int_equal(into.cut, 3);
	assert_int_equal(into.text.len, COP_OP_TEXT_MAX - 10);
}

static void an_answer_that_stays_too_long_is_sent_without_its_text(void **state)
{
	size_t len = COP_RPC_BODY_MAX + COP_MIB;
	struct cop_op_sum g = {.nodes = 5, .dead = 1, .missing = 1, .lost = {3}}, back = {0};

	(void)state;
	g.text = (struct cop_buf){.data = malloc(len), .len = len};
	assert_non_null(g.text.data);
	for (uint64_t i = 0; i < len / 8; i++)
		((uint64_t *)(void *)g.text.data)[i] = cop_hash64(&i, sizeof(i), 0);
	pass_up(&back, &g);
	assert_int_equal(back.nodes, 5);
	assert_int_equal(back.cut, 5);
	assert_int_equal(back.missing, 1);
	assert_int_equal(back.lost[0], 3);
	assert_int_equal(back.text.len, 0);
	cop_op_sum_free(&back);
}

static void the_missing_are_named_as_far_as_there_is_room(void **state)
{
	struct cop_op_sum into = {0}, part = {.dead = 1, .refused = 2, .failed = 3}, back = {0};

	(void)state;
	for (uint32_t r = 0; r < COP_OP_NAMED - 1; r++)
		cop_op_sum_lose(&into, r);
	for (uint32_t r = 100; r < 106; r++)
		cop_op_sum_lose(&part, r);
	cop_op_sum_add(&into, &part, ',');
	pass_up(&back, &into);
	assert_int_equal(back.missing, COP_OP_NAMED - 1 + 6);
	assert_int_equal(back.lost[0], 0);
	assert_int_equal(back.lost[COP_OP_NAMED - 1], 100);
	assert_int_equal(back.dead, 1);
	assert_int_equal(back.refused, 2);
	assert_int_equal(back.failed, 3);
	cop_op_sum_free(&back);
}

static void silent_ranks_come_up_as_numbers(void **state)
{
	struct cop_op_sum into = {0}, part = {.dead = 2}, back = {0};
	struct cop_buf body = {0};

	(void)state;
	cop_op_sum_add_silent(&into, 7);
	cop_op_sum_add_silent(&part, 0);
	cop_op_sum_add_silent(&part, UINT32_MAX);
	cop_buf_str(&part.text, "a remark");
	cop_buf_str(&into.text, "another");
	pass_up(&into, &part);
	pass_up(&back, &into);
	assert_int_equal(cop_op_sum_silents(&back), 3);
	assert_int_equal(cop_op_sum_silent(&back, 0), 7);
	assert_int_equal(cop_op_sum_silent(&back, 1), 0);
	assert_int_equal(cop_op_sum_silent(&back, 2), UINT32_MAX);
	assert_string_equal(back.text.data, "another,a remark");
	assert_int_equal(cop_op_sum_encode(&back, &body), 0);
	cop_op_sum_free(&back);
	for (size_t len = 0; len < body.len; len++) {
		assert_int_equal(cop_op_sum_decode(body.data, len, &back), -EBADMSG);
		cop_op_sum_free(&back);
	}
	cop_buf_free(&body);
}

/* Once for each answer of a lying node, the list must not grow without end. */
static void there_is_an_end_to_the_silent_ranks(void **state)
{
	struct cop_op_sum into = {0}, part = {0};

	(void)state;
	for (uint32_t r = 0; r < COP_OP_SILENT_MAX + 5; r++)
		cop_op_sum_add_silent(&part, r);
	assert_int_equal(cop_op_sum_silents(&part), COP_OP_SILENT_MAX);
	cop_op_sum_add_silent(&into, 1);
	pass_up(&into, &part);
	assert_int_equal(cop_op_sum_silents(&into), COP_OP_SILENT_MAX);
	cop_op_sum_free(&into);
}

static void what_warnings_are_made_of_comes_up(void **state)
{
	struct cop_op_sum into = {.nodes = 1, .fell_back = 1, .cache_needed = 7, .data_bytes = 10};
	struct cop_op_sum part = {.nodes = 2,
				  .fell_back = 2,
				  .cache_needed = 9,
				  .data_bytes = 20,
				  .memory_bytes = 5},
			  back = {0};

	(void)state;
	cop_stats_example(&part.stats, COP_EXAMPLE_BYPASSED, "data/big");
	pass_up(&into, &part);
	pass_up(&back, &into);
	assert_int_equal(back.fell_back, 3);
	assert_int_equal(back.cache_needed, 9);
	assert_int_equal(back.data_bytes, 30);
	assert_int_equal(back.memory_bytes, 5);
	assert_string_equal(cop_stats_first(&back.stats, COP_EXAMPLE_BYPASSED), "data/big");
	assert_string_equal(cop_stats_first(&back.stats, COP_EXAMPLE_CHANGED), "");
	cop_op_sum_free(&back);
}

static void a_malformed_sum_is_refused(void **state)
{
	struct cop_op_sum g = {.nodes = 1}, back;
	struct cop_buf body = {0};

	(void)state;
	for (unsigned i = 0; i < 1000; i++)
		cop_buf_str(&g.text, "the same again ");
	assert_int_equal(cop_op_sum_encode(&g, &body), 0);
	for (size_t len = 0; len < body.len; len++) {
		back = (struct cop_op_sum){0};
		assert_int_equal(cop_op_sum_decode(body.data, len, &back), -EBADMSG);
		cop_op_sum_free(&back);
	}
	cop_buf_free(&body);
	cop_op_sum_free(&g);
}

/* The sum of a node that has recorded telemetry, as at a stop. */
static struct cop_op_sum a_node_with_telemetry(uint32_t rank)
{
	struct cop_op_sum s = {.nodes = 1, .telemetry = cop_telemetry_sum_new(3)};
	struct cop_telemetry *t = cop_telemetry_new(cop_now_ns());

	cop_telemetry_look(t, &s.stats, 0, 0);
	cop_telemetry_event(t, COP_TELEMETRY_STOP, "of rank %u", rank);
	assert_int_equal(cop_telemetry_sum_add(s.telemetry, t, rank), 0);
	cop_telemetry_free(t);
	return s;
}

static void telemetry_goes_up_with_the_rest(void **state)
{
	struct cop_op_sum all = {0}, one;

	(void)state;
	for (uint32_t r = 0; r < 3; r++) {
		one = a_node_with_telemetry(r);
		cop_buf_str(&one.text, "a remark");
		pass_up(&all, &one);
	}
	assert_int_equal(cop_telemetry_sum_nodes(all.telemetry), 3);
	assert_string_equal(cop_telemetry_sum_event(all.telemetry, 2)->detail, "of rank 2");
	assert_string_equal(all.text.data, "a remark,a remark,a remark");
	assert_null(all.prof);
	cop_op_sum_free(&all);
}

static void damaged_telemetry_is_left_out(void **state)
{
	struct cop_op_sum s = a_node_with_telemetry(1), there = {0};
	struct cop_buf body = {0};
	char *head;

	(void)state;
	cop_buf_str(&s.text, "a remark");
	assert_int_equal(cop_op_sum_encode(&s, &body), 0);
	head = memmem(body.data, body.len, "CTM", 3);
	assert_non_null(head);
	head[3] ^= 1;
	assert_int_equal(cop_op_sum_decode(body.data, body.len, &there), 0);
	assert_null(there.telemetry);
	assert_int_equal(there.nodes, 1);
	assert_string_equal(there.text.data, "a remark");
	cop_buf_free(&body);
	cop_op_sum_free(&there);
	cop_op_sum_free(&s);
}

static void missing_nodes_are_counted_by_kind(void **state)
{
	static const struct lost dead = {LOST_DEAD, 3, 0, "n3", "it is dead"},
				 failed = {LOST_FAILED, 4, 2, "n4", "its answer is too long"},
				 refused = {LOST_REFUSED, 5, 0, "n5", "it holds another secret"};
	struct cop_buf out = {0};

	(void)state;
	cop_op_lost_text(COP_OP_STATS, &dead, &out);
	cop_op_lost_text(COP_OP_STATS, &failed, &out);
	cop_op_lost_text(COP_OP_STATS, &refused, &out);
	assert_string_equal(out.data,
		"{\"rank\":3,\"host\":\"n3\",\"dead\":true}"
		"{\"rank\":4,\"host\":\"n4\",\"failed\":true,\"reason\":\"its answer is too long\",\"below\":2}"
		"{\"rank\":5,\"host\":\"n5\",\"refused\":true,\"reason\":\"it holds another secret\",\"below\":0}");
	cop_buf_free(&out);
	cop_op_lost_text(COP_OP_STOP, &dead, &out);
	assert_int_equal(out.len, 0);
	cop_op_lost_text(COP_OP_STOP, &failed, &out);
	cop_buf_str(&out, "|");
	cop_op_lost_text(COP_OP_STOP, &refused, &out);
	assert_string_equal(out.data,
		"n4 (rank 4) failed: its answer is too long; the 2 nodes below it are not counted either|"
		"n5 (rank 5) refused: it holds another secret");
	cop_buf_free(&out);
	cop_op_lost_text(COP_OP_TABLE, &failed, &out);
	assert_string_equal(out.data,
		"4\tfailed\t2\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\t0\tn4\tits answer is too long");
	cop_buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_statistics_of_ten_thousand_nodes_fit),
		cmocka_unit_test(a_text_beyond_the_limit_is_left_out_and_counted),
		cmocka_unit_test(an_answer_that_stays_too_long_is_sent_without_its_text),
		cmocka_unit_test(the_missing_are_named_as_far_as_there_is_room),
		cmocka_unit_test(silent_ranks_come_up_as_numbers),
		cmocka_unit_test(there_is_an_end_to_the_silent_ranks),
		cmocka_unit_test(what_warnings_are_made_of_comes_up),
		cmocka_unit_test(a_malformed_sum_is_refused),
		cmocka_unit_test(telemetry_goes_up_with_the_rest),
		cmocka_unit_test(damaged_telemetry_is_left_out),
		cmocka_unit_test(missing_nodes_are_counted_by_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
