/* SPDX-License-Identifier: BSD-3-Clause */
/* guard: what becomes of a mount when the process that serves it is killed. A FUSE mount outlives
 * its process: after SIGKILL (the kernel short of memory, an impatient scheduler) it stays, and
 * what is not in the kernel's memory fails with ENOTCONN. That is what the programs of the job must
 * see: without the mount there would be an empty directory, and a program that finds nothing may
 * believe it. But it must not stay on the machine either. So a second process, which has no threads
 * and does nothing as long as the node lives, takes the dead mount away when nobody is left who may
 * look at it. It never starts or ends a node, takes no mount away whose node lives, and none that
 * is in use unless a signal tells it that all is over. */
#ifndef COP_GUARD_H
#define COP_GUARD_H

#include "base/base.h"

#include <sys/types.h>

struct cop_guard_conf {
	const char *mountpoint; /* its real path; "": there is none, and nothing to guard */
	/* This process goes on as the guard, and the node is its child; else the guard is the
	 * child. */
	bool above;
	pid_t session; /* of whoever gave the command: its programs may look at the mount */
	/* The node was killed, and its mount is not there any more. */
	void (*gone)(void *arg);
	void *arg;
};

/* The node's side. */
struct cop_guard {
	int fd; /* -1: there is none */
	pid_t pid;
	bool above; /* it is this process's parent, and ends after it */
};

/* Before the first thread, and while the environment is the job's. Where the guard cannot be
 * started there is none. */
struct cop_guard cop_guard_start(const struct cop_guard_conf *conf);
/* The process with whose end all of this node is gone. */
pid_t cop_guard_last(const struct cop_guard *g);
/* The node ends. left_dead: its mount is still there, and now the guard's; else the guard has ended
 * when this returns, if it is not above. */
void cop_guard_end(const struct cop_guard *g, bool left_dead);

#endif
