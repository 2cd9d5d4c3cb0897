/* SPDX-License-Identifier: BSD-3-Clause */
/* Socket calls for Copper's own connections, made directly to the kernel. The C library's listen,
 * accept, connect, send and recv are interposed for the benefit of the network library
 * (fabric/endpoint/portguard_priv.h), and the interposed versions cannot tell who calls them. */
#ifndef COP_BASE_SOCK_H
#define COP_BASE_SOCK_H

#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline int cop_sock_listen(int fd, int backlog)
{
	return (int)syscall(SYS_listen, fd, backlog);
}

static inline int cop_sock_accept(int listener, struct sockaddr *from, socklen_t *len, int flags)
{
	return (int)syscall(SYS_accept4, listener, from, len, flags);
}

static inline int cop_sock_connect(int fd, const struct sockaddr *to, socklen_t len)
{
	return (int)syscall(SYS_connect, fd, to, len);
}

static inline ssize_t cop_sock_send(int fd, const void *data, size_t len, int flags)
{
	return syscall(SYS_sendto, fd, data, len, flags, NULL, 0);
}

static inline ssize_t cop_sock_recv(int fd, void *data, size_t len, int flags)
{
	return syscall(SYS_recvfrom, fd, data, len, flags, NULL, NULL);
}

#endif
