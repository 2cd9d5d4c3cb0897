/* SPDX-License-Identifier: BSD-3-Clause */
/* The keeper's side: keeps the service that tasks share while one of them is alive or expected.
 * tasks_priv.h describes the files. */
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include "job/scheduler/tasks_priv.h"

#define LOOK_MS 50
#define LOOK_MOST_MS 250
/* How long the keeper waits for a task that the launcher may be starting. */
#define START_MS 200

void cop_tasks_keep(struct cop_tasks *t)
{
	cop_tasks_close_fd(&t->fd);
}

static int write_word(const struct cop_tasks *t, char kind, const char *text)
{
	struct cop_buf out = {0};
	int rc;

	cop_buf_printf(&out, "%c%s", kind, text);
	rc = out.failed ? -ENOMEM : cop_write_file(t->names[TASKS_WORD], out.data, out.len, 0600);
	cop_buf_free(&out);
	return rc;
}

int cop_tasks_tell(struct cop_tasks *t, const char *word, const struct cop_err *failure)
{
	int rc = write_word(t, failure ? '-' : '+', failure ? failure->text : word);

	cop_tasks_close_fd(&t->word_fd);
	if (!rc)
		t->word_fd = cop_tasks_open_file(t->names[TASKS_WORD], O_RDONLY);
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

/* No call is live. Returns how long, in total, it is worth waiting for the next one. */
static uint32_t time_to_wait(struct cop_tasks *t, int fd, uint32_t absent_ms, uint32_t *calls)
{
	struct cop_tasks_come come;
	uint32_t ms = 0;

	if (cop_tasks_read_come(t, fd, &come) == 0 && come.tasks < t->here)
		ms = cop_tasks_has_absent(t, &come) ? absent_ms : COP_MIN(absent_ms, START_MS);
	*calls = come.calls;
	t->again_came |= come.again;
	free(come.bit);
	return ms;
}

int cop_tasks_wait_idle(struct cop_tasks *t, uint32_t absent_ms, struct cop_err *err)
{
	uint64_t idle_since = 0;
	uint32_t calls, before = 0, ms;
	int wait_ms = LOOK_MS;

	for (;;) {
		int fd = cop_tasks_open_tasks(t, O_RDWR, F_WRLCK);

		if (fd < 0)
			return cop_err_set(err, -fd, "cannot wait for the tasks by %s: %s",
				t->names[TASKS_LOCK], strerror(-fd));
		ms = time_to_wait(t, fd, absent_ms, &calls);
		if (!idle_since || calls != before)
			idle_since = cop_now_ms();
		before = calls;
		if (cop_now_ms() - idle_since >= ms) {
			t->fd = fd;
			return 0;
		}
		close(fd);
		poll(NULL, 0, wait_ms);
		wait_ms = COP_MIN(2 * wait_ms, LOOK_MOST_MS);
	}
}

int cop_tasks_suspend(struct cop_tasks *t)
{
	int rc = write_word(t, '?', "");

	cop_tasks_close_fd(&t->fd);
	return rc;
}

void cop_tasks_close(struct cop_tasks *t)
{
	unlink(t->names[TASKS_WORD]);
	unlink(t->names[TASKS_LOCK]);
	cop_tasks_close_fd(&t->fd);
}

/* The keeper's own descriptor refers to the word that the last task locked, even if its name has
 * been removed. */
bool cop_tasks_is_waited_for(const struct cop_tasks *t)
{
	int rc = t->word_fd < 0 ? -1 : flock(t->word_fd, LOCK_EX | LOCK_NB);
	bool waited = rc && t->word_fd >= 0 && errno == EWOULDBLOCK;

	if (!rc)
		flock(t->word_fd, LOCK_UN);
	return waited;
}

void cop_tasks_end(struct cop_tasks *t)
{
	/* A task that waits for the keeper has already opened the message. The lock goes last. */
	unlink(t->names[TASKS_SAID]);
	unlink(t->names[TASKS_FIRST]);
	cop_tasks_close_fd(&t->word_fd);
	cop_tasks_leave(t);
}
