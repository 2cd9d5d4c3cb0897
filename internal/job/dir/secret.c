/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the job's secret comes from, and what its file must look like. */
#include <fcntl.h>
#include <sys/stat.h>

#include "job/dir/dir_priv.h"

/* Refuses a file that others could read or replace. Returns 0 or -EACCES. */
static int check_file(const char *path, const struct stat *st, struct cop_err *err)
{
	if (!S_ISREG(st->st_mode))
		return cop_err_set(err, EACCES, "the secret file %s is not a regular file", path);
	if (st->st_uid != geteuid())
		return cop_err_set(err, EACCES,
			"the secret file %s belongs to user %u, not to you (%u)", path, st->st_uid,
			geteuid());
	if (st->st_mode & 077)
		return cop_err_set(err, EACCES,
			"the secret file %s is open to others (mode %04o): chmod 600 it", path,
			st->st_mode & 07777);
	if (!st->st_size || st->st_size > COP_JOB_SECRET_MAX)
		return cop_err_set(err, EACCES,
			"the secret file %s has %lld bytes: 1 to %d are allowed", path,
			(long long)st->st_size, COP_JOB_SECRET_MAX);
	return 0;
}

static int read_open(int fd, const char *path, struct cop_job_secret *out, struct cop_err *err)
{
	char data[COP_JOB_SECRET_MAX];
	struct stat st;
	ssize_t n;
	int rc;

	if (fstat(fd, &st))
		return cop_err_set(
			err, errno, "cannot read the secret file %s: %s", path, strerror(errno));
	rc = check_file(path, &st, err);
	if (rc)
		return rc;
	n = cop_read_full(fd, data, sizeof(data));
	if (n <= 0)
		return cop_err_set(err, n ? (int)-n : EIO, "cannot read the secret file %s: %s",
			path, n ? strerror((int)-n) : "it became empty");
	out->data = calloc(1, (size_t)n + 1);
	if (!out->data)
		return cop_err_set(err, ENOMEM, "no memory for the secret");
	memcpy(out->data, data, (size_t)n);
	out->len = (size_t)n;
	return 0;
}

/* The checks apply to the open file, not to its name, because the name could be replaced in
 * between. */
int cop_job_secret_read(const char *path, struct cop_job_secret *out, struct cop_err *err)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at), fd = -1;

	if (!rc) {
		fd = openat(at.fd, at.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
		rc = fd < 0 ? -errno : 0;
	}
	cop_dir_done(&at);
	if (rc == -ELOOP)
		return cop_err_set(err, ELOOP, "the secret file %s is a symbolic link", path);
	if (rc)
		return cop_err_set(
			err, -rc, "cannot read the secret file %s: %s", path, strerror(-rc));
	rc = read_open(fd, path, out, err);
	close(fd);
	return rc;
}

static int read_env(const char *text, struct cop_job_secret *out, struct cop_err *err)
{
	size_t len = strlen(text);

	if (len > COP_JOB_SECRET_MAX)
		return cop_err_set(err, EINVAL, "COPPER_SECRET has %zu bytes: 1 to %d are allowed",
			len, COP_JOB_SECRET_MAX);
	out->data = strdup(text);
	if (!out->data)
		return cop_err_set(err, ENOMEM, "no memory for the secret");
	out->len = len;
	return 0;
}

int cop_job_secret(
	const struct cop_job_secret_from *from, struct cop_job_secret *out, struct cop_err *err)
{
	const char *text = getenv("COPPER_SECRET");

	*out = (struct cop_job_secret){0};
	if (from->file)
		return cop_job_secret_read(from->file, out, err);
	if (text && *text)
		return read_env(text, out, err);
	if (from->job_dir)
		return cop_job_secret_shared(from, out, err);
	return 0;
}

void cop_job_secret_free(struct cop_job_secret *s)
{
	if (s->data)
		explicit_bzero(s->data, s->len);
	free(s->data);
	*s = (struct cop_job_secret){0};
}
