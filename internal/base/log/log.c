/* SPDX-License-Identifier: BSD-3-Clause */
/* A line is formatted on the stack and written with one call to a descriptor opened with O_APPEND,
 * so lines from different threads never mix and no lock is held while writing. The lock protects
 * the descriptors in use (the last writer closes descriptors that cop_log_open or cop_log_close has
 * replaced) and the table of repeats.
 *
 * Repeats: each format in each function (many share the format "%s") may write BURST lines in
 * WINDOW_MS. Further lines are counted, and the count is written with the first line of a later
 * window, or when the log closes. Debug lines are not limited: whoever enables them wants them
 * all. */
#include "base/log/log.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "base/log/log_priv.h"

#define LINE_BYTES 6144
#define REPEAT_SLOTS 64

struct sink {
	int fd[2];      /* -1: none */
	bool owned;     /* this module opened fd[0], a file */
	unsigned users; /* threads that are writing to it, plus 1 while this is the current sink */
};

struct repeat {
	uint64_t key;
	uint64_t window_ms; /* start of the window */
	uint32_t lines;     /* written in this window */
	uint64_t dropped;
	char where[32];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sink unopened = {.fd = {STDERR_FILENO, -1}, .users = 1};
static struct sink *current = &unopened;
static struct repeat repeats[REPEAT_SLOTS];
static _Atomic unsigned max_level = COP_LOG_WARNING;

static const char *const level_names[] = {"None", "Fatal", "Error", "Warning", "Info", "Debug"};

static struct sink *sink_get(void)
{
	struct sink *s;

	pthread_mutex_lock(&lock);
	s = current;
	s->users++;
	pthread_mutex_unlock(&lock);
	return s;
}

static void sink_put(struct sink *s)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = --s->users == 0;
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	if (s->owned)
		close(s->fd[0]);
	free(s);
}

/* The static sink always keeps one user, so it is never freed. */
static void sink_install(struct sink *s)
{
	struct sink *old;

	pthread_mutex_lock(&lock);
	old = current;
	current = s;
	pthread_mutex_unlock(&lock);
	if (old != &unopened)
		sink_put(old);
}

/* A new file gets the read and write permissions of its directory, regardless of the umask: anyone
 * who can list the job directory can read its logs. */
static int open_in(const struct cop_dir *at, mode_t folder)
{
	int fd = openat(at->fd, at->name, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd >= 0)
		(void)!fchmod(fd, folder & 0666);
	else if (errno == EEXIST)
		fd = openat(at->fd, at->name,
			O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return fd < 0 ? -errno : fd;
}

static int open_log_file(const char *path)
{
	struct cop_dir at;
	char *copy = strdup(path);
	struct stat st;
	int rc = copy ? cop_dir_of(path, &at) : -ENOMEM;

	if (!copy)
		return rc;
	if (!rc)
		rc = (at.fd >= 0 ? fstat(at.fd, &st) : stat(dirname(copy), &st))
			     ? -errno
			     : open_in(&at, st.st_mode);
	cop_dir_done(&at);
	free(copy);
	return rc;
}

int cop_log_open(
	enum cop_log_level level, enum cop_log_type type, const char *path, struct cop_err *err)
{
	struct sink *s = calloc(1, sizeof(*s));

	if (!s)
		return cop_err_set(err, ENOMEM, "no memory for the log");
	*s = (struct sink){.fd = {STDERR_FILENO, -1}, .users = 1};
	if (type == COP_LOG_STDOUT) {
		s->fd[0] = STDOUT_FILENO;
	} else if (path) {
		s->fd[0] = open_log_file(path);
		if (s->fd[0] < 0) {
			int code = -s->fd[0];

			free(s);
			return cop_err_set(
				err, code, "cannot open the log file %s: %s", path, strerror(code));
		}
		s->owned = true;
		s->fd[1] = type == COP_LOG_BOTH ? STDOUT_FILENO : -1;
	}
	atomic_store(&max_level, level);
	sink_install(s);
	return 0;
}

void cop_log_take_stderr(void)
{
	struct sink *s = sink_get();

	if (s->owned)
		dup2(s->fd[0], STDERR_FILENO);
	sink_put(s);
}

bool cop_log_on(enum cop_log_level level)
{
	return level > COP_LOG_NONE &&
	       level <= atomic_load_explicit(&max_level, memory_order_relaxed);
}

/* Returns the length of line. The line always ends with a newline. */
static size_t format_line(char line[LINE_BYTES], enum cop_log_level level, const char *where,
	const char *fmt, va_list ap)
{
	size_t len, space = LINE_BYTES - 1; /* leaves room for the newline */
	struct timespec ts;
	struct tm tm;
	int n;

	clock_gettime(CLOCK_REALTIME, &ts);
	localtime_r(&ts.tv_sec, &tm);
	len = strftime(line, space, "%Y-%m-%d %H-%M-%S", &tm);
	len += (size_t)snprintf(line + len, space - len, ".%03ld [%s] (%.64s) ",
		ts.tv_nsec / 1000000, level_names[level], where);
	n = vsnprintf(line + len, space - len, fmt, ap);
	if (n < 0)
		n = 0;
	if ((size_t)n >= space - len) {
		n = (int)(space - len - 1);
		memcpy(line + len + n - 3, "...", 3);
	}
	/* A name with a newline or terminal escape codes must not forge a line. */
	for (char *p = line + len; n > 0; p++, len++, n--)
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			*p = ' ';
	line[len++] = '\n';
	return len;
}

static void put_line(const struct sink *s, enum cop_log_level level, const char *where,
	const char *fmt, va_list ap)
{
	char line[LINE_BYTES];
	size_t len = format_line(line, level, where, fmt, ap);

	for (size_t i = 0; i < COP_ARRAY_SIZE(s->fd); i++)
		if (s->fd[i] >= 0)
			(void)!cop_write_full(s->fd[i], line, len);
}

static COP_PRINTF(4, 5) void put_formatted(
	const struct sink *s, enum cop_log_level level, const char *where, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(s, level, where, fmt, ap);
	va_end(ap);
}

/* Whether this line may be written; *before describes any lines suppressed before it. Two call
 * sites that share a slot evict each other; at worst a repeat is written instead of counted. */
static bool may_write_line(
	const char *where, const char *fmt, uint64_t now_ms, struct repeat *before)
{
	uint64_t key = cop_hash64(where, strlen(where), (uint64_t)(uintptr_t)fmt);
	struct repeat *r = &repeats[cop_hash64(&key, sizeof(key), 0) % REPEAT_SLOTS];
	bool ok = true;

	*before = (struct repeat){0};
	pthread_mutex_lock(&lock);
	if (r->key != key || now_ms - r->window_ms >= COP_LOG_WINDOW_MS) {
		*before = *r;
		*r = (struct repeat){.key = key, .window_ms = now_ms};
		snprintf(r->where, sizeof(r->where), "%s", where);
	}
	if (r->lines < COP_LOG_BURST) {
		r->lines++;
	} else {
		r->dropped++;
		ok = false;
	}
	pthread_mutex_unlock(&lock);
	return ok;
}

static void tell_dropped(const struct sink *s, const struct repeat *r)
{
	if (r->dropped)
		put_formatted(s, COP_LOG_WARNING, r->where, "similar lines not written count=%llu",
			(unsigned long long)r->dropped);
}

void cop_log_write(enum cop_log_level level, const char *where, const char *fmt, ...)
{
	struct repeat before = {0};
	struct sink *s;
	va_list ap;

	if (!cop_log_on(level))
		return;
	if (level < COP_LOG_DEBUG && !may_write_line(where, fmt, cop_now_ms(), &before))
		return;
	s = sink_get();
	tell_dropped(s, &before);
	va_start(ap, fmt);
	put_line(s, level, where, fmt, ap);
	va_end(ap);
	sink_put(s);
}

void cop_log_close(void)
{
	struct repeat last[REPEAT_SLOTS];
	struct sink *s;

	cop_log_refused_end();
	s = sink_get();
	pthread_mutex_lock(&lock);
	memcpy(last, repeats, sizeof(last));
	memset(repeats, 0, sizeof(repeats));
	pthread_mutex_unlock(&lock);
	for (size_t i = 0; i < COP_ARRAY_SIZE(last); i++)
		tell_dropped(s, &last[i]);
	sink_put(s);
	atomic_store(&max_level, COP_LOG_WARNING);
	sink_install(&unopened);
}
