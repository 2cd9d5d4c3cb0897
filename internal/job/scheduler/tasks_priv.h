/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_JOB_SCHEDULER_TASKS_PRIV_H
#define COP_JOB_SCHEDULER_TASKS_PRIV_H

#include "job/scheduler/scheduler.h"

/* cop_tasks.names */
enum { TASKS_LOCK, TASKS_FIRST, TASKS_WORD, TASKS_SAID };

#define COP_TASKS_WORD_MAX 8192

/* ---- tasks.c ---- */
void cop_tasks_set_names(struct cop_tasks *t, const char *dir);

/* ---- killed.c ---- */
/* Removes the files of this start if no task and no keeper of it is alive. Before that, found (may
 * be NULL) gets the keeper's word, if there is one. */
void cop_tasks_remove_killed(
	const struct cop_tasks *t, void (*found)(void *arg, const char *word), void *arg);

#endif
