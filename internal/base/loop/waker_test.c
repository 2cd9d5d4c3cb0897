/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/loop/loop.h"

#define ALL (COP_WAKER_WOKEN | COP_WAKER_SIGNAL | COP_WAKER_DESERTED | COP_WAKER_UNMOUNTED)

static struct cop_waker waker;
static int to_reader[2], mount[2]; /* pipes */

static int setup(void **state)
{
	struct cop_err err;

	(void)state;
	memset(&waker, 0, sizeof(waker));
	return pipe(to_reader) || pipe(mount) || cop_waker_init(&waker, to_reader[1], &err);
}

static int teardown(void **state)
{
	(void)state;
	cop_waker_fini(&waker);
	close(to_reader[0]);
	close(to_reader[1]);
	close(mount[0]);
	close(mount[1]);
	return 0;
}

static void a_wake_is_taken_once_however_often_it_came(void **state)
{
	(void)state;
	assert_int_equal(cop_waker_wait(&waker, ALL, 0), 0);
	cop_waker_wake(&waker);
	cop_waker_wake(&waker);
	assert_int_equal(cop_waker_wait(&waker, COP_WAKER_SIGNAL, 0), 0);
	assert_int_equal(cop_waker_wait(&waker, ALL, -1), COP_WAKER_WOKEN);
	assert_int_equal(cop_waker_wait(&waker, ALL, 0), 0);
	assert_false(cop_waker_is_ending(&waker));
}

static void the_end_wakes_too(void **state)
{
	(void)state;
	cop_waker_end(&waker);
	assert_true(cop_waker_is_ending(&waker));
	assert_int_equal(cop_waker_wait(&waker, ALL, -1), COP_WAKER_WOKEN);
	assert_null(cop_waker_interrupted(&waker));
}

static void a_start_is_interrupted_by_a_signal(void **state)
{
	sigset_t set;
	int signal;

	(void)state;
	raise(SIGUSR1);
	assert_int_equal(cop_waker_wait(&waker, ALL, -1), COP_WAKER_SIGNAL);
	assert_string_equal(
		cop_waker_interrupted(&waker), "ended before the tree was ready, by a signal");
	/* The signal is still pending when the node waits for its end. */
	assert_int_equal(cop_waker_wait(&waker, ALL, -1), COP_WAKER_SIGNAL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	assert_int_equal(sigwait(&set, &signal), 0);
}

static void a_start_for_which_nobody_waits_is_interrupted(void **state)
{
	(void)state;
	assert_null(cop_waker_interrupted(&waker));
	close(to_reader[0]);
	assert_non_null(
		strstr(cop_waker_interrupted(&waker), "by the end of the command that started it"));
	assert_int_equal(cop_waker_wait(&waker, COP_WAKER_WOKEN | COP_WAKER_SIGNAL, 0), 0);
	/* Once the node has started, the pipe needs no reader. */
	cop_waker_started(&waker);
	assert_null(cop_waker_interrupted(&waker));
	to_reader[0] = dup(to_reader[1]);
}

static void the_end_of_the_mount_is_seen_as_soon_as_there_is_one(void **state)
{
	(void)state;
	assert_int_equal(cop_waker_wait(&waker, COP_WAKER_UNMOUNTED, 0), 0);
	cop_waker_watch_mount(&waker, mount[0]);
	assert_int_equal(cop_waker_wait(&waker, ALL, 0), 0);
	assert_int_equal(write(mount[1], "", 1), 1);
	assert_int_equal(cop_waker_wait(&waker, ALL, -1), COP_WAKER_UNMOUNTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_wake_is_taken_once_however_often_it_came, setup, teardown),
		cmocka_unit_test_setup_teardown(the_end_wakes_too, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_start_is_interrupted_by_a_signal, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_start_for_which_nobody_waits_is_interrupted, setup, teardown),
		cmocka_unit_test_setup_teardown(
			the_end_of_the_mount_is_seen_as_soon_as_there_is_one, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
