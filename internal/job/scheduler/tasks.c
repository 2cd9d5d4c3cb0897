/* SPDX-License-Identifier: BSD-3-Clause */
/* The tasks' side: join, lead or wait, and finish. tasks_priv.h describes the files. */
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "job/scheduler/tasks_priv.h"

#define LOOK_MS 10
#define LOOK_MOST_MS 100
#define RETRIES 16
/* How long the last call of a task that may call again waits for the keeper. The keeper may be
 * waiting for other machines, whose commands may need this task's next call. */
#define AGAIN_MS 30000

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

int cop_tasks_open_file(const char *path, int flags)
{
	int fd = open(path, flags | O_NOFOLLOW | O_CLOEXEC, 0600);

	return fd < 0 ? -errno : fd;
}

void cop_tasks_close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static bool has_its_name(int fd, const char *path)
{
	struct stat st, now;

	return fstat(fd, &st) == 0 && lstat(path, &now) == 0 && st.st_ino == now.st_ino &&
	       st.st_dev == now.st_dev;
}

int cop_tasks_check_locked(int fd, int rc, const char *path)
{
	if (!rc && !has_its_name(fd, path))
		rc = -ENOENT;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

int cop_tasks_open_locked(const char *path, int flags, int operation)
{
	int fd = cop_tasks_open_file(path, flags), rc;

	if (fd < 0)
		return fd;
	do
		rc = flock(fd, operation) ? -errno : 0;
	while (rc == -EINTR);
	return cop_tasks_check_locked(fd, rc, path);
}

int cop_tasks_open_tasks(const struct cop_tasks *t, int flags, short type)
{
	struct flock lock = {.l_type = type, .l_whence = SEEK_SET};
	int fd = cop_tasks_open_file(t->names[TASKS_LOCK], flags), rc;

	if (fd < 0)
		return fd;
	do
		rc = fcntl(fd, F_OFD_SETLKW, &lock) ? -errno : 0;
	while (rc == -EINTR);
	return cop_tasks_check_locked(fd, rc, t->names[TASKS_LOCK]);
}

/* ---- joining ---- */

static int refuse_join(const struct cop_tasks *t, int rc, struct cop_err *err)
{
	return cop_err_set(err, -rc, "cannot lock %s: %s", t->names[TASKS_LOCK], strerror(-rc));
}

static int join_now(struct cop_tasks *t, struct cop_err *err)
{
	uint32_t record = t->local | (t->again ? COP_TASKS_AGAIN : 0);
	int rc = -ENOENT;

	/* The keeper of an earlier generation may be removing its file just now. */
	for (int tries = 0; rc == -ENOENT && tries < RETRIES; tries++)
		rc = cop_tasks_open_tasks(t, O_RDWR | O_CREAT | O_APPEND, F_RDLCK);
	t->fd = rc;
	if (rc >= 0 && write(rc, &record, sizeof(record)) != (ssize_t)sizeof(record))
		rc = errno ? -errno : -EIO;
	return rc >= 0 ? 0 : refuse_join(t, rc, err);
}

/* On several machines, all tasks must agree on the number of generations, so each task calls once
 * per generation. The exception is a task whose next call the others need, because they run one
 * program together: it joins the same generation after a delay, which its previous call may already
 * have spent. */
static bool is_for_the_next(const struct cop_tasks *t)
{
	struct cop_tasks_come come = {0};
	int fd = t->elsewhere && t->again && cop_now_ms() < t->wait_until_ms
			 ? cop_tasks_open_file(t->names[TASKS_LOCK], O_RDONLY)
			 : -1;
	bool has_come = fd >= 0 && cop_tasks_read_come(t, fd, &come) == 0 && t->local < t->here &&
			come.bit[t->local] == 1;

	free(come.bit);
	cop_tasks_close_fd(&fd);
	return has_come;
}

int cop_tasks_join(struct cop_tasks *t, const char *dir, struct cop_err *err)
{
	cop_tasks_set_names(t, dir);
	t->wait_until_ms = cop_now_ms() + (t->again_ms ? t->again_ms : AGAIN_MS);
	return is_for_the_next(t) ? 0 : join_now(t, err);
}

void cop_tasks_leave(struct cop_tasks *t)
{
	cop_tasks_close_fd(&t->fd);
	cop_tasks_close_fd(&t->first_fd);
}

/* ---- leading ---- */

/* Removes the files of a generation whose keeper was killed; its tasks may still be running. */
static int begin_generation(struct cop_tasks *t, char *word, size_t size, struct cop_err *err)
{
	char *text = NULL;
	size_t len;
	int fd;

	word[0] = '\0';
	if (cop_read_file(t->names[TASKS_WORD], COP_TASKS_WORD_MAX, &text, &len))
		return 0;
	fd = cop_tasks_open_file(t->names[TASKS_LOCK], O_RDONLY);
	unlink(t->names[TASKS_LOCK]);
	unlink(t->names[TASKS_WORD]);
	unlink(t->names[TASKS_SAID]);
	cop_tasks_close_fd(&t->fd);
	/* Its tasks may still be using the mount, whose node ends with the keeper. */
	if (text[0] == '+' && !cop_tasks_has_live(fd))
		snprintf(word, size, "%s", text + 1);
	cop_tasks_close_fd(&fd);
	free(text);
	return join_now(t, err);
}

/* Returns 1 if this task leads; 0 if another process holds the lock; -errno with err set. */
static int try_to_lead(struct cop_tasks *t, char *word, size_t size, struct cop_err *err)
{
	int fd = cop_tasks_open_locked(t->names[TASKS_FIRST], O_RDWR | O_CREAT, LOCK_EX | LOCK_NB);
	int rc;

	if (fd == -EWOULDBLOCK || fd == -ENOENT)
		return 0;
	if (fd < 0)
		return cop_err_set(
			err, -fd, "cannot lock %s: %s", t->names[TASKS_FIRST], strerror(-fd));
	t->first_fd = fd;
	rc = begin_generation(t, word, size, err);
	return rc ? rc : 1;
}

void cop_tasks_hand_over(struct cop_tasks *t)
{
	cop_tasks_close_fd(&t->first_fd);
}

/* ---- waiting ---- */

/* Whether a keeper, or a task that is starting one, is alive. */
static bool has_leader(const struct cop_tasks *t)
{
	int fd = cop_tasks_open_locked(t->names[TASKS_FIRST], O_RDWR, LOCK_SH | LOCK_NB);
	bool led = fd == -EWOULDBLOCK;

	if (fd >= 0)
		close(fd);
	return led;
}

/* Returns 1 if there is no result yet, or none for this generation. */
static int read_word(const struct cop_tasks *t, char *word, size_t size, struct cop_err *err)
{
	char *text = NULL;
	size_t len;
	int rc = cop_read_file(t->names[TASKS_WORD], COP_TASKS_WORD_MAX, &text, &len);

	if (rc)
		return rc == -ENOENT ? 1
				     : cop_err_set(err, -rc, "cannot read %s: %s",
					       t->names[TASKS_WORD], strerror(-rc));
	if (text[0] == '?')
		rc = 1;
	else if (text[0] == '+')
		snprintf(word, size, "%s", text + 1);
	else
		rc = -EIO;
	/* The file that this call has locked keeps its generation open. */
	if (rc != 1 && (!has_its_name(t->fd, t->names[TASKS_LOCK]) || !has_leader(t)))
		rc = 1;
	if (rc == -EIO)
		cop_err_set(err, EIO, "%s", len ? text + 1 : "the result of the start is empty");
	free(text);
	return rc;
}

/* Polls once. Returns 0 if word is set, 1 if this task leads, 2 if neither yet; -errno with err
 * set. */
static int look(struct cop_tasks *t, char *word, size_t size, struct cop_err *err)
{
	int rc;

	if (t->fd < 0 || !has_its_name(t->fd, t->names[TASKS_LOCK])) {
		cop_tasks_close_fd(&t->fd);
		if (is_for_the_next(t))
			return 2;
		rc = join_now(t, err);
		if (rc)
			return rc;
	}
	rc = read_word(t, word, size, err);
	if (rc != 1)
		return rc;
	/* A task that has already led is waiting for its own keeper. */
	if (t->led && !has_leader(t)) {
		rc = read_word(t, word, size, err);
		return rc != 1 ? rc
			       : cop_err_set(err, ECANCELED,
					 "the process that starts the node has ended");
	}
	rc = t->led ? 0 : try_to_lead(t, word, size, err);
	if (rc == 1)
		t->led = true;
	return rc ? rc : 2;
}

int cop_tasks_await(struct cop_tasks *t, uint32_t timeout_ms, const sigset_t *unblocked, char *word,
	size_t size, struct cop_err *err)
{
	uint64_t end = cop_now_ms() + timeout_ms;
	int wait_ms = LOOK_MS, rc;

	while ((rc = look(t, word, size, err)) == 2) {
		struct timespec ts = {.tv_nsec = wait_ms * 1000000L};

		if (cop_now_ms() >= end)
			return cop_err_set(err, ETIMEDOUT,
				"no node was ready on this machine in %u s; another task of this machine starts it: see what that printed",
				timeout_ms / 1000);
		ppoll(NULL, 0, &ts, unblocked);
		wait_ms = COP_MIN(2 * wait_ms, LOOK_MOST_MS);
	}
	return rc;
}

/* ---- end of a task's work ---- */

bool cop_tasks_has_live(int fd)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	/* Only the keeper takes a write lock, once all tasks have left. */
	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_RDLCK;
}

bool cop_tasks_live(const struct cop_tasks *t)
{
	int fd = cop_tasks_open_file(t->names[TASKS_LOCK], O_RDONLY);
	bool live = cop_tasks_has_live(fd);

	cop_tasks_close_fd(&fd);
	return live;
}

static void repeat_message(int said)
{
	char text[4096];
	ssize_t n;

	while ((n = read(said, text, sizeof(text))) > 0)
		if (cop_write_full(STDERR_FILENO, text, (size_t)n) < 0)
			return;
}

/* Whether this task may return before the keeper ends, because the launcher is still waiting for
 * other tasks on this machine. */
static bool is_followed(const struct cop_tasks *t, int tasks_fd)
{
	struct cop_tasks_come come;
	bool followed = t->again && cop_tasks_read_come(t, tasks_fd, &come) == 0 &&
			cop_tasks_has_absent(t, &come);

	if (t->again)
		free(come.bit);
	return followed;
}

/* Records that the next call of this task need not wait for the others. */
static void note_waited(const struct cop_tasks *t)
{
	uint32_t record = t->local | COP_TASKS_AGAIN | COP_TASKS_WAITED;
	int fd = cop_tasks_open_file(t->names[TASKS_LOCK], O_WRONLY | O_APPEND);

	/* If the record is missing, the next call just waits once more. */
	if (fd >= 0 && write(fd, &record, sizeof(record)) < 0)
		errno = 0;
	cop_tasks_close_fd(&fd);
}

/* Whether the keeper exits before another call arrives and before the time limit. */
static bool await_keeper(const struct cop_tasks *t, int first, int tasks_fd)
{
	uint64_t end = cop_now_ms() + (t->again_ms ? t->again_ms : AGAIN_MS);
	int rc;

	if (!t->again) {
		while ((rc = flock(first, LOCK_SH)) && errno == EINTR)
			continue;
		return true;
	}
	while ((rc = flock(first, LOCK_SH | LOCK_NB)) && !cop_tasks_has_live(tasks_fd) &&
		cop_now_ms() < end)
		poll(NULL, 0, LOOK_MS);
	if (rc && cop_now_ms() >= end)
		note_waited(t);
	return rc == 0;
}

bool cop_tasks_finish(struct cop_tasks *t, bool well)
{
	int word = well ? cop_tasks_open_locked(t->names[TASKS_WORD], O_RDONLY, LOCK_SH) : -1;
	int first = open(t->names[TASKS_FIRST], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	int said = open(t->names[TASKS_SAID], O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	/* While this task holds its lock, the name still refers to the same file. */
	int tasks = cop_tasks_open_file(t->names[TASKS_LOCK], O_RDONLY);
	bool last;

	cop_tasks_leave(t);
	last = first >= 0 && !cop_tasks_has_live(tasks) && !is_followed(t, tasks) &&
	       await_keeper(t, first, tasks);
	if (last && said >= 0)
		repeat_message(said);
	cop_tasks_close_fd(&tasks);
	cop_tasks_close_fd(&said);
	cop_tasks_close_fd(&first);
	cop_tasks_close_fd(&word);
	/* The keeper has removed the files, unless it was killed. */
	if (last)
		cop_tasks_remove_killed(t, NULL, NULL);
	return last;
}
