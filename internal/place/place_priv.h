/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef COP_PLACE_PRIV_H
#define COP_PLACE_PRIV_H

#include "place/place.h"

#include <sys/types.h>

/* ---- place_dirs.c ---- */
#define COP_PLACE_MADE_MAX 64 /* directories on the way to a mount point */
void cop_place_above(const char *path, char out[4096]);
/* The real path of something of which the last parts need not be there, or are a dead mount. depth
 * is 0. 0 or -errno. */
int cop_place_resolve(const char *path, char out[4096], unsigned depth);
/* Makes path and what is missing above it, and counts that; one that is there is as good. 0, or
 * -errno and nothing was made. */
int cop_place_make_dirs(const char *path, mode_t mode, unsigned *made);
/* Which directory path is now; and removes that one and those above it, as many as were made. */
void cop_place_remember(struct cop_place *p);
void cop_place_remove_made(const struct cop_place *p);
/* The folder of a private place. Its lock is a descriptor; -EWOULDBLOCK: a node has it; -ENOENT: it
 * is not there, or has vanished meanwhile. */
int cop_place_make_folder(const char *folder, struct cop_err *err);
int cop_place_lock(const char *folder, struct cop_err *err);

#endif
