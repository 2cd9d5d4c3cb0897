/* SPDX-License-Identifier: BSD-3-Clause */
/* Descriptors that go with bytes, in both directions. */
#include "node/ctl/ctl_priv.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	char space[CMSG_SPACE(COP_CTL_FDS * sizeof(int))];
	struct cmsghdr align;
};

void cop_ctl_fds_close(struct cop_ctl_fds *fds)
{
	for (unsigned i = 0; i < fds->n; i++)
		close(fds->fd[i]);
	fds->n = 0;
}

ssize_t cop_ctl_fds_send(
	int sock, const void *data, size_t len, const struct cop_ctl_fds *fds, int flags)
{
	struct iovec part = {(void *)(uintptr_t)data, len};
	union control control = {{0}};
	struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
	size_t size = fds->n * sizeof(int);
	struct cmsghdr *c;

	if (fds->n) {
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(size);
		c = CMSG_FIRSTHDR(&msg);
		*c = (struct cmsghdr){.cmsg_level = SOL_SOCKET,
			.cmsg_type = SCM_RIGHTS,
			.cmsg_len = CMSG_LEN(size)};
		memcpy(CMSG_DATA(c), fds->fd, size);
	}
	return sendmsg(sock, &msg, flags | MSG_NOSIGNAL);
}

static void keep_fd(struct cop_ctl_fds *fds, int fd)
{
	if (fds->n < COP_CTL_FDS)
		fds->fd[fds->n++] = fd;
	else
		close(fd);
}

ssize_t cop_ctl_fds_recv(int sock, void *data, size_t size, struct cop_ctl_fds *fds, int flags)
{
	struct iovec part = {data, size};
	union control control;
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control.space,
		.msg_controllen = sizeof(control.space)};
	ssize_t n = recvmsg(sock, &msg, flags | MSG_CMSG_CLOEXEC);

	if (n < 0)
		return n;
	for (struct cmsghdr *h = CMSG_FIRSTHDR(&msg); h; h = CMSG_NXTHDR(&msg, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t at = CMSG_LEN(0); at + sizeof(int) <= h->cmsg_len; at += sizeof(int)) {
			int fd;

			memcpy(&fd, (char *)h + at, sizeof(fd));
			keep_fd(fds, fd);
		}
	}
	return n;
}
