/* SPDX-License-Identifier: BSD-3-Clause */
/* run_warn: warnings of copper run about a command that will start but not work as expected.
 * Each warning is printed once per launch, by the task of rank 0. */
#ifndef COP_CMD_RUN_WARN_H
#define COP_CMD_RUN_WARN_H

#include <limits.h>

#include "mount/view/view.h"

/* The working directory was writable before the view was created, and is read-only now. */
void cop_run_warn_outputs(bool was_writable);
/* Finds a directory that the command will probably change, owned by this user but with a group
 * that is not mapped in an ordinary user's namespace. "" if none. Call it before creating the
 * view. */
void cop_run_find_foreign_group(const struct cop_view *v, char dir[PATH_MAX], gid_t *group);
/* dir is from cop_run_find_foreign_group. */
void cop_run_warn_group(const char *dir, gid_t group);
/* The view consists only of variables, although the user did not request that. */
void cop_run_warn_variables(const struct cop_view *v, const struct cop_view_made *made);
/* The command is in a user namespace of its own. */
void cop_run_warn_neighbours(void);
/* The command is a launcher whose tasks are outside the view. */
void cop_run_warn_order(char *const *command);
/* At log level info: the command is one of several tasks, and in a user namespace. */
void cop_run_inform_tasks(void);

#endif
