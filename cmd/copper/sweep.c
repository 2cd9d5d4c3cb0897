/* SPDX-License-Identifier: BSD-3-Clause */
#include "sweep.h"

#include "node/ctl/ctl.h"
#include "node/mountdir/mountdir.h"
#include "job/scheduler/scheduler.h"

bool cop_cmd_clear_away(const char *mountpoint, const char *socket)
{
	bool removed;

	cop_mountdir_wait_ended(socket);
	removed = cop_mountdir_remove_dead(mountpoint, socket) == 1;
	cop_ctl_clear(socket, NULL);
	return removed;
}

/* Only its tasks could use that mount, and none of them is alive. A live node exits by itself. */
static void clear_mount(void *dir, const char *mountpoint)
{
	char socket[COP_CTL_PATH_SIZE];

	if (cop_ctl_path(dir, mountpoint, socket, sizeof(socket)) == 0)
		cop_cmd_clear_away(mountpoint, socket);
}

void cop_cmd_clear_mount(const char *runtime_dir, const char *mountpoint)
{
	char dir[COP_CTL_PATH_SIZE];

	if (cop_ctl_dir(runtime_dir, dir, sizeof(dir), NULL) == 0)
		clear_mount(dir, mountpoint);
}

void cop_cmd_sweep(const char *runtime_dir)
{
	char dir[COP_CTL_PATH_SIZE];

	if (cop_ctl_dir(runtime_dir, dir, sizeof(dir), NULL))
		return;
	cop_tasks_sweep(dir, clear_mount, dir);
	cop_mountdir_sweep(dir);
}
