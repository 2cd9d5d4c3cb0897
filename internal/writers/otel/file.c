/* SPDX-License-Identifier: BSD-3-Clause */
/* The file is opened for each line to detect its removal. A line is written by one call. */
#include "writers/otel/otel_priv.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/log/log.h"

static void otel_path(const struct files *f, enum file which, char out[PATH_MAX + 16])
{
	static const char *const name[] = {"traces", "metrics", "logs"};

	snprintf(out, PATH_MAX + 16, "%s/%s.jsonl", f->dir, name[which]);
}

static int open_it(const char *path, int flags)
{
	struct cop_dir at;
	int rc = cop_dir_of(path, &at), fd = -1;

	if (!rc) {
		fd = openat(at.fd, at.name, O_WRONLY | O_APPEND | O_CLOEXEC | at.nofollow | flags,
			0644);
		rc = fd < 0 ? -errno : 0;
	}
	cop_dir_done(&at);
	return rc ? rc : fd;
}

/* Replaces an earlier job's file instead of truncating it, so its readers can continue. */
int cop_otel_make(struct files *f, enum file which, struct cop_err *err)
{
	char path[PATH_MAX + 16];
	int fd, rc = cop_make_dirs_said(f->dir, 0755, err);

	if (rc)
		return rc;
	otel_path(f, which, path);
	rc = cop_unlink(path);
	fd = rc && rc != -ENOENT ? rc : open_it(path, O_CREAT | O_EXCL);
	if (fd < 0)
		return cop_err_set(err, -fd, "%s: %s", path, strerror(-fd));
	close(fd);
	f->made[which] = true;
	return 0;
}

/* If a full disk cut the line short, the partial line is truncated again. */
static int write_whole(int fd, const struct cop_buf *line)
{
	struct stat before;
	ssize_t n;

	if (fstat(fd, &before))
		return -errno;
	n = cop_write_full(fd, line->data, line->len);
	if (n == (ssize_t)line->len)
		return 0;
	if (ftruncate(fd, before.st_size))
		return -errno;
	return n < 0 ? (int)n : -ENOSPC;
}

static int append_line(
	struct files *f, enum file which, const struct cop_buf *line, struct cop_err *err)
{
	char path[PATH_MAX + 16];
	int fd, rc = 0;

	if (line->failed)
		return cop_err_set(err, ENOMEM, "out of memory");
	if (!f->made[which])
		rc = cop_otel_make(f, which, err);
	if (rc)
		return rc;
	otel_path(f, which, path);
	fd = open_it(path, 0);
	rc = fd < 0 ? fd : write_whole(fd, line);
	if (fd >= 0 && close(fd) && !rc)
		rc = -errno;
	return rc ? cop_err_set(err, -rc, "%s: %s", path, strerror(-rc)) : 0;
}

void cop_otel_append(struct files *f, enum file which, const struct cop_buf *line)
{
	struct cop_err err = {0};

	if (append_line(f, which, line, &err) == 0 || f->complained)
		return;
	f->complained = true;
	cop_log_warn("the OpenTelemetry files are incomplete: %s; the job goes on", err.text);
}
