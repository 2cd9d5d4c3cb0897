/* SPDX-License-Identifier: BSD-3-Clause */
/* Uses the functions of the header for programs. A process that continues a shell's file has no
 * state from the processes that wrote it before: it takes a file lock, and finds the end of the
 * events by the closing bracket. */
#define COPPER_MARK_PRIVATE
#include "include/copper/mark.h"

#include "trace/mark/mark.h"

#include <sys/file.h>

#define NAMES 99

struct cop_mark_options cop_mark_options(void)
{
	const struct copper_mark_i_process *p = &copper_mark_i_process_1;
	bool enabled = copper_mark_enabled();

	return (struct cop_mark_options){
		.enabled = enabled, .compact = p->compact != 0, .usage = p->usage != 0};
}

/* Sets the n-th candidate name of the shell's file. A program may already have a file with the
 * shell's process id, because a shell started for one command may exec that command. */
static void name_file(struct copper_mark_i_process *p, int n)
{
	char again[16] = "";
	size_t len;

	copper_mark_i_path(p, 0);
	len = strlen(p->path) - strlen(".pfw");
	if (n)
		snprintf(again, sizeof(again), "-%d", n + 1);
	snprintf(p->path + len, sizeof(p->path) - len, "-shell%s.pfw", again);
}

/* Finds the end of the events in an open file of `size` bytes; -EINVAL if the file cannot be
 * continued. */
static int find_end(struct copper_mark_i_process *p, int fd, off_t size)
{
	static const char array[] = "}\n]\n", object[] = "}\n]}\n";
	char tail[8] = "";
	size_t n = (size_t)COP_MIN(size, 5);

	p->end = 0;
	if (size == 0)
		return 0;
	if (pread(fd, tail, n, size - (off_t)n) != (ssize_t)n)
		return -EIO;
	p->object = n == 5 && memcmp(tail, object, 5) == 0;
	if (!p->object && (n < 4 || memcmp(tail + n - 4, array, 4) != 0))
		return -EINVAL;
	p->end = size - (p->object ? 4 : 3);
	return 0;
}

static int check_file(struct copper_mark_i_process *p, int fd)
{
	struct stat st;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return -EINVAL;
	p->device = st.st_dev;
	p->inode = st.st_ino;
	return find_end(p, fd, st.st_size);
}

/* -ENOLCK if the file system has no locks (Lustre without the mount option flock). */
static int lock(int fd)
{
	int rc;

	do
		rc = flock(fd, LOCK_EX);
	while (rc && errno == EINTR);
	return rc ? -ENOLCK : 0;
}

/* Opens and locks the file at p->path. -EINVAL: leave it alone and try another name. */
static int open_mark_file(struct copper_mark_i_process *p)
{
	int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, rc;
	int fd = open(p->path, flags, 0666);
	struct stat st;

	if (fd < 0 && errno == ENOENT) {
		copper_mark_i_make_dirs(p->dir, p->in_job ? 0700 : 0777);
		fd = open(p->path, flags, 0666);
	}
	fd = copper_mark_i_above(fd);
	if (fd < 0)
		return errno == ELOOP || errno == EISDIR || errno == EACCES ? -EINVAL : -errno;
	rc = lock(fd);
	if (!rc)
		rc = check_file(p, fd);
	else if (!fstat(fd, &st) && st.st_size == 0)
		unlink(p->path);
	if (rc)
		close(fd);
	else
		p->fd = fd;
	return rc;
}

static int open_any(struct copper_mark_i_process *p)
{
	int rc = -EINVAL;

	for (int n = 0; n < NAMES && rc == -EINVAL; n++) {
		name_file(p, n);
		rc = open_mark_file(p);
		if (rc == -EINVAL && access(p->path, F_OK) && errno != ELOOP)
			return access(p->dir, W_OK) ? -errno : -EACCES;
	}
	if (rc != -ENOLCK)
		return rc == -EINVAL ? -EEXIST : rc;
	/* Without locks, this process writes a file of its own. */
	p->pid = (int)getpid();
	p->fd = 0;
	return copper_mark_i_open(p) ? -errno : 0;
}

/* Formats events as the header does: a comma precedes each event, and in a new file the opening
 * bracket replaces the first comma. */
static size_t format(struct copper_mark_i_process *p, const struct cop_mark_event *events,
	unsigned n, char **text)
{
	const char *opening =
		p->object ? "{\"displayTimeUnit\":\"us\",\"otherData\":{},\"traceEvents\":[" : "[";
	char *begin = *text + COPPER_MARK_I_HEAD, *end = begin;

	for (unsigned i = 0; i < n; i++) {
		const struct cop_mark_event *given = &events[i];
		struct copper_mark_i_event e = {.name = given->name,
			.name_len = strlen(given->name),
			.cat = given->category,
			.phase = given->phase,
			.ts_ns = given->ts_ns,
			.dur_ns = given->dur_ns,
			.key = given->counts ? "cpu_usage" : NULL,
			.value = given->cpu_percent,
			.key2 = "memory_usage",
			.value2 = given->memory_kib};

		end = copper_mark_i_format(end, &e, (int)given->pid, given->pid);
	}
	if (!p->end) {
		begin -= strlen(opening) - 1;
		memcpy(begin, opening, strlen(opening));
	}
	*text = begin;
	return (size_t)(end - begin);
}

int cop_mark_append(
	pid_t shell, const struct cop_mark_event *events, unsigned n, struct cop_err *err)
{
	struct copper_mark_i_process *p = &copper_mark_i_process_1;
	char *text, *memory;
	int rc, object = p->object;

	memory = text = malloc(COPPER_MARK_I_HEAD + (n + 1) * COPPER_MARK_I_MOST);
	if (!text)
		return cop_err_set(err, ENOMEM, "out of memory");
	p->pid = (int)shell;
	rc = open_any(p);
	if (!rc) {
		size_t len = format(p, events, n, &text);

		rc = copper_mark_i_append(p, text, len) ? -errno : 0;
		close(p->fd);
	}
	p->fd = 0;
	p->end = 0;
	p->object = object;
	free(memory);
	return rc ? cop_err_set(err, -rc, "cannot write %s: %s", p->path, strerror(-rc)) : 0;
}
