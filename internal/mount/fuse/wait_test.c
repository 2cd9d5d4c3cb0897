/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "mount/fuse/fuse_priv.h"

static void expect(struct waits *w, uint64_t now_us, uint64_t waiting, uint64_t wait_us)
{
	uint64_t n, us;

	cop_fuse_waits_at(w, now_us, &n, &us);
	assert_int_equal(n, waiting);
	assert_int_equal(us, wait_us);
}

static void waits_add_up_while_they_last(void **state)
{
	struct waits w = {0};

	(void)state;
	expect(&w, 1000, 0, 0);
	cop_fuse_wait_begin(&w, 1000);
	expect(&w, 1100, 1, 100);
	cop_fuse_wait_begin(&w, 1200);
	expect(&w, 1300, 2, 400);
	cop_fuse_wait_end(&w, 1300);
	expect(&w, 1400, 1, 500);
	cop_fuse_wait_end(&w, 1500);
	expect(&w, 90000, 0, 600);
}

/* The answer may arrive on another thread before the wait has been recorded. */
static void an_end_before_its_begin_is_no_wait(void **state)
{
	struct waits w = {0};

	(void)state;
	cop_fuse_wait_end(&w, 5000);
	expect(&w, 5000, 0, 0);
	cop_fuse_wait_begin(&w, 5003);
	expect(&w, 6000, 0, 0);
	cop_fuse_wait_begin(&w, 6000);
	cop_fuse_wait_end(&w, 6010);
	expect(&w, 7000, 0, 7);
}

#define THREADS 4
#define WAITS 5000u

/* Waits for 3 us again and again, and finally starts a wait that does not end. */
static void *wait_often(void *arg)
{
	struct waits *w = arg;

	for (uint64_t i = 0; i < WAITS; i++) {
		cop_fuse_wait_begin(w, 1000 + i);
		cop_fuse_wait_end(w, 1003 + i);
	}
	cop_fuse_wait_begin(w, 9000);
	return NULL;
}

/* No wait is lost or counted twice, even if another thread reads the sums concurrently. */
static void threads_that_wait_add_up(void **state)
{
	struct waits w = {0};
	pthread_t thread[THREADS];
	uint64_t waiting, wait_us;

	(void)state;
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(cop_thread_start(&thread[i], "waits", wait_often, &w), 0);
	for (unsigned i = 0; i < 1000; i++) {
		cop_fuse_waits_at(&w, 9000, &waiting, &wait_us);
		assert_in_range(waiting, 0, THREADS);
		assert_in_range(wait_us, 0, THREADS * 8000 + THREADS * WAITS * 3);
	}
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_join(thread[i], NULL), 0);
	expect(&w, 9000, THREADS, THREADS * WAITS * 3);
	expect(&w, 9010, THREADS, THREADS * WAITS * 3 + THREADS * 10);
}

/* Years of uptime, and as many requests as a kernel can have. */
static void large_numbers_do_not_overflow(void **state)
{
	struct waits w = {0};
	uint64_t year_us = 365ull * 86400 * 1000000;

	(void)state;
	for (unsigned i = 0; i < 10000; i++)
		cop_fuse_wait_begin(&w, 10 * year_us);
	expect(&w, 10 * year_us + 1000000, 10000, 10000ull * 1000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_add_up_while_they_last),
		cmocka_unit_test(an_end_before_its_begin_is_no_wait),
		cmocka_unit_test(threads_that_wait_add_up),
		cmocka_unit_test(large_numbers_do_not_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
