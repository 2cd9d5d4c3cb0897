/* SPDX-License-Identifier: BSD-3-Clause */
/* The clocks behind all timing decisions; tests replace them here. */
#include "base/base/base.h"

#include <stdatomic.h>

static uint64_t (*_Atomic test_now)(void);
static int64_t (*_Atomic test_wall)(void);

static int64_t read_clock(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * (int64_t)COP_NS_PER_S + ts.tv_nsec;
}

uint64_t cop_now_ns(void)
{
	uint64_t (*now)(void) = atomic_load_explicit(&test_now, memory_order_relaxed);

	return now ? now() : (uint64_t)read_clock(CLOCK_MONOTONIC);
}

uint64_t cop_now_ms(void)
{
	return cop_now_ns() / COP_NS_PER_MS;
}

int64_t cop_wall_ns(void)
{
	int64_t (*wall)(void) = atomic_load_explicit(&test_wall, memory_order_relaxed);

	return wall ? wall() : read_clock(CLOCK_REALTIME);
}

void cop_clocks_for_test(uint64_t (*now_ns)(void), int64_t (*wall_ns)(void))
{
	atomic_store(&test_now, now_ns);
	atomic_store(&test_wall, wall_ns);
}
