/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_MOUNT_MOUNTGUARD_PRIV_H
#define COP_MOUNT_MOUNTGUARD_PRIV_H

#include "mount/mountguard/mountguard.h"

/* ---- audience.c: who may look at the mount of a node that died ---- */
struct audience {
	char mark[128]; /* "NAME=VALUE" in the environment of the job's programs, or "" */
	pid_t session;  /* without a mark; 0: none */
	dev_t exe_dev;  /* this program, */
	ino_t exe_ino;  /* of an executable whose processes do not count */
};
/* Call it while the environment is the job's. session: that of the command's shell. */
void cop_mountguard_audience_init(struct audience *a, pid_t session);
/* The node has died: a session that has ended before proves nothing. */
void cop_mountguard_audience_begin(struct audience *a);
/* Returns one of them; 0: there is none now. */
pid_t cop_mountguard_audience_one(const struct audience *a);
/* Whether no further program will come if none was seen for so long; and whether a program that
 * exists proves nothing so long after the death. */
bool cop_mountguard_audience_gone(const struct audience *a, uint64_t unseen_ms);
bool cop_mountguard_audience_tells_little(const struct audience *a, uint64_t dead_ms);

#endif
