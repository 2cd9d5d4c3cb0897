/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_MOUNT_MOUNTGUARD_PRIV_H
#define COP_MOUNT_MOUNTGUARD_PRIV_H

#include "mount/mountguard/mountguard.h"

/* ---- audience.c: programs that may use the mount of a dead node ---- */
struct audience {
	char mark[128]; /* "NAME=VALUE" in the environment of the job's programs, or "" */
	pid_t session;  /* if there is no mark; 0: none */
	dev_t exe_dev;  /* device of this program's executable */
	ino_t exe_ino;  /* its inode; processes that run it do not count */
};
/* Call it while the environment is still the job's. session: the session of the command's shell. */
void cop_mountguard_audience_init(struct audience *a, pid_t session);
/* Call it when the node has died. A session that ended before that is no evidence. */
void cop_mountguard_audience_begin(struct audience *a);
/* Returns the pid of one such program, or 0 if there is none at present. */
pid_t cop_mountguard_audience_one(const struct audience *a);
/* The first: whether no more programs are expected after seeing none for this long. The second:
 * whether, this long after the node's death, a program that exists is no longer evidence. */
bool cop_mountguard_audience_gone(const struct audience *a, uint64_t unseen_ms);
bool cop_mountguard_audience_tells_little(const struct audience *a, uint64_t dead_ms);

#endif
