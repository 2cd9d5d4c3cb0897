/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "node/node_priv.h"

#define THREADS 4
#define ROUNDS 20000
#define ANY (GATE_STARTING | GATE_OPEN | GATE_CLOSED)

static struct gate gate;

static int setup(void **state)
{
	(void)state;
	cop_node_gate_init(&gate);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_node_gate_fini(&gate);
	return 0;
}

static bool goes_in(unsigned when)
{
	bool in = cop_node_gate_enter(&gate, when);

	if (in)
		cop_node_gate_leave(&gate);
	return in;
}

static void each_state_lets_in_what_is_for_it(void **state)
{
	(void)state;
	assert_true(goes_in(GATE_STARTING));
	assert_false(goes_in(GATE_OPEN));
	assert_false(goes_in(GATE_CLOSED));
	cop_node_gate_open(&gate);
	assert_false(goes_in(GATE_STARTING));
	assert_true(goes_in(GATE_STARTING | GATE_OPEN));
	cop_node_gate_close(&gate);
	assert_false(goes_in(GATE_STARTING | GATE_OPEN));
	assert_true(goes_in(ANY));
	assert_int_equal(gate.inside, 0);
}

static void what_is_closed_stays_closed(void **state)
{
	(void)state;
	cop_node_gate_close(&gate);
	cop_node_gate_open(&gate);
	assert_false(goes_in(GATE_OPEN));
}

static void an_empty_gate_is_drained_at_once(void **state)
{
	(void)state;
	cop_node_gate_close(&gate);
	cop_node_gate_drain(&gate);
}

/* ---- many threads ---- */

static _Atomic int touching; /* what is freed when nobody is inside */
static _Atomic bool freed, misused;

static void touch(void)
{
	atomic_fetch_add(&touching, 1);
	if (atomic_load(&freed))
		atomic_store(&misused, true);
	atomic_fetch_sub(&touching, 1);
}

/* Half of the time what was begun inside ends after the one who began it has left. */
static void *come_and_go(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS && cop_node_gate_enter(&gate, GATE_OPEN); i++) {
		if (i % 2)
			cop_node_gate_more(&gate);
		touch();
		cop_node_gate_leave(&gate);
		if (i % 2) {
			touch();
			cop_node_gate_leave(&gate);
		}
	}
	return NULL;
}

static void nobody_is_inside_when_it_is_drained(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	cop_node_gate_open(&gate);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, NULL), 0);
	cop_node_gate_close(&gate);
	cop_node_gate_drain(&gate);
	atomic_store(&freed, true);
	assert_int_equal(atomic_load(&touching), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_false(atomic_load(&misused));
	assert_int_equal(gate.inside, 0);
}

/* ---- operations that come before everything is there ---- */

static struct gathered heard;
static unsigned times;

static void answered(void *arg, struct gathered *g)
{
	(void)arg;
	times++;
	heard.nodes = g->nodes;
}

static void an_invalidation_may_come_before_there_is_anything_to_forget(void **state)
{
	struct cop_node *n = calloc(1, sizeof(*n));

	(void)state;
	assert_non_null(n);
	n->topo = (struct cop_topo){.nodes = 1, .fanout = 2, .stripes = 1};
	cop_node_gate_init(&n->gate);
	n->cache = cop_cache_new(COP_MIB, &n->stats);
	assert_non_null(n->cache);
	assert_true(cop_node_gate_enter(&n->gate, GATE_STARTING));
	cop_node_do(n, &(struct task){OP_INVALIDATE, "some/path"}, answered, NULL);
	cop_node_gate_leave(&n->gate);
	assert_int_equal(times, 1);
	assert_int_equal(heard.nodes, 1);
	/* The mount, which may be made at this moment, is told later. */
	assert_true(n->forgot_early);
	assert_int_equal(n->gate.inside, 0);
	cop_cache_free(n->cache);
	cop_node_gate_fini(&n->gate);
	free(n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_state_lets_in_what_is_for_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_closed_stays_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_gate_is_drained_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nobody_is_inside_when_it_is_drained, setup, teardown),
		cmocka_unit_test(an_invalidation_may_come_before_there_is_anything_to_forget),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
