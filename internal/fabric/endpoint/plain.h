/* SPDX-License-Identifier: BSD-3-Clause */
/* Direct system calls on descriptors that libfabric has owned, owns or will own. The thread
 * sanitizer ignores calls from libfabric (tsan.supp). It does not see libfabric close a descriptor,
 * and reports a race with the code that next opens the same number. These direct calls hide our
 * side from it too. */
#ifndef COP_FABRIC_ENDPOINT_PLAIN_H
#define COP_FABRIC_ENDPOINT_PLAIN_H

#include "base/base/sock.h"

#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static inline ssize_t cop_plain_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return syscall(SYS_sendmsg, fd, m, flags);
}

static inline int cop_plain_epoll(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, event);
}

static inline int cop_plain_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

/* The inode of the file behind the descriptor; -1 if there is none. */
static inline int cop_plain_inode(int fd, uint64_t *inode)
{
	struct statx st;
	int rc = (int)syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st);

	*inode = rc ? 0 : st.stx_ino;
	return rc;
}

#endif
