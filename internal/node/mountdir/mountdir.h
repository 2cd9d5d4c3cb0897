/* SPDX-License-Identifier: BSD-3-Clause */
/* place: chooses, creates and removes the directory on which a node mounts. It mounts nothing.
 *
 * Without a MOUNTPOINT the node creates one below the folder of control sockets, which only the
 * user can enter (ctl/ctl.h): RUNTIME/mnt-JOB/SOURCE. JOB is a number derived from what the nodes
 * of a job have in common, so the path is the same on every machine and after a restart. A node
 * holds a lock on the folder mnt-JOB as long as it has the place; another node of the same job on
 * this machine finds it locked and takes mnt-JOB.1, and so on. The lock ends with the process.
 *
 * A named directory that does not exist is created, with any missing parents. A node removes what
 * it created when it ends; if it is killed, its guard or the command that removes the dead mount
 * does. */
#ifndef COP_NODE_MOUNTDIR_H
#define COP_NODE_MOUNTDIR_H

#include "base/base/base.h"
#include "job/conf/conf.h"

struct cop_mountdir {
	const struct cop_conf *conf;
	char path[4096];   /* absolute; "" of a node without a mount */
	int folder_fd;     /* for a private place: the locked folder around it; -1: not held */
	unsigned made;     /* directories at the end of path that are removed with the mount */
	uint64_t dev, ino; /* inode number of the last of them: a different directory there must not
			      be removed */
};

/* Finds or creates the directory, removes what a killed node left there, and checks that it can be
 * a mount point. 0, or -errno with a sentence and nothing left behind. */
int cop_mountdir_acquire(const struct cop_conf *conf, struct cop_mountdir *p, struct cop_err *err);
/* Call it right before the mount: creates the directory again if the guard of an earlier node has
 * just removed it. */
void cop_mountdir_renew(struct cop_mountdir *p);
/* Call it when the mount is gone: removes what was created, and gives up the place. */
void cop_mountdir_leave(struct cop_mountdir *p);
/* The same for the guard of a killed node. Does nothing if another node has the place by now. */
void cop_mountdir_clear(const struct cop_mountdir *p);

/* Whether a start would find its place, without creating anything: out gets a sentence about it. */
int cop_mountdir_check(const struct cop_conf *conf, struct cop_buf *out, struct cop_err *err);
/* The mount point that a node on this machine has if it is the only one of its job here; it need
 * not exist. */
int cop_mountdir_name(const struct cop_conf *conf, char out[4096], struct cop_err *err);
/* Appends this place's part of the note beside the control socket, which follows the tree's
 * part. */
void cop_mountdir_note(const struct cop_mountdir *p, struct cop_buf *out);

/* A number for the scheduler's job of this process, 0 if there is none; the second: for the job in
 * which the node of this control socket was started. */
uint64_t cop_mountdir_job(void);
uint64_t cop_mountdir_noted_job(const char *socket);

/* Waits until the process of the killed node of this control socket has ended, at most 30 s. The
 * kernel closes what a killed process has open one by one, so the socket may already refuse
 * connections while the mount is not dead yet or the folder of the place is still locked. */
void cop_mountdir_wait_ended(const char *socket);
/* Removes what a killed node left: its mount, and the directories that it created for it, also if
 * the mount is already gone (its guard was killed between the two). socket: its control socket, or
 * NULL if that no longer exists. The directories stay if its process has not ended
 * (cop_mountdir_wait_ended). 1: its dead mount was removed; 0: there was none; or -errno. */
int cop_mountdir_remove_dead(const char *mountpoint, const char *socket);

/* Removes the private places in dir (a directory of control sockets) in which nothing is mounted
 * and which no node has: those of nodes that were killed, together with their guards, before they
 * mounted. */
void cop_mountdir_sweep(const char *dir);

#endif
