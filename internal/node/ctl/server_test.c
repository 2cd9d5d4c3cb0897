/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <time.h>

#include "node/ctl/ctl_testing.h"

static void requests_are_answered_one_after_another(void **state)
{
	struct server *s = *state;
	char text[32], longest[COP_CTL_LINE_MAX + 1];

	for (int i = 0; i < 100; i++) {
		snprintf(text, sizeof(text), "request %d", i);
		expect_echo(s, text);
	}
	expect_echo(s, "");
	memset(longest, 'x', COP_CTL_LINE_MAX);
	longest[COP_CTL_LINE_MAX] = '\0';
	expect_echo(s, longest);
	assert_int_equal(s->asked, 102);
}

static void *many_calls(void *arg)
{
	for (int i = 0; i < 10; i++)
		expect_echo(arg, "parallel");
	return NULL;
}

static void sixteen_clients_at_once_are_answered(void **state)
{
	struct server *s = *state;
	pthread_t t[16];

	for (int i = 0; i < 16; i++)
		assert_int_equal(cop_thread_start(&t[i], "client", many_calls, s), 0);
	for (int i = 0; i < 16; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(s->asked, 160);
}

static void a_reply_without_text_has_its_status(void **state)
{
	struct server *s = *state;
	struct cop_ctl_reply reply;

	assert_int_equal(cop_ctl_call(s->path, "seven", 5000, &reply, NULL), 0);
	assert_int_equal(reply.status, 7);
	assert_int_equal(reply.len, 0);
	assert_string_equal(reply.text, "");
	free(reply.text);
}

static void a_large_reply_arrives_whole(void **state)
{
	struct server *s = *state;
	struct cop_ctl_reply reply;
	char *want = big_text(3 * COP_MIB);

	assert_int_equal(cop_ctl_call(s->path, "big", 10000, &reply, NULL), 0);
	assert_int_equal(reply.len, 3 * COP_MIB);
	assert_memory_equal(reply.text, want, reply.len);
	free(reply.text);
	free(want);
}

static void *reply_later(void *arg)
{
	usleep(100000);
	cop_ctl_reply(arg, 0, "later", 5);
	return NULL;
}

static void a_reply_may_come_later_and_from_another_thread(void **state)
{
	struct server *s = *state;
	struct cop_ctl_reply reply;
	struct cop_ctl_conn *conn;
	pthread_t t;
	int fd = raw_client(s), n;
	char got[256];

	assert_int_equal(write(fd, "keep\n", 5), 5);
	wait_asked(s, 1);
	conn = take_kept(s);
	assert_int_equal(cop_thread_start(&t, "later", reply_later, conn), 0);
	assert_int_equal(cop_ctl_call(s->path, "meanwhile", 5000, &reply, NULL), 0);
	free(reply.text);
	n = (int)cop_read_full(fd, got, sizeof(got) - 1);
	assert_true(n > 0);
	got[n] = '\0';
	assert_string_equal(got, "status 0 5\nlater");
	pthread_join(t, NULL);
	close(fd);
}

static void a_client_that_leaves_hurts_nobody(void **state)
{
	struct server *s = *state;
	struct cop_ctl_conn *conn;
	int fd;

	for (int i = 0; i < 50; i++) {
		fd = raw_client(s);
		if (i % 2)
			assert_int_equal(write(fd, "half a li", 9), 9);
		close(fd);
	}
	fd = raw_client(s);
	assert_int_equal(write(fd, "big\n", 4), 4);
	wait_asked(s, 1);
	close(fd);
	fd = raw_client(s);
	assert_int_equal(write(fd, "keep\n", 5), 5);
	wait_asked(s, 2);
	close(fd);
	usleep(20000);
	conn = take_kept(s);
	cop_ctl_reply(conn, 0, "to nobody", 9);
	expect_echo(s, "still here");
}

static void a_client_that_shuts_its_sending_side_gets_its_reply(void **state)
{
	struct server *s = *state;
	int fd = raw_client(s);
	char got[64];
	ssize_t n;

	assert_int_equal(write(fd, "hello\n", 6), 6);
	shutdown(fd, SHUT_WR);
	n = cop_read_full(fd, got, sizeof(got));
	assert_int_equal(n, 16);
	assert_memory_equal(got, "status 0 5\nhello", 16);
	close(fd);
}

static void huge_lines_and_nul_bytes_are_refused(void **state)
{
	struct server *s = *state;
	char *huge = big_text(100000), got[256] = "";
	int fd = raw_client(s);

	send(fd, huge, 100000, MSG_NOSIGNAL | MSG_DONTWAIT);
	assert_true(cop_read_full(fd, got, sizeof(got) - 1) > 0 || errno == ECONNRESET);
	assert_int_equal(strncmp(got, "status 2 ", 9), 0);
	close(fd);
	fd = raw_client(s);
	assert_int_equal(write(fd, "a\0b\n", 4), 4);
	memset(got, 0, sizeof(got));
	assert_true(cop_read_full(fd, got, sizeof(got) - 1) > 0);
	assert_non_null(strstr(got, "NUL"));
	close(fd);
	assert_int_equal(s->asked, 0);
	expect_echo(s, "still here");
	free(huge);
}

static void a_client_slower_than_five_seconds_is_dropped_and_others_are_served(void **state)
{
	struct server *s = *state;
	int slow[COP_CTL_CLIENTS];
	uint64_t begin = cop_now_ms();
	char byte;

	for (int i = 0; i < COP_CTL_CLIENTS; i++) {
		slow[i] = raw_client(s);
		assert_int_equal(write(slow[i], "s", 1), 1);
	}
	/* All slots are in use; this client waits for the first that becomes free. */
	expect_echo(s, "patient");
	assert_true(cop_now_ms() - begin >= 4000);
	for (int i = 0; i < COP_CTL_CLIENTS; i++) {
		assert_int_equal(read(slow[i], &byte, 1), 0);
		close(slow[i]);
	}
}

static void requests_that_nobody_answers_stay_bounded(void **state)
{
	struct server *s = *state;
	int fd[COP_CTL_CLIENTS], more;
	struct pollfd p = {.events = POLLIN};

	for (int i = 0; i < COP_CTL_CLIENTS; i++) {
		fd[i] = raw_client(s);
		assert_int_equal(write(fd[i], "keep\n", 5), 5);
	}
	wait_asked(s, COP_CTL_CLIENTS);
	for (int i = 0; i < COP_CTL_CLIENTS; i++)
		close(fd[i]);
	more = raw_client(s);
	assert_int_equal(write(more, "more\n", 5), 5);
	p.fd = more;
	assert_int_equal(poll(&p, 1, 100), 0);
	assert_int_equal(s->asked, COP_CTL_CLIENTS);
	for (int i = 0; i < COP_CTL_CLIENTS; i++)
		cop_ctl_reply(take_kept(s), 0, "", 0);
	assert_int_equal(poll(&p, 1, 5000), 1);
	close(more);
}

static void an_idle_server_uses_no_processor_time(void **state)
{
	struct server *s = *state;
	struct timespec before, after;
	int fd = raw_client(s);

	assert_int_equal(write(fd, "keep\n", 5), 5);
	wait_asked(s, 1);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &before);
	usleep(300000);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &after);
	assert_true((after.tv_sec - before.tv_sec) * 1000000000L + after.tv_nsec - before.tv_nsec <
		    30000000L);
	cop_ctl_reply(take_kept(s), 0, "", 0);
	close(fd);
}

/* The number of descriptors open in this process. */
static unsigned open_fds(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Waits until this process has only n descriptors open. The last client must have been answered,
 * because the server might accept a waiting one after the check that ends this wait. */
static void expect_open_fds(unsigned n)
{
	for (int i = 0; i < 5000 && open_fds() != n; i++)
		usleep(1000);
	assert_int_equal(open_fds(), n);
}

static void a_descriptor_comes_along_with_a_reply(void **state)
{
	struct server *s = *state;
	struct cop_ctl_reply reply;
	char text[8] = "";
	unsigned before = open_fds();

	assert_int_equal(cop_ctl_call(s->path, "pass", 10000, &reply, NULL), 0);
	assert_int_equal(reply.len, 3 * COP_MIB);
	assert_true(fcntl(reply.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(read(reply.fd, text, 7), 7);
	assert_string_equal(text, "through");
	assert_int_equal(read(reply.fd, text, 7), 0);
	close(reply.fd);
	free(reply.text);
	assert_int_equal(cop_ctl_call(s->path, "plain", 10000, &reply, NULL), 0);
	assert_int_equal(reply.fd, -1);
	free(reply.text);
	expect_open_fds(before);
}

/* Sends these bytes with n copies of a descriptor. */
static void send_with_fds(int sock, const char *data, int fd, unsigned n)
{
	char control[CMSG_SPACE(64 * sizeof(int))] = {0};
	struct iovec part = {(void *)(uintptr_t)data, strlen(data)};
	struct msghdr msg = {.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int))};
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	for (unsigned i = 0; i < n; i++)
		memcpy(CMSG_DATA(c) + i * sizeof(int), &fd, sizeof(fd));
	assert_int_equal(sendmsg(sock, &msg, MSG_NOSIGNAL), part.iov_len);
}

/* Sent all at once, and one by one; with a whole line or without. */
static void descriptors_that_come_with_a_request_are_not_taken(void **state)
{
	struct server *s = *state;
	int fd, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	unsigned before = open_fds();
	char byte;

	assert_true(null >= 0);
	fd = raw_client(s);
	send_with_fds(fd, "ec", null, 60);
	send_with_fds(fd, "h", null, 3);
	send_with_fds(fd, "o\n", null, 2);
	while (read(fd, &byte, 1) == 1)
		;
	close(fd);
	fd = raw_client(s);
	send_with_fds(fd, "never complete", null, 3);
	close(fd);
	expect_echo(s, "accepted after it");
	expect_open_fds(before);
	close(null);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(requests_are_answered_one_after_another),
		T(sixteen_clients_at_once_are_answered),
		T(a_reply_without_text_has_its_status),
		T(a_large_reply_arrives_whole),
		T(a_descriptor_comes_along_with_a_reply),
		T(descriptors_that_come_with_a_request_are_not_taken),
		T(a_reply_may_come_later_and_from_another_thread),
		T(a_client_that_leaves_hurts_nobody),
		T(a_client_that_shuts_its_sending_side_gets_its_reply),
		T(huge_lines_and_nul_bytes_are_refused),
		T(a_client_slower_than_five_seconds_is_dropped_and_others_are_served),
		T(requests_that_nobody_answers_stay_bounded),
		T(an_idle_server_uses_no_processor_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
