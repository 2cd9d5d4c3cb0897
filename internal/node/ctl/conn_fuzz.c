/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends the input as a client of the control socket would, in pieces whose length the first byte
 * gives. The handler must receive at most one line, and that complete. */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "node/ctl/ctl_priv.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned asked;

static void handler(void *ctx, struct cop_ctl_conn *conn, char *line)
{
	(void)ctx;
	if (++asked > 1 || strchr(line, '\n'))
		abort();
	cop_ctl_reply(conn, 0, line, strlen(line));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct cop_ctl c = {
		.wake_fd = -1, .handler = handler, .lock = PTHREAD_MUTEX_INITIALIZER, .refs = 1};
	struct cop_ctl_conn *conn;
	size_t piece, at = 1;
	int fd[2];

	asked = 0;
	if (!size || size > 16384 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd))
		return 0;
	conn = cop_ctl_conn_new(&c, fd[0]);
	if (!conn)
		abort();
	for (piece = (size_t)data[0] * 32 + 1; at < size && conn->fd >= 0 && !conn->asked;
		at += piece) {
		if (send(fd[1], data + at, COP_MIN(piece, size - at), MSG_NOSIGNAL) < 0)
			abort();
		cop_ctl_conn_read(conn);
	}
	if (conn->asked && conn->fd >= 0)
		cop_ctl_conn_write(conn);
	close(fd[1]);
	cop_ctl_conn_close(conn);
	cop_ctl_conn_put(conn);
	return 0;
}
