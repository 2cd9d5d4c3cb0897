/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs over the real tcp provider: threads, bulk bytes by RMA, a node that leaves and comes
 * back. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fabric/rpc/rpc.h"

#define NODES 3
#define BODY (3 * COP_MIB + 77)

struct node {
	struct cop_rpc *rpc;
	struct cop_stats stats;
	char address[NODES][256];
	uint8_t *body; /* the answer to op 1 */
	_Atomic unsigned served, releases;
};

/* Requests that a thread of the user answers, as a worker of the storage would. */
static struct {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t cond;
	struct cop_rpc_req *req[2000];
	unsigned count;
	bool over;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .cond = PTHREAD_COND_INITIALIZER};

struct answer {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	unsigned times, failed;
	int status;
	uint64_t hash;
	size_t body_len;
	bool in_landing;
};

static struct node nodes[NODES];
static const struct cop_wire_secret secret = {{42}};

static void release(void *arg)
{
	struct node *n = arg;

	n->releases++;
}

static void hand_over(struct cop_rpc_req *q)
{
	pthread_mutex_lock(&worker.lock);
	assert_true(worker.count < COP_ARRAY_SIZE(worker.req));
	worker.req[worker.count++] = q;
	pthread_cond_signal(&worker.cond);
	pthread_mutex_unlock(&worker.lock);
}

static void *work(void *arg)
{
	struct node *n = arg;
	struct cop_rpc_req *q;

	for (;;) {
		struct cop_rpc_answer a = {.release = release, .release_arg = n};

		pthread_mutex_lock(&worker.lock);
		while (!worker.count && !worker.over)
			pthread_cond_wait(&worker.cond, &worker.lock);
		q = worker.count ? worker.req[--worker.count] : NULL;
		pthread_mutex_unlock(&worker.lock);
		if (!q)
			return NULL;
		if (cop_rpc_req_op(q) == 3) {
			a.body = n->body;
			a.body_len = BODY;
		}
		cop_rpc_reply(q, &a);
	}
}

static void start_worker(struct node *n)
{
	worker.over = false;
	assert_int_equal(cop_thread_start(&worker.thread, "worker", work, n), 0);
}

static void stop_worker(void)
{
	pthread_mutex_lock(&worker.lock);
	worker.over = true;
	pthread_cond_signal(&worker.cond);
	pthread_mutex_unlock(&worker.lock);
	pthread_join(worker.thread, NULL);
}

static void serve(void *ctx, struct cop_rpc_req *q)
{
	struct node *n = ctx;
	struct cop_rpc_answer a = {.release = release, .release_arg = n};
	size_t len;

	n->served++;
	if (cop_rpc_req_op(q) >= 2) {
		hand_over(q);
		return;
	}
	a.head = cop_rpc_req_payload(q, &len);
	a.head_len = len;
	if (cop_rpc_req_op(q) == 1) {
		a.body = n->body;
		a.body_len = BODY;
	}
	cop_rpc_reply(q, &a);
}

static void resolve(void *ctx, uint32_t rank, bool silent)
{
	struct node *n = ctx;

	(void)silent;
	cop_rpc_resolved(n->rpc, rank, n->address[rank], false);
}

static void start(uint32_t rank)
{
	struct node *n = &nodes[rank];
	struct cop_rpc_conf conf = {.rank = rank,
		.nodes = NODES,
		.secret = secret,
		.peer_timeout_ms = 3000,
		.stats = &n->stats,
		.ctx = n,
		.resolve = resolve,
		.serve = serve};
	struct cop_endpoint_conf fc = {.net_type = "tcp", .tick_ms = 20};
	struct cop_err err = {0};
	char host[32];

	snprintf(host, sizeof(host), "127.0.0.%u", 11 + rank);
	fc.host = host;
	if (cop_rpc_open(&conf, &fc, &n->rpc, &err))
		fail_msg("%s", err.text);
	for (uint32_t i = 0; i < NODES; i++)
		snprintf(nodes[i].address[rank], sizeof(nodes[i].address[rank]), "%s",
			cop_endpoint_address(cop_rpc_fabric(n->rpc)));
}

static void stop(uint32_t rank)
{
	if (nodes[rank].rpc)
		cop_rpc_close(nodes[rank].rpc);
	nodes[rank].rpc = NULL;
}

static int setup(void **state)
{
	(void)state;
	memset(nodes, 0, sizeof(nodes));
	for (uint32_t i = 0; i < NODES; i++) {
		nodes[i].body = malloc(BODY);
		assert_non_null(nodes[i].body);
		for (size_t j = 0; j < BODY; j++)
			nodes[i].body[j] = (uint8_t)(j * 131 + (j >> 9) + i);
		start(i);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < NODES; i++)
		stop(i);
	for (uint32_t i = 0; i < NODES; i++)
		free(nodes[i].body);
	return 0;
}

static void answer_init(struct answer *a)
{
	*a = (struct answer){.status = 1};
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->cond, NULL);
}

static void done(void *arg, const struct cop_rpc_result *r)
{
	struct answer *a = arg;

	pthread_mutex_lock(&a->lock);
	a->times++;
	a->failed += r->status != 0;
	a->status = r->status;
	a->body_len = r->body_len;
	a->hash = r->body_len ? cop_hash64(r->body, r->body_len, 0) : 0;
	a->in_landing = r->in_landing;
	pthread_cond_broadcast(&a->cond);
	pthread_mutex_unlock(&a->lock);
}

static void await(struct answer *a, unsigned times)
{
	struct timespec ts;
	int rc = 0;

	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_sec += 60;
	pthread_mutex_lock(&a->lock);
	while (a->times < times && !rc)
		rc = pthread_cond_timedwait(&a->cond, &a->lock, &ts);
	pthread_mutex_unlock(&a->lock);
	assert_int_equal(rc, 0);
}

static void ask_rank(
	uint32_t from, uint32_t to, uint8_t op, void *landing, size_t len, struct answer *a)
{
	struct cop_rpc_call c = {.rank = to,
		.op = op,
		.payload = "abc",
		.payload_len = 3,
		.landing = landing,
		.landing_len = len,
		.done = done,
		.arg = a};

	cop_rpc_call(nodes[from].rpc, &c);
}

static void a_call_over_tcp_is_answered(void **state)
{
	struct answer a;

	(void)state;
	answer_init(&a);
	ask_rank(0, 1, 0, NULL, 0, &a);
	await(&a, 1);
	assert_int_equal(a.status, 0);
	assert_int_equal(cop_stats_get(&nodes[1].stats, COP_FABRIC_REJECTED), 0);
}

static void bulk_bytes_land_or_are_pulled(void **state)
{
	uint8_t *landing = malloc(BODY);
	struct answer a, b;

	(void)state;
	assert_non_null(landing);
	answer_init(&a);
	answer_init(&b);
	for (unsigned i = 1; i <= 20; i++) {
		memset(landing, 0, BODY);
		ask_rank(0, 1, 1, landing, BODY, &a);
		ask_rank(0, 2, 1, NULL, 0, &b);
		await(&a, i);
		await(&b, i);
		assert_int_equal(a.status, 0);
		assert_true(a.in_landing);
		assert_true(a.hash == cop_hash64(nodes[1].body, BODY, 0));
		assert_memory_equal(landing, nodes[1].body, BODY);
		assert_int_equal(b.status, 0);
		assert_false(b.in_landing);
		assert_true(b.hash == cop_hash64(nodes[2].body, BODY, 0));
	}
	free(landing);
}

struct caller {
	pthread_t thread;
	uint32_t from;
	struct answer a;
};

static void *many_calls(void *arg)
{
	struct caller *c = arg;

	for (unsigned i = 0; i < 500; i++)
		ask_rank(c->from, (c->from + 1 + i % 2) % NODES, i % 50 == 0, NULL, 0, &c->a);
	return NULL;
}

static void many_threads_call_in_every_direction(void **state)
{
	struct caller c[6];

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		c[i].from = i % NODES;
		answer_init(&c[i].a);
		assert_int_equal(cop_thread_start(&c[i].thread, "caller", many_calls, &c[i]), 0);
	}
	for (unsigned i = 0; i < 6; i++) {
		pthread_join(c[i].thread, NULL);
		await(&c[i].a, 500);
		assert_int_equal(c[i].a.failed, 0);
	}
	assert_int_equal(nodes[0].served + nodes[1].served + nodes[2].served, 3000);
	for (unsigned i = 0; i < NODES; i++)
		assert_int_equal(cop_stats_get(&nodes[i].stats, COP_FABRIC_REJECTED), 0);
}

static void a_node_that_went_away_is_dead_and_comes_back(void **state)
{
	struct answer a;
	uint64_t from;

	(void)state;
	answer_init(&a);
	ask_rank(0, 1, 0, NULL, 0, &a);
	await(&a, 1);
	assert_int_equal(a.status, 0);
	stop(1);
	from = cop_now_ms();
	ask_rank(0, 1, 0, NULL, 0, &a);
	await(&a, 2);
	assert_int_equal(a.status, -EHOSTDOWN);
	assert_true(cop_now_ms() - from < 15000);
	/* Other nodes are not affected. */
	ask_rank(0, 2, 0, NULL, 0, &a);
	await(&a, 3);
	assert_int_equal(a.status, 0);
	start(1);
	for (unsigned i = 4; i < 200 && (i == 4 || a.status); i++) {
		struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};

		ask_rank(0, 1, 0, NULL, 0, &a);
		await(&a, i);
		nanosleep(&pause, NULL);
	}
	assert_int_equal(a.status, 0);
}

static void another_thread_may_answer(void **state)
{
	struct answer a;

	(void)state;
	answer_init(&a);
	start_worker(&nodes[1]);
	for (unsigned i = 0; i < 1000; i++)
		ask_rank(0, 1, 2 + (i % 40 == 0), NULL, 0, &a);
	await(&a, 1000);
	assert_int_equal(a.failed, 0);
	stop_worker();
	assert_int_equal(nodes[1].releases, 1000);
}

/* The worker still has the requests when rpc closes; its answers are dropped. */
static void a_thread_may_answer_during_and_after_close(void **state)
{
	struct answer a;

	(void)state;
	answer_init(&a);
	for (unsigned i = 0; i < 1000; i++)
		ask_rank(0, 1, 2 + (i % 40 == 0), NULL, 0, &a);
	while (nodes[1].served < 500)
		sched_yield();
	start_worker(&nodes[1]);
	stop(1);
	stop_worker();
	assert_int_equal(nodes[1].releases, nodes[1].served);
	stop(0);
	await(&a, 1000);
}

static void *watch(void *arg)
{
	_Atomic bool *over = arg;
	struct cop_buf out = {0};

	while (!*over) {
		out.len = 0;
		cop_rpc_peers_json(nodes[0].rpc, &out);
	}
	cop_buf_free(&out);
	return NULL;
}

static void the_state_can_be_read_while_calls_run(void **state)
{
	struct answer a;
	_Atomic bool over = false;
	struct cop_buf out = {0};
	pthread_t t;

	(void)state;
	answer_init(&a);
	assert_int_equal(cop_thread_start(&t, "watch", watch, &over), 0);
	for (unsigned i = 1; i <= 300; i++) {
		ask_rank(0, 1, 0, NULL, 0, &a);
		await(&a, i);
	}
	assert_int_equal(a.failed, 0);
	over = true;
	pthread_join(t, NULL);
	cop_rpc_peers_json(nodes[0].rpc, &out);
	assert_string_equal(out.data,
		"[{\"rank\":1,\"state\":\"up\",\"calls\":0,\"oldest_ms\":0,\"left\":false,\"lags\":0}]");
	cop_buf_free(&out);
}

static void close_with_calls_open_ends_them(void **state)
{
	struct answer a;

	(void)state;
	for (unsigned round = 0; round < 5; round++) {
		answer_init(&a);
		for (unsigned i = 0; i < 100; i++)
			ask_rank(0, 1 + i % 2, i % 4 == 0, NULL, 0, &a);
		stop(round % 2);
		if (round % 2)
			stop(0);
		await(&a, 100);
		assert_int_equal(a.times, 100);
		for (uint32_t i = 0; i < NODES; i++)
			if (!nodes[i].rpc)
				start(i);
	}
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_call_over_tcp_is_answered),
		T(bulk_bytes_land_or_are_pulled),
		T(many_threads_call_in_every_direction),
		T(a_node_that_went_away_is_dead_and_comes_back),
		T(another_thread_may_answer),
		T(a_thread_may_answer_during_and_after_close),
		T(the_state_can_be_read_while_calls_run),
		T(close_with_calls_open_ends_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
