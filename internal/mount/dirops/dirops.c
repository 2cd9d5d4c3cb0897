/* SPDX-License-Identifier: BSD-3-Clause */
#include "mount/dirops/dirops.h"

#include <errno.h>
#include <linux/fuse.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/base/compat.h"

#if COP_HAVE_FUSE_CUSTOM_IO

/* Whether INIT has been answered. A process has one session, and its first message to the kernel is
 * that reply. */
static atomic_bool answered;

static void set_bit_in_init(const struct iovec *iov, int count)
{
	const struct fuse_out_header *head = iov[0].iov_base;
	struct fuse_init_out *init;

	if (count != 2 || iov[0].iov_len != sizeof(*head) || head->error ||
		iov[1].iov_len < offsetof(struct fuse_init_out, max_background))
		return;
	init = iov[1].iov_base;
	if (init->major == FUSE_KERNEL_VERSION && init->minor >= 25)
		init->flags |= FUSE_PARALLEL_DIROPS;
}

static ssize_t write_reply(int fd, struct iovec *iov, int count, void *userdata)
{
	(void)userdata;
	if (!atomic_load_explicit(&answered, memory_order_relaxed) &&
		!atomic_exchange(&answered, true))
		set_bit_in_init(iov, count);
	return writev(fd, iov, count);
}

static ssize_t read_request(int fd, void *buf, size_t len, void *userdata)
{
	(void)userdata;
	return read(fd, buf, len);
}

int cop_dirops_enable(struct fuse_session *session)
{
	const struct fuse_custom_io io = {.writev = write_reply, .read = read_request};

	return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}

#else

int cop_dirops_enable(struct fuse_session *session)
{
	(void)session;
	return -ENOTSUP;
}

#endif
