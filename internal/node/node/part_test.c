/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "job/dir/dir.h"
#include "node/node/programs.h"
#include "node/node/part_priv.h"

/* A lone node that has not mounted yet. */
struct node {
	struct cop_conf conf;
	struct cop_job_hosts hosts;
	struct cop_job_secret secret;
	struct cop_topo topo;
	struct cop_record record;
	struct cop_stats stats;
	struct cop_cache *cache;
	struct cop_origin *origin;
	struct cop_rpc *rpc;
	struct cop_follow *follow; /* NULL */
	struct cop_tally *tally;
	struct cop_telemetry *telemetry;
	struct cop_gate gate;
	struct cop_waker waker;
	struct cop_defer deferred;
	struct cop_start *join;
	struct cop_programs *programs;
	struct cop_buf environment;
	struct cop_part *part;
	unsigned forgot;
	struct cop_buf told;
};

static void ignore(void *ctx)
{
	(void)ctx;
}

static int setup(void **state)
{
	struct node *n = calloc(1, sizeof(*n));
	struct cop_part_conf conf = {.user_ns = -1};
	struct cop_start_conf join = {.hosts = &n->hosts, .wake = ignore, .barrier_ended = ignore};
	struct cop_origin_conf origin = {.source = "/", .max_ops = 1, .stats = &n->stats};
	struct cop_tally_conf tally = {
		.job = {.job_dir = "", .source = "/src"}, .conf = &n->conf, .stats = &n->stats};
	struct cop_err err;

	if (cop_waker_init(&n->waker, -1, &err) || cop_origin_open(&origin, &n->origin, &err) ||
		cop_tally_new(&tally, &n->tally, &err))
		return -1;
	n->telemetry = cop_telemetry_new(cop_now_ns());
	n->topo = (struct cop_topo){.nodes = 1, .fanout = 2, .trees = 1};
	n->cache = cop_cache_new(COP_MIB, &n->stats);
	cop_gate_init(&n->gate);
	cop_gate_open(&n->gate);
	cop_defer_init(&n->deferred, cop_waker_wake, &n->waker);
	join.topo = n->topo;
	n->join = cop_start_new(&join);
	conf.status = (struct cop_status){.nodes = 1,
		.host = "localhost",
		.mountpoint = "/mnt",
		.source = "/src",
		.stats = &n->stats,
		.cache = n->cache,
		.origin = n->origin};
	n->record = (struct cop_record){.conf = &n->conf,
		.job_dir = "",
		.source = "/src",
		.hosts = &n->hosts,
		.secret = &n->secret,
		.topo = n->topo};
	conf.record = &n->record;
	conf.stats = &n->stats;
	conf.rpc = &n->rpc;
	conf.follow = &n->follow;
	conf.programs = n->programs = cop_programs_new(0);
	conf.job_dir = "/job";
	conf.environment = &n->environment;
	conf.tally = n->tally;
	conf.telemetry = n->telemetry;
	conf.join = n->join;
	conf.gate = &n->gate;
	conf.deferred = &n->deferred;
	conf.waker = &n->waker;
	n->part = cop_part_new(&conf);
	*state = n;
	return n->part ? 0 : -1;
}

static int teardown(void **state)
{
	struct node *n = *state;

	cop_part_free(n->part);
	cop_programs_free(n->programs);
	cop_telemetry_free(n->telemetry);
	cop_tally_free(n->tally);
	cop_start_free(n->join);
	cop_defer_fini(&n->deferred);
	cop_gate_fini(&n->gate);
	cop_origin_close(n->origin);
	cop_cache_free(n->cache);
	cop_waker_fini(&n->waker);
	cop_buf_free(&n->told);
	free(n);
	return 0;
}

static void forgotten(void *arg)
{
	struct node *n = arg;

	n->forgot++;
}

static void an_invalidation_may_come_before_there_is_anything_to_forget(void **state)
{
	struct node *n = *state;

	assert_int_equal(cop_part_forget(n->part, "some/path", forgotten, n), 0);
	assert_int_equal(n->forgot, 1);
	/* The mount may be starting at this moment, and will be invalidated later. */
	assert_true(n->part->forgot_early);
	assert_int_equal(cop_part_forget_names(n->part, "some", forgotten, n), 0);
	assert_int_equal(n->forgot, 2);
}

static void keep_text(void *arg, struct cop_op_sum *sum)
{
	struct node *n = arg;

	assert_int_equal(sum->nodes, 1);
	cop_buf_printf(&n->told, "%s", sum->text.data);
}

static void the_tree_and_the_socket_hear_the_same_of_it(void **state)
{
	struct node *n = *state;
	struct cop_op_request ask = {COP_OP_STATS, ""};
	struct cop_buf here = {0};

	cop_stats_add(&n->stats, COP_FUSE_READ, 3);
	cop_part_commands.status(n->part, &here);
	cop_op_here(cop_part_treeop(n->part), &ask, false, keep_text, n);
	assert_non_null(strstr(n->told.data, "\"mountpoint\":\"/mnt\""));
	/* They are equal except for the uptime. */
	assert_int_equal(here.len, n->told.len);
	cop_buf_free(&here);
}

static void programs_get_no_view_before_there_is_a_mount(void **state)
{
	struct node *n = *state;
	const char *source;
	int user_ns;

	assert_false(cop_part_commands.view(n->part, &source, &user_ns));
	assert_string_equal(source, "/src");
}

static void count_nodes(void *arg, struct cop_op_sum *sum)
{
	*(unsigned *)arg += sum->nodes;
}

static void a_stop_makes_the_main_thread_end(void **state)
{
	struct node *n = *state;
	struct cop_op_request stop = {COP_OP_STOP, ""};
	unsigned stopped = 0;

	assert_false(cop_waker_is_ending(&n->waker));
	cop_op_here(cop_part_treeop(n->part), &stop, false, count_nodes, &stopped);
	assert_true(cop_waker_is_ending(&n->waker));
	assert_int_equal(cop_waker_wait(&n->waker, COP_WAKER_WOKEN, -1), COP_WAKER_WOKEN);
	/* The stop is answered once the node has unmounted. */
	assert_int_equal(stopped, 0);
	cop_op_ended(cop_part_treeop(n->part), NULL, NULL, false);
	assert_int_equal(stopped, 1);
}

static void the_tree_is_asked_for_telemetry_until_this_node_leaves_it(void **state)
{
	struct node *n = *state;
	struct cop_op_request stop = {COP_OP_STOP, ""};
	unsigned answers = 0, stopped = 0;

	assert_true(cop_part_ask_telemetry(n->part, count_nodes, &answers));
	assert_int_equal(answers, 1);
	assert_false(cop_part_is_ending(n->part));
	cop_op_here(cop_part_treeop(n->part), &stop, false, count_nodes, &stopped);
	cop_op_ended(cop_part_treeop(n->part), NULL, NULL, false);
	assert_true(cop_part_is_ending(n->part));
	cop_gate_close(&n->gate);
	assert_false(cop_part_ask_telemetry(n->part, count_nodes, &answers));
	assert_int_equal(answers, 1);
}

static uint64_t clock_ms;

static uint64_t clock_ns(void)
{
	return clock_ms * COP_NS_PER_MS;
}

static int tend_after(struct node *n, unsigned ms)
{
	clock_ms += ms;
	return cop_part_tend(n->part);
}

/* Counts how often the reports have been due so far. */
static unsigned snapshots(struct node *n)
{
	static uint64_t next_ms;
	static unsigned count;

	count += next_ms != n->part->snapshot_ms;
	next_ms = n->part->snapshot_ms;
	return count;
}

static void reports_and_telemetry_come_when_they_are_due(void **state)
{
	struct node *n = *state;

	clock_ms = 5000;
	cop_clocks_for_test(clock_ns, NULL);
	n->conf.profile_interval_s = 3;
	/* The telemetry records immediately, and then every second. */
	assert_int_equal(tend_after(n, 0), 1000);
	assert_int_equal(snapshots(n), 1);
	assert_int_equal(tend_after(n, 400), 600);
	assert_int_equal(tend_after(n, 700), 1000);
	assert_int_equal(tend_after(n, 1000), 900);
	assert_int_equal(snapshots(n), 1);
	/* After a late call, the interval starts again. */
	assert_int_equal(tend_after(n, 2000), 1000);
	assert_int_equal(snapshots(n), 2);
	assert_int_equal(n->part->snapshot_ms, clock_ms + 3000);
	cop_clocks_for_test(NULL, NULL);
}

static void without_reports_and_telemetry_nothing_is_ever_due(void **state)
{
	struct node *n = *state;

	n->part->conf.telemetry = NULL;
	assert_int_equal(cop_part_tend(n->part), -1);
	assert_int_equal(cop_part_tend(n->part), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_invalidation_may_come_before_there_is_anything_to_forget, setup,
			teardown),
		cmocka_unit_test_setup_teardown(
			the_tree_and_the_socket_hear_the_same_of_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			programs_get_no_view_before_there_is_a_mount, setup, teardown),
		cmocka_unit_test_setup_teardown(a_stop_makes_the_main_thread_end, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_tree_is_asked_for_telemetry_until_this_node_leaves_it, setup, teardown),
		cmocka_unit_test_setup_teardown(
			reports_and_telemetry_come_when_they_are_due, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_reports_and_telemetry_nothing_is_ever_due, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
