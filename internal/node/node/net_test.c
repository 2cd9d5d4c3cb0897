/* SPDX-License-Identifier: BSD-3-Clause */
/* Rank 0 of a tree of two nodes on the fake network, with nodes and commands that send it
 * requests. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "node/node/net_priv.h"

#define NODES 2
#define CLIENT NODES
#define RANKS (NODES + 1)
#define COOP_OP 1 /* of tree/fetch */

struct tree {
	struct cop_endpoint_net *fake;
	struct cop_stats stats[RANKS];
	struct cop_rpc *rpc[RANKS]; /* rank 0 is the node under test */
	struct cop_job_host host[NODES];
	struct cop_job_hosts hosts;
	struct cop_topo topo;
	struct cop_gate gate;
	struct cop_defer deferred;
	struct cop_start *join;
	struct cop_op *treeop;
	struct cop_sampler *sampler;
	struct cop_net *net;
	unsigned ends; /* how often it was told to end */
	int status;    /* of the last reply; 1: none yet */
};

static void ignore(void *ctx)
{
	(void)ctx;
}

static void resolve(struct cop_rpc *rpc, uint32_t rank)
{
	char address[16];

	snprintf(address, sizeof(address), "fake://%u", rank);
	cop_rpc_resolved(rpc, rank, address, true);
}

static void find(void *ctx, uint32_t rank, bool silent)
{
	(void)silent;
	resolve(*(struct cop_rpc **)ctx, rank);
}

static void find_of_net(void *ctx, uint32_t rank, bool silent)
{
	struct cop_net *net = ctx;

	(void)silent;
	resolve(*net->conf.rpc, rank);
}

static void serve_nothing(void *ctx, struct cop_rpc_req *req)
{
	(void)ctx;
	cop_rpc_reply(req, &(struct cop_rpc_answer){.status = -EOPNOTSUPP});
}

static struct cop_rpc *rpc_of(void *ctx)
{
	struct tree *t = ctx;

	return t->rpc[0];
}

static const char *host_of(void *ctx, uint32_t rank)
{
	(void)ctx;
	return rank ? "b" : "a";
}

static void count_one(void *ctx, struct cop_op_sum *own, uint8_t op)
{
	(void)ctx, (void)op;
	own->nodes = 1;
}

static void count_end(void *ctx)
{
	struct tree *t = ctx;

	t->ends++;
}

static int add_nothing(void *ctx, struct cop_op_sum *sum, struct cop_err *err)
{
	(void)ctx, (void)sum, (void)err;
	return 0;
}

static void open_rank(struct tree *t, uint32_t rank)
{
	char name[16];
	struct cop_rpc_conf conf = {.rank = rank,
		.nodes = RANKS,
		.peer_timeout_ms = 3000,
		.stats = &t->stats[rank],
		.ctx = rank ? (void *)&t->rpc[rank] : t->net,
		.resolve = rank ? find : find_of_net,
		.serve = rank ? serve_nothing : cop_net_serve};

	snprintf(name, sizeof(name), "%u", rank);
	if (cop_rpc_open_fake(&conf, t->fake, name, &t->rpc[rank]))
		abort();
}

static void make_parts(struct tree *t)
{
	static const struct cop_op_ops ops = {.rpc = rpc_of,
		.host = host_of,
		.own = count_one,
		.end = count_end,
		.complete_sum = add_nothing};
	struct cop_op_conf treeop = {.topo = t->topo,
		.peer_timeout_ms = 3000,
		.alive_op = COP_START_OP_STATE,
		.ops = &ops,
		.ctx = t,
		.gate = &t->gate,
		.deferred = &t->deferred};
	struct cop_start_conf join = {.topo = t->topo,
		.hosts = &t->hosts,
		.ready_timeout_ms = 1000,
		.wake = ignore,
		.barrier_ended = ignore};
	struct cop_sampler_conf sampler = {
		.topo = t->topo, .stats = &t->stats[0], .gate = &t->gate};
	struct cop_err err;

	t->treeop = cop_op_new(&treeop);
	t->join = cop_start_new(&join);
	if (!t->treeop || !t->join || cop_sampler_start(&sampler, &t->sampler, &err))
		abort();
}

static int setup(void **state)
{
	struct tree *t = calloc(1, sizeof(*t));
	struct cop_net_conf conf = {.hosts = &t->hosts, .gate = &t->gate};

	t->topo = (struct cop_topo){.nodes = NODES, .fanout = 2, .trees = 1};
	t->host[0].name = "a";
	t->host[1].name = "b";
	t->hosts = (struct cop_job_hosts){.host = t->host, .count = NODES};
	t->fake = cop_endpoint_net_new();
	cop_gate_init(&t->gate);
	cop_defer_init(&t->deferred, ignore, NULL);
	make_parts(t);
	conf.topo = t->topo;
	conf.rpc = &t->rpc[0];
	conf.join = t->join;
	conf.treeop = t->treeop;
	conf.sampler = t->sampler;
	t->net = cop_net_new(&conf);
	for (uint32_t r = 0; r < RANKS; r++)
		open_rank(t, r);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct tree *t = *state;

	for (uint32_t r = 1; r < RANKS; r++)
		cop_rpc_close(t->rpc[r]);
	cop_net_close(t->net);
	cop_net_free(t->net);
	cop_sampler_stop(t->sampler);
	cop_op_free(t->treeop);
	cop_start_free(t->join);
	cop_defer_fini(&t->deferred);
	cop_gate_fini(&t->gate);
	cop_endpoint_net_free(t->fake);
	free(t);
	return 0;
}

static void keep_status(void *arg, const struct cop_rpc_result *r)
{
	*(int *)arg = r->status;
}

/* Returns the status of the reply that rank receives; 1: no reply yet. */
static int ask(struct tree *t, uint32_t rank, uint8_t op)
{
	struct cop_rpc_call call = {.op = op, .done = keep_status, .arg = &t->status};

	t->status = 1;
	cop_rpc_call(t->rpc[rank], &call);
	while (cop_endpoint_fake_run(t->fake, 1000000))
		;
	return t->status;
}

static void a_node_that_starts_is_of_the_tree_but_has_nothing_to_read(void **state)
{
	struct tree *t = *state;

	assert_int_equal(ask(t, 1, COP_START_OP_STATE), -EAGAIN);
	assert_int_equal(ask(t, 1, COP_SAMPLER_OP), 0);
	assert_int_equal(ask(t, 1, COOP_OP), -ESHUTDOWN);
	assert_int_equal(t->gate.inside, 0);
}

static void a_node_that_ends_only_repeats_its_answer_to_a_stop(void **state)
{
	struct tree *t = *state;

	cop_gate_open(&t->gate);
	assert_int_equal(ask(t, 1, COP_OP_STOP), 1);
	assert_int_equal(t->ends, 1);
	cop_gate_close(&t->gate);
	cop_op_ended(t->treeop, NULL, NULL, false);
	while (cop_endpoint_fake_run(t->fake, 1000000))
		;
	assert_int_equal(t->status, 0);
	assert_int_equal(ask(t, 1, COP_OP_STOP), 0);
	assert_int_equal(ask(t, 1, COP_START_OP_STATE), -ESHUTDOWN);
	assert_int_equal(ask(t, 1, COP_SAMPLER_OP), -ESHUTDOWN);
	assert_int_equal(ask(t, 1, COOP_OP), -ESHUTDOWN);
	assert_int_equal(t->gate.inside, 0);
}

static void a_client_may_stop_and_look_and_nothing_else(void **state)
{
	struct tree *t = *state;

	assert_int_equal(ask(t, CLIENT, COP_START_OP_STATE), -EPERM);
	assert_int_equal(ask(t, CLIENT, COP_OP_STATS), 0);
	assert_int_equal(ask(t, CLIENT, COP_OP_TABLE), 0);
	assert_int_equal(ask(t, CLIENT, COP_OP_TELEMETRY), -EPERM);
	assert_int_equal(ask(t, CLIENT, COP_OP_INVALIDATE), -EPERM);
	assert_int_equal(ask(t, CLIENT, COP_OP_SNAPSHOT), -EPERM);
	assert_int_equal(ask(t, CLIENT, COP_OP_RESET), -EPERM);
	assert_int_equal(ask(t, CLIENT, COP_OP_RELEASED), -EPERM);
	assert_int_equal(ask(t, CLIENT, COOP_OP), -EPERM);
	assert_int_equal(t->ends, 0);
	ask(t, CLIENT, COP_OP_STOP);
	assert_int_equal(t->ends, 1);
	cop_op_ended(t->treeop, NULL, NULL, false);
	while (cop_endpoint_fake_run(t->fake, 1000000))
		;
	assert_int_equal(t->status, 0);
}

static void chunks_are_packed_as_asked_and_else_by_the_network(void **state)
{
	struct tree *t = *state;
	struct cop_conf conf = {.compress = COP_CONF_COMPRESS_ON};

	assert_true(cop_net_compresses(&conf, NULL));
	assert_true(cop_net_compresses(&conf, t->rpc[1]));
	conf.compress = COP_CONF_COMPRESS_OFF;
	assert_false(cop_net_compresses(&conf, t->rpc[1]));
	conf.compress = COP_CONF_COMPRESS_AUTO;
	/* A lone node has no network, and the fake network is memory. */
	assert_false(cop_net_compresses(&conf, NULL));
	assert_false(cop_net_compresses(&conf, t->rpc[1]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_node_that_starts_is_of_the_tree_but_has_nothing_to_read, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_node_that_ends_only_repeats_its_answer_to_a_stop, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_client_may_stop_and_look_and_nothing_else, setup, teardown),
		cmocka_unit_test_setup_teardown(
			chunks_are_packed_as_asked_and_else_by_the_network, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
