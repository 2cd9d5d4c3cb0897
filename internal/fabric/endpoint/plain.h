/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls on descriptors that belong, belonged or will belong to libfabric, made directly to
 * the kernel. The thread sanitizer ignores what libfabric does itself (tsan.supp). It therefore
 * does not see libfabric close a descriptor, and reports a race with the code that opens the next
 * one of that number. So it must not see these descriptors from here either. */
#ifndef COP_FABRIC_ENDPOINT_PLAIN_H
#define COP_FABRIC_ENDPOINT_PLAIN_H

#include <fcntl.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int cop_plain_accept(int listener, struct sockaddr *from, socklen_t *len, int flags)
{
	return (int)syscall(SYS_accept4, listener, from, len, flags);
}

static inline int cop_plain_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)syscall(SYS_connect, fd, to, len);
}

static inline ssize_t cop_plain_send(int fd, const void *data, size_t len, int flags)
{
	return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}

static inline ssize_t cop_plain_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return syscall(SYS_sendmsg, fd, m, flags);
}

static inline ssize_t cop_plain_recv(int fd, void *data, size_t len, int flags)
{
	return syscall(SYS_recvfrom, fd, data, len, flags, NULL, NULL);
}

static inline int cop_plain_epoll(int epoll_fd, int op, int fd, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, epoll_fd, op, fd, event);
}

static inline int cop_plain_close(int fd)
{
	return (int)syscall(SYS_close, fd);
}

/* The identity of the file behind the number; -1 if there is none. */
static inline int cop_plain_inode(int fd, uint64_t *inode)
{
	struct statx st;
	int rc = (int)syscall(SYS_statx, fd, "", AT_EMPTY_PATH, STATX_INO, &st);

	*inode = rc ? 0 : st.stx_ino;
	return rc;
}

#endif
