/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that waits for another rank that never arrives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "barrier.h"

static struct cop_conf conf;
static struct cop_job_host host[2] = {{.name = "a"}, {.name = "b"}};
static struct cop_job_hosts hosts = {.host = host, .count = 2};
static struct cop_waker waker;
static struct cop_defer deferred;
static struct cop_gate gate;
static struct cop_barrier *barrier;
static struct cop_op *treeop;
static struct cop_endpoint_net *fake;
static struct cop_rpc *rpc;
static struct cop_stats stats;
static struct cop_err err;
static int to_reader[2];
static unsigned ran;

static struct cop_rpc *no_rpc(void *ctx)
{
	(void)ctx;
	return NULL;
}

static void drop_request(void *ctx, struct cop_rpc_req *req)
{
	(void)ctx, (void)req;
}

static void make(uint32_t nodes)
{
	static const struct cop_op_ops ops = {.rpc = no_rpc};
	struct cop_topo topo = {.nodes = nodes, .fanout = 2, .trees = 1};
	struct cop_barrier_conf b = {.conf = &conf,
		.topo = topo,
		.hosts = &hosts,
		.waker = &waker,
		.deferred = &deferred};
	struct cop_op_conf t = {.topo = topo, .ops = &ops, .gate = &gate, .deferred = &deferred};

	struct cop_rpc_conf r = {
		.nodes = nodes, .peer_timeout_ms = 3000, .stats = &stats, .serve = drop_request};

	barrier = cop_barrier_new(&b);
	assert_int_equal(cop_rpc_open_fake(&r, fake, "a", &rpc), 0);
	cop_start_use_rpc(cop_barrier_join(barrier), rpc);
	treeop = cop_op_new(&t);
	assert_non_null(barrier);
	assert_non_null(treeop);
}

static int setup(void **state)
{
	(void)state;
	cop_conf_init(&conf, true);
	memset(&waker, 0, sizeof(waker));
	fake = cop_endpoint_net_new();
	cop_gate_init(&gate);
	cop_defer_init(&deferred, cop_waker_wake, &waker);
	return pipe(to_reader) || cop_waker_init(&waker, to_reader[1], &err);
}

static int teardown(void **state)
{
	(void)state;
	cop_rpc_close(rpc);
	cop_endpoint_net_free(fake);
	cop_op_free(treeop);
	cop_barrier_free(barrier);
	cop_defer_fini(&deferred);
	cop_gate_fini(&gate);
	cop_waker_fini(&waker);
	close(to_reader[0]);
	close(to_reader[1]);
	return 0;
}

static void a_node_alone_waits_for_nobody(void **state)
{
	(void)state;
	make(1);
	assert_false(cop_barrier_is_in_vain(barrier, &err));
	assert_int_equal(cop_barrier_wait(barrier, treeop, &err), 0);
	cop_barrier_tell_below(barrier);
	assert_true(cop_start_is_ready(cop_barrier_join(barrier)));
}

static void its_time_may_be_over(void **state)
{
	(void)state;
	conf.ready_timeout_ms = 1;
	make(2);
	assert_int_equal(cop_barrier_wait(barrier, treeop, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "the tree is not ready: "));
	assert_non_null(strstr(err.text, "b"));
}

static void the_end_of_the_command_interrupts_it(void **state)
{
	(void)state;
	make(2);
	close(to_reader[0]);
	assert_true(cop_barrier_is_in_vain(barrier, &err));
	assert_int_equal(cop_barrier_wait(barrier, treeop, &err), -EINTR);
	assert_non_null(strstr(err.text, "by the end of the command that started it"));
	to_reader[0] = dup(to_reader[1]);
}

static void end(struct cop_deferred *d)
{
	(void)d;
	ran++;
	cop_waker_end(&waker);
}

static void work_of_others_is_done_meanwhile(void **state)
{
	struct cop_deferred work = {.run = end};

	(void)state;
	make(2);
	assert_true(cop_defer_add(&deferred, &work));
	assert_int_equal(cop_barrier_wait(barrier, treeop, &err), -EINTR);
	assert_int_equal(ran, 1);
	assert_string_equal(err.text, "stopped before the tree was ready");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_node_alone_waits_for_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(its_time_may_be_over, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_end_of_the_command_interrupts_it, setup, teardown),
		cmocka_unit_test_setup_teardown(work_of_others_is_done_meanwhile, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
