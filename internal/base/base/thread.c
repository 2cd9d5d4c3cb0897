/* SPDX-License-Identifier: BSD-3-Clause */
/* In a file of its own, so that a test that starts no thread does not link it
 * (scripts/check.sh). */
#include "base/base/base.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
