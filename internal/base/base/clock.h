/* SPDX-License-Identifier: BSD-3-Clause */
/* clock: monotonic time for waits and ages, wall time to compare with file timestamps. */
#ifndef COP_BASE_CLOCK_H
#define COP_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic: for all waits and ages. */
uint64_t cop_now_ns(void);
uint64_t cop_now_ms(void);
/* Nanoseconds since 1970; may jump when the clock is set. Use it only to compare with file
 * timestamps. */
int64_t cop_wall_ns(void);
/* For tests: replaces these clocks; NULL restores the system clock. Sleeps always use the system
 * clock. */
void cop_clocks_for_test(uint64_t (*now_ns)(void), int64_t (*wall_ns)(void));

#endif
