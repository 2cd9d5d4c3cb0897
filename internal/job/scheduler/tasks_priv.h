/* SPDX-License-Identifier: BSD-3-Clause */
/* Four files in a directory of the user, named after the launch of the tasks:
 *
 *   run-ID.tasks   a record of each call, and a read lock of each live one (fcntl(2), F_OFD_SETLK:
 *                  unlike flock(2) it reports what kind of lock others hold)
 *   run-ID.first   locked by the keeper, and before that by the task that starts it
 *   run-ID.word    the keeper's result, "+WORD", "-SENTENCE", or "?": wait, it may end; a shared
 *                  lock of each task that succeeded and either does not know yet that others live,
 *                  or waits for the keeper
 *   run-ID.said    the keeper's final message to the user
 *
 * Generations. A task may call several times, and tasks arrive at different times. A call
 * creates run-ID.tasks or joins it. While run-ID.first is unlocked, any waiting call may lock it
 * and start a keeper. When no call is live, the keeper gets the write lock on run-ID.tasks, and
 * removes that file and the word: the generation is closed. A later call creates the next file,
 * and waits until the old keeper has exited and run-ID.first is free. So a call belongs to the
 * current generation while its locked file still has its name.
 *
 * A lock belongs to an open file, so a forked process closes inherited ones. */
#ifndef COP_JOB_SCHEDULER_TASKS_PRIV_H
#define COP_JOB_SCHEDULER_TASKS_PRIV_H

#include "job/scheduler/scheduler.h"

/* Indices into cop_tasks.names. */
enum { TASKS_LOCK, TASKS_FIRST, TASKS_WORD, TASKS_SAID };

#define COP_TASKS_WORD_MAX 8192
/* The record of a call: the number of its task, with this bit set if the task may call again. A
 * second record follows if the call ended without waiting for the others. */
#define COP_TASKS_AGAIN 0x80000000u
#define COP_TASKS_WAITED 0x40000000u

/* ---- tasks.c ---- */
void cop_tasks_set_names(struct cop_tasks *t, const char *dir);
int cop_tasks_open_file(const char *path, int flags);
/* Returns the descriptor if rc is 0 (the lock was obtained) and the file still has its name;
 * -ENOENT if it does not; else rc. */
int cop_tasks_check_locked(int fd, int rc, const char *path);
/* Opens the file and locks it with flock(2). */
int cop_tasks_open_locked(const char *path, int flags, int operation);
/* Opens run-ID.tasks and waits for a lock of this type. */
int cop_tasks_open_tasks(const struct cop_tasks *t, int flags, short type);
/* Whether some call holds its read lock on this open file. */
bool cop_tasks_has_live(int fd);
void cop_tasks_close_fd(int *fd);

/* ---- come.c ---- */

/* What the records in run-ID.tasks say. */
struct cop_tasks_come {
	uint32_t calls, tasks; /* tasks: how many distinct ones */
	bool again;            /* one of the tasks may call again */
	uint8_t *bit; /* one per task, t->here in all: 1 if it called, 2 if that call has waited as
			 long as it may for the others */
};
/* Returns 0 or -errno; the caller frees come->bit. */
int cop_tasks_read_come(const struct cop_tasks *t, int fd, struct cop_tasks_come *come);
/* Whether a task on this machine that has not called yet is alive. */
bool cop_tasks_has_absent(const struct cop_tasks *t, const struct cop_tasks_come *come);

/* ---- find.c ---- */
/* Identifies the nearest ancestor of pid that lacks the variable, by its pid and start time. */
uint64_t cop_tasks_ancestor(pid_t pid, const char *variable);
/* The environment of a process, or NULL if it cannot be read. The caller frees it. */
char *cop_tasks_environ(pid_t pid, size_t *len);
/* The value of a variable in such an environment, or NULL. */
const char *cop_tasks_variable(const char *vars, size_t len, const char *name);

/* ---- killed.c ---- */
/* Removes the files of this start if neither its tasks nor its keeper are alive. Before that, found
 * (may be NULL) gets the keeper's word, if any. */
void cop_tasks_remove_killed(
	const struct cop_tasks *t, void (*found)(void *arg, const char *word), void *arg);

#endif
