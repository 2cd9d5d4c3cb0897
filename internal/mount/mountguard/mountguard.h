/* SPDX-License-Identifier: BSD-3-Clause */
/* mountguard: removes the mount of a killed process. A FUSE mount outlives its process: after
 * SIGKILL (out of memory, an impatient scheduler) it stays, and every access that the kernel cannot
 * serve from its cache fails with ENOTCONN. The job's programs must see this error: without the
 * mount they would see an empty directory and might take it for the real one. But the mount must
 * not stay on the machine forever either. So a second process, single-threaded and idle while the
 * node is alive, removes the dead mount once no program is left that could use it. The guard never
 * starts or ends a node. It never removes the mount of a live node, and removes a dead one still in
 * use only if a signal indicates the end of the job. */
#ifndef COP_MOUNT_MOUNTGUARD_H
#define COP_MOUNT_MOUNTGUARD_H

#include "base/base/base.h"

struct cop_mountguard_conf {
	const char *mountpoint; /* its real path; "": no mount, nothing to guard */
	/* This process becomes the guard and the node its child; if false, the guard is the
	 * child. */
	bool above;
	pid_t session; /* session of the user's command; its programs may use the mount */
	/* Whether programs that use the mount are still alive. Called in the guard, where only
	 * descriptors 0 to 3 are open. NULL: all programs of the job may use the mount. */
	bool (*needed)(void *arg);
	void *needed_arg;
	/* Called when the node was killed and its mount has been removed. */
	void (*gone)(void *arg);
	void *arg;
};

/* Used by the node. */
struct cop_mountguard {
	int fd; /* -1: no guard */
	pid_t pid;
	bool above; /* the guard is this process's parent and exits after it */
};

/* Call it before the first thread starts and while the environment is still the job's. On failure
 * there is no guard. */
struct cop_mountguard cop_mountguard_start(const struct cop_mountguard_conf *conf);
/* The node's last process to exit. */
pid_t cop_mountguard_last(const struct cop_mountguard *g);
/* Call it when the node ends. left_dead: its mount still exists, and the guard will remove it.
 * Otherwise the guard has exited when this returns, unless it is above. */
void cop_mountguard_end(const struct cop_mountguard *g, bool left_dead);

#endif
