/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts: what is mounted where, and what kind of file system holds a path. */
#ifndef COP_BASE_MOUNTS_H
#define COP_BASE_MOUNTS_H

#include <stdbool.h>

#define COP_MOUNT_TYPE_SIZE 64
/* Called with a mount point and the type of what is mounted there ("ext4", "fuse.sshfs"); both are
 * valid during the call only. A result other than 0 ends the walk. */
typedef int cop_mount_visit(void *arg, const char *dir, const char *type);
/* Visits each mount in a text of the form of /proc/self/mountinfo, in order. Changes the text;
 * skips lines that are not mounts. */
int cop_mounts_parse(char *text, cop_mount_visit *visit, void *arg);
/* Restores a name in such a text, where a space, tab, newline or backslash is written as \ooo. */
void cop_mount_unescape(char *text);
/* Visits each mount that this process sees. Returns what visit returned, or -errno if the mounts
 * cannot be read. */
int cop_mounts_each(cop_mount_visit *visit, void *arg);
/* The type of the file system that holds path, after following links; "" if unknown. */
int cop_mount_type(const char *path, char type[COP_MOUNT_TYPE_SIZE]);
/* Whether file systems of this type are in memory and private to a machine (proc, tmpfs); whether
 * machines share them over a network. */
bool cop_mount_is_pseudo(const char *type);
bool cop_mount_is_shared(const char *type);

#endif
