/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

#include <fcntl.h>
#include <sys/resource.h>

static uint64_t microseconds_of(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* The second number in /proc/self/statm; 0 if there is no /proc. */
static uint64_t resident_pages(void)
{
	char text[128] = "";
	unsigned long long pages = 0;
	uint64_t size;
	int fd = cop_open_regular(AT_FDCWD, "/proc/self/statm", &size);

	if (fd < 0)
		return 0;
	if (cop_read_full(fd, text, sizeof(text) - 1) <= 0 || sscanf(text, "%*u %llu", &pages) != 1)
		pages = 0;
	close(fd);
	return pages;
}

void cop_process_usage(uint64_t *cpu_us, uint64_t *resident_bytes)
{
	struct rusage used = {0};

	getrusage(RUSAGE_SELF, &used);
	*cpu_us = microseconds_of(&used.ru_utime) + microseconds_of(&used.ru_stime);
	*resident_bytes = resident_pages() * (uint64_t)sysconf(_SC_PAGESIZE);
}
