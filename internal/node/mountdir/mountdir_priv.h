/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_NODE_MOUNTDIR_PRIV_H
#define COP_NODE_MOUNTDIR_PRIV_H

#include "node/mountdir/mountdir.h"

/* Prefix of a private place's folder. */
#define COP_MOUNTDIR_FOLDER "mnt-"

/* ---- dirs.c ---- */
#define COP_MOUNTDIR_MADE_MAX 64 /* most directories created for a mount point */
void cop_mountdir_above(const char *path, char out[4096]);
/* The real path of a name whose last components may be missing or a dead mount. Callers pass depth
 * 0. Returns 0 or -errno. */
int cop_mountdir_resolve(const char *path, char out[4096], unsigned depth);
/* Creates path and its missing parents, and counts those it created; an existing path is fine.
 * Returns 0, or -errno with nothing created. */
int cop_mountdir_make_dirs(const char *path, mode_t mode, unsigned *made);
/* The first records the identity of the directory at p->path. The second removes it and the parents
 * that were created. */
void cop_mountdir_remember(struct cop_mountdir *p);
void cop_mountdir_remove_made(const struct cop_mountdir *p);
/* Creates or locks the folder of a private place. cop_mountdir_lock returns a descriptor that holds
 * the lock; -EWOULDBLOCK: a node uses the folder; -ENOENT: it does not exist or has vanished. */
int cop_mountdir_make_folder(const char *folder, struct cop_err *err);
int cop_mountdir_lock(const char *folder, struct cop_err *err);

#endif
