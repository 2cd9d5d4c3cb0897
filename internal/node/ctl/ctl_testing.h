/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the server's tests: a running server in a folder of its own, and raw clients. */
#ifndef COP_NODE_CTL_TESTING_H
#define COP_NODE_CTL_TESTING_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "node/ctl/ctl.h"

/* A server under test, the requests that its handler received, and connections kept for later. */
struct server {
	char dir[64], path[COP_CTL_PATH_SIZE];
	struct cop_ctl *ctl;
	pthread_mutex_t lock;
	struct cop_ctl_conn *kept[COP_CTL_CLIENTS + 1];
	int n_kept;
	_Atomic int asked;
};

static inline char *big_text(size_t len)
{
	char *text = malloc(len + 1);

	for (size_t i = 0; i < len; i++)
		text[i] = (char)('a' + i % 23);
	text[len] = '\0';
	return text;
}

static inline void handle(void *ctx, struct cop_ctl_conn *conn, char *line)
{
	struct server *s = ctx;
	char *text;

	if (strcmp(line, "keep") == 0) {
		pthread_mutex_lock(&s->lock);
		s->kept[s->n_kept++] = conn;
		pthread_mutex_unlock(&s->lock);
		s->asked++;
		return;
	}
	s->asked++;
	if (strcmp(line, "big") == 0) {
		text = big_text(3 * COP_MIB);
		cop_ctl_reply(conn, 0, text, 3 * COP_MIB);
		free(text);
	} else if (strcmp(line, "pass") == 0) {
		int fds[2];

		/* Unread bytes stay in the pipe. */
		assert_int_equal(pipe(fds), 0);
		assert_int_equal(write(fds[1], "through", 7), 7);
		text = big_text(3 * COP_MIB);
		cop_ctl_reply_with(conn, 0, text, 3 * COP_MIB, fds[0]);
		free(text);
		close(fds[0]);
		close(fds[1]);
	} else if (strcmp(line, "seven") == 0) {
		cop_ctl_reply(conn, 7, "", 0);
	} else {
		cop_ctl_reply(conn, 0, line, strlen(line));
	}
}

static inline int setup(void **state)
{
	struct server *s = calloc(1, sizeof(*s));

	snprintf(s->dir, sizeof(s->dir), "/tmp/cop-ctl-XXXXXX");
	if (!mkdtemp(s->dir) || cop_ctl_path(s->dir, "/mnt", s->path, sizeof(s->path)))
		return -1;
	pthread_mutex_init(&s->lock, NULL);
	*state = s;
	return cop_ctl_start(s->path, "/mnt", handle, s, &s->ctl, NULL);
}

static inline int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static inline int teardown(void **state)
{
	struct server *s = *state;

	cop_ctl_stop(s->ctl);
	nftw(s->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(s);
	return 0;
}

static inline int raw_client(struct server *s)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	memcpy(sa.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

static inline void wait_asked(struct server *s, int n)
{
	for (int i = 0; i < 5000 && s->asked < n; i++)
		usleep(1000);
	assert_int_equal(s->asked, n);
}

static inline struct cop_ctl_conn *take_kept(struct server *s)
{
	struct cop_ctl_conn *conn;

	pthread_mutex_lock(&s->lock);
	conn = s->n_kept ? s->kept[--s->n_kept] : NULL;
	pthread_mutex_unlock(&s->lock);
	assert_non_null(conn);
	return conn;
}

static inline void expect_echo(struct server *s, const char *text)
{
	struct cop_ctl_reply reply;
	struct cop_err err = {0};

	assert_int_equal(cop_ctl_call(s->path, text, 10000, &reply, &err), 0);
	assert_int_equal(reply.status, 0);
	assert_string_equal(reply.text, text);
	free(reply.text);
}

#endif
