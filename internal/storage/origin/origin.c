/* SPDX-License-Identifier: BSD-3-Clause */
/* The public functions, and the simple requests of the real origin. */
#include "storage/origin/origin_priv.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* ---- requests ---- */

int cop_origin_request_init(struct cop_origin_request *t, struct cop_origin *o, const char *path,
	cop_origin_done *done, void *arg)
{
	t->o = cop_origin_real_of(o);
	t->job.background = o->background;
	t->job.soon = o->soon;
	t->done = done;
	t->arg = arg;
	t->job.begun_ns = 0;
	t->asked_ns = t->o->tracer ? cop_now_ns() : 0;
	t->path_error = path ? cop_origin_path_check(path) : 0;
	if (!path || t->path_error)
		return 0;
	t->path = strdup(path);
	t->job.path = t->path;
	t->job.to = UINT64_MAX;
	return t->path ? 0 : -ENOMEM;
}

/* The symbolic name of the error; "" if it is not in the table. */
static const char *name_of(int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {{EIO, "EIO"}, {EACCES, "EACCES"}, {EPERM, "EPERM"}, {ENOTDIR, "ENOTDIR"},
		{EISDIR, "EISDIR"}, {ELOOP, "ELOOP"}, {ENAMETOOLONG, "ENAMETOOLONG"},
		{ETIMEDOUT, "ETIMEDOUT"}, {ESTALE, "ESTALE"}, {ENODEV, "ENODEV"}, {ENXIO, "ENXIO"},
		{ENOTCONN, "ENOTCONN"}, {EREMOTEIO, "EREMOTEIO"}, {ECONNABORTED, "ECONNABORTED"},
		{EHOSTDOWN, "EHOSTDOWN"}, {EUCLEAN, "EUCLEAN"}, {EINVAL, "EINVAL"},
		{EBUSY, "EBUSY"}, {ENODATA, "ENODATA"}};

	for (size_t i = 0; i < COP_ARRAY_SIZE(names); i++)
		if (names[i].error == error)
			return names[i].name;
	return "";
}

/* A changed version of a file is not a storage error, so telemetry omits it. */
static void count_error(const struct cop_origin_request *t, int rc)
{
	cop_stats_add(t->o->stats, COP_ORIGIN_ERRORS, 1);
	if (rc != -ESTALE)
		cop_telemetry_event(t->o->telemetry, COP_TELEMETRY_STORAGE_ERROR, "/%s: %s%s%s",
			t->path ? t->path : "", name_of(-rc), *name_of(-rc) ? ", " : "",
			strerror(-rc));
}

void cop_origin_request_end(struct cop_origin_request *t, int rc, void *data, size_t len)
{
	cop_origin_pool_park(&t->o->pool);
	/* Only errors returned by the storage are counted. */
	if (rc && !cop_is_shortage(rc) && rc != -ENOENT && rc != -ECANCELED && rc != -E2BIG &&
		!t->path_error)
		count_error(t, rc);
	free(t->path);
	t->path = NULL;
	t->done(t->arg, rc, data, len);
}

void cop_origin_request_trace(
	const struct cop_origin_request *t, const char *what, int rc, size_t bytes)
{
	uint64_t begin_ns = t->job.begun_ns ? t->job.begun_ns : t->asked_ns;
	const struct cop_tracer_arg args[] = {{.key = "ret", .value = rc},
		{.key = "image_size", .value = rc ? 0 : (int64_t)bytes},
		{.key = "offset", .value = (int64_t)t->job.from},
		{.key = "waited", .value = (int64_t)(begin_ns - t->asked_ns) / 1000},
		{.key = "background", .value = t->job.background}};
	struct cop_tracer_event e = {.phase = COP_TRACER_SPAN,
		.name = what,
		.begin_ns = begin_ns,
		.path = t->path,
		.path_len = t->path ? strlen(t->path) : 0,
		.arg = args,
		.args = COP_ARRAY_SIZE(args)};

	cop_origin_pool_park(&t->o->pool);
	if (!t->o->tracer)
		return;
	e.end_ns = cop_now_ns();
	cop_tracer_event(t->o->tracer, &e);
}

/* Submits a request that is not part of a larger object. */
static void submit_simple(struct cop_origin *o, const char *path, unsigned patience_ms,
	cop_origin_done *done, void *arg, void (*fn)(struct cop_origin_job *job, int rc))
{
	struct cop_origin_request *t = calloc(1, sizeof(*t));

	if (!t || cop_origin_request_init(t, o, path, done, arg)) {
		free(t);
		done(arg, -ENOMEM, NULL, 0);
		return;
	}
	t->job.fn = fn;
	t->job.patience_ms = patience_ms;
	cop_origin_pool_submit(&t->o->pool, &t->job, false);
}

/* ---- one name ---- */

static int read_entry(struct cop_origin_request *t, void **blob, size_t *len)
{
	struct cop_attr attr;
	char *target = NULL;
	size_t target_len = 0;
	int fd = cop_origin_open_at(t->o, t->path, O_PATH), rc;

	if (fd < 0)
		return fd;
	cop_stats_add(t->o->stats, COP_ORIGIN_STATS, 1);
	rc = cop_origin_statx(t->o, fd, "", &attr, NULL);
	if (!rc && S_ISLNK(attr.mode))
		rc = cop_origin_readlink(t->o, fd, "", &target, &target_len);
	if (!rc)
		rc = cop_entry_build(&attr, target, target_len, blob, len);
	free(target);
	close(fd);
	return rc;
}

static void stat_job(struct cop_origin_job *job, int rc)
{
	struct cop_origin_request *t = COP_CONTAINER_OF(job, struct cop_origin_request, job);
	uint64_t begin = cop_now_ns();
	void *blob = NULL;
	size_t len = 0;

	if (!rc)
		rc = t->path_error;
	if (!rc) {
		rc = read_entry(t, &blob, &len);
		cop_origin_took(t->o, begin);
	}
	cop_origin_request_trace(t, "origin_stat", rc, len);
	cop_origin_request_end(t, rc, blob, len);
	free(t);
}

static void real_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	submit_simple(o, path, COP_ORIGIN_ATTR_MS, done, arg, stat_job);
}

/* ---- the file system ---- */

static int read_statfs(struct cop_origin_real *o, struct cop_statfs **out)
{
	struct statvfs fs;

	cop_origin_count(o);
	if (fstatvfs(o->base.dirfd, &fs))
		return -errno;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return -ENOMEM;
	**out = (struct cop_statfs){.bsize = fs.f_bsize,
		.frsize = fs.f_frsize,
		.blocks = fs.f_blocks,
		.bfree = fs.f_bfree,
		.bavail = fs.f_bavail,
		.files = fs.f_files,
		.ffree = fs.f_ffree,
		.favail = fs.f_favail,
		.namemax = fs.f_namemax};
	return 0;
}

static void statfs_job(struct cop_origin_job *job, int rc)
{
	struct cop_origin_request *t = COP_CONTAINER_OF(job, struct cop_origin_request, job);
	uint64_t begin = cop_now_ns();
	struct cop_statfs *fs = NULL;

	if (!rc) {
		rc = read_statfs(t->o, &fs);
		cop_origin_took(t->o, begin);
	}
	cop_origin_request_trace(t, "origin_statfs", rc, 0);
	cop_origin_request_end(t, rc, fs, fs ? sizeof(*fs) : 0);
	free(t);
}

static void real_statfs(struct cop_origin *o, cop_origin_done *done, void *arg)
{
	submit_simple(o, NULL, 0, done, arg, statfs_job);
}

/* ---- other work ---- */

struct run_job {
	struct cop_origin_job job;
	void (*fn)(void *arg, int rc);
	void *arg;
};

static void run_job(struct cop_origin_job *job, int rc)
{
	struct run_job *r = COP_CONTAINER_OF(job, struct run_job, job);

	r->fn(r->arg, rc);
	free(r);
}

static void real_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg)
{
	struct run_job *r = calloc(1, sizeof(*r));

	if (!r) {
		fn(arg, -ENOMEM);
		return;
	}
	*r = (struct run_job){.job = {.fn = run_job, .background = o->background, .soon = o->soon},
		.fn = fn,
		.arg = arg};
	cop_origin_pool_submit(&cop_origin_real_of(o)->pool, &r->job, false);
}

static void real_raise_priority(struct cop_origin *o, const char *path, uint64_t offset)
{
	cop_origin_pool_raise_priority(&cop_origin_real_of(o)->pool, path, offset);
}

static void real_load(struct cop_origin *o, unsigned *queued, unsigned *running)
{
	struct cop_origin_pool *p = &cop_origin_real_of(o)->pool;

	pthread_mutex_lock(&p->lock);
	*queued = p->queued;
	*running = p->running;
	pthread_mutex_unlock(&p->lock);
}

/* ---- opening and closing ---- */

static bool real_close(struct cop_origin *base)
{
	struct cop_origin_real *o = cop_origin_real_of(base);

	if (!cop_origin_pool_fini(&o->pool))
		return false;
	cop_origin_fds_fini(&o->fds);
	pthread_mutex_destroy(&o->types.lock);
	pthread_mutex_destroy(&o->unanswered.lock);
	if (o->base.dirfd >= 0)
		close(o->base.dirfd);
	free(o);
	return true;
}

static const struct cop_origin_ops real_ops = {
	.close = real_close,
	.list = cop_origin_real_list,
	.list_known = cop_origin_real_list_known,
	.page = cop_origin_real_page,
	.stat = real_stat,
	.read = cop_origin_real_read,
	.holes = cop_origin_real_holes,
	.statfs = real_statfs,
	.run = real_run,
	.raise_priority = real_raise_priority,
	.load = real_load,
};

static int open_source(struct cop_origin_real *o, const char *source, struct cop_err *err)
{
	struct cop_attr attr;
	int rc;

	o->base.dirfd = open(source, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (o->base.dirfd < 0 && errno == ENOTDIR)
		return cop_err_set(err, ENOTDIR,
			"the source %s is not a directory; give a directory to --source", source);
	if (o->base.dirfd < 0)
		return cop_err_set(err, errno, "cannot open the source %s: %m", source);
	if (faccessat(o->base.dirfd, ".", X_OK, AT_EACCESS))
		return cop_err_set(err, errno,
			"cannot read the source %s: %m; it must be readable by the user who "
			"runs Copper",
			source);
	rc = cop_origin_statx(o, o->base.dirfd, "", &attr, &o->dev);
	if (rc) {
		errno = -rc;
		return cop_err_set(
			err, errno, "cannot read the attributes of the source %s: %m", source);
	}
	o->no_openat2 = !cop_has_openat2(o->base.dirfd);
	return 0;
}

static unsigned expire_idle(void *ctx)
{
	return cop_origin_fds_expire_idle(&((struct cop_origin_real *)ctx)->fds);
}

int cop_origin_open(
	const struct cop_origin_conf *conf, struct cop_origin **out, struct cop_err *err)
{
	struct cop_origin_real *o = calloc(1, sizeof(*o));
	int rc;

	if (!o)
		return cop_err_set(err, ENOMEM, "no memory for the origin");
	o->base = (struct cop_origin){.ops = &real_ops, .dirfd = -1};
	o->background = (struct cop_origin){.ops = &real_ops, .dirfd = -1, .background = true};
	o->soon = o->background;
	o->soon.soon = true;
	cop_origin_fds_init(&o->fds);
	pthread_mutex_init(&o->types.lock, NULL);
	pthread_mutex_init(&o->unanswered.lock, NULL);
	o->listing_max = conf->listing_max ? conf->listing_max : 65536;
	o->listing_attrs = conf->listing_attrs;
	o->trusts_listings = conf->trusts_listings;
	o->pool.expire_idle = expire_idle;
	o->pool.expire_idle_ctx = o;
	rc = cop_origin_pool_init(&o->pool, conf->max_ops ? conf->max_ops : 64);
	if (rc)
		cop_err_set(err, ENOMEM, "no memory for %u origin workers", conf->max_ops);
	else
		rc = open_source(o, conf->source, err);
	/* Set last, so that opening the source is not counted. */
	o->stats = conf->stats;
	o->tracer = conf->tracer;
	o->telemetry = conf->telemetry;
	if (rc) {
		real_close(&o->base);
		return rc;
	}
	o->background.dirfd = o->soon.dirfd = o->base.dirfd;
	*out = &o->base;
	return 0;
}

/* ---- the public functions ---- */

bool cop_origin_close(struct cop_origin *o)
{
	return !o || o->ops->close(o);
}

void cop_origin_list(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	o->ops->list(o, path, false, done, arg);
}

void cop_origin_list_known(
	struct cop_origin *o, const char *path, const void *known, cop_origin_done *done, void *arg)
{
	o->ops->list_known(o, path, known, done, arg);
}

void cop_origin_names(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	o->ops->list(o, path, true, done, arg);
}

void cop_origin_page(struct cop_origin *o, const char *path, const struct cop_listing_page *page,
	const void *names, cop_origin_done *done, void *arg)
{
	o->ops->page(o, path, page, names, done, arg);
}

void cop_origin_stat(struct cop_origin *o, const char *path, cop_origin_done *done, void *arg)
{
	o->ops->stat(o, path, done, arg);
}

void cop_origin_read(struct cop_origin *o, const char *path, uint64_t version, uint64_t size,
	uint64_t offset, const struct iovec *iov, int n_iov, cop_origin_done *done, void *arg)
{
	o->ops->read(o, path, version, size, offset, iov, n_iov, done, arg);
}

void cop_origin_holes(
	struct cop_origin *o, const char *path, uint64_t version, cop_origin_done *done, void *arg)
{
	o->ops->holes(o, path, version, done, arg);
}

void cop_origin_statfs(struct cop_origin *o, cop_origin_done *done, void *arg)
{
	o->ops->statfs(o, done, arg);
}

void cop_origin_run(struct cop_origin *o, void (*fn)(void *arg, int rc), void *arg)
{
	o->ops->run(o, fn, arg);
}

/* The fake origin has no priorities. */
struct cop_origin *cop_origin_background(struct cop_origin *o)
{
	return o->dirfd >= 0 ? &cop_origin_real_of(o)->background : o;
}

struct cop_origin *cop_origin_soon(struct cop_origin *o)
{
	return o->dirfd >= 0 ? &cop_origin_real_of(o)->soon : o;
}

void cop_origin_raise_priority(struct cop_origin *o, const char *path, uint64_t offset)
{
	o->ops->raise_priority(o, path, offset);
}

int cop_origin_dirfd(const struct cop_origin *o)
{
	return o->dirfd;
}

void cop_origin_load(struct cop_origin *o, unsigned *queued, unsigned *running)
{
	o->ops->load(o, queued, running);
}
