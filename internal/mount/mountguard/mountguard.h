/* SPDX-License-Identifier: BSD-3-Clause */
/* guard: removes the mount of a process that was killed. A FUSE mount outlives its process: after
 * SIGKILL (the kernel short of memory, an impatient scheduler) it stays, and whatever is not in the
 * kernel's memory fails with ENOTCONN. The programs of the job must see this error: without the
 * mount they would see an empty directory, and might believe it. But the mount must not stay on the
 * machine for ever either. So a second process, which has no threads and does nothing while the
 * node lives, removes the dead mount when no program is left that could use it. The guard never
 * starts or ends a node. It never removes the mount of a living node, and removes one that is in
 * use only if a signal says that the job is over. */
#ifndef COP_MOUNT_MOUNTGUARD_H
#define COP_MOUNT_MOUNTGUARD_H

#include "base/base/base.h"

struct cop_mountguard_conf {
	const char *mountpoint; /* its real path; "": no mount, and nothing to guard */
	/* This process becomes the guard, and the node is its child; else the guard is the child.
	 */
	bool above;
	pid_t session; /* of the user's command: programs of this session may use the mount */
	/* Whether the programs that this mount is for are still alive; called in the guard, where
	 * only descriptors 0 to 3 are open. NULL: the mount is for all programs of the job. */
	bool (*needed)(void *arg);
	void *needed_arg;
	/* The node was killed, and its mount has been removed. */
	void (*gone)(void *arg);
	void *arg;
};

/* The node's side. */
struct cop_mountguard {
	int fd; /* -1: no guard */
	pid_t pid;
	bool above; /* it is the parent of this process, and ends after it */
};

/* Call it before the first thread, and while the environment is the job's. If the guard cannot be
 * started, there is none. */
struct cop_mountguard cop_mountguard_start(const struct cop_mountguard_conf *conf);
/* The last process of this node to end. */
pid_t cop_mountguard_last(const struct cop_mountguard *g);
/* The node ends. left_dead: its mount still exists, and the guard will remove it. Otherwise the
 * guard has ended when this returns, unless it is above. */
void cop_mountguard_end(const struct cop_mountguard *g, bool left_dead);

#endif
