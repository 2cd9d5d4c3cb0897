/* SPDX-License-Identifier: BSD-3-Clause */
/* thread: named threads and conditions on the monotonic clock. */
#ifndef COP_BASE_THREAD_H
#define COP_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread with all signals blocked and a name of at most 15 bytes (truncated). The
 * caller joins it. Returns 0 or -errno. */
int cop_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg);
/* Call it when a thread hanging in a file system is abandoned: exit() then flushes the streams
 * and ends the process without other handlers. A leak check, for example, would wait until that
 * thread has stopped. */
void cop_thread_left(void);
/* Joins a thread that was requested to end; waits at most timeout_ms. False: it is still
 * running, is detached, and is reported to cop_thread_left; the data it uses must outlive it. */
bool cop_thread_join_within(pthread_t t, uint32_t timeout_ms);
/* Initialises a condition whose timed waits use the clock of cop_now_ns. */
void cop_cond_init(pthread_cond_t *cond);
/* Converts a time of that clock for such a wait. */
struct timespec cop_moment(uint64_t now_ns);

#endif
