/* SPDX-License-Identifier: BSD-3-Clause */
/* place: the directory on which a node mounts: chosen, made and removed, and given up. It mounts
 * nothing.
 *
 * Without a MOUNTPOINT the node makes one below the folder of control sockets, which is the user's
 * alone (ctl/ctl.h): RUNTIME/mnt-JOB/SOURCE. JOB is a number made of what the nodes of a job have
 * in common, so that the path is the same on every machine and after a restart. A node holds a lock
 * on the folder mnt-JOB as long as it has the place; another node of the same job on this machine
 * finds it locked and takes mnt-JOB.1, and so on. The lock goes with the process.
 *
 * A named directory that is missing is made, with the parents that it lacks. What a node made it
 * takes away when it ends; where it is killed its guard does, or whoever takes its dead mount away.
 */
#ifndef COP_PLACE_H
#define COP_PLACE_H

#include "base/base.h"
#include "conf/conf.h"

struct cop_place {
	const struct cop_conf *conf;
	char path[4096];   /* absolute; "" of a node without a mount */
	int folder_fd;     /* of a private place: the folder around it, locked; -1: not held */
	unsigned made;     /* directories at the end of path that are to go with the mount */
	uint64_t dev, ino; /* of the last of them: another one there is not ours to remove */
};

/* Finds the directory or makes it, takes away what a killed node left there, and checks that it can
 * be mounted on. 0, or -errno with a sentence and nothing left behind. */
int cop_place_take(const struct cop_conf *conf, struct cop_place *p, struct cop_err *err);
/* Right before the mount: makes it again if the guard of an earlier node has just removed it. */
void cop_place_renew(struct cop_place *p);
/* The mount is gone: removes what was made, and gives the place up. */
void cop_place_leave(struct cop_place *p);
/* The same for the guard of a node that was killed, unless another node has the place by now. */
void cop_place_clear(const struct cop_place *p);

/* Whether a start would find its place, without making anything: out is a sentence about it. */
int cop_place_check(const struct cop_conf *conf, struct cop_buf *out, struct cop_err *err);
/* Where the node of this machine mounts if it is the only one of its job here; nothing has to be
 * there. */
int cop_place_name(const struct cop_conf *conf, char out[4096], struct cop_err *err);
/* What stands in the note beside the control socket, behind the tree. */
void cop_place_note(const struct cop_place *p, struct cop_buf *out);

/* A number of the scheduler's job in which this process is; 0: of none. And of the job in which the
 * node of this control socket was started. */
uint64_t cop_place_job(void);
uint64_t cop_place_noted_job(const char *socket);

/* Takes away the mount that a killed node left behind, and what that had made for it; socket: its
 * control socket, or NULL where that is not there any more. 0 or -errno. */
int cop_place_unmount_dead(const char *mountpoint, const char *socket);

#endif
