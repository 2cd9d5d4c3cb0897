/* SPDX-License-Identifier: BSD-3-Clause */
/* run_warn: warnings of copper run about a command that will start but not work as its user
 * expects. Each warning appears once in a launch, in the task of rank 0. */
#ifndef COP_CMD_RUN_WARN_H
#define COP_CMD_RUN_WARN_H

#include <limits.h>

#include "mount/view/view.h"

/* The working directory was writable before the view was made, and is read-only now. */
void cop_run_warn_outputs(bool was_writable);
/* Finds a place that the command will probably change, and that belongs to this user but to a group
 * that an ordinary user's namespace does not know. "" if there is none. Call it before the view is
 * made. */
void cop_run_find_foreign_group(const struct cop_view *v, char dir[PATH_MAX], gid_t *group);
/* dir is from cop_run_find_foreign_group. */
void cop_run_warn_group(const char *dir, gid_t group);
/* The view is only variables, although the user did not ask for that. */
void cop_run_warn_variables(const struct cop_view *v, const struct cop_view_made *made);
/* The command is in a user namespace of its own. */
void cop_run_warn_neighbours(void);
/* The command is a launcher, whose tasks are not in the view. */
void cop_run_warn_order(char *const *command);
/* At log level info: the command is one of several tasks, and in a user namespace. */
void cop_run_inform_tasks(void);

#endif
