/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks the header of a file before SQLite opens it. */
#include "writers/runs/store_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

#define HEADER 100
#define AT_USER_VERSION 60
#define AT_APPLICATION 68
/* An offset beyond any store, so that it does not conflict with SQLite's locks. */
#define LOCK_AT ((off_t)1 << 52)

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int cannot_use(const char *path, int code, struct cop_err *err)
{
	const char *what = code == EISDIR ? "is a directory: --store and $COPPER_STORE name a file"
			   : code == EINVAL ? "is not a regular file"
					    : strerror(code);

	return cop_err_set(err, code, "%s: %s", path, what);
}

int cop_store_look(const char *path, struct cop_err *err)
{
	static const char magic[16] = "SQLite format 3";
	uint8_t head[HEADER];
	uint64_t size;
	ssize_t n;
	int fd = cop_open_regular(AT_FDCWD, path, &size);

	if (fd == -ENOENT)
		return 1;
	if (fd < 0)
		return cannot_use(path, -fd, err);
	n = cop_read_full(fd, head, sizeof(head));
	close(fd);
	if (n < 0)
		return cannot_use(path, (int)-n, err);
	if (n == 0)
		return 1;
	if (n < HEADER || memcmp(head, magic, sizeof(magic)) != 0)
		return cop_err_set(err, EMEDIUMTYPE,
			"%s: is not an SQLite database, and so not a run store: name another file",
			path);
	if (big_endian(head + AT_APPLICATION) != STORE_APPLICATION)
		return cop_err_set(err, EMEDIUMTYPE,
			"%s: is a database of another program, not a run store: name another file",
			path);
	if (big_endian(head + AT_USER_VERSION) != COP_STORE_FORM)
		return cop_err_set(err, EPROTO,
			"%s: is a run store of format %" PRIu32
			", and this version knows format %d: use a newer copper, or name another file",
			path, big_endian(head + AT_USER_VERSION), COP_STORE_FORM);
	return 0;
}

/* Without a lock service, some network file systems report ENOLCK, and others an unsupported
 * operation. SQLite would take ENOLCK for a busy store. */
static bool is_refusal(int code)
{
	return code == ENOLCK || code == ENOSYS || code == EOPNOTSUPP || code == EINVAL;
}

int cop_store_try_lock(const char *path, bool make, struct cop_err *err)
{
	struct flock lock = {
		.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = LOCK_AT, .l_len = 1};
	int fd = make ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666)
		      : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int rc = 0;

	if (fd < 0)
		return cannot_use(path, errno, err);
	if (fcntl(fd, F_SETLK, &lock) && is_refusal(errno))
		rc = cop_err_set(err, ENOLCK,
			"%s: this file system refuses locks, without which several jobs cannot write to one store",
			path);
	close(fd);
	return rc;
}
