/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "status/status.h"

static struct cop_stats stats;

static int setup(void **state)
{
	static struct cop_status s;

	stats = (struct cop_stats){0};
	s = (struct cop_status){.rank = 3,
		.nodes = 8,
		.ready = true,
		.host = "n3",
		.mountpoint = "/tmp/\"m\"",
		.source = "/",
		.started_ns = cop_now_ns(),
		.stats = &stats,
		.cache = cop_cache_new(COP_MIB, &stats),
		.origin = cop_origin_fake_new()};
	*state = &s;
	return s.cache && s.origin ? 0 : -1;
}

static int teardown(void **state)
{
	struct cop_status *s = *state;

	cop_origin_close(s->origin);
	cop_cache_free(s->cache);
	return 0;
}

/* Before it has a network, a mount and a parent. */
static void a_node_that_starts_says_what_it_has(void **state)
{
	struct cop_status *s = *state;
	struct cop_buf out = {0};
	char head[128];

	snprintf(head, sizeof(head),
		"{\"rank\":3,\"nodes\":8,\"ready\":true,\"pid\":%d,\"host\":\"n3\",",
		(int)getpid());
	cop_status_json(s, &out);
	assert_false(out.failed);
	assert_int_equal(strncmp(out.data, head, strlen(head)), 0);
	assert_non_null(strstr(out.data, "\"mountpoint\":\"/tmp/\\\"m\\\"\",\"source\":\"/\","));
	assert_non_null(strstr(out.data, "\"provider\":\"none\",\"network\":\"none\","));
	assert_non_null(strstr(out.data, "\"parent\":null,\"tables\":{"));
	assert_non_null(strstr(out.data, "\"limit_bytes\":1048576,"));
	assert_null(strstr(out.data, "\"peers\""));
	assert_null(strstr(out.data, "\"kernel\""));
	cop_buf_free(&out);
}

static void the_table_of_one_node_has_what_it_counted(void **state)
{
	struct cop_status *s = *state;
	struct cop_buf out = {0};

	cop_stats_add(&stats, COP_FABRIC_REJECTED, 41);
	cop_status_table(s, &out);
	assert_int_equal(strncmp(out.data, "rank 3 of 8 on n3, pid ", 23), 0);
	assert_non_null(strstr(out.data, "\nbudget     0 B used of 1.0 MiB; 0 flights"));
	assert_non_null(strstr(out.data, "41"));
	cop_buf_free(&out);
}

static void the_rows_of_all_nodes_are_in_order_of_their_ranks(void **state)
{
	char rows[] = "     10  b\n      2  c\n    100  a";
	struct cop_buf out = {0};

	(void)state;
	cop_status_table_rows(rows, &out);
	assert_string_equal(out.data, "      2  c\n     10  b\n    100  a\n");
	cop_buf_free(&out);
}

static void a_row_stands_below_the_head(void **state)
{
	struct cop_status *s = *state;
	struct cop_buf head = {0}, row = {0};

	cop_stats_add(&stats, COP_FABRIC_REQUESTS_SENT, 1234567);
	cop_status_table_head(&head);
	cop_status_table_row(s, &row);
	assert_int_equal(head.len, row.len + 1);
	assert_int_equal(strstr(head.data, "to parent") + strlen("to parent") - head.data,
		strstr(row.data, "1234567") + 7 - row.data);
	cop_buf_free(&head);
	cop_buf_free(&row);
}

static void the_sums_count_who_did_not_answer(void **state)
{
	static const char head[] =
		"{\"nodes\":4,\"dead\":1,\"refused\":2,\"failed\":3,\"missing\":9,\"cut\":5,\"tables\":{";
	struct cop_treeop_sum all = {
		.nodes = 4, .dead = 1, .refused = 2, .failed = 3, .missing = 9, .cut = 5};
	struct cop_buf out = {0};

	(void)state;
	cop_status_total_json(&all, &out);
	assert_int_equal(strncmp(out.data, head, sizeof(head) - 1), 0);
	cop_buf_free(&out);
	cop_status_table_total(&all, &out);
	assert_non_null(
		strstr(out.data, "total  4 nodes, 1 dead, 2 refused, 3 failed, 5 not shown"));
	cop_buf_free(&out);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_node_that_starts_says_what_it_has),
		T(the_table_of_one_node_has_what_it_counted),
		T(the_rows_of_all_nodes_are_in_order_of_their_ranks),
		T(a_row_stands_below_the_head),
		T(the_sums_count_who_did_not_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
