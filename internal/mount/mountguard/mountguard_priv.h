/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_MOUNT_MOUNTGUARD_PRIV_H
#define COP_MOUNT_MOUNTGUARD_PRIV_H

#include "mount/mountguard/mountguard.h"

/* ---- audience.c: programs that may use the mount of a dead node ---- */
struct audience {
	char mark[128]; /* "NAME=VALUE" in the environment of the job's programs, or "" */
	pid_t session;  /* if there is no mark; 0: none */
	dev_t exe_dev;  /* this program's executable, whose */
	ino_t exe_ino;  /* processes do not count */
};
/* Call it while the environment is the job's. session: of the command's shell. */
void cop_mountguard_audience_init(struct audience *a, pid_t session);
/* The node has died. A session that ended earlier is no evidence. */
void cop_mountguard_audience_begin(struct audience *a);
/* Returns one of them; 0: none at present. */
pid_t cop_mountguard_audience_one(const struct audience *a);
/* Whether this long without a program means that none will come; and whether, this long after
 * the death, an existing program is no longer evidence. */
bool cop_mountguard_audience_gone(const struct audience *a, uint64_t unseen_ms);
bool cop_mountguard_audience_tells_little(const struct audience *a, uint64_t dead_ms);

#endif
