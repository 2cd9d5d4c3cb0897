/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_NODE_MOUNTDIR_PRIV_H
#define COP_NODE_MOUNTDIR_PRIV_H

#include "node/mountdir/mountdir.h"

/* Prefix of a private place's folder. */
#define COP_MOUNTDIR_FOLDER "mnt-"

/* ---- dirs.c ---- */
#define COP_MOUNTDIR_MADE_MAX 64 /* directories on the way to a mount point */
void cop_mountdir_above(const char *path, char out[4096]);
/* The real path of a name whose last components may be missing or a dead mount. depth is 0. 0 or
 * -errno. */
int cop_mountdir_resolve(const char *path, char out[4096], unsigned depth);
/* Creates path and its missing parents, and counts them; an existing path is fine. 0, or -errno and
 * nothing was created. */
int cop_mountdir_make_dirs(const char *path, mode_t mode, unsigned *made);
/* Records the identity of the directory at path; removes it and as many parents as were created. */
void cop_mountdir_remember(struct cop_mountdir *p);
void cop_mountdir_remove_made(const struct cop_mountdir *p);
/* Creates the folder of a private place. A descriptor holds its lock; -EWOULDBLOCK: in use by a
 * node; -ENOENT: it does not exist, or has vanished. */
int cop_mountdir_make_folder(const char *folder, struct cop_err *err);
int cop_mountdir_lock(const char *folder, struct cop_err *err);

#endif
