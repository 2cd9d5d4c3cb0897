/* SPDX-License-Identifier: BSD-3-Clause */
/* thread: named threads, and condition variables on the monotonic clock. */
#ifndef COP_BASE_THREAD_H
#define COP_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread with all signals blocked; its name is truncated to 15 bytes. The caller joins it.
 * Returns 0 or -errno. */
int cop_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg);
/* Call this when abandoning a thread that hangs in a file system. exit() then flushes the streams
 * and ends the process without running other handlers, some of which (a leak check, for example)
 * would wait for that thread. */
void cop_thread_left(void);
/* Joins a thread that has been asked to end, waiting at most timeout_ms. On false, the thread is
 * still running: it has been detached and cop_thread_left called, and the data it uses must outlive
 * it. */
bool cop_thread_join_within(pthread_t t, uint32_t timeout_ms);
/* Initialises a condition variable whose timed waits use the clock of cop_now_ns. */
void cop_cond_init(pthread_cond_t *cond);
/* Converts a time on that clock for use in a timed wait. */
struct timespec cop_moment(uint64_t now_ns);

#endif
