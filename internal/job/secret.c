/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's secret: where it comes from and how the nodes that share a folder agree on one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/job_priv.h"

#define RANDOM_BYTES 32
#define POLL_MS_FIRST 10
#define POLL_MS_MOST 200

/* A file that others may read or replace is no secret. Returns 0 or -EACCES. */
static int check_file(const char *path, const struct stat *st, struct cop_err *err)
{
	if (!S_ISREG(st->st_mode))
		return cop_err_set(err, EACCES, "the secret file %s is not a regular file", path);
	if (st->st_uid != geteuid())
		return cop_err_set(err, EACCES, "the secret file %s belongs to user %u, not to you (%u)",
			path, st->st_uid, geteuid());
	if (st->st_mode & 077)
		return cop_err_set(err, EACCES,
			"the secret file %s is open to others (mode %04o): chmod 600 it", path,
			st->st_mode & 07777);
	if (!st->st_size || st->st_size > COP_JOB_SECRET_MAX)
		return cop_err_set(err, EACCES, "the secret file %s has %lld bytes: 1 to %d are allowed",
			path, (long long)st->st_size, COP_JOB_SECRET_MAX);
	return 0;
}

static int read_open(int fd, const char *path, char **secret, size_t *len, struct cop_err *err)
{
	char data[COP_JOB_SECRET_MAX];
	struct stat st;
	ssize_t n;
	int rc;

	if (fstat(fd, &st))
		return cop_err_set(err, errno, "cannot read the secret file %s: %s", path,
			strerror(errno));
	rc = check_file(path, &st, err);
	if (rc)
		return rc;
	n = cop_read_full(fd, data, sizeof(data));
	if (n <= 0)
		return cop_err_set(err, n ? (int)-n : EIO, "cannot read the secret file %s: %s", path,
			n ? strerror((int)-n) : "it became empty");
	*secret = calloc(1, (size_t)n + 1);
	if (!*secret)
		return cop_err_set(err, ENOMEM, "no memory for the secret");
	memcpy(*secret, data, (size_t)n);
	*len = (size_t)n;
	return 0;
}

/* The checks are made on what was opened, not on the name, so that nobody can change it between. */
static int read_secret(const char *path, char **secret, size_t *len, struct cop_err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), rc;

	if (fd < 0 && errno == ELOOP)
		return cop_err_set(err, ELOOP, "the secret file %s is a symbolic link", path);
	if (fd < 0)
		return cop_err_set(err, errno, "cannot read the secret file %s: %s", path,
			strerror(errno));
	rc = read_open(fd, path, secret, len, err);
	close(fd);
	return rc;
}

static int read_env(const char *text, char **secret, size_t *len, struct cop_err *err)
{
	*len = strlen(text);
	if (*len > COP_JOB_SECRET_MAX)
		return cop_err_set(err, EINVAL, "COPPER_SECRET has %zu bytes: 1 to %d are allowed", *len,
			COP_JOB_SECRET_MAX);
	*secret = strdup(text);
	return *secret ? 0 : cop_err_set(err, ENOMEM, "no memory for the secret");
}

/* Gives the whole file its name, unless someone else was first: link(2) never replaces; where
 * a file system has no hard links, rename without replacing does the same. */
static int publish(const char *tmp, const char *path)
{
	if (!link(tmp, path) || errno == EEXIST)
		return 0;
	if (!renameat2(AT_FDCWD, tmp, AT_FDCWD, path, RENAME_NOREPLACE) || errno == EEXIST)
		return 0;
	return -errno;
}

static int write_random(int fd)
{
	unsigned char raw[RANDOM_BYTES];
	char text[2 * RANDOM_BYTES + 2];
	ssize_t n;

	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		return -EIO;
	for (size_t i = 0; i < sizeof(raw); i++)
		snprintf(text + 2 * i, 3, "%02x", raw[i]);
	text[2 * RANDOM_BYTES] = '\n';
	n = cop_write_full(fd, text, 2 * RANDOM_BYTES + 1);
	explicit_bzero(raw, sizeof(raw));
	explicit_bzero(text, sizeof(text));
	return n < 0 ? (int)n : 0;
}

/* mkostemp gives mode 0600 (less the umask). */
static int make_secret(const char *path, struct cop_err *err)
{
	char *tmp;
	int fd, rc;

	if (asprintf(&tmp, "%s.XXXXXX", path) < 0)
		return cop_err_set(err, ENOMEM, "no memory for the secret");
	fd = mkostemp(tmp, O_CLOEXEC);
	rc = fd < 0 ? -errno : write_random(fd);
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	if (!rc)
		rc = publish(tmp, path);
	if (fd >= 0)
		unlink(tmp);
	free(tmp);
	return rc ? cop_err_set(err, -rc, "cannot make the job's secret %s: %s", path, strerror(-rc)) :
		    0;
}

static void pause_ms(uint64_t ms)
{
	struct timespec ts = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000 * 1000000)};

	nanosleep(&ts, NULL);
}

static int await_secret(const char *path, uint32_t timeout_ms, char **secret, size_t *len,
	struct cop_err *err)
{
	uint64_t end = cop_now_ms() + timeout_ms, wait = POLL_MS_FIRST;

	for (;;) {
		int rc = read_secret(path, secret, len, err);
		uint64_t now = cop_now_ms();

		if (rc != -ENOENT)
			return rc;
		if (now >= end)
			return cop_err_set(err, ETIMEDOUT,
				"waited %u ms for %s, which rank 0 makes: did it start, and is the job "
				"directory on a file system that all nodes share?", timeout_ms, path);
		pause_ms(COP_MIN(wait, end - now));
		wait = COP_MIN(wait * 2, (uint64_t)POLL_MS_MOST);
	}
}

static int shared_secret(const char *job_dir, uint32_t rank, uint32_t timeout_ms, char **secret,
	size_t *len, struct cop_err *err)
{
	char *path;
	int rc = 0;

	if (asprintf(&path, "%s/secret", job_dir) < 0)
		return cop_err_set(err, ENOMEM, "no memory for the secret");
	if (!rank && access(path, F_OK))
		rc = make_secret(path, err);
	if (!rc)
		rc = await_secret(path, rank ? timeout_ms : 0, secret, len, err);
	free(path);
	return rc;
}

int cop_job_secret(const char *file, const char *job_dir, uint32_t rank, uint32_t timeout_ms,
	char **secret, size_t *len, struct cop_err *err)
{
	const char *text = getenv("COPPER_SECRET");

	*secret = NULL;
	*len = 0;
	if (file)
		return read_secret(file, secret, len, err);
	if (text && *text)
		return read_env(text, secret, len, err);
	if (job_dir)
		return shared_secret(job_dir, rank, timeout_ms, secret, len, err);
	return 0;
}
