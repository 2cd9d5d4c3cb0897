/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tree/op/op.h"
#include "node/ctl/ctl.h"

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

/* The node has no network, mount or parent yet. */
static void a_starting_node_reports_what_it_has(void **state)
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

static void add_counters(const struct cop_stats *s, struct cop_buf *want)
{
	for (unsigned c = 0; c < COP_COUNTERS; c++) {
		const char *group = cop_counter_group(c);
		bool first = !c || strcmp(group, cop_counter_group(c - 1)) != 0;

		if (first)
			cop_buf_printf(want, "%s\"%s\":{", c ? "}," : "", group);
		cop_buf_printf(want, "%s\"%s\":%" PRIu64, first ? "" : ",", cop_counter_name(c),
			cop_stats_get(s, c));
	}
	cop_buf_str(want, "}");
}

static uint64_t standing_clock(void)
{
	return 5 * COP_NS_PER_S;
}

/* Scripts split the object at commas and colons. */
static void each_byte_of_the_object_of_a_node_is_known(void **state)
{
	struct cop_status *s = *state;
	struct cop_buf out = {0}, want = {0};

	cop_stats_add(&stats, COP_FUSE_LOOKUP, 12);
	s->started_ns = 2 * COP_NS_PER_S;
	cop_clocks_for_test(standing_clock, NULL);
	cop_status_json(s, &out);
	cop_clocks_for_test(NULL, NULL);
	cop_buf_printf(&want,
		"{\"rank\":3,\"nodes\":8,\"ready\":true,\"pid\":%d,\"host\":\"n3\",\"version\":\"%s\","
		"\"mountpoint\":\"/tmp/\\\"m\\\"\",\"source\":\"/\",\"provider\":\"none\","
		"\"network\":\"none\",\"cpus\":\"",
		(int)getpid(), cop_version);
	cop_cpus_list(&want);
	cop_buf_str(&want,
		"\",\"uptime_ms\":3000,\"parent\":null,"
		"\"tables\":{\"data\":{\"bytes\":0,\"entries\":0},\"tree\":{\"bytes\":0,\"entries\":0},"
		"\"metadata\":{\"bytes\":0,\"entries\":0}},"
		"\"budget\":{\"limit_bytes\":1048576,\"used_bytes\":0,\"remaining_bytes\":1048576,\"home_bytes\":0,\"spill_bytes\":0,\"spill_limit_bytes\":0},");
	add_counters(&stats, &want);
	cop_buf_str(&want,
		",\"prefetching\":{\"state\":\"off\",\"why\":null,\"items\":0,\"listings\":0,\"files\":0},"
		"\"waiting\":{\"flights\":0,\"for_room\":0,\"origin_queued\":0,\"origin_running\":0,"
		"\"oldest\":[]}}");
	assert_string_equal(out.data, want.data);
	cop_buf_free(&out);
	cop_buf_free(&want);
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

static void the_table_says_what_is_waited_for_the_oldest_first(void **state)
{
	struct cop_status *s = *state;
	struct cop_buf out = {0};
	struct cop_obj *obj[8];
	char name[8][32];

	for (int i = 0; i < 8; i++) {
		struct cop_key key = {.table = COP_TABLE_DATA, .path = name[i], .index = 2};

		snprintf(name[i], sizeof(name[i]), "lib/late%d\n", i);
		key.path_len = strlen(name[i]);
		assert_int_equal(cop_cache_find(s->cache, &key, NULL, &obj[i]), COP_FOUND_LEAD);
		usleep(2000);
	}
	cop_status_table(s, &out);
	assert_non_null(strstr(out.data, "\nwaits      0."));
	assert_non_null(strstr(out.data, " s for /lib/late0"));
	assert_non_null(strstr(out.data, "? (data 2), 0 waiters, from the storage\n"));
	assert_true(strstr(out.data, "late0") < strstr(out.data, "late4"));
	assert_null(strstr(out.data, "late5"));
	assert_non_null(strstr(out.data, "\nstorage    0 operations run"));
	cop_buf_free(&out);
	for (int i = 0; i < 8; i++)
		cop_cache_complete(s->cache, obj[i], &(struct cop_completion){.rc = -EIO});
}

static void add_line(struct cop_op_sum *all, const struct cop_nodeline *n)
{
	cop_nodeline_write(n, &all->text);
	cop_buf_str(&all->text, "\n");
}

static void the_rows_of_all_nodes_are_in_order_of_their_ranks(void **state)
{
	struct cop_op_sum all = {0};
	struct cop_buf out = {0};

	(void)state;
	add_line(&all, &(struct cop_nodeline){.rank = 10, .host = "b", .reason = ""});
	add_line(&all, &(struct cop_nodeline){
			       2, COP_NODELINE_FAILED, "c", {0}, "its answer is too long", 2});
	cop_buf_str(&all.text, "nonsense\n");
	add_line(&all,
		&(struct cop_nodeline){.rank = 100, COP_NODELINE_DEAD, .host = "a", .reason = ""});
	cop_status_all_table(&all, &out);
	assert_non_null(strstr(out.data,
		"  rejected    waits\n"
		"      2  c                        failed: its answer is too long, with the 2 nodes below it\n"
		"     10  b                               0 B    0%            0            0            0          0         0         0        -\n"
		"    100  a                        dead\n"
		"  total  0 nodes "));
	cop_op_sum_free(&all);
	cop_buf_free(&out);
}

static void a_row_says_what_the_node_waits_for(void **state)
{
	struct cop_status *s = *state;
	struct cop_op_sum all = {0};
	struct cop_buf out = {0};
	struct cop_key key = {.table = COP_TABLE_METADATA, .path = "lib/late", .path_len = 8};
	uint64_t began = cop_now_ms();
	struct cop_obj *obj;
	bool at_once;

	assert_int_equal(cop_cache_find(s->cache, &key, NULL, &obj), COP_FOUND_LEAD);
	cop_status_line(s, &all.text);
	at_once = cop_now_ms() - began < 100; /* a shorter wait is not shown */
	cop_buf_str(&all.text, "\n");
	usleep(150000);
	cop_status_line(s, &all.text);
	cop_status_all_table(&all, &out);
	assert_true(!at_once || strstr(out.data, "  0         0         0        -\n"));
	assert_non_null(
		strstr(out.data, "s  /lib/late (metadata 0), 0 waiters, from the storage\n"));
	cop_cache_complete(s->cache, obj, &(struct cop_completion){.rc = -EIO});
	cop_op_sum_free(&all);
	cop_buf_free(&out);
}

static void the_table_names_nodes_that_were_silent(void **state)
{
	struct cop_op_sum all = {0};
	struct cop_buf out = {0};
	struct cop_nodeline n = {.host = "b", .reason = ""};

	(void)state;
	add_line(&all, &(struct cop_nodeline){.rank = 3, .host = "slow", .reason = ""});
	n.value[COP_NODELINE_LAGGED] = 4;
	for (n.rank = 10; n.rank < 20; n.rank++)
		add_line(&all, &n);
	n.rank = 5;
	n.value[COP_NODELINE_LAGGED] = 1;
	add_line(&all, &n);
	cop_status_all_table(&all, &out);
	assert_non_null(strstr(out.data,
		"\nrank 0 was silent; others were asked by rank 5\n"
		"rank 3 (slow) was silent; others were asked by rank 10, rank 11,"
		" rank 12, rank 13, rank 14, rank 15, rank 16, rank 17 and 2 more\n"));
	cop_op_sum_free(&all);
	cop_buf_free(&out);
}

static void a_row_lines_up_with_the_head(void **state)
{
	struct cop_status *s = *state;
	struct cop_op_sum all = {0};
	struct cop_buf table = {0};
	char *row, *total;

	cop_stats_add(&stats, COP_FABRIC_REQUESTS_SENT, 1234567);
	cop_status_line(s, &all.text);
	cop_status_all_table(&all, &table);
	row = strchr(table.data, '\n') + 1;
	total = strchr(row, '\n') + 1;
	assert_int_equal(strncmp(row, "      3  n3 ", 12), 0);
	assert_int_equal(row - table.data, total - row);
	assert_int_equal(strstr(table.data, "to parent") + strlen("to parent") - table.data,
		strstr(row, "1234567") + 7 - row);
	cop_op_sum_free(&all);
	cop_buf_free(&table);
}

static void without_an_answer_the_list_of_nodes_is_empty(void **state)
{
	struct cop_op_sum none = {0};
	struct cop_buf out = {0};

	(void)state;
	cop_status_all_json(&none, &out);
	assert_ptr_equal(strstr(out.data, "{\"nodes\":[],\"total\":{\"nodes\":0,"), out.data);
	cop_buf_free(&out);
}

static void the_sums_count_nodes_that_did_not_answer(void **state)
{
	struct cop_op_sum all = {.nodes = 4,
		.dead = 1,
		.refused = 2,
		.failed = 3,
		.missing = 9,
		.cut = 5,
		.usage = {.table = {[COP_TABLE_DATA] = {.bytes = 70, .entries = 7}},
			.limit_bytes = 60,
			.used_bytes = 70}};
	struct cop_buf out = {0}, want = {0};

	(void)state;
	cop_stats_add(&all.stats, COP_ORIGIN_OPERATIONS, UINT64_MAX);
	cop_buf_str(&all.text, "{\"rank\":0},{\"rank\":1}");
	cop_buf_str(&want,
		"{\"nodes\":[{\"rank\":0},{\"rank\":1}],\"total\":{\"nodes\":4,\"dead\":1,\"refused\":2,\"failed\":3,\"missing\":9,\"cut\":5,"
		"\"tables\":{\"data\":{\"bytes\":70,\"entries\":7},\"tree\":{\"bytes\":0,\"entries\":0},"
		"\"metadata\":{\"bytes\":0,\"entries\":0}},"
		"\"budget\":{\"limit_bytes\":60,\"used_bytes\":70,\"remaining_bytes\":0,\"home_bytes\":0,\"spill_bytes\":0,\"spill_limit_bytes\":0},");
	add_counters(&all.stats, &want);
	cop_buf_str(&want, "}}");
	cop_status_all_json(&all, &out);
	assert_string_equal(out.data, want.data);
	cop_buf_free(&want);
	cop_buf_free(&out);
	cop_status_all_table(&all, &out);
	assert_non_null(
		strstr(out.data, "total  4 nodes, 1 dead, 2 refused, 3 failed, 5 not shown"));
	cop_op_sum_free(&all);
	cop_buf_free(&out);
}

/* A counter that has fallen was reset in between. */
static void a_watched_counter_has_its_growth_beside_it(void **state)
{
	struct cop_stats before = {0};
	struct cop_status_watch w = {.now = &stats, .elapsed_ms = 2000};
	struct cop_buf out = {0};

	(void)state;
	cop_stats_add(&stats, COP_FUSE_LOOKUP, 41);
	cop_stats_add(&stats, COP_FUSE_READ, 7);
	cop_stats_add(&stats, COP_FABRIC_RETRIES, 3);
	cop_stats_add(&before, COP_FUSE_LOOKUP, 10);
	cop_stats_add(&before, COP_FABRIC_RETRIES, 9);
	cop_status_table_watched(&w, &out);
	assert_non_null(
		strstr(out.data, "fuse\n  lookup                         41                 "));
	assert_null(strstr(out.data, "/s "));
	cop_buf_free(&out);
	w.before = &before;
	cop_status_table_watched(&w, &out);
	assert_non_null(
		strstr(out.data, "fuse\n  lookup                         41         15.5/s  "));
	assert_non_null(strstr(out.data, "\n  read                            7          3.5/s  "));
	assert_non_null(strstr(out.data, "\n  retries                         3          0.0/s  "));
	cop_buf_free(&out);
}

/* The columns stay aligned whatever the hosts are called. */
static void the_growth_of_the_sums_stands_below_them(void **state)
{
	struct cop_op_sum all = {.nodes = 2};
	struct cop_stats before = {0};
	struct cop_status_watch w = {.now = &all.stats, .elapsed_ms = 500};
	struct cop_buf out = {0};
	const char *total, *rates;

	(void)state;
	add_line(&all, &(struct cop_nodeline){.host = "total", .reason = "1 2 3 4 5 6"});
	cop_stats_add(&all.stats, COP_FABRIC_REJECTED, 90);
	cop_stats_add(&before, COP_FABRIC_REJECTED, 40);
	cop_stats_add(&all.stats, COP_FUSE_LOOKUP, 6);
	cop_status_all_table(&all, &out);
	total = strstr(out.data, "\n  total  2 nodes") + 1;
	cop_status_all_watched(&w, &out);
	assert_string_equal(strchr(total, '\n'), "\n");
	w.before = &before;
	cop_status_all_watched(&w, &out);
	total = strstr(out.data, "\n  total  2 nodes") + 1;
	rates = strchr(total, '\n') + 1;
	assert_string_equal(rates,
		"  per s                                                    12.0          0.0"
		"          0.0        0.0       0.0     100.0\n");
	assert_int_equal(strlen(rates), rates - total);
	cop_op_sum_free(&all);
	cop_buf_free(&out);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_starting_node_reports_what_it_has),
		T(each_byte_of_the_object_of_a_node_is_known),
		T(the_table_of_one_node_has_what_it_counted),
		T(the_table_says_what_is_waited_for_the_oldest_first),
		T(the_rows_of_all_nodes_are_in_order_of_their_ranks),
		T(a_row_says_what_the_node_waits_for),
		T(the_table_names_nodes_that_were_silent),
		T(a_row_lines_up_with_the_head),
		T(without_an_answer_the_list_of_nodes_is_empty),
		T(the_sums_count_nodes_that_did_not_answer),
		T(a_watched_counter_has_its_growth_beside_it),
		T(the_growth_of_the_sums_stands_below_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
