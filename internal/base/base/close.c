/* SPDX-License-Identifier: BSD-3-Clause */
/* Closes inherited descriptors, or marks them close-on-exec. This runs between fork and exec in
 * multithreaded processes, so it neither allocates memory nor takes locks. */
#include "base/base/base_priv.h"
#include "base/base/compat.h"

#include <dirent.h>
#include <fcntl.h>

/* Parses a name in /proc/self/fd; -1 for . and .. */
static int fd_number(const char *name)
{
	int n = *name ? 0 : -1;

	for (; *name && n >= 0; name++)
		n = *name >= '0' && *name <= '9' ? 10 * n + (*name - '0') : -1;
	return n;
}

static int for_each_open(unsigned first, unsigned last, void (*fn)(int fd))
{
	int dir = open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc;
	_Alignas(struct dirent64) char buffer[4096];
	ssize_t got;

	if (dir < 0)
		return -errno;
	while ((got = getdents64(dir, buffer, sizeof(buffer))) > 0) {
		for (ssize_t at = 0; at < got;) {
			const struct dirent64 *d = (const void *)(buffer + at);
			int fd = fd_number(d->d_name);

			at += d->d_reclen;
			if (fd >= 0 && fd != dir && (unsigned)fd >= first && (unsigned)fd <= last)
				fn(fd);
		}
	}
	rc = got < 0 ? -errno : 0;
	close(dir);
	return rc;
}

static void close_one(int fd)
{
	close(fd);
}

static void close_one_on_exec(int fd)
{
	fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int cop_base_close_each(unsigned first, unsigned last)
{
	return for_each_open(first, last, close_one);
}

int cop_close_range(unsigned first, unsigned last)
{
#if COP_NEW_LIBRARIES
	if (!syscall(SYS_close_range, first, last, 0))
		return 0;
#endif
	return cop_base_close_each(first, last);
}

int cop_close_on_exec(unsigned first)
{
#if COP_NEW_LIBRARIES
	if (!syscall(SYS_close_range, first, ~0U, CLOSE_RANGE_CLOEXEC))
		return 0;
#endif
	return for_each_open(first, ~0U, close_one_on_exec);
}
