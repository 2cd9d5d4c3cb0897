# shellcheck shell=bash
# SPDX-License-Identifier: BSD-3-Clause
# Sourced after harness.sh by tests in which nodes have other wall clocks than the machine. A
# library provides those clocks, so the program must not be a static one.
# shellcheck disable=SC2034,SC2154

cat >"$T/shift.c" <<'C'
/* The wall clock, moved by as many seconds as the file COP_SHIFT says at this moment. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long shift(void)
{
	char text[32] = "";
	const char *path = getenv("COP_SHIFT");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	if (fd >= 0) {
		(void)!read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *ts)
{
	int rc = (int)syscall(SYS_clock_gettime, clock, ts);

	if (rc == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
		ts->tv_sec += shift();
	return rc;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
	struct timespec ts;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &ts);
	tv->tv_sec = ts.tv_sec;
	tv->tv_usec = ts.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	if (out)
		*out = ts.tv_sec;
	return ts.tv_sec;
}
C
cc -O1 -shared -fPIC -o "$T/shift.so" "$T/shift.c" || bail 'the library cannot be made'

set_clock() { # WHO SECONDS: whole or not at all, since it is read at any moment
	echo "$2" >"$T/new-shift" && mv "$T/new-shift" "$T/shift.$1"
}
clock_of() { # WHO: what is run by as_user from here on has this clock
	cop_as=(env LD_PRELOAD="$T/shift.so" COP_SHIFT="$T/shift.$1")
}
