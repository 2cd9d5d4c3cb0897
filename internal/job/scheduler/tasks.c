/* SPDX-License-Identifier: BSD-3-Clause */
/* Four files in a directory of the user, named after the start of the tasks:
 *
 *   run-ID.tasks   a byte for each task that has come, and a read lock of each live one (fcntl(2),
 *                  F_OFD_SETLK: unlike flock(2) it tells what kind of lock others have)
 *   run-ID.first   locked by the first task and its keeper, as long as one of them is alive
 *   run-ID.word    the keeper's result, "+WORD" or "-SENTENCE"; a shared lock of each task that
 *                  succeeded and either does not know yet that others live, or waits for the keeper
 *   run-ID.said    the keeper's final message to the user
 *
 * A lock belongs to an open file, so a forked process closes those that it inherits. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/scheduler/tasks_priv.h"

#define LOOK_MS 20
#define LOOK_MOST_MS 250
#define RETRIES 16
#define FIRST_TRIES 100

void cop_tasks_set_names(struct cop_tasks *t, const char *dir)
{
	static const char *const endings[] = {[TASKS_LOCK] = "tasks",
		[TASKS_FIRST] = "first",
		[TASKS_WORD] = "word",
		[TASKS_SAID] = "said"};

	for (size_t i = 0; i < COP_ARRAY_SIZE(endings); i++)
		snprintf(t->names[i], sizeof(t->names[i]), "%s/run-%016" PRIx64 ".%s", dir, t->id,
			endings[i]);
}

static int open_lock_file(const char *path, int flags)
{
	int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

/* The descriptor, if its lock was obtained (rc) and the file still exists; -ENOENT if it does
 * not. */
static int check_locked(int fd, int rc, const char *path)
{
	struct stat st, now;

	if (!rc && (fstat(fd, &st) || lstat(path, &now) || st.st_ino != now.st_ino))
		rc = -ENOENT;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* Opens and locks; -ENOENT if the file was removed meanwhile. */
static int open_locked(const char *path, int flags, int operation)
{
	int fd = open_lock_file(path, flags), rc;

	if (fd < 0)
		return fd;
	do
		rc = flock(fd, operation) ? -errno : 0;
	while (rc == -EINTR);
	return check_locked(fd, rc, path);
}

/* The same for the file in which each live task has F_RDLCK; waits for the lock. */
static int open_tasks(const struct cop_tasks *t, int flags, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	int fd = open_lock_file(t->names[TASKS_LOCK], flags), rc;

	if (fd < 0)
		return fd;
	do
		rc = fcntl(fd, F_OFD_SETLKW, &lock) ? -errno : 0;
	while (rc == -EINTR);
	return check_locked(fd, rc, t->names[TASKS_LOCK]);
}

/* Another task may have the lock for a moment, to check it. The byte in the file says that it was
 * locked. */
static int be_first(struct cop_tasks *t, struct cop_err *err)
{
	int rc = -EWOULDBLOCK;

	/* Another process may be removing what is left of a killed start. */
	for (int tries = 0; (rc == -EWOULDBLOCK || rc == -ENOENT) && tries < FIRST_TRIES; tries++) {
		if (tries && rc == -EWOULDBLOCK)
			poll(NULL, 0, LOOK_MS);
		rc = open_locked(t->names[TASKS_FIRST], O_RDWR | O_CREAT, LOCK_EX | LOCK_NB);
	}
	t->first_fd = rc;
	if (rc >= 0 && write(rc, "f", 1) != 1)
		rc = -errno;
	return rc >= 0 ? 0
		       : cop_err_set(err, -rc, "cannot lock %s: %s", t->names[TASKS_FIRST],
				 rc == -EWOULDBLOCK ? "another first task has it" : strerror(-rc));
}

int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err)
{
	int rc = -ENOENT;

	cop_tasks_set_names(t, dir);
	if (t->local == 0) {
		rc = be_first(t, err);
		if (rc)
			return rc;
		rc = -ENOENT;
	}
	for (int tries = 0; rc == -ENOENT && tries < RETRIES; tries++)
		rc = open_tasks(t, O_RDWR | O_CREAT | O_APPEND, F_RDLCK);
	t->fd = rc;
	if (rc >= 0 && write(rc, "t", 1) != 1)
		rc = -errno;
	return rc >= 0 ? 0
		       : cop_err_set(err, -rc, "cannot lock %s: %s", t->names[TASKS_LOCK],
				 strerror(-rc));
}

static void close_one(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void cop_tasks_leave(struct cop_tasks *t)
{
	close_one(&t->fd);
	close_one(&t->first_fd);
}

void cop_tasks_keep(struct cop_tasks *t)
{
	close_one(&t->fd);
}

int cop_tasks_tell(const struct cop_tasks *t, const char *word, const struct cop_err *failure)
{
	struct cop_buf text = {0};
	int rc;

	cop_buf_printf(&text, "%c%s", failure ? '-' : '+', failure ? failure->text : word);
	rc = text.failed ? -ENOMEM
			 : cop_write_file(t->names[TASKS_WORD], text.data, text.len, 0600);
	cop_buf_free(&text);
	return rc;
}

void cop_tasks_give_back_stderr(const struct cop_tasks *t)
{
	int fd = open(t->names[TASKS_SAID],
		O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

int64_t cop_tasks_wait_gone(const struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err)
{
	uint64_t alone_ms = 0, came = 0;
	struct stat st;

	for (;;) {
		int fd = open_tasks(t, O_RDWR, F_WRLCK);
		int rc = fd < 0 ? fd : fstat(fd, &st) ? -errno : 0;

		if (rc) {
			close_one(&fd);
			return cop_err_set(err, -rc, "cannot wait for the tasks by %s: %s",
				t->names[TASKS_LOCK], strerror(-rc));
		}
		close(fd);
		if ((uint64_t)st.st_size >= t->here)
			return 0;
		if ((uint64_t)st.st_size != came || !alone_ms)
			alone_ms = cop_now_ms();
		came = (uint64_t)st.st_size;
		if (cop_now_ms() - alone_ms >= absent_ms)
			return (int64_t)(t->here - came);
		poll(NULL, 0, LOOK_MOST_MS);
	}
}

bool cop_tasks_is_waited_for(const struct cop_tasks *t)
{
	int fd = open_locked(t->names[TASKS_WORD], O_RDONLY, LOCK_EX | LOCK_NB);

	if (fd >= 0)
		close(fd);
	return fd == -EWOULDBLOCK;
}

void cop_tasks_end(struct cop_tasks *t)
{
	for (size_t i = 0; i < COP_ARRAY_SIZE(t->names); i++)
		unlink(t->names[i]);
	cop_tasks_leave(t);
}

/* ---- a task waits ---- */

/* 1: there is no result yet. */
static int read_word(const struct cop_tasks *t, char *word, size_t size, struct cop_err *err)
{
	char *text = NULL;
	size_t len;
	int rc = cop_read_file(t->names[TASKS_WORD], COP_TASKS_WORD_MAX, &text, &len);

	if (rc)
		return rc == -ENOENT ? 1
				     : cop_err_set(err, -rc, "cannot read %s: %s",
					       t->names[TASKS_WORD], strerror(-rc));
	if (text[0] == '+')
		snprintf(word, size, "%s", text + 1);
	else
		rc = cop_err_set(err, EIO, "%s", len ? text + 1 : "it is empty");
	free(text);
	return rc;
}

/* Whether the first task and its keeper have both ended. */
static bool is_first_gone(const struct cop_tasks *t)
{
	struct stat st = {0};
	int fd = t->local ? open_locked(t->names[TASKS_FIRST], O_RDWR, LOCK_SH | LOCK_NB) : -1;
	bool gone = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0;

	close_one(&fd);
	return gone;
}

int cop_tasks_await(const struct cop_tasks *t, uint32_t timeout_ms, char *word, size_t size,
	struct cop_err *err)
{
	uint64_t end = cop_now_ms() + timeout_ms;
	int wait_ms = LOOK_MS, rc;

	while ((rc = read_word(t, word, size, err)) == 1) {
		/* The keeper may have written the result before it ended. */
		if (is_first_gone(t) && (rc = read_word(t, word, size, err)) == 1)
			return cop_err_set(err, ECANCELED,
				"the first task of this machine, which starts the node, has ended");
		if (rc != 1)
			break;
		if (cop_now_ms() >= end)
			return cop_err_set(err, ETIMEDOUT,
				"no node was ready on this machine in %u s; the first task of this machine (of %u) starts it: check that it ran this command, and what it printed",
				timeout_ms / 1000, t->here);
		poll(NULL, 0, wait_ms);
		wait_ms = COP_MIN(2 * wait_ms, LOOK_MOST_MS);
	}
	return rc;
}

/* ---- a task has done its work ---- */

/* Only the keeper has a write lock, which it gets once all tasks have left. */
bool cop_tasks_live(const struct cop_tasks *t)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open_lock_file(t->names[TASKS_LOCK], O_RDONLY);
	bool live = fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;

	close_one(&fd);
	return live;
}

static bool have_all_come(const struct cop_tasks *t)
{
	struct stat st;

	return stat(t->names[TASKS_LOCK], &st) == 0 && (uint64_t)st.st_size >= t->here;
}

static void repeat_message(int said)
{
	char text[4096];
	ssize_t n;

	while ((n = read(said, text, sizeof(text))) > 0)
		if (cop_write_full(STDERR_FILENO, text, (size_t)n) < 0)
			return;
}

bool cop_tasks_finish(struct cop_tasks *t, bool well)
{
	int word = well ? open_locked(t->names[TASKS_WORD], O_RDONLY, LOCK_SH) : -1;
	int first = open(t->names[TASKS_FIRST], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int said = open(t->names[TASKS_SAID], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool last;

	cop_tasks_leave(t);
	last = first >= 0 && !cop_tasks_live(t);
	while (last && flock(first, LOCK_SH) && errno == EINTR)
		continue;
	if (last && said >= 0)
		repeat_message(said);
	close_one(&said);
	close_one(&first);
	close_one(&word);
	/* The keeper has removed the files, unless it was killed. A task that comes after that must
	 * find this out. */
	if (last && have_all_come(t))
		cop_tasks_remove_killed(t, NULL, NULL);
	return last;
}
