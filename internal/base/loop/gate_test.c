/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/loop/loop.h"

#define THREADS 4
#define ROUNDS 20000
#define ANY (COP_GATE_STARTING | COP_GATE_OPEN | COP_GATE_CLOSED)

static struct cop_gate gate;

static int setup(void **state)
{
	(void)state;
	cop_gate_init(&gate);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	cop_gate_fini(&gate);
	return 0;
}

static bool goes_in(unsigned when)
{
	bool in = cop_gate_enter(&gate, when);

	if (in)
		cop_gate_leave(&gate);
	return in;
}

static void each_state_lets_in_what_is_for_it(void **state)
{
	(void)state;
	assert_true(goes_in(COP_GATE_STARTING));
	assert_false(goes_in(COP_GATE_OPEN));
	assert_false(goes_in(COP_GATE_CLOSED));
	cop_gate_open(&gate);
	assert_false(goes_in(COP_GATE_STARTING));
	assert_true(goes_in(COP_GATE_STARTING | COP_GATE_OPEN));
	cop_gate_close(&gate);
	assert_false(goes_in(COP_GATE_STARTING | COP_GATE_OPEN));
	assert_true(goes_in(ANY));
	assert_int_equal(gate.inside, 0);
}

static void what_is_closed_stays_closed(void **state)
{
	(void)state;
	cop_gate_close(&gate);
	cop_gate_open(&gate);
	assert_false(goes_in(COP_GATE_OPEN));
}

static void an_empty_gate_is_drained_at_once(void **state)
{
	(void)state;
	assert_true(goes_in(COP_GATE_STARTING));
	cop_gate_close(&gate);
	/* Waits for the threads inside, without a timeout. */
	cop_gate_drain(&gate);
	assert_int_equal(gate.inside, 0);
	assert_false(goes_in(COP_GATE_STARTING | COP_GATE_OPEN));
}

/* ---- many threads ---- */

static _Atomic int touching; /* freed when nothing is inside */
static _Atomic bool freed, misused;

static void touch(void)
{
	atomic_fetch_add(&touching, 1);
	if (atomic_load(&freed))
		atomic_store(&misused, true);
	atomic_fetch_sub(&touching, 1);
}

/* Half of the time, work started inside ends after the thread that started it has left. */
static void *come_and_go(void *arg)
{
	(void)arg;
	for (int i = 0; i < ROUNDS && cop_gate_enter(&gate, COP_GATE_OPEN); i++) {
		if (i % 2)
			cop_gate_more(&gate);
		touch();
		cop_gate_leave(&gate);
		if (i % 2) {
			touch();
			cop_gate_leave(&gate);
		}
	}
	return NULL;
}

static void nobody_is_inside_when_it_is_drained(void **state)
{
	pthread_t thread[THREADS];

	(void)state;
	cop_gate_open(&gate);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, come_and_go, NULL), 0);
	cop_gate_close(&gate);
	cop_gate_drain(&gate);
	atomic_store(&freed, true);
	assert_int_equal(atomic_load(&touching), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	assert_false(atomic_load(&misused));
	assert_int_equal(gate.inside, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_state_lets_in_what_is_for_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_closed_stays_closed, setup, teardown),
		cmocka_unit_test_setup_teardown(an_empty_gate_is_drained_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(
			nobody_is_inside_when_it_is_drained, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
