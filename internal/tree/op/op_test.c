/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations over a tree of seven nodes, some of which are dead, slow or different. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tree/op/op_testing.h"

static int setup(void **state)
{
	*state = t_new();
	return 0;
}

static int teardown(void **state)
{
	t_free(*state);
	return 0;
}

/* Checks that no request is left anywhere. */
static void assert_nobody_inside(struct t_tree *t)
{
	for (uint32_t r = 0; r <= T_NODES; r++)
		assert_int_equal(t->node[r].gate.inside, 0);
}

static void all_ranks_are_counted_once_whoever_asks(void **state)
{
	struct t_tree *t = *state;
	char row[16];

	for (uint32_t from = 0; from <= T_CLIENT; from++) {
		struct t_heard h;

		t_ask_all(t, from, COP_OP_STATS, "", &h);
		t_run(t);
		assert_int_equal(h.times, 1);
		assert_int_equal(h.sum.nodes, T_NODES);
		assert_int_equal(t_counted(&h), T_ALL);
		assert_int_equal(h.sum.usage.used_bytes, T_ALL - T_NODES);
		assert_int_equal(h.sum.missing + h.sum.cut + h.sum.unwritten, 0);
		assert_int_equal(h.sum.text.len, T_NODES * (strlen("{\"rank\":0}") + 1) - 1);
		for (uint32_t r = 0; r < T_NODES; r++) {
			snprintf(row, sizeof(row), "{\"rank\":%u}", r);
			assert_non_null(strstr(t_text(&h), row));
		}
		t_forget_heard(&h);
	}
	assert_nobody_inside(t);
}

static void telemetry_has_numbers_and_no_text(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t_ask_all(t, 0, COP_OP_TELEMETRY, "", &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(t_counted(&h), T_ALL);
	assert_int_equal(h.sum.text.len, 0);
	assert_int_equal(h.sum.machine.cpu_us, T_ALL);
	assert_int_equal(h.sum.machine.cpu_us_most, T_NODES);
	assert_int_equal(h.sum.machine.resident_bytes, T_ALL - T_NODES);
	assert_int_equal(h.sum.machine.resident_bytes_most, T_NODES - 1);
	assert_int_equal(h.sum.hosts.of[COP_MACHINE_CPU_PERCENT].hosts, T_NODES);
	assert_int_equal(h.sum.hosts.of[COP_MACHINE_CPU_PERCENT].sum, T_ALL);
	assert_int_equal(h.sum.hosts.of[COP_MACHINE_CPU_PERCENT].most, T_NODES);
	assert_int_equal(h.sum.hosts.of[COP_MACHINE_MEMORY_MB].hosts, 0);
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void the_table_has_a_line_of_each(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;
	unsigned lines = 1;
	char row[16];

	t_ask_all(t, 4, COP_OP_TABLE, "", &h);
	t_run(t);
	for (const char *c = t_text(&h); *c; c++)
		lines += *c == '\n';
	assert_int_equal(lines, T_NODES);
	for (uint32_t r = 0; r < T_NODES; r++) {
		snprintf(row, sizeof(row), "row %u", r);
		assert_non_null(strstr(t_text(&h), row));
	}
	assert_int_equal(t_counted(&h), T_ALL);
	t_forget_heard(&h);
}

static void one_node_alone_is_asked_alone(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t_ask_here(t, 1, COP_OP_STATS, "", false, &h);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 1);
	assert_string_equal(t_text(&h), "{\"rank\":1}");
	t_forget_heard(&h);
	t_ask_here(t, 1, COP_OP_STATS, "", true, &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, 3);
	assert_int_equal(t_counted(&h), 2 + 4 + 5);
	t_forget_heard(&h);
	t_ask_here(t, 1, COP_OP_SNAPSHOT, "", false, &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, 1);
	assert_int_equal(t->node[1].reports, 1);
	assert_int_equal(t->node[3].reports, 0);
	t_forget_heard(&h);
}

/* ---- invalidate ---- */

static void a_path_is_forgotten_above_before_below(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[1].holds = true;
	t_ask_all(t, 6, COP_OP_INVALIDATE, "some/path", &h);
	t_run(t);
	assert_int_equal(h.times, 0);
	assert_string_equal(t->node[6].forgot, "some/path");
	/* Its kernel still has the path, so a child would get the old version again from there. */
	assert_string_equal(t->node[1].forgot, "some/path");
	assert_int_equal(t->node[3].asked + t->node[4].asked, 0);
	t->node[1].then(t->node[1].then_arg);
	t_run(t);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES);
	for (uint32_t r = 1; r < T_NODES; r++)
		assert_true(t->node[r].forgot_at > t->node[(r - 1) / 2].forgot_at);
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void a_node_that_cannot_tell_its_kernel_fails_but_not_those_below(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[1].starved = true;
	t->node[4].starved = true;
	t_ask_all(t, 0, COP_OP_INVALIDATE, "some/path", &h);
	t_run(t);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 2);
	assert_int_equal(h.sum.failed, 2);
	assert_int_equal(h.sum.missing, 2);
	assert_non_null(strstr(t_text(&h),
		"host4 (rank 4) failed: it has no memory left to make its kernel forget this; ask again\n"
		"host1 (rank 1) failed: it has no memory left"));
	assert_true(t->node[3].forgot_at > 0);
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void raw_done(void *arg, const struct cop_rpc_result *r)
{
	*(int *)arg = r->answered ? r->status : 1;
}

static int ask_raw(struct t_tree *t, uint8_t op, const void *payload, size_t len)
{
	struct cop_rpc_call call = {
		.rank = 5, .op = op, .payload = payload, .payload_len = len, .done = raw_done};
	int status = 2;

	call.arg = &status;
	cop_rpc_call(t->node[2].rpc, &call);
	t_run(t);
	return status;
}

static void an_argument_must_be_text(void **state)
{
	char text[COP_OP_ARGUMENT_SIZE];
	struct t_tree *t = *state;

	memset(text, 'x', sizeof(text));
	assert_int_equal(ask_raw(t, COP_OP_INVALIDATE, text, sizeof(text)), -EINVAL);
	assert_int_equal(ask_raw(t, COP_OP_INVALIDATE, "a\0b", 3), -EINVAL);
	assert_int_equal(t->node[5].forgot_at, 0);
	assert_int_equal(ask_raw(t, COP_OP_INVALIDATE, text, sizeof(text) - 1), 0);
	assert_int_equal(t->node[5].forgot_at, 1);
}

/* ---- nodes that do not answer ---- */

static void the_children_of_a_dead_node_are_asked_in_its_place(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t_cut(t, 1);
	t_ask_all(t, 5, COP_OP_STATS, "", &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.dead, 1);
	assert_int_equal(h.sum.missing, 1);
	assert_int_equal(h.sum.lost[0], 1);
	assert_int_equal(t_counted(&h), T_ALL - 2);
	assert_non_null(strstr(t_text(&h), "{\"rank\":1,\"host\":\"host1\",\"dead\":true}"));
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void without_the_root_a_node_asks_the_tree_and_meets_itself(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t_cut(t, 0);
	t_ask_all(t, 1, COP_OP_STATS, "", &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.lost[0], 0);
	assert_int_equal(t_counted(&h), T_ALL - 1);
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void dead_refused_and_failed_nodes_are_distinguished_and_named(void **state)
{
	struct cop_buf said = {0};
	struct t_tree *t;
	struct t_heard h;

	/* One of the leaves is dead, one was started with other options, and one fails. */
	t_free(*state);
	*state = t = t_new_with(4);
	t_cut(t, 3);
	t->node[5].status = -EIO;
	t_ask_all(t, 0, COP_OP_SNAPSHOT, "", &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, 4);
	assert_int_equal(h.sum.dead, 1);
	assert_int_equal(h.sum.refused, 1);
	assert_int_equal(h.sum.failed, 1);
	assert_int_equal(h.sum.missing, 3);
	cop_op_say_silent(t->node[0].op, &h.sum, &said);
	assert_string_equal(said.data, "host3 (rank 3) did not answer\n");
	cop_buf_free(&said);
	assert_non_null(
		strstr(t_text(&h), "host4 (rank 4) refused: it was started with other options"));
	assert_non_null(strstr(t_text(&h), "host5 (rank 5) failed: Input/output error"));
	assert_int_equal((1 << h.sum.lost[0]) | (1 << h.sum.lost[1]) | (1 << h.sum.lost[2]), 0x38);
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void a_node_that_cannot_prove_the_secret_is_passed_over(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->flip_from = "n2";
	t->flip_type = COP_FRAME_WELCOME;
	t_ask_all(t, 0, COP_OP_TABLE, "", &h);
	t_advance(t, 2 * T_TIMEOUT_MS);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.refused, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_non_null(strstr(t_text(&h), "it holds another secret"));
	assert_int_equal(t->node[2].asked, 0);
	assert_int_equal(t->node[5].asked, 1);
	t_forget_heard(&h);
}

static void with_a_node_that_fails_those_below_it_are_missing(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[1].status = -EIO;
	t_ask_all(t, 0, COP_OP_STATS, "", &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, 4);
	assert_int_equal(h.sum.failed, 1);
	assert_int_equal(h.sum.missing, 3);
	assert_int_equal(h.sum.lost[0], 1);
	assert_int_equal(h.sum.lost[1], 3);
	assert_int_equal(h.sum.lost[2], 4);
	assert_non_null(strstr(t_text(&h),
		"{\"rank\":1,\"host\":\"host1\",\"failed\":true,\"reason\":\"Input/output error\",\"below\":2}"));
	t_forget_heard(&h);
}

static void a_node_that_ends_or_is_full_has_asked_nobody_below(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	cop_gate_close(&t->node[1].gate);
	t->node[2].status = -EMFILE;
	t->node[2].unable = true;
	t_ask_all(t, 0, COP_OP_RESET, "once", &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, T_NODES - 2);
	assert_int_equal(h.sum.failed, 2);
	assert_int_equal(h.sum.missing, 2);
	assert_non_null(strstr(t_text(&h), "host1 (rank 1) failed: it is ending"));
	assert_non_null(strstr(t_text(&h), "host2 (rank 2) failed: Too many open files"));
	/* It does nothing, so its children are asked instead, each once. */
	assert_int_equal(t->node[1].resets + t->node[2].resets, 0);
	for (uint32_t r = 3; r < T_NODES; r++) {
		assert_int_equal(t->node[r].asked, 1);
		assert_int_equal(t->node[r].resets, 1);
	}
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

/* ---- invalid answers ---- */

static void a_damaged_answer_is_asked_for_again(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[2].body = "no answer";
	t->node[2].body_len = 9;
	t->node[2].bodies = 2;
	t_ask_all(t, 0, COP_OP_STATS, "", &h);
	t_run(t);
	assert_int_equal(t->node[2].asked, 3);
	assert_int_equal(h.sum.nodes, T_NODES);
	assert_int_equal(h.sum.missing, 0);
	t_forget_heard(&h);
	t->node[2].bodies = 3;
	t_ask_all(t, 0, COP_OP_STATS, "", &h);
	t_run(t);
	assert_int_equal(t->node[2].asked, 6);
	assert_int_equal(h.sum.nodes, 4);
	assert_int_equal(h.sum.failed, 1);
	assert_int_equal(h.sum.missing, 3);
	assert_non_null(strstr(t_text(&h), "its answer was damaged"));
	t_forget_heard(&h);
}

static void an_answer_that_is_too_long_is_a_failure(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;
	char *body = calloc(1, COP_RPC_BODY_MAX + 1);

	assert_non_null(body);
	t->node[6].body = body;
	t->node[6].body_len = COP_RPC_BODY_MAX + 1;
	t->node[6].bodies = 1;
	t_ask_all(t, 0, COP_OP_TABLE, "", &h);
	t_run(t);
	assert_int_equal(h.times, 1);
	assert_int_equal(h.sum.nodes, T_NODES - 1);
	assert_int_equal(h.sum.failed, 1);
	assert_int_equal(h.sum.lost[0], 6);
	assert_non_null(strstr(t_text(&h), "its answer is too long"));
	t_forget_heard(&h);
	free(body);
}

/* ---- snapshot and reset ---- */

static void each_node_writes_and_says_why_it_cannot(void **state)
{
	struct t_tree *t = *state;
	struct t_heard h;

	t->node[1].cannot_write = "the disk is full";
	t->node[4].cannot_write = ""; /* it writes no reports */
	cop_defer_run(&t->node[5].deferred, true);
	t_ask_all(t, 2, COP_OP_SNAPSHOT, "", &h);
	t_run(t);
	assert_int_equal(h.sum.nodes, T_NODES - 3);
	assert_int_equal(h.sum.missing, 0);
	assert_non_null(strstr(t_text(&h), "host1: the disk is full"));
	assert_non_null(strstr(t_text(&h), "host5: is stopping, or has too much to write already"));
	assert_null(strstr(t_text(&h), "host4"));
	for (uint32_t r = 0; r < T_NODES; r++) {
		assert_int_equal(t->node[r].reports, r != 5);
		assert_int_equal(t->node[r].resets, 0);
	}
	t_forget_heard(&h);
	assert_nobody_inside(t);
}

static void a_reset_that_comes_twice_is_done_once(void **state)
{
	struct t_tree *t = *state;

	assert_int_equal(ask_raw(t, COP_OP_RESET, "0.1", 3), 0);
	assert_int_equal(ask_raw(t, COP_OP_RESET, "0.1", 3), 0);
	assert_int_equal(t->node[5].resets, 1);
	assert_int_equal(ask_raw(t, COP_OP_RESET, "0.2", 3), 0);
	assert_int_equal(t->node[5].resets, 2);
	/* A node that failed does not count as done. */
	t->node[5].cannot_write = "the disk is full";
	assert_int_equal(ask_raw(t, COP_OP_RESET, "0.3", 3), 0);
	assert_int_equal(ask_raw(t, COP_OP_RESET, "0.3", 3), 0);
	assert_int_equal(t->node[5].resets, 4);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(all_ranks_are_counted_once_whoever_asks),
		T(telemetry_has_numbers_and_no_text),
		T(the_table_has_a_line_of_each),
		T(one_node_alone_is_asked_alone),
		T(a_path_is_forgotten_above_before_below),
		T(a_node_that_cannot_tell_its_kernel_fails_but_not_those_below),
		T(an_argument_must_be_text),
		T(the_children_of_a_dead_node_are_asked_in_its_place),
		T(without_the_root_a_node_asks_the_tree_and_meets_itself),
		T(dead_refused_and_failed_nodes_are_distinguished_and_named),
		T(a_node_that_cannot_prove_the_secret_is_passed_over),
		T(with_a_node_that_fails_those_below_it_are_missing),
		T(a_node_that_ends_or_is_full_has_asked_nobody_below),
		T(a_damaged_answer_is_asked_for_again),
		T(an_answer_that_is_too_long_is_a_failure),
		T(each_node_writes_and_says_why_it_cannot),
		T(a_reset_that_comes_twice_is_done_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
