/* SPDX-License-Identifier: BSD-3-Clause */
/* Cleans up after a start whose processes, or whose keeper, were killed: removes its files and the
 * mount named in them. No process of that start is left to do so, so another start of the same user
 * does it. The locks are free by then. A process that opened a file just before, and gets its lock
 * afterwards, notices that the file has been removed and creates a new one (tasks.c). */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>

#include "job/scheduler/tasks_priv.h"

/* Returns a descriptor that holds the lock; -ENOENT: no such file; -EWOULDBLOCK: another process
 * holds the lock. */
static int lock_first(const struct cop_tasks *t)
{
	int fd = open(t->names[TASKS_FIRST], O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return fd;
	close(fd);
	return -EWOULDBLOCK;
}

static int lock_tasks(const struct cop_tasks *t)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	int fd = open(t->names[TASKS_LOCK], O_RDWR | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	if (fcntl(fd, F_OFD_SETLK, &lock) == 0)
		return fd;
	close(fd);
	return -EWOULDBLOCK;
}

static void remove_all(
	const struct cop_tasks *t, void (*found)(void *arg, const char *word), void *arg)
{
	char *text = NULL;
	size_t len;

	if (found && cop_read_file(t->names[TASKS_WORD], COP_TASKS_WORD_MAX, &text, &len) == 0 &&
		text[0] == '+')
		found(arg, text + 1);
	free(text);
	for (size_t i = 0; i < COP_ARRAY_SIZE(t->names); i++)
		unlink(t->names[i]);
}

void cop_tasks_remove_killed(
	const struct cop_tasks *t, void (*found)(void *arg, const char *word), void *arg)
{
	int first = lock_first(t);
	int tasks = first == -EWOULDBLOCK ? first : lock_tasks(t);

	if (first != -EWOULDBLOCK && tasks != -EWOULDBLOCK && (first >= 0 || tasks >= 0))
		remove_all(t, found, arg);
	if (first >= 0)
		close(first);
	if (tasks >= 0)
		close(tasks);
}

void cop_tasks_sweep(const char *dir, void (*found)(void *arg, const char *word), void *arg)
{
	DIR *d = opendir(dir);
	struct dirent *entry;
	int end;

	while (d && (entry = readdir(d))) {
		struct cop_tasks t = {.fd = -1, .first_fd = -1, .word_fd = -1};

		end = 0;
		if (sscanf(entry->d_name, "run-%16" SCNx64 ".%n", &t.id, &end) != 1 || !end ||
			(strcmp(entry->d_name + end, "tasks") &&
				strcmp(entry->d_name + end, "first")))
			continue;
		cop_tasks_set_names(&t, dir);
		cop_tasks_remove_killed(&t, found, arg);
	}
	if (d)
		closedir(d);
}
