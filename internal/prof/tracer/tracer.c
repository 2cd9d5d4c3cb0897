/* SPDX-License-Identifier: BSD-3-Clause */
/* The file and its writer. The writer wakes when a ring is half full, and once a second to end a
 * member, so that the file of a killed node lacks only about the last second. */
#include <fcntl.h>
#include <poll.h>

#include "base/log/log.h"
#include "prof/tracer/tracer_priv.h"

#define STOP_MS 3000
#define END_RESERVE (4 * COP_KIB) /* part of the limit, for the lines about dropped events */

struct cop_tracer {
	struct rings rings;
	_Atomic bool off; /* the file is not writable */
	_Atomic bool stopping;
	pthread_t writer;
	pthread_mutex_t lock;
	struct cop_tracer_hooks hooks; /* guarded by lock, which is held during the calls */
	bool ended, left; /* guarded by lock; left: the writer frees everything when it ends */
	/* used only by the writer */
	struct format format;
	struct cop_deflate *file;
	int fd;
	char *path;
	uint64_t limit, left_out; /* left_out: events dropped at the limit */
	uint64_t said_lost;
	bool full;
	struct cop_buf lines;
};

/* ---- any thread ---- */

void cop_tracer_event(struct cop_tracer *t, const struct cop_tracer_event *e)
{
	if (t && !atomic_load_explicit(&t->off, memory_order_relaxed))
		cop_tracer_put(&t->rings, KIND_EVENT, e);
}

int64_t cop_tracer_now_us(const struct cop_tracer *t)
{
	return (t ? (int64_t)cop_now_ns() + t->format.base_ns : cop_wall_ns()) / 1000;
}

void cop_tracer_clock(struct cop_tracer *t, int64_t offset_us, int64_t rtt_us)
{
	const struct cop_tracer_arg args[] = {
		{.key = "value", .value = offset_us}, {.key = "rtt", .value = rtt_us}};
	struct cop_tracer_event e = {
		.begin_ns = cop_now_ns(), .arg = args, .args = COP_ARRAY_SIZE(args)};

	if (t && !atomic_load_explicit(&t->off, memory_order_relaxed))
		cop_tracer_put(&t->rings, KIND_CLOCK, &e);
}

/* ---- the writer ---- */

static void give_up(struct cop_tracer *t, int rc)
{
	if (atomic_exchange(&t->off, true))
		return;
	cop_log_warn("trace truncated file=%s error=\"%s\"; the node continues without it", t->path,
		strerror(-rc));
}

/* Writes t->lines. Returns false if they exceed the limit, or if the file has failed. */
static bool put_lines(struct cop_tracer *t)
{
	int rc = t->lines.failed ? -ENOMEM : cop_deflate_add(t->file, t->lines.data, t->lines.len);

	if (rc && rc != -ENOBUFS)
		give_up(t, rc);
	t->lines.len = 0;
	return rc == 0;
}

static void write_record(void *arg, const struct record *r)
{
	struct cop_tracer *t = arg;

	if (atomic_load_explicit(&t->off, memory_order_relaxed))
		return;
	if (!t->full) {
		cop_tracer_lines(&t->format, r, &t->lines);
		t->full = !put_lines(t);
		if (t->full && !atomic_load_explicit(&t->off, memory_order_relaxed))
			cop_log_warn(
				"the trace has reached its limit file=%s bytes=%llu; give a larger --trace-limit",
				t->path, (unsigned long long)t->limit);
	}
	if (t->full)
		t->left_out++;
}

static void say_lost(struct cop_tracer *t)
{
	uint64_t lost = cop_tracer_lost(&t->rings);

	if (lost == t->said_lost || t->full)
		return;
	t->said_lost = lost;
	cop_tracer_left_out(&t->format, "ring", lost, &t->lines);
	put_lines(t);
}

static void flush(struct cop_tracer *t)
{
	int rc;

	say_lost(t);
	rc = cop_deflate_flush(t->file);
	if (rc)
		give_up(t, rc);
}

static void sleep_until(struct cop_tracer *t, uint64_t end_ms)
{
	struct pollfd fd = {.fd = t->rings.wake_fd, .events = POLLIN};
	uint64_t now_ms = cop_now_ms(), count;

	if (now_ms < end_ms && poll(&fd, 1, (int)(end_ms - now_ms)) > 0)
		(void)!read(fd.fd, &count, sizeof(count));
}

static void call(struct cop_tracer *t, bool at_end)
{
	void (*hook)(void *ctx);

	pthread_mutex_lock(&t->lock);
	hook = at_end ? t->hooks.last : t->hooks.second;
	if (hook)
		hook(t->hooks.ctx);
	pthread_mutex_unlock(&t->lock);
	cop_tracer_drain(&t->rings, write_record, t);
}

static void finish_file(struct cop_tracer *t)
{
	cop_tracer_drain(&t->rings, write_record, t); /* frees space in the rings */
	call(t, true);
	if (!atomic_load(&t->off)) {
		cop_deflate_limit(t->file, t->limit);
		t->full = false;
		say_lost(t);
		if (t->left_out)
			cop_tracer_left_out(&t->format, "limit", t->left_out, &t->lines);
		cop_tracer_end_lines(&t->format, &t->lines);
		put_lines(t);
		flush(t);
	}
	close(t->fd);
	t->fd = -1;
}

static void free_all(struct cop_tracer *t)
{
	cop_deflate_close(t->file);
	if (t->fd >= 0)
		close(t->fd);
	cop_tracer_rings_fini(&t->rings);
	cop_tracer_format_fini(&t->format);
	cop_buf_free(&t->lines);
	pthread_mutex_destroy(&t->lock);
	free(t->path);
	free(t);
}

static void end_writer(struct cop_tracer *t)
{
	bool left;

	pthread_mutex_lock(&t->lock);
	t->ended = true;
	left = t->left;
	pthread_mutex_unlock(&t->lock);
	if (left)
		free_all(t);
}

/* Only this thread accesses the file, so that a hung file system blocks no other thread. */
static void *run_writer(void *arg)
{
	struct cop_tracer *t = arg;
	uint64_t next_ms = cop_now_ms();

	while (!atomic_load(&t->stopping)) {
		cop_tracer_drain(&t->rings, write_record, t);
		if (cop_now_ms() >= next_ms) {
			next_ms = cop_now_ms() + 1000;
			call(t, false);
			flush(t);
		}
		sleep_until(t, next_ms);
	}
	finish_file(t);
	end_writer(t);
	return NULL;
}

/* ---- start and stop ---- */

/* Creates a new file, with the permissions of a report. An existing file with this name belongs to
 * another process with the same pid, and is kept. */
static int create_file(
	struct cop_tracer *t, const struct cop_tracer_conf *conf, struct cop_err *err)
{
	struct cop_dir at;
	char *dir;
	int rc;

	if (asprintf(&dir, "%s/trace", conf->job_dir) < 0)
		return cop_err_set(err, ENOMEM, "no memory for the trace");
	rc = cop_make_dirs_said(dir, 0755, err);
	if (!rc && asprintf(&t->path, "%s/%s-%d.pfw.gz", dir, conf->host, conf->pid) < 0) {
		t->path = NULL;
		rc = cop_err_set(err, ENOMEM, "no memory for the trace");
	}
	free(dir);
	if (rc)
		return rc;
	rc = cop_dir_of(t->path, &at);
	if (!rc) {
		t->fd = openat(
			at.fd, at.name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
		rc = t->fd < 0 ? -errno : 0;
	}
	cop_dir_done(&at);
	return rc ? cop_err_set(err, -rc, "cannot write the trace %s: %s", t->path, strerror(-rc))
		  : 0;
}

static int begin_trace(
	struct cop_tracer *t, const struct cop_tracer_conf *conf, struct cop_err *err)
{
	int rc = create_file(t, conf, err);

	if (rc)
		return rc;
	rc = cop_deflate_open(t->fd, COP_TRACER_MEMBER_BYTES, &t->file);
	if (rc)
		return cop_err_set(err, -rc, "no memory for the trace");
	cop_deflate_limit(
		t->file, COP_MAX(conf->limit, (uint64_t)COP_TRACER_LIMIT_MIN) - END_RESERVE);
	t->limit = conf->limit;
	cop_tracer_begin_lines(&t->format, conf, &t->lines);
	put_lines(t);
	rc = cop_thread_start(&t->writer, "trace", run_writer, t);
	return rc ? cop_err_set(err, -rc, "cannot start a thread: %s", strerror(-rc)) : 0;
}

int cop_tracer_start(
	const struct cop_tracer_conf *conf, struct cop_tracer **out, struct cop_err *err)
{
	struct cop_tracer *t = calloc(1, sizeof(*t));
	int rc = t ? cop_tracer_format_init(&t->format, conf) : -ENOMEM;

	if (!rc && (rc = cop_tracer_rings_init(&t->rings)))
		cop_tracer_format_fini(&t->format);
	if (rc) {
		free(t);
		return cop_err_set(err, -rc, "cannot start the trace: %s", strerror(-rc));
	}
	t->fd = -1;
	pthread_mutex_init(&t->lock, NULL);
	t->hooks = conf->hooks;
	rc = begin_trace(t, conf, err);
	if (rc) {
		free_all(t);
		return rc;
	}
	*out = t;
	return 0;
}

/* Abandons a writer that hangs in the job directory's file system: it keeps its memory, and calls
 * no more hooks. Returns whether it has ended in the meantime. */
static bool leave(struct cop_tracer *t)
{
	bool ended;

	cop_log_warn("the job directory does not answer: the end of the trace is abandoned file=%s",
		t->path);
	pthread_mutex_lock(&t->lock);
	t->hooks = (struct cop_tracer_hooks){0};
	ended = t->ended;
	t->left = !ended;
	pthread_mutex_unlock(&t->lock);
	return ended;
}

void cop_tracer_stop(struct cop_tracer *t)
{
	uint64_t one = 1;

	if (!t)
		return;
	atomic_store(&t->stopping, true);
	(void)!write(t->rings.wake_fd, &one, sizeof(one));
	if (cop_thread_join_within(t->writer, STOP_MS) || leave(t))
		free_all(t);
}
