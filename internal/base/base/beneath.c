/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens paths without leaving a directory: with openat2(2) if the kernel supports it and no filter
 * blocks it, else component by component. */
#include "base/base/base.h"
#include "base/base/compat.h"

#include <fcntl.h>

static int openat2_beneath(int dirfd, const char *path, int flags)
{
#if COP_NEW_LIBRARIES
	struct cop_open_how how = {.flags = (unsigned)flags,
		.resolve =
			COP_RESOLVE_BENEATH | COP_RESOLVE_NO_SYMLINKS | COP_RESOLVE_NO_MAGICLINKS};
	long fd = syscall(SYS_openat2, dirfd, path, &how, sizeof(how));

	return fd < 0 ? -errno : (int)fd;
#else
	(void)dirfd;
	(void)path;
	(void)flags;
	return -ENOSYS;
#endif
}

bool cop_has_openat2(int dirfd)
{
	int fd = openat2_beneath(dirfd, ".", O_PATH | O_CLOEXEC);

	if (fd >= 0)
		close(fd);
	return fd != -ENOSYS && fd != -EPERM;
}

/* Opens an O_PATH descriptor for each component in turn, refusing symlinks. */
static int walk_parts(int top, const char *path, int flags, unsigned *calls)
{
	int dir = top, fd;
	char name[256];

	for (;;) {
		const char *end = strchrnul(path, '/');
		size_t len = (size_t)(end - path);

		if (len >= sizeof(name)) {
			fd = -ENAMETOOLONG;
		} else {
			memcpy(name, path, len);
			name[len] = '\0';
			++*calls;
			fd = openat(dir, len ? name : ".",
				*end ? O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC : flags);
			if (fd < 0)
				fd = -errno;
		}
		if (dir != top)
			close(dir);
		if (fd < 0 || !*end)
			return fd;
		dir = fd;
		path = end + 1;
	}
}

int cop_open_beneath(int dirfd, const char *path, int flags, bool has_openat2, unsigned *calls)
{
	flags |= O_NOFOLLOW | O_CLOEXEC;
	*calls = 0;
	if (!has_openat2)
		return walk_parts(dirfd, path, flags, calls);
	++*calls;
	return openat2_beneath(dirfd, *path ? path : ".", flags);
}
