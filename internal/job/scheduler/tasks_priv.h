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

/* cop_tasks.names */
enum { TASKS_LOCK, TASKS_FIRST, TASKS_WORD, TASKS_SAID };

#define COP_TASKS_WORD_MAX 8192
/* A call's record: the number of its task, and whether the task may call again. A second record of
 * the task follows if the call has ended without the others. */
#define COP_TASKS_AGAIN 0x80000000u
#define COP_TASKS_WAITED 0x40000000u

/* ---- tasks.c ---- */
void cop_tasks_set_names(struct cop_tasks *t, const char *dir);
int cop_tasks_open_file(const char *path, int flags);
/* Returns the descriptor if its lock was obtained (rc) and the file still has its name; -ENOENT if
 * it does not; else rc. */
int cop_tasks_check_locked(int fd, int rc, const char *path);
/* Opens and locks by flock(2). */
int cop_tasks_open_locked(const char *path, int flags, int operation);
/* Opens run-ID.tasks and waits for a lock of this type. */
int cop_tasks_open_tasks(const struct cop_tasks *t, int flags, short type);
/* Whether a call has its read lock on this open file. */
bool cop_tasks_has_live(int fd);
void cop_tasks_close_fd(int *fd);

/* ---- come.c ---- */

/* The contents of the records. */
struct cop_tasks_come {
	uint32_t calls, tasks; /* tasks: number of distinct ones */
	bool again;            /* one of the tasks may call again */
	uint8_t *bit; /* by number, for t->here tasks: 1; 2 if its call has waited its maximum for
			 the others */
};
/* 0 or -errno; free(come->bit). */
int cop_tasks_read_come(const struct cop_tasks *t, int fd, struct cop_tasks_come *come);
/* Whether a task of this machine that has not called is alive. */
bool cop_tasks_has_absent(const struct cop_tasks *t, const struct cop_tasks_come *come);

/* ---- find.c ---- */
/* The nearest ancestor of a process without the variable, by pid and start time. */
uint64_t cop_tasks_ancestor(pid_t pid, const char *variable);
/* The environment of a process; NULL if unreadable. The caller frees it. */
char *cop_tasks_environ(pid_t pid, size_t *len);
/* The value of a variable in it; NULL. */
const char *cop_tasks_variable(const char *vars, size_t len, const char *name);

/* ---- killed.c ---- */
/* Removes the files of this start if no task and no keeper of it is alive. found (may be NULL)
 * first receives the keeper's word, if any. */
void cop_tasks_remove_killed(
	const struct cop_tasks *t, void (*found)(void *arg, const char *word), void *arg);

#endif
