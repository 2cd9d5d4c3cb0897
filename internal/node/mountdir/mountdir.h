/* SPDX-License-Identifier: BSD-3-Clause */
/* mountdir: chooses, creates and removes a node's mount point. It does not mount.
 *
 * Without a MOUNTPOINT the node creates one below the folder of control sockets, which is
 * private to the user (ctl/ctl.h): RUNTIME/mnt-JOB/SOURCE. JOB is a hash of properties common to
 * the job's nodes, so the path is the same on every machine and after a restart. The node holds
 * a lock on the folder mnt-JOB while it uses the place; another node of the same job on this
 * machine then uses mnt-JOB.1, and so on. The lock ends with the process.
 *
 * A named directory that does not exist is created, with any missing parents. A node removes the
 * directories it created when it ends; if it is killed, its guard does, or the command that
 * removes the dead mount. */
#ifndef COP_NODE_MOUNTDIR_H
#define COP_NODE_MOUNTDIR_H

#include "base/base/base.h"
#include "job/conf/conf.h"

struct cop_mountdir {
	const struct cop_conf *conf;
	char path[4096];   /* absolute; "" for a node without a mount */
	int folder_fd;     /* for a private place: the locked folder around it; -1: not held */
	unsigned made;     /* number of trailing directories of path to remove with the mount */
	uint64_t dev, ino; /* inode of the last of them: a different directory there must not be
			      removed */
};

/* Finds or creates the directory, removes the remains of a killed node, and checks that it can be a
 * mount point. 0, or -errno with a sentence and no side effects. */
int cop_mountdir_acquire(const struct cop_conf *conf, struct cop_mountdir *p, struct cop_err *err);
/* Call it right before the mount: recreates the directory if the guard of an earlier node has just
 * removed it. */
void cop_mountdir_renew(struct cop_mountdir *p);
/* Call it after the unmount: removes the created directories and releases the place. */
void cop_mountdir_leave(struct cop_mountdir *p);
/* The same for the guard of a killed node. Does nothing if another node has taken the place. */
void cop_mountdir_clear(const struct cop_mountdir *p);

/* Whether a start would find its place, without creating anything; appends a sentence to out. */
int cop_mountdir_check(const struct cop_conf *conf, struct cop_buf *out, struct cop_err *err);
/* The mount point of a node on this machine if it is the only one of its job here; need not
 * exist. */
int cop_mountdir_name(const struct cop_conf *conf, char out[4096], struct cop_err *err);
/* Appends this place's part of the note beside the control socket, after the tree's part. */
void cop_mountdir_note(const struct cop_mountdir *p, struct cop_buf *out);

/* An id of the scheduler job of this process, 0 if there is none; the second: of the job in which
 * this control socket's node was started. */
uint64_t cop_mountdir_job(void);
uint64_t cop_mountdir_noted_job(const char *socket);

/* Waits, at most 30 s, until the killed node of this control socket has exited. The kernel closes
 * its descriptors one by one, so the socket may already refuse connections while the mount is not
 * dead yet or the place's folder is still locked. */
void cop_mountdir_wait_ended(const char *socket);
/* Removes the remains of a killed node: its mount and the directories created for it, even if the
 * mount is already gone (its guard was killed in between). socket: its control socket, or NULL if
 * that no longer exists. The directories remain if its process has not exited
 * (cop_mountdir_wait_ended). 1: a dead mount was removed; 0: there was none; or -errno. */
int cop_mountdir_remove_dead(const char *mountpoint, const char *socket);

/* Removes the private places in dir (a directory of control sockets) without a mount and without a
 * node: remains of nodes that were killed with their guards before they mounted. */
void cop_mountdir_sweep(const char *dir);

#endif
