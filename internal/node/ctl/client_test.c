/* SPDX-License-Identifier: BSD-3-Clause */
/* The client with misbehaving servers, and client and server as different users. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <ftw.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "node/ctl/ctl.h"

/* Answers one client with these bytes, then waits until the client disconnects, or closes
 * immediately. */
struct puppet {
	char dir[64], path[COP_CTL_PATH_SIZE];
	int fd;
	pthread_t thread;
	bool started;
	const char *says;
	size_t len;
	bool waits;
};

static int setup(void **state)
{
	struct puppet *p = calloc(1, sizeof(*p));
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	snprintf(p->dir, sizeof(p->dir), "/tmp/cop-ctl-XXXXXX");
	if (!mkdtemp(p->dir) || cop_ctl_path(p->dir, "k", p->path, sizeof(p->path)))
		return -1;
	p->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	memcpy(sa.sun_path, p->path, strlen(p->path) + 1);
	*state = p;
	return bind(p->fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(p->fd, 0) ? -1 : 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct puppet *p = *state;

	if (p->started)
		pthread_join(p->thread, NULL);
	close(p->fd);
	nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(p);
	return 0;
}

static void *perform(void *arg)
{
	struct puppet *p = arg;
	int fd = accept(p->fd, NULL, NULL);
	char block[5000];

	if (read(fd, block, sizeof(block)) > 0)
		send(fd, p->says, p->len, MSG_NOSIGNAL);
	while (p->waits && read(fd, block, sizeof(block)) > 0)
		;
	close(fd);
	return NULL;
}

static int call_len(struct puppet *p, const char *says, size_t len, bool waits,
	struct cop_ctl_reply *reply, struct cop_err *err)
{
	int rc;

	p->says = says;
	p->len = len;
	p->waits = waits;
	p->started = true;
	assert_int_equal(cop_thread_start(&p->thread, "puppet", perform, p), 0);
	rc = cop_ctl_call(p->path, "do it", 300, reply, err);
	pthread_join(p->thread, NULL);
	p->started = false;
	if (rc)
		assert_null(reply->text);
	return rc;
}

static int call(struct puppet *p, const char *says, bool waits, struct cop_ctl_reply *reply,
	struct cop_err *err)
{
	return call_len(p, says, strlen(says), waits, reply, err);
}

static void a_reply_in_good_form_is_taken(void **state)
{
	struct cop_ctl_reply reply;

	assert_int_equal(call(*state, "status -3 2\nok", false, &reply, NULL), 0);
	assert_int_equal(reply.status, -3);
	assert_string_equal(reply.text, "ok");
	free(reply.text);
	assert_int_equal(call(*state, "status 0 0\n", false, &reply, NULL), 0);
	assert_string_equal(reply.text, "");
	free(reply.text);
}

static void replies_in_bad_form_are_refused(void **state)
{
	static const char *const bad[] = {"nonsense\n", "status\n", "status 0\n", "status x 1\n1",
		"status 0 -1\n", "status 0 1x\n1", "status 0 99999999999\n", "status 0 1\n12", "\n",
		"progress x\n", "status 0 18446744073709551616\n"};
	struct cop_ctl_reply reply;
	struct cop_err err = {0};
	char endless[3000];

	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++)
		assert_int_equal(call(*state, bad[i], true, &reply, &err), -EBADMSG);
	memset(endless, 'p', sizeof(endless));
	assert_int_equal(call_len(*state, endless, sizeof(endless), true, &reply, &err), -EBADMSG);
	assert_int_equal(call_len(*state, "status 0 1\0\n1", 13, true, &reply, &err), -EBADMSG);
}

static void a_server_that_hangs_up_is_reported(void **state)
{
	static const char *const cut[] = {"", "stat", "status 0 5", "status 0 5\nabc"};
	struct cop_ctl_reply reply;
	struct cop_err err = {0};

	for (size_t i = 0; i < COP_ARRAY_SIZE(cut); i++)
		assert_int_equal(call(*state, cut[i], false, &reply, &err), -ECONNRESET);
	assert_non_null(strstr(err.text, "ended before it answered \"do it\""));
}

static void a_timeout_names_what_the_silent_server_was_asked_for(void **state)
{
	struct cop_ctl_reply reply;
	struct cop_err err = {0};
	uint64_t begin = cop_now_ms();

	assert_int_equal(call(*state, "", true, &reply, &err), -ETIMEDOUT);
	assert_true(cop_now_ms() - begin >= 250);
	assert_non_null(strstr(err.text, "300 ms"));
	assert_non_null(strstr(err.text, "do it"));
	assert_int_equal(call(*state, "status 0 100\nhalf", true, &reply, &err), -ETIMEDOUT);
}

static void a_server_that_does_not_accept_times_out(void **state)
{
	struct puppet *p = *state;
	struct cop_ctl_reply reply;
	struct cop_err err = {0};
	int rc[3];

	/* The backlog holds one or two; the last client waits to be connected. */
	for (int i = 0; i < 3; i++)
		rc[i] = cop_ctl_call(p->path, "x", 50, &reply, &err);
	for (int i = 0; i < 3; i++)
		assert_int_equal(rc[i], -ETIMEDOUT);
}

static void requests_that_are_too_long_or_more_than_one_line_are_not_sent(void **state)
{
	struct puppet *p = *state;
	struct cop_ctl_reply reply;
	struct cop_err err = {0};
	char *line = calloc(1, COP_CTL_LINE_MAX + 2);

	memset(line, 'x', COP_CTL_LINE_MAX + 1);
	assert_int_equal(cop_ctl_call(p->path, line, 100, &reply, &err), -E2BIG);
	assert_int_equal(cop_ctl_call(p->path, "a\nb", 100, &reply, &err), -E2BIG);
	memset(line, 'x', 200);
	line[200] = '\0';
	assert_int_equal(cop_ctl_call(line, "a", 100, &reply, &err), -ENAMETOOLONG);
	free(line);
}

/* ---- questions ---- */

static int accept_question(struct puppet *p, struct cop_ctl_question **q)
{
	char block[64];
	int fd;

	assert_int_equal(cop_ctl_ask(p->path, "do it", 5000, q, NULL), 0);
	fd = accept(p->fd, NULL, NULL);
	assert_int_equal(read(fd, block, sizeof(block)), 6);
	return fd;
}

static void wait_readable(const struct cop_ctl_question *q)
{
	struct pollfd p = {.fd = cop_ctl_question_fd(q), .events = POLLIN};

	assert_int_equal(poll(&p, 1, 10000), 1);
}

/* The reply may arrive in any pieces. */
static void a_question_is_answered_when_all_has_come(void **state)
{
	static const char says[] = "status -3 5\nhello";
	struct cop_ctl_question *q;
	struct cop_ctl_reply reply = {0};
	int fd = accept_question(*state, &q);

	assert_int_equal(cop_ctl_question_read(q, &reply, NULL), -EAGAIN);
	for (size_t i = 0; says[i]; i++) {
		assert_int_equal(write(fd, says + i, 1), 1);
		wait_readable(q);
		assert_int_equal(cop_ctl_question_read(q, &reply, NULL), says[i + 1] ? -EAGAIN : 0);
	}
	assert_int_equal(reply.status, -3);
	assert_string_equal(reply.text, "hello");
	cop_ctl_question_free(q);
	free(reply.text);
	close(fd);
}

static void a_question_to_a_server_that_hangs_up_has_failed(void **state)
{
	struct cop_ctl_question *q;
	struct cop_ctl_reply reply = {0};
	struct cop_err err = {0};
	int fd = accept_question(*state, &q);

	assert_int_equal(write(fd, "status 0 5\nhe", 13), 13);
	wait_readable(q);
	assert_int_equal(cop_ctl_question_read(q, &reply, &err), -EAGAIN);
	close(fd);
	wait_readable(q);
	assert_int_equal(cop_ctl_question_read(q, &reply, &err), -ECONNRESET);
	assert_null(reply.text);
	assert_non_null(strstr(err.text, "ended before it answered \"do it\""));
	cop_ctl_question_free(q);
}

static void a_question_can_be_dropped(void **state)
{
	struct puppet *p = *state;
	struct cop_ctl_question *q;
	int fd = accept_question(p, &q);
	char byte;

	cop_ctl_question_free(q);
	assert_int_equal(read(fd, &byte, 1), 0);
	close(fd);
	close(p->fd);
	unlink(p->path);
	p->fd = -1;
	assert_int_equal(cop_ctl_ask(p->path, "do it", 5000, &q, NULL), -ENOENT);
	cop_ctl_question_free(NULL);
}

/* ---- different users ---- */

#define OWNER 64123
#define OTHER 64124

static void echo(void *ctx, struct cop_ctl_conn *conn, char *line)
{
	(void)ctx;
	cop_ctl_reply(conn, 0, line, strlen(line));
}

/* Runs a server of an ordinary user until the pipe closes. */
static int serve_as_owner(const char *dir, int ready, int quit)
{
	char path[COP_CTL_PATH_SIZE], byte = 'r';
	struct cop_ctl *c;

	if (setgid(OWNER) || setuid(OWNER) || cop_ctl_path(dir, "k", path, sizeof(path)))
		return 1;
	if (cop_ctl_start(path, "k", echo, NULL, &c, NULL))
		return 2;
	/* Open to everyone, so that only the server's own check keeps other users out. */
	if (chmod(dir, 0777) || chmod(path, 0777) || write(ready, &byte, 1) != 1)
		return 3;
	if (read(quit, &byte, 1) != 0)
		return 4;
	cop_ctl_stop(c);
	return access(path, F_OK) ? 0 : 5;
}

/* 0: answered; 1: closed without a reply; otherwise something else. */
static int ask_raw(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	char got[64];
	ssize_t n;

	memcpy(sa.sun_path, path, strlen(path) + 1);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		return 2;
	send(fd, "hello\n", 6, MSG_NOSIGNAL);
	n = read(fd, got, sizeof(got));
	close(fd);
	return n > 0 ? 0 : 1;
}

static int ask_as(uid_t uid, const char *path)
{
	struct cop_ctl_reply reply;
	int status, rc;
	pid_t pid = fork();

	if (pid == 0) {
		if (setgid(uid) || setuid(uid))
			_exit(9);
		rc = ask_raw(path);
		/* Our own client does not even send a request to another user's server. */
		if (rc == 1 && cop_ctl_call(path, "x", 1000, &reply, NULL) != -EACCES)
			rc = 8;
		_exit(rc);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WEXITSTATUS(status);
}

static void another_user_is_refused_and_root_and_the_owner_are_served(void **state)
{
	char dir[] = "/tmp/cop-ctl-XXXXXX", path[COP_CTL_PATH_SIZE], byte;
	int ready[2], quit[2], status;
	pid_t server;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_non_null(mkdtemp(dir));
	assert_int_equal(chown(dir, OWNER, OWNER), 0);
	assert_int_equal(cop_ctl_path(dir, "k", path, sizeof(path)), 0);
	assert_int_equal(pipe(ready) | pipe(quit), 0);
	server = fork();
	if (server == 0) {
		close(quit[1]);
		_exit(serve_as_owner(dir, ready[1], quit[0]));
	}
	close(quit[0]);
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	assert_int_equal(ask_as(OWNER, path), 0);
	assert_int_equal(ask_as(0, path), 0);
	assert_int_equal(ask_as(OTHER, path), 1);
	assert_int_equal(ask_as(OWNER, path), 0);
	close(quit[1]);
	close(ready[0]);
	assert_int_equal(waitpid(server, &status, 0), server);
	assert_int_equal(status, 0);
	assert_int_equal(rmdir(dir), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_reply_in_good_form_is_taken),
		T(replies_in_bad_form_are_refused),
		T(a_server_that_hangs_up_is_reported),
		T(a_timeout_names_what_the_silent_server_was_asked_for),
		T(a_server_that_does_not_accept_times_out),
		T(requests_that_are_too_long_or_more_than_one_line_are_not_sent),
		T(a_question_is_answered_when_all_has_come),
		T(a_question_to_a_server_that_hangs_up_has_failed),
		T(a_question_can_be_dropped),
		cmocka_unit_test(another_user_is_refused_and_root_and_the_owner_are_served),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
