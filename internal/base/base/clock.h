/* SPDX-License-Identifier: BSD-3-Clause */
/* clock: monotonic time for waits and ages, wall time for file timestamps. */
#ifndef COP_BASE_CLOCK_H
#define COP_BASE_CLOCK_H

#include <stdint.h>

/* Monotonic: for all waits and ages. */
uint64_t cop_now_ns(void);
uint64_t cop_now_ms(void);
/* Since 1970; may jump when the clock is set. Only for comparison with file timestamps. */
int64_t cop_wall_ns(void);
/* For tests: replaces these clocks; NULL restores the system's. Sleeps always use the system's
 * clock. */
void cop_clocks_for_test(uint64_t (*now_ns)(void), int64_t (*wall_ns)(void));

#endif
