/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>

#include "report/watch/watch_priv.h"

static int setup(void **state)
{
	*state = cop_board_new(2);
	return *state ? 0 : -1;
}

static int teardown(void **state)
{
	cop_board_free(*state);
	return 0;
}

/* ---- answers ---- */

static void begin(struct cop_buf *answer, uint32_t nodes)
{
	cop_buf_free(answer);
	cop_buf_printf(answer, "nodes %" PRIu32 "\n", nodes);
}

static void add(struct cop_buf *answer, const struct cop_nodeline *n)
{
	cop_nodeline_write(n, answer);
	cop_buf_str(answer, "\n");
}

/* A node that has run for this many seconds and counted this much in each of them. */
static void add_busy(struct cop_buf *answer, uint32_t rank, uint64_t seconds, uint64_t requests,
	uint64_t bytes, uint64_t wait_us)
{
	struct cop_nodeline n = {.rank = rank, .reason = ""};
	char host[32];

	snprintf(host, sizeof(host), "n%" PRIu32, rank);
	n.host = host;
	n.value[COP_NODELINE_UPTIME_MS] = seconds * 1000;
	n.value[COP_NODELINE_REQUESTS] = seconds * requests;
	n.value[COP_NODELINE_BYTES] = seconds * bytes;
	n.value[COP_NODELINE_WAIT_US] = seconds * wait_us;
	n.value[COP_NODELINE_ORIGIN_OPERATIONS] = seconds * rank;
	n.value[COP_NODELINE_USED_BYTES] = COP_MIB;
	n.value[COP_NODELINE_LIMIT_BYTES] = 4 * COP_MIB;
	add(answer, &n);
}

static void take(struct cop_board *b, struct cop_buf *answer)
{
	assert_false(answer->failed);
	assert_int_equal(cop_board_update(b, answer->data), 0);
	cop_buf_free(answer);
}

/* Node 2 waits most, node 1 has the most requests, node 0 the most bytes. */
static void take_three(struct cop_board *b, uint64_t seconds)
{
	struct cop_buf answer = {0};

	begin(&answer, 3);
	add_busy(&answer, 2, seconds, 10, 100, 2500000);
	add_busy(&answer, 0, seconds, 20, 2097152, 0);
	add_busy(&answer, 1, seconds, 4000, 1, 500000);
	take(b, &answer);
}

/* ---- pages, as they are without the sequences ---- */

static const char *page_of(
	struct cop_board *b, unsigned rows, unsigned columns, bool utf8, uint64_t late_ms)
{
	static char page[65536];
	struct cop_screen_frame f = {0};
	size_t len = 0;
	bool first = true;

	cop_screen_frame_begin(&f, rows, columns, utf8);
	cop_board_draw(b, late_ms, &f);
	assert_false(f.out.failed);
	assert_true(f.lines <= rows);
	for (const char *c = f.out.data; *c; c++) {
		if (*c != '\033') {
			page[len++] = *c;
			continue;
		}
		c += strcspn(c, "HmKJ");
		if (*c == 'H' && !first)
			page[len++] = '\n';
		first = false;
	}
	page[len] = '\0';
	cop_buf_free(&f.out);
	return page;
}

static void expect_order(struct cop_board *b, uint32_t first, uint32_t second, uint32_t third)
{
	assert_int_equal(b->order[0], first);
	assert_int_equal(b->order[1], second);
	assert_int_equal(b->order[2], third);
}

/* ---- tests ---- */

static void rates_are_what_a_node_grew_by_on_its_own_clock(void **state)
{
	struct cop_board *b = *state;

	take_three(b, 10);
	assert_false(b->row[1].rated);
	take_three(b, 14);
	assert_true(b->row[1].rated);
	assert_true(b->row[1].rate[RATE_REQUESTS] == 4000);
	assert_true(b->row[2].rate[RATE_WAIT] == 2.5);
	assert_true(b->row[0].rate[RATE_BYTES] == 2097152);
	assert_true(b->sums.rate[RATE_REQUESTS] == 4030);
	assert_true(b->sums.rate[RATE_WAIT] == 3);
	assert_true(b->row[1].requests[b->answers % ROW_HISTORY] == 4000);
}

static void who_waits_most_stands_first_and_keys_choose_another_order(void **state)
{
	struct cop_board *b = *state;

	take_three(b, 10);
	take_three(b, 12);
	expect_order(b, 2, 1, 0);
	assert_int_equal(cop_board_key(b, 'r'), COP_BOARD_DRAW);
	expect_order(b, 1, 0, 2);
	cop_board_key(b, 'r');
	expect_order(b, 2, 0, 1);
	cop_board_key(b, 'b');
	expect_order(b, 0, 2, 1);
	cop_board_key(b, 'o');
	expect_order(b, 2, 1, 0);
	cop_board_key(b, 'n');
	expect_order(b, 0, 1, 2);
	cop_board_key(b, 'w');
	expect_order(b, 2, 1, 0);
	cop_board_key(b, 'w');
	expect_order(b, 0, 1, 2);
}

static void nodes_are_in_order_of_rank_or_of_host(void **state)
{
	struct cop_board *b = *state;
	struct cop_buf answer = {0};

	begin(&answer, 3);
	add(&answer, &(struct cop_nodeline){.rank = 0, .host = "c", .reason = ""});
	add(&answer, &(struct cop_nodeline){.rank = 1, .host = "b", .reason = ""});
	add(&answer, &(struct cop_nodeline){.rank = 2, .host = "a", .reason = ""});
	take(b, &answer);
	cop_board_key(b, 'n');
	expect_order(b, 0, 1, 2);
	cop_board_key(b, 'n');
	expect_order(b, 2, 1, 0);
}

static void lose_node_1(struct cop_board *b)
{
	struct cop_buf answer = {0};

	begin(&answer, 3);
	add_busy(&answer, 0, 14, 20, 5, 0);
	add(&answer, &(struct cop_nodeline){
			     .rank = 1, .state = COP_NODELINE_DEAD, .host = "n1", .reason = ""});
	take(b, &answer);
}

/* Node 2 is below node 1 and was not even asked. */
static void a_dead_node_is_said_to_be_and_one_that_nothing_is_known_of(void **state)
{
	struct cop_board *b = *state;
	const char *page;

	take_three(b, 10);
	take_three(b, 12);
	lose_node_1(b);
	expect_order(b, 1, 2, 0);
	page = page_of(b, 24, 80, false, 0);
	assert_non_null(strstr(page, "copper  3 nodes, 1 dead, 1 unknown "));
	assert_non_null(strstr(page, "\n   1 n1   dead\n   2 n2   unknown: a node above"));
	cop_board_key(b, 'r');
	expect_order(b, 0, 1, 2);
}

/* It has counted less than before, and for a shorter time. */
static void a_node_that_is_back_or_was_reset_has_no_huge_rates(void **state)
{
	struct cop_board *b = *state;
	struct cop_buf answer = {0};

	take_three(b, 100);
	take_three(b, 102);
	begin(&answer, 3);
	add_busy(&answer, 0, 104, 1, 1, 0);
	add_busy(&answer, 1, 1, 4000, 1, 1);
	take(b, &answer);
	assert_true(b->row[0].rated);
	assert_true(b->row[0].rate[RATE_REQUESTS] == 0);
	assert_false(b->row[1].rated);
	lose_node_1(b);
	take_three(b, 3);
	assert_false(b->row[1].rated);
}

static void a_page_of_80_columns_has_sums_and_columns_that_line_up(void **state)
{
	struct cop_board *b = *state;
	const char *page;

	take_three(b, 10);
	take_three(b, 12);
	page = page_of(b, 12, 80, false, 0);
	assert_string_equal(page,
		"copper  3 nodes                                               by wait, every 2 s\n"
		"wait           3.00 requests on average, 0 now on 0 nodes\n"
		"requests      4.03k/s                                                          #\n"
		"bytes       2.0 MiB/s                                                          #\n"
		"rank host   wait  req/s   bytes/s stor/s   now    cached  full served/s\n"
		"   2 n2     2.50   10.0     100 B   2.00     0   1.0 MiB   25%        0\n"
		"   1 n1     0.50  4.00k       1 B   1.00     0   1.0 MiB   25%        0\n"
		"   0 n0        0   20.0   2.0 MiB      0     0   1.0 MiB   25%        0\n"
		"\n\n\n"
		"? help  q leave  w r b o n sort  p pause  + - interval  arrows          1-3 of 3");
}

static void a_narrow_low_page_has_what_matters(void **state)
{
	struct cop_board *b = *state;

	take_three(b, 10);
	take_three(b, 12);
	assert_string_equal(page_of(b, 10, 40, false, 0),
		"3 nodes               by wait, every 2 s\n"
		"wait           3.00, 0 now on 0 nodes\n"
		"requests      4.03k/s                  #\n"
		"bytes       2.0 MiB/s                  #\n"
		"rank host   wait  req/s   bytes/s stor/s\n"
		"   2 n2     2.50   10.0     100 B   2.00\n"
		"   1 n1     0.50  4.00k       1 B   1.00\n"
		"   0 n0        0   20.0   2.0 MiB      0\n"
		"\n"
		"? help  q leave                 1-3 of 3");
	assert_string_equal(page_of(b, 4, 20, false, 0), "by wait, every 2 s  \n"
							 "rank host   wait\n"
							 "   2 n2     2.50\n"
							 "? help  q l 1-1 of 3");
}

/* Down to a single character. */
static void there_is_a_page_for_every_size(void **state)
{
	struct cop_board *b = *state;

	for (unsigned rows = 1; rows < 30; rows++)
		page_of(b, rows, 80, true, 0);
	take_three(b, 10);
	for (unsigned help = 0; help < 2; help++) {
		for (unsigned rows = 1; rows < 30; rows++)
			for (unsigned columns = 1; columns < 140; columns++)
				page_of(b, rows, columns, columns % 2, 5000);
		cop_board_key(b, '?');
	}
}

static void the_charts_show_what_was_with_the_newest_at_the_right(void **state)
{
	struct cop_board *b = *state;
	struct cop_buf answer = {0};
	uint64_t total = 0;
	const char *page;

	for (uint64_t i = 0; i <= 8; i++) {
		struct cop_nodeline n = {.host = "a", .reason = ""};

		total += i;
		n.value[COP_NODELINE_UPTIME_MS] = 1000 * (i + 1);
		n.value[COP_NODELINE_REQUESTS] = total;
		begin(&answer, 1);
		add(&answer, &n);
		take(b, &answer);
	}
	page = page_of(b, 24, 120, true, 0);
	assert_non_null(strstr(page, " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588\n"));
	page = page_of(b, 24, 120, false, 0);
	assert_non_null(strstr(page, " .:-=+*%#\n"));
	/* One chart of the sums, and one of the node. */
	assert_non_null(strstr(strstr(page, ".:-=+*%#") + 1, ".:-=+*%#"));
}

static void names_and_reasons_cannot_send_sequences(void **state)
{
	struct cop_board *b = *state;
	struct cop_buf answer = {0};
	const char *page;

	begin(&answer, 2);
	add(&answer, &(struct cop_nodeline){.rank = 0, .host = "a\033]0;x\007\nb", .reason = ""});
	add(&answer, &(struct cop_nodeline){.rank = 1,
			     .state = COP_NODELINE_FAILED,
			     .host = "\xc2\x9b"
				     "2J",
			     .reason = "it said\033[2J",
			     .below = 7});
	take(b, &answer);
	page = page_of(b, 24, 132, true, 0);
	assert_non_null(strstr(page, "a\\x1b]0;x\\x07\\x0ab "));
	assert_non_null(strstr(
		page, "\\xc2\\x9b2J         failed: it said\\x1b[2J, with the 7 nodes below it\n"));
}

static void what_is_late_or_paused_is_said(void **state)
{
	struct cop_board *b = *state;

	assert_non_null(strstr(page_of(b, 24, 80, false, 0), "asking them"));
	take_three(b, 10);
	assert_non_null(strstr(page_of(b, 24, 80, false, 7900), " LATE 7 s, by wait, every 2 s\n"));
	assert_int_equal(cop_board_key(b, 'p'), COP_BOARD_ASK);
	assert_true(cop_board_is_paused(b));
	assert_non_null(strstr(page_of(b, 24, 80, false, 0), " PAUSED, by wait, every 2 s\n"));
	assert_int_equal(cop_board_key(b, ' '), COP_BOARD_ASK);
	assert_false(cop_board_is_paused(b));
}

static void the_interval_goes_up_and_down_within_its_limits(void **state)
{
	struct cop_board *b = *state;

	assert_int_equal(cop_board_key(b, '+'), COP_BOARD_ASK);
	assert_int_equal(cop_board_interval_s(b), 3);
	for (unsigned i = 0; i < 40; i++)
		cop_board_key(b, '+');
	assert_int_equal(cop_board_interval_s(b), 86400);
	for (unsigned i = 0; i < 40; i++)
		cop_board_key(b, '-');
	assert_int_equal(cop_board_interval_s(b), 1);
}

static void help_is_there_until_the_next_key(void **state)
{
	struct cop_board *b = *state;

	take_three(b, 10);
	assert_int_equal(cop_board_key(b, 'h'), COP_BOARD_DRAW);
	assert_non_null(strstr(page_of(b, 10, 40, false, 0), "q, Ctrl-C: leave"));
	assert_non_null(strstr(page_of(b, 24, 80, false, 0), "LATE      an answer is overdue"));
	assert_int_equal(cop_board_key(b, 'x'), COP_BOARD_DRAW);
	assert_null(strstr(page_of(b, 10, 40, false, 0), "Ctrl-C"));
	assert_int_equal(cop_board_key(b, 'x'), COP_BOARD_NOTHING);
	assert_int_equal(cop_board_key(b, 'q'), COP_BOARD_LEAVE);
}

static void what_is_no_answer_changes_nothing(void **state)
{
	static const char *const bad[] = {"", "nodes", "nodes 3", "nodes 0\n", "nodes -1\n",
		"nodes 1048577\n", "nodes x\n", "rank host\n"};
	struct cop_board *b = *state;
	char text[64];

	take_three(b, 10);
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		strcpy(text, bad[i]);
		assert_int_equal(cop_board_update(b, text), -EBADMSG);
	}
	assert_int_equal(b->answers, 1);
	strcpy(text, "nodes 3\nnonsense\n\n9\tdead\t0\n");
	assert_int_equal(cop_board_update(b, text), 0);
	assert_int_equal(b->sums.silent, 3);
}

static void the_last_known_is_said_in_a_few_words(void **state)
{
	struct cop_board *b = *state;
	struct cop_buf out = {0};

	cop_board_last(b, &out);
	assert_string_equal(out.data, "nothing");
	cop_buf_free(&out);
	take_three(b, 10);
	take_three(b, 12);
	cop_board_last(b, &out);
	assert_string_equal(out.data, "3 nodes, 4.03k requests per s, 2.0 MiB per s");
	cop_buf_free(&out);
}

static void the_end_of_the_tree_is_not_the_last_that_is_known_of_it(void **state)
{
	struct cop_board *b = *state;
	struct cop_buf answer = {0}, out = {0};

	take_three(b, 10);
	take_three(b, 12);
	begin(&answer, 3);
	add(&answer, &(struct cop_nodeline){.state = COP_NODELINE_FAILED,
			     .host = "n0",
			     .reason = "the node that asked it was ending",
			     .below = 2});
	take(b, &answer);
	assert_int_equal(b->sums.count[COP_NODELINE_FAILED], 1);
	assert_int_equal(b->sums.silent, 2);
	cop_board_last(b, &out);
	assert_string_equal(out.data, "3 nodes, 4.03k requests per s, 2.0 MiB per s");
	cop_buf_free(&out);
}

/* ---- many ---- */

#define MANY 10000u

static void take_many(struct cop_board *b, uint64_t seconds)
{
	struct cop_buf answer = {0};

	begin(&answer, MANY);
	for (uint32_t r = 0; r < MANY; r++)
		add_busy(&answer, MANY - 1 - r, seconds, r, r, r);
	take(b, &answer);
}

static void ten_thousand_nodes_are_scrolled_through(void **state)
{
	struct cop_board *b = *state;

	take_many(b, 1);
	take_many(b, 2);
	assert_non_null(strstr(page_of(b, 24, 80, true, 0), "    0 n0"));
	assert_non_null(strstr(page_of(b, 24, 80, true, 0), " 1-16 of 10000"));
	assert_int_equal(cop_board_key(b, COP_SCREEN_KEY_PAGE_DOWN), COP_BOARD_DRAW);
	cop_board_key(b, COP_SCREEN_KEY_DOWN);
	assert_non_null(strstr(page_of(b, 24, 80, true, 0), " 18-33 of 10000"));
	cop_board_key(b, COP_SCREEN_KEY_END);
	assert_non_null(strstr(page_of(b, 24, 80, true, 0), " 9985-10000 of 10000"));
	cop_board_key(b, COP_SCREEN_KEY_PAGE_DOWN);
	cop_board_key(b, COP_SCREEN_KEY_PAGE_UP);
	cop_board_key(b, COP_SCREEN_KEY_UP);
	assert_non_null(strstr(page_of(b, 24, 80, true, 0), " 9968-9983 of 10000"));
	/* A larger terminal shows more of them, and nothing past the last. */
	cop_board_key(b, COP_SCREEN_KEY_END);
	assert_non_null(strstr(page_of(b, 108, 80, true, 0), " 9901-10000 of 10000"));
	cop_board_key(b, COP_SCREEN_KEY_HOME);
	assert_non_null(strstr(page_of(b, 24, 80, true, 0), " 1-16 of 10000"));
}

/* The bytes of memory in use; 0 if unknown. */
static size_t in_use(void)
{
#if __GLIBC_PREREQ(2, 33)
	return mallinfo2().uordblks + mallinfo2().hblkhd;
#else
	return 0;
#endif
}

static void memory_is_bounded_by_the_nodes_and_does_not_grow_with_time(void **state)
{
	struct cop_board *b = *state;
	size_t before = in_use(), first;

	take_many(b, 1);
	first = in_use();
	/* A sanitizer's allocator does not report it, so that a few times show as much. */
	for (uint64_t i = 2; i < 300; i += before ? 12 : 149)
		take_many(b, i);
	if (before)
		assert_in_range(first - before, 1, 450 * MANY);
	assert_in_range(in_use(), 0, first + 65536);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(rates_are_what_a_node_grew_by_on_its_own_clock),
		T(who_waits_most_stands_first_and_keys_choose_another_order),
		T(nodes_are_in_order_of_rank_or_of_host),
		T(a_dead_node_is_said_to_be_and_one_that_nothing_is_known_of),
		T(a_node_that_is_back_or_was_reset_has_no_huge_rates),
		T(a_page_of_80_columns_has_sums_and_columns_that_line_up),
		T(a_narrow_low_page_has_what_matters),
		T(there_is_a_page_for_every_size),
		T(the_charts_show_what_was_with_the_newest_at_the_right),
		T(names_and_reasons_cannot_send_sequences),
		T(what_is_late_or_paused_is_said),
		T(the_interval_goes_up_and_down_within_its_limits),
		T(help_is_there_until_the_next_key),
		T(what_is_no_answer_changes_nothing),
		T(the_last_known_is_said_in_a_few_words),
		T(the_end_of_the_tree_is_not_the_last_that_is_known_of_it),
		T(ten_thousand_nodes_are_scrolled_through),
		T(memory_is_bounded_by_the_nodes_and_does_not_grow_with_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
