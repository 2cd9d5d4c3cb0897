/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the bytes of files and finds their holes. The version is checked after the read, on the
 * same descriptor. That is sufficient: a version is known before its bytes are requested and never
 * recurs after a change, because ctime advances. A file that has this version after the read
 * therefore had it throughout. A young version (wire.h) does not prove as much. Its bytes are
 * returned nevertheless, because a later lookup of the name returns another version, for which the
 * bytes are requested again. */
#include "storage/origin/origin_priv.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>

#define EXTENTS_MAX 65536
/* The kernel's usual read size. A longer read at the start of a file, or a read of several chunks,
 * is taken to be sequential: POSIX_FADV_SEQUENTIAL doubles the kernel's read-ahead and halves the
 * number of storage operations (posix_fadvise(2)). */
#define READ_AHEAD (128 * COP_KIB)

struct read_request {
	struct cop_origin_request request;
	uint64_t version, size, offset, total; /* version and size as requested */
	int n_iov;
	struct iovec iov[];
};

/* An open file: a cached descriptor, or one opened for this read. */
struct file {
	int fd;
	struct cop_origin_kept *kept;
	uint64_t size;
};

/* Checks that the file is regular and has this version; version 0 matches any. */
static int check_file(struct cop_origin_real *o, struct file *f, uint64_t version)
{
	struct cop_attr attr;
	int rc = cop_origin_statx(o, f->fd, "", &attr, NULL);

	if (rc)
		return rc;
	if (S_ISDIR(attr.mode))
		return -EISDIR;
	if (!S_ISREG(attr.mode))
		return -EINVAL;
	f->size = attr.size;
	return version && !cop_version_same(attr.version, version) ? -ESTALE : 0;
}

static int open_file(struct read_request *r, struct file *f)
{
	struct cop_origin_request *t = &r->request;

	*f = (struct file){.fd = -1};
	if (r->version)
		f->kept = cop_origin_fds_get(&t->o->fds, t->path, r->version);
	f->fd = f->kept ? f->kept->fd : cop_origin_open_read(t->o, t->path, 0);
	if (f->fd >= 0 && !f->kept && r->total > READ_AHEAD && (!r->offset || r->n_iov > 1))
		posix_fadvise(f->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
	return f->fd < 0 ? f->fd : 0;
}

/* keep: the file will probably be read again. */
static void close_file(struct read_request *r, struct file *f, bool keep)
{
	struct cop_origin_request *t = &r->request;

	if (f->kept)
		cop_origin_fds_put(&t->o->fds, f->kept, !keep);
	else if (f->fd >= 0 && keep && r->version)
		cop_origin_fds_keep(&t->o->fds, t->path, r->version, f->fd);
	else if (f->fd >= 0)
		close(f->fd);
}

/* Advances iov by n bytes; returns the number of completed elements. */
static int advance_iov(struct iovec *iov, int n_iov, size_t n)
{
	int used = 0;

	while (used < n_iov && n >= iov[used].iov_len)
		n -= iov[used++].iov_len;
	if (used < n_iov) {
		iov[used].iov_base = (char *)iov[used].iov_base + n;
		iov[used].iov_len -= n;
	}
	return used;
}

/* Fills the buffers; stops short only at the end of the file. */
static int read_all(struct read_request *r, int fd, size_t *got)
{
	struct iovec *iov = r->iov;
	int left = r->n_iov, used;

	for (*got = 0, used = advance_iov(iov, left, 0);;) {
		ssize_t n;

		iov += used;
		left -= used;
		if (!left)
			return 0;
		cop_origin_count(r->request.o);
		n = preadv(fd, iov, left, (off_t)(r->offset + *got));
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n == 0)
			return 0;
		n = COP_MAX(n, 0);
		*got += (size_t)n;
		used = advance_iov(iov, left, (size_t)n);
	}
}

/* If the object is not a regular file, either the read fails with EISDIR or ESPIPE, or the check
 * after it fails. */
static int read_file(struct read_request *r, struct file *f, size_t *got)
{
	int rc = read_all(r, f->fd, got);

	if (!rc || rc == -ESPIPE)
		rc = check_file(r->request.o, f, r->version);
	return !rc && r->version && f->size != r->size ? -ESTALE : rc;
}

/* -ENOENT is a change, too: the name existed when its version was read, and a version never
 * recurs. */
static void count_change(const struct read_request *r, int rc)
{
	if (!r->version || (rc != -ESTALE && rc != -ENOENT))
		return;
	cop_stats_add(r->request.o->stats, COP_ORIGIN_CHANGED, 1);
	cop_stats_example(r->request.o->stats, COP_EXAMPLE_CHANGED, r->request.path);
}

static void read_job(struct cop_origin_job *job, int rc)
{
	struct cop_origin_request *t = COP_CONTAINER_OF(job, struct cop_origin_request, job);
	struct read_request *r = COP_CONTAINER_OF(t, struct read_request, request);
	struct file f = {.fd = -1};
	uint64_t begin = cop_now_ns();
	bool asks = !rc && !t->path_error;
	size_t got = 0;

	if (!rc)
		rc = t->path_error;
	if (!rc)
		rc = open_file(r, &f);
	if (!rc)
		rc = read_file(r, &f, &got);
	close_file(r, &f, !rc && r->offset + got < f.size);
	if (asks)
		cop_origin_took(t->o, begin);
	if (!rc) {
		cop_stats_add(t->o->stats, COP_ORIGIN_READS, 1);
		cop_stats_add(t->o->stats, COP_ORIGIN_BYTES, got);
	}
	count_change(r, rc);
	cop_origin_request_trace(t, "origin_read", rc, got);
	cop_origin_request_end(t, rc, NULL, rc ? 0 : got);
	free(r);
}

static void submit_read(struct cop_origin *o, const char *path, struct read_request *r,
	cop_origin_done *done, void *arg)
{
	if (!r || cop_origin_request_init(&r->request, o, path, done, arg)) {
		free(r);
		done(arg, -ENOMEM, NULL, 0);
		return;
	}
	if (r->n_iov) {
		r->request.job.from = r->offset;
		r->request.job.to = r->offset + r->total;
	}
	cop_origin_pool_submit(&r->request.o->pool, &r->request.job, false);
}

void cop_origin_real_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg)
{
	struct read_request *r;
	uint64_t total = 0;

	for (int i = 0; i < n_iov && total <= INT64_MAX; i++)
		total += COP_MIN(iov[i].iov_len, (size_t)INT64_MAX);
	if (n_iov < 0 || n_iov > IOV_MAX || offset > INT64_MAX || total > INT64_MAX - offset) {
		done(arg, -EINVAL, NULL, 0);
		return;
	}
	r = calloc(1, sizeof(*r) + (size_t)n_iov * sizeof(*iov));
	if (r) {
		r->request.job.fn = read_job;
		r->version = version;
		r->size = size;
		r->offset = offset;
		r->total = total;
		r->n_iov = n_iov;
		if (n_iov)
			memcpy(r->iov, iov, (size_t)n_iov * sizeof(*iov));
	}
	submit_read(o, path, r, done, arg);
}

/* ---- holes ---- */

/* The first extent of data at or after *at; start == end and rc 0: there is none. */
static int next_extent(
	struct cop_origin_real *o, const struct file *f, uint64_t at, struct cop_extent *e)
{
	off_t start, end;

	*e = (struct cop_extent){0};
	if (at >= f->size)
		return 0;
	cop_origin_count(o);
	start = lseek(f->fd, (off_t)at, SEEK_DATA);
	if (start < 0 && errno == ENXIO)
		return 0;
	/* This file system has no SEEK_HOLE: treat the rest as data. */
	if (start < 0 && (errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
		*e = (struct cop_extent){at, f->size};
		return 0;
	}
	if (start < 0)
		return -errno;
	cop_origin_count(o);
	end = lseek(f->fd, start, SEEK_HOLE);
	if (end < 0 && errno != ENXIO)
		return -errno;
	*e = (struct cop_extent){(uint64_t)start, end < 0 ? f->size : (uint64_t)end};
	e->end = COP_MIN(e->end, f->size);
	if (e->start < at || e->end <= e->start)
		*e = (struct cop_extent){0};
	return 0;
}

static int read_extents(struct cop_origin_real *o, const struct file *f, struct cop_buf *out)
{
	struct cop_extent e;
	uint64_t at = 0;
	int rc;

	for (unsigned n = 0; n < EXTENTS_MAX; n++) {
		rc = next_extent(o, f, at, &e);
		if (rc || e.start == e.end)
			return rc;
		at = e.end;
		if (n == EXTENTS_MAX - 1)
			e.end = f->size;
		cop_buf_add(out, &e, sizeof(e));
		if (out->failed)
			return -ENOMEM;
	}
	return 0;
}

/* Opens its own descriptor, because seeking would move the offset of a shared one. */
static void holes_job(struct cop_origin_job *job, int rc)
{
	struct cop_origin_request *t = COP_CONTAINER_OF(job, struct cop_origin_request, job);
	struct read_request *r = COP_CONTAINER_OF(t, struct read_request, request);
	struct file f = {.fd = -1};
	uint64_t begin = cop_now_ns();
	bool asks = !rc && !t->path_error;
	struct cop_buf out = {0};

	if (!rc)
		rc = t->path_error;
	if (!rc) {
		f.fd = cop_origin_open_read(t->o, t->path, 0);
		rc = f.fd < 0 ? f.fd : check_file(t->o, &f, r->version);
	}
	if (!rc)
		rc = read_extents(t->o, &f, &out);
	if (!rc && r->version)
		rc = check_file(t->o, &f, r->version);
	if (f.fd >= 0)
		close(f.fd);
	if (asks)
		cop_origin_took(t->o, begin);
	if (rc)
		cop_buf_free(&out);
	cop_origin_request_trace(t, "origin_holes", rc, out.len);
	cop_origin_request_end(t, rc, out.data, out.len);
	free(r);
}

void cop_origin_real_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg)
{
	struct read_request *r = calloc(1, sizeof(*r));

	if (r) {
		r->request.job.fn = holes_job;
		r->version = version;
	}
	submit_read(o, path, r, done, arg);
}
