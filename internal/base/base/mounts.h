/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts: mount points and file system types. */
#ifndef COP_BASE_MOUNTS_H
#define COP_BASE_MOUNTS_H

#include <stdbool.h>

#define COP_MOUNT_TYPE_SIZE 64
/* Called with a mount point and its file system type ("ext4", "fuse.sshfs"); both are valid only
 * during the call. A nonzero result ends the iteration. */
typedef int cop_mount_visit(void *arg, const char *dir, const char *type);
/* Visits each mount in a text in /proc/self/mountinfo format, in order. Changes the text; skips
 * invalid lines. */
int cop_mounts_parse(char *text, cop_mount_visit *visit, void *arg);
/* Decodes a name in such a text, where space, tab, newline and backslash are written as \ooo. */
void cop_mount_unescape(char *text);
/* Visits each mount of this process's namespace. Returns the visitor's result, or -errno if the
 * mounts are unreadable. */
int cop_mounts_each(cop_mount_visit *visit, void *arg);
/* The file system type of path, after following links; "" if unknown. */
int cop_mount_type(const char *path, char type[COP_MOUNT_TYPE_SIZE]);
/* Whether file systems of this type are in memory and private to a machine (proc, tmpfs);
 * whether they are shared over a network. */
bool cop_mount_is_pseudo(const char *type);
bool cop_mount_is_shared(const char *type);

#endif
