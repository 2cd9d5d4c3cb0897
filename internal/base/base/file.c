/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/base/base.h"

#include <fcntl.h>
#include <sys/stat.h>

ssize_t cop_read_full(int fd, void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t cop_write_full(int fd, const void *data, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const char *)data + done, len - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

ssize_t cop_read_left(int fd, uint64_t *left, void *data, size_t len)
{
	ssize_t n;

	len = COP_MIN(len, *left);
	n = len ? cop_read_full(fd, data, len) : 0;
	if (n > 0)
		*left -= (uint64_t)n;
	return n;
}

static int regular_size(const struct stat *st, uint64_t *size)
{
	*size = (uint64_t)st->st_size;
	if (S_ISDIR(st->st_mode))
		return -EISDIR;
	return S_ISREG(st->st_mode) ? 0 : -EINVAL;
}

/* Avoids asking the file system again for attributes that the lookup has just returned. */
static int check_regular(int fd)
{
	struct statx stx;
	uint64_t size;
	struct stat st = {0};

	if (!statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, &stx))
		st.st_mode = stx.stx_mode;
	else if (fstat(fd, &st))
		return -errno;
	return regular_size(&st, &size);
}

/* Reopens the file behind fd, an O_PATH descriptor, for reading, even if its name now refers to
 * another file. */
static int open_again(int fd, const struct cop_dir *at)
{
	static const int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	char path[32];
	int again;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	again = open(path, flags);
	if (again < 0 && errno == ENOENT) /* no /proc here */
		again = openat(at->fd, at->name, flags | at->nofollow);
	return again < 0 ? -errno : again;
}

/* Checks the type before opening, because opening a fifo blocks and opening a device may have side
 * effects. Takes the size from the opened file, because network file systems refresh it on open. */
static int open_regular(const struct cop_dir *at, uint64_t *size)
{
	struct stat st;
	int named = openat(at->fd, at->name, O_PATH | O_CLOEXEC | at->nofollow), fd, rc;

	if (named < 0)
		return -errno;
	rc = check_regular(named);
	fd = rc ? rc : open_again(named, at);
	close(named);
	if (fd < 0)
		return fd;
	rc = fstat(fd, &st) ? -errno : regular_size(&st, size);
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int cop_open_regular(int dir, const char *name, uint64_t *size)
{
	struct cop_dir at = {.fd = dir, .name = name};
	int rc = 0;

	if (dir != AT_FDCWD)
		return open_regular(&at, size);
	rc = cop_dir_of(name, &at);
	if (!rc)
		rc = open_regular(&at, size);
	cop_dir_done(&at);
	return rc;
}

static int open_to_read(const char *path)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at);

	if (!rc) {
		rc = openat(at.fd, at.name, O_RDONLY | O_CLOEXEC | at.nofollow);
		rc = rc < 0 ? -errno : rc;
	}
	cop_dir_done(&at);
	return rc;
}

int cop_read_file(const char *path, size_t max_bytes, char **data, size_t *len)
{
	struct cop_buf b = {0};
	char block[4096];
	ssize_t n = 0;
	int fd = open_to_read(path), rc = 0;

	if (fd < 0)
		return fd;
	cop_buf_add(&b, "", 0);
	while (!rc && (n = cop_read_full(fd, block, sizeof(block))) > 0) {
		if (b.len + (size_t)n > max_bytes)
			rc = -EFBIG;
		else
			cop_buf_add(&b, block, (size_t)n);
	}
	if (n < 0)
		rc = (int)n;
	if (!rc && b.failed)
		rc = -ENOMEM;
	close(fd);
	if (rc) {
		cop_buf_free(&b);
		return rc;
	}
	*data = b.data;
	*len = b.len;
	return 0;
}

static int fill_new_file(int fd, const void *data, size_t len, unsigned mode)
{
	ssize_t n = cop_write_full(fd, data, len);
	int rc = n < 0 ? (int)n : 0;

	if (!rc && fchmod(fd, mode))
		rc = -errno;
	if (close(fd) && !rc)
		rc = -errno;
	return rc;
}

int cop_write_file(const char *path, const void *data, size_t len, unsigned mode)
{
	struct cop_dir at;
	char *tmp = NULL;
	int rc = cop_dir_of(path, &at), fd;

	if (!rc) {
		fd = cop_open_temp(&at, &tmp);
		rc = fd < 0 ? fd : fill_new_file(fd, data, len, mode);
	}
	if (!rc && renameat(at.fd, tmp, at.fd, at.name))
		rc = -errno;
	if (rc && tmp)
		unlinkat(at.fd, tmp, 0);
	free(tmp);
	cop_dir_done(&at);
	return rc;
}

static int make_dir_at(const struct cop_dir *at, const char *path, unsigned mode)
{
	struct stat st;

	if (!mkdirat(at->fd, at->name, mode))
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (at->nofollow)
		return cop_safedir_check(path, NULL);
	if (fstatat(at->fd, at->name, &st, 0))
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

static int make_dir(const char *path, unsigned mode)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at);

	if (!rc)
		rc = make_dir_at(&at, path, mode);
	cop_dir_done(&at);
	return rc;
}

/* For an existing parent, mkdir may fail with something other than EEXIST (read-only, automounted).
 * Such a failure matters only if the parent of the last component turns out to be missing; then it
 * is the reason. */
int cop_make_dirs(const char *path, unsigned mode)
{
	char *copy = strdup(path);
	int rc = copy ? 0 : -ENOMEM, refused = 0;

	for (char *slash = copy ? strchr(copy + !!*copy, '/') : NULL; slash && rc != -ENOTDIR;
		slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		rc = make_dir(copy, mode);
		if (rc != -ENOENT)
			refused = rc;
		*slash = '/';
	}
	if (copy && rc != -ENOTDIR)
		rc = make_dir(copy, mode);
	free(copy);
	return rc == -ENOENT && refused ? refused : rc;
}

int cop_make_dirs_said(const char *path, unsigned mode, struct cop_err *err)
{
	int rc = cop_make_dirs(path, mode), refused = rc ? cop_safedir_check(path, err) : 0;

	if (refused)
		return refused;
	return rc ? cop_err_set(err, -rc, "cannot create %s: %s", path, strerror(-rc)) : 0;
}
