/* SPDX-License-Identifier: BSD-3-Clause */
/* Resolves a path to a descriptor and its attributes, never outside the source. Paths come from
 * other nodes' requests: a path that could lead outside is rejected before any system call, and
 * cop_open_beneath rejects symlinks in any component. */
#include "storage/origin/origin_priv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

int cop_origin_path_check(const char *path)
{
	const char *p = path, *end;

	if (!*path)
		return 0;
	if (strnlen(path, COP_ORIGIN_PATH_MAX + 1) > COP_ORIGIN_PATH_MAX)
		return -ENAMETOOLONG;
	for (;; p = end + 1) {
		size_t len;

		end = strchrnul(p, '/');
		len = (size_t)(end - p);
		if (len == 0 || (p[0] == '.' && (len == 1 || (len == 2 && p[1] == '.'))))
			return -EINVAL;
		if (len > 255)
			return -ENAMETOOLONG;
		if (!*end)
			return 0;
	}
}

static int open_once(struct cop_origin_real *o, const char *path, int flags)
{
	unsigned calls;
	int fd;

	cop_origin_count(o);
	fd = cop_open_beneath(o->base.dirfd, path, flags, !o->no_openat2, &calls);
	while (calls-- > 1)
		cop_origin_count(o);
	return fd;
}

int cop_origin_open_at(struct cop_origin_real *o, const char *path, int flags)
{
	int fd = open_once(o, path, flags);

	/* If the process has run out of descriptors, close the cached ones and retry. */
	if ((fd == -EMFILE || fd == -ENFILE) && cop_origin_fds_drop(&o->fds))
		fd = open_once(o, path, flags);
	return fd;
}

/* Only the owner of a file may read it without updating its access time. Once one file was refused,
 * most others would be, too, so O_NOATIME is not tried again. */
int cop_origin_open_read(struct cop_origin_real *o, const char *path, int flags)
{
	int fd;

	flags |= O_RDONLY | O_NONBLOCK;
	if (o->no_noatime)
		return cop_origin_open_at(o, path, flags);
	fd = cop_origin_open_at(o, path, flags | O_NOATIME);
	if (fd != -EPERM)
		return fd;
	fd = cop_origin_open_at(o, path, flags);
	if (fd >= 0)
		o->no_noatime = true;
	return fd;
}

/* Inode numbers are unique only per device. Those on the source's own device are left unchanged.
 * Those on mounts below the source are replaced by a hash of device and number with the top bit
 * set, which file systems rarely use themselves. */
uint64_t cop_origin_ino(const struct cop_origin_real *o, uint64_t dev, uint64_t ino)
{
	const uint64_t both[2] = {dev, ino};

	if (dev == o->dev && ino)
		return ino;
	return cop_hash64(both, sizeof(both), 0) | (uint64_t)1 << 63;
}

/* The clock is read before the attributes, so that a file that changes during the call is not taken
 * for an older one. */
int cop_origin_statx(
	struct cop_origin_real *o, int fd, const char *name, struct cop_attr *attr, uint64_t *dev)
{
	int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | (*name ? 0 : AT_EMPTY_PATH);
	int64_t now_ns = cop_wall_ns();
	struct statx st;
	uint64_t on;

	cop_origin_count(o);
	if (statx(fd, name, flags, STATX_BASIC_STATS, &st))
		return -errno;
	on = makedev(st.stx_dev_major, st.stx_dev_minor);
	*attr = (struct cop_attr){.ino = cop_origin_ino(o, on, st.stx_ino),
		.size = st.stx_size,
		.blocks = st.stx_blocks,
		.atime_s = st.stx_atime.tv_sec,
		.mtime_s = st.stx_mtime.tv_sec,
		.ctime_s = st.stx_ctime.tv_sec,
		.atime_nsec = st.stx_atime.tv_nsec,
		.mtime_nsec = st.stx_mtime.tv_nsec,
		.ctime_nsec = st.stx_ctime.tv_nsec,
		.mode = st.stx_mode,
		.nlink = st.stx_nlink,
		.uid = st.stx_uid,
		.gid = st.stx_gid,
		.rdev_major = st.stx_rdev_major,
		.rdev_minor = st.stx_rdev_minor,
		.blksize = st.stx_blksize};
	attr->version = cop_attr_version_at(attr, now_ns);
	if (dev)
		*dev = on;
	return 0;
}

int cop_origin_readlink(
	struct cop_origin_real *o, int fd, const char *name, char **target, size_t *len)
{
	char text[COP_ORIGIN_PATH_MAX + 1];
	ssize_t n;

	cop_origin_count(o);
	n = readlinkat(fd, name, text, sizeof(text));
	if (n < 0)
		return -errno;
	if (n == (ssize_t)sizeof(text))
		return -ENAMETOOLONG;
	*target = malloc((size_t)n + 1);
	if (!*target)
		return -ENOMEM;
	memcpy(*target, text, (size_t)n);
	(*target)[n] = '\0';
	*len = (size_t)n;
	return 0;
}
