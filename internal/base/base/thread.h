/* SPDX-License-Identifier: BSD-3-Clause */
/* thread: named threads and conditions on the monotonic clock. */
#ifndef COP_BASE_THREAD_H
#define COP_BASE_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Starts a thread with all signals blocked and a name of at most 15 bytes (cut).
 * The caller joins it. Returns 0 or -errno. */
int cop_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg);
/* To be called when a thread is left behind that hangs in a file system: exit() then flushes the
 * streams and ends the process, and runs no other handler. A leak check, for one, waits until each
 * thread has stopped, which that thread does not. */
void cop_thread_left(void);
/* Joins a thread that has been told to end; waits at most timeout_ms. False: it still runs, is
 * detached, and is reported to cop_thread_left; what it uses must outlive it. */
bool cop_thread_join_within(pthread_t t, uint32_t timeout_ms);
/* Initialises a condition whose timed waits use the clock of cop_now_ns and ignore the wall clock.
 */
void cop_cond_init(pthread_cond_t *cond);
/* Converts a time of that clock for such a wait. */
struct timespec cop_moment(uint64_t now_ns);

#endif
