/* SPDX-License-Identifier: BSD-3-Clause */
/* mountdir: chooses, creates and removes a node's mount point. It does not mount.
 *
 * Without a MOUNTPOINT the node creates a private place below the folder of control sockets, which
 * only its user can access (ctl/ctl.h): RUNTIME/mnt-JOB/SOURCE. JOB is a hash of properties that
 * the job's nodes share, so the path is the same on every machine and after a restart. The node
 * locks the folder mnt-JOB while it uses the place; another node of the same job on this machine
 * then uses mnt-JOB.1, and so on. The lock ends with the process.
 *
 * If a given MOUNTPOINT does not exist, the node creates it and any missing parents. It removes the
 * directories it created when it ends; if it is killed, its guard removes them, or the command that
 * removes the dead mount. */
#ifndef COP_NODE_MOUNTDIR_H
#define COP_NODE_MOUNTDIR_H

#include "base/base/base.h"
#include "job/conf/conf.h"

struct cop_mountdir {
	const struct cop_conf *conf;
	char path[4096];   /* absolute; "" for a node without a mount */
	int folder_fd;     /* the locked folder of a private place; -1: none */
	unsigned made;     /* number of trailing directories of path to remove with the mount */
	uint64_t dev, ino; /* identity of the last of them: a different directory at that path must
			      not be removed */
};

/* Finds or creates the directory, removes the remains of a killed node, and checks that the
 * directory can be a mount point. 0, or -errno with a sentence and no side effects. */
int cop_mountdir_acquire(const struct cop_conf *conf, struct cop_mountdir *p, struct cop_err *err);
/* Call it right before the mount: recreates the directory if the guard of an earlier node has just
 * removed it. */
void cop_mountdir_renew(struct cop_mountdir *p);
/* Call it after the unmount: removes the created directories and releases the place. */
void cop_mountdir_leave(struct cop_mountdir *p);
/* The same, called by the guard of a killed node. Does nothing if another node has taken the
 * place. */
void cop_mountdir_clear(const struct cop_mountdir *p);

/* Checks whether a start would find a place, without creating anything; appends a sentence to
 * out. */
int cop_mountdir_check(const struct cop_conf *conf, struct cop_buf *out, struct cop_err *err);
/* The mount point that a node on this machine has if it is the only one of its job here. It need
 * not exist. */
int cop_mountdir_name(const struct cop_conf *conf, char out[4096], struct cop_err *err);
/* Appends what concerns this place to the note beside the control socket, after the tree's part. */
void cop_mountdir_note(const struct cop_mountdir *p, struct cop_buf *out);

/* An id of the scheduler job of this process, or of the job in which this control socket's node was
 * started; 0 if there is none. */
uint64_t cop_mountdir_job(void);
uint64_t cop_mountdir_noted_job(const char *socket);

/* Waits up to 30 s until the killed node of this control socket has exited. The kernel closes its
 * descriptors one by one, so the socket may already refuse connections while the mount is not yet
 * dead or the place's folder is still locked. */
void cop_mountdir_wait_ended(const char *socket);
/* Removes the remains of a killed node: its mount and the directories created for it, even if the
 * mount is already gone (its guard was killed in between). socket: the node's control socket, or
 * NULL if it no longer exists. The directories remain if the node's process has not exited
 * (cop_mountdir_wait_ended). 1: a dead mount was removed; 0: there was none; or -errno. */
int cop_mountdir_remove_dead(const char *mountpoint, const char *socket);

/* Removes the private places in dir (a directory of control sockets) that have neither a mount nor
 * a node: remains of nodes that were killed, together with their guards, before they mounted. */
void cop_mountdir_sweep(const char *dir);

#endif
