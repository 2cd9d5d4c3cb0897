/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep: removes the mounts and files left on this machine when all processes of a copper run
 * --source were killed at once. */
#ifndef COP_CMD_SWEEP_H
#define COP_CMD_SWEEP_H

#include <stdbool.h>

/* Removes what it can and skips the rest. runtime_dir: as given to the command, or NULL. */
void cop_cmd_sweep(const char *runtime_dir);
/* Cleans up after the node at this mount point was killed: removes its mount, if dead, and its
 * socket. Returns whether a dead mount was removed. */
bool cop_cmd_clear_away(const char *mountpoint, const char *socket);
/* The same for a mount point, as its node names it, that may no longer exist. */
void cop_cmd_clear_mount(const char *runtime_dir, const char *mountpoint);

#endif
