/* SPDX-License-Identifier: BSD-3-Clause */
/* sweep: removes mounts and files that remain on this machine if all processes of copper run
 * --source were killed at once. */
#ifndef COP_CMD_SWEEP_H
#define COP_CMD_SWEEP_H

#include <stdbool.h>

/* Leaves files that cannot be removed. runtime_dir: as given to the command, or NULL. */
void cop_cmd_sweep(const char *runtime_dir);
/* The node at this mount point was killed: removes its mount, if it is dead, and its socket.
 * Returns whether there was such a mount and it is gone. */
bool cop_cmd_clear_away(const char *mountpoint, const char *socket);
/* The same for a mount point, as its node named it, that may be gone already. */
void cop_cmd_clear_mount(const char *runtime_dir, const char *mountpoint);

#endif
