/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts: mount points and file system types. */
#ifndef COP_BASE_MOUNTS_H
#define COP_BASE_MOUNTS_H

#include <stdbool.h>

#define COP_MOUNT_TYPE_SIZE 64
/* Called with a mount point and its file system type ("ext4", "fuse.sshfs"); both are valid only
 * during the call. A nonzero return value stops the iteration. */
typedef int cop_mount_visit(void *arg, const char *dir, const char *type);
/* Visits each mount in text, which is in /proc/self/mountinfo format, in order. Modifies text;
 * skips invalid lines. */
int cop_mounts_parse(char *text, cop_mount_visit *visit, void *arg);
/* Decodes, in place, a name from mountinfo, which escapes space, tab, newline and backslash as
 * \ooo. */
void cop_mount_unescape(char *text);
/* Visits each mount in this process's mount namespace. Returns the visitor's result, or -errno if
 * the mounts cannot be read. */
int cop_mounts_each(cop_mount_visit *visit, void *arg);
/* The type of the file system that holds path (links are followed); "" if unknown. */
int cop_mount_type(const char *path, char type[COP_MOUNT_TYPE_SIZE]);
/* Whether file systems of this type exist only in this machine's memory (proc, tmpfs), and whether
 * they are shared over a network. */
bool cop_mount_is_pseudo(const char *type);
bool cop_mount_is_shared(const char *type);

#endif
