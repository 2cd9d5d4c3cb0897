/* SPDX-License-Identifier: BSD-3-Clause */
/* dirops: lookups and reads of one directory at a time, or many (FUSE_PARALLEL_DIROPS,
 * protocol 7.25). libfuse before 3.17 offers the capability and never passes it to the kernel (its
 * pull request 861), so that all cold lookups in one directory queue up behind each other. This
 * sets the bit in the one message where it counts, the reply to INIT. Also used by slowfs. */
#ifndef COP_DIROPS_H
#define COP_DIROPS_H

#include <fuse_lowlevel.h>

/* After fuse_session_mount and before the first request is read. 0, or -errno: -ENOTSUP with a
 * libfuse before 3.13; without it everything works, one at a time. */
int cop_dirops_enable(struct fuse_session *session);

#endif
