/* SPDX-License-Identifier: BSD-3-Clause */
/* dirops: enables concurrent lookups and reads in one directory (FUSE_PARALLEL_DIROPS,
 * protocol 7.25). libfuse before 3.17 offers the capability but never passes it to the kernel
 * (libfuse pull request 861), so all cold lookups in a directory are serialized. This module sets
 * the bit in the reply to INIT. Also used by slowfs. */
#ifndef COP_MOUNT_DIROPS_H
#define COP_MOUNT_DIROPS_H

#include <fuse_lowlevel.h>

/* Call it after fuse_session_mount and before the first request is read. Returns 0 or -errno;
 * -ENOTSUP with libfuse before 3.13: everything still works, one operation per directory at a
 * time. */
int cop_dirops_enable(struct fuse_session *session);

#endif
