/* SPDX-License-Identifier: BSD-3-Clause */
/* A file of its own, so that a test without threads need not link it (scripts/check.sh). */
#include "base/base/base.h"

#include <signal.h>
#include <stdatomic.h>

static void end_process(int status, void *arg)
{
	(void)arg;
	fflush(NULL);
	_exit(status);
}

void cop_thread_left(void)
{
	static atomic_flag noted = ATOMIC_FLAG_INIT;

	if (!atomic_flag_test_and_set(&noted))
		on_exit(end_process, NULL);
}

int cop_thread_start(pthread_t *t, const char *name, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	char short_name[16];
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(t, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	snprintf(short_name, sizeof(short_name), "%s", name);
	pthread_setname_np(*t, short_name);
	return 0;
}

/* The C library's timed join uses the wall clock, which may jump; so we split the wait into short
 * ones. */
bool cop_thread_join_within(pthread_t t, uint32_t timeout_ms)
{
	uint64_t end_ms = cop_now_ms() + timeout_ms;
	struct timespec until;

	do {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += 100 * COP_NS_PER_MS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		if (pthread_timedjoin_np(t, NULL, &until) == 0)
			return true;
	} while (cop_now_ms() < end_ms);
	pthread_detach(t);
	cop_thread_left();
	return false;
}
