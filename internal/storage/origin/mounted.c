/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the mount points in a directory. For those, the directory entry has the inode number and
 * type of the covered object; only the attributes describe what a lookup finds. */
#include "storage/origin/origin_priv.h"

#include <limits.h>

struct search {
	char dir[PATH_MAX];
	size_t len; /* without a trailing slash */
	void (*fn)(void *arg, const char *name);
	void *arg;
};

static int visit_mount(void *arg, const char *dir, const char *type)
{
	struct search *s = arg;

	(void)type;
	if (strncmp(dir, s->dir, s->len) == 0 && dir[s->len] == '/' && dir[s->len + 1] &&
		!strchr(dir + s->len + 1, '/'))
		s->fn(s->arg, dir + s->len + 1);
	return 0;
}

void cop_origin_mounted(int fd, void (*fn)(void *arg, const char *name), void *arg)
{
	struct search s = {.fn = fn, .arg = arg};
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, s.dir, sizeof(s.dir) - 1);
	if (n <= 0)
		return;
	s.len = n == 1 ? 0 : (size_t)n;
	cop_mounts_each(visit_mount, &s);
}
