/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_TASKS_PRIV_H
#define COP_TASKS_PRIV_H

#include "tasks/tasks.h"

/* cop_tasks.names */
enum { TASKS_LOCK, TASKS_FIRST, TASKS_WORD, TASKS_SAID };

#endif
