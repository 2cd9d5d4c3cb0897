/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting and stopping. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "node/ctl/ctl_testing.h"

static void the_socket_and_the_key_are_for_us_alone_and_go_at_stop(void **state)
{
	struct server *s = *state;
	char key_path[COP_CTL_PATH_SIZE], *key;
	struct stat st;
	size_t len;

	snprintf(key_path, sizeof(key_path), "%.*s.key", (int)strlen(s->path) - 5, s->path);
	assert_int_equal(lstat(s->path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(cop_read_file(key_path, 100, &key, &len), 0);
	assert_string_equal(key, "/mnt");
	free(key);
	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	assert_int_equal(lstat(s->path, &st), -1);
	assert_int_equal(lstat(key_path, &st), -1);
	cop_ctl_stop(NULL);
}

static void a_living_socket_is_not_taken_over(void **state)
{
	struct server *s = *state;
	struct cop_ctl *second = NULL;
	struct cop_err err = {0};

	assert_int_equal(cop_ctl_start(s->path, "/mnt", handle, s, &second, &err), -EADDRINUSE);
	assert_null(second);
	assert_non_null(strstr(err.text, s->path));
	expect_echo(s, "still the first");
}

static void *stop_soon(void *arg)
{
	struct server *s = arg;

	usleep(100000);
	cop_ctl_stop(s->ctl);
	return NULL;
}

static void a_node_waits_for_one_that_is_just_ending(void **state)
{
	struct server *s = *state;
	struct cop_ctl *second = NULL;
	struct cop_err err = {0};
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, stop_soon, s), 0);
	assert_int_equal(cop_ctl_start_when_free(s->path, "/mnt", handle, s, &second, &err), 0);
	pthread_join(thread, NULL);
	s->ctl = second;
	expect_echo(s, "the second");
	/* It does not wait for a server that stays. */
	assert_int_equal(
		cop_ctl_start_when_free(s->path, "/mnt", handle, s, &second, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "end it with 'copper stop /mnt'"));
}

/* Leaves the files that a killed process leaves. */
static void leave_stale(struct server *s)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(sa.sun_path, s->path, strlen(s->path) + 1);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(listen(fd, 1), 0);
	close(fd);
}

static void a_socket_that_was_left_over_is_named_and_replaced(void **state)
{
	struct server *s = *state;
	struct cop_ctl_reply reply;
	struct cop_err err = {0};

	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	assert_int_equal(cop_ctl_call(s->path, "x", 1000, &reply, &err), -ENOENT);
	assert_non_null(strstr(err.text, "no Copper process"));
	leave_stale(s);
	assert_int_equal(cop_ctl_call(s->path, "x", 1000, &reply, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.text, "left over"));
	assert_int_equal(cop_ctl_start(s->path, "/mnt", handle, s, &s->ctl, &err), 0);
	expect_echo(s, "new");
}

static void a_stale_socket_is_removed_and_a_live_one_is_not(void **state)
{
	struct server *s = *state;
	struct cop_err err = {0};
	char key_path[COP_CTL_PATH_SIZE];

	assert_int_equal(cop_ctl_clear(s->path, &err), -EADDRINUSE);
	expect_echo(s, "still there");
	snprintf(key_path, sizeof(key_path), "%.*s.key", (int)strlen(s->path) - 5, s->path);
	assert_int_equal(access(key_path, F_OK), 0);
	assert_int_equal(unlink(s->path), 0);
	leave_stale(s);
	assert_int_equal(cop_ctl_clear(s->path, &err), 0);
	assert_int_equal(access(s->path, F_OK), -1);
	assert_int_equal(access(key_path, F_OK), -1);
	assert_int_equal(cop_ctl_clear(s->path, &err), 0);
}

static void a_note_stays_as_long_as_what_its_process_left(void **state)
{
	struct server *s = *state;
	char words[COP_CTL_NOTE_SIZE], too_long[COP_CTL_NOTE_SIZE + 1];
	struct cop_err err = {0};

	cop_ctl_noted(s->path, words);
	assert_string_equal(words, "");
	assert_int_equal(cop_ctl_note(s->path, "one two"), 0);
	cop_ctl_noted(s->path, words);
	assert_string_equal(words, "one two");
	assert_int_equal(unlink(s->path), 0);
	leave_stale(s);
	cop_ctl_noted(s->path, words);
	assert_string_equal(words, "one two");
	assert_int_equal(cop_ctl_clear(s->path, &err), 0);
	cop_ctl_noted(s->path, words);
	assert_string_equal(words, "");
	memset(too_long, 'x', sizeof(too_long));
	too_long[COP_CTL_NOTE_SIZE] = '\0';
	assert_int_equal(cop_ctl_note(s->path, too_long), 0);
	cop_ctl_noted(s->path, words);
	assert_string_equal(words, "");
	leave_stale(s);
	cop_ctl_stop(s->ctl);
	assert_int_equal(cop_ctl_start(s->path, "/mnt", handle, s, &s->ctl, &err), 0);
	assert_int_equal(cop_ctl_note(s->path, "three"), 0);
	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	cop_ctl_noted(s->path, words);
	assert_string_equal(words, "");
}

/* A node is killed after creating a file and before renaming it. */
static void what_was_killed_while_it_was_written_goes(void **state)
{
	struct server *s = *state;
	static const char *const ending[] = {".key.7.abcdef", ".note.7.abcdef"};
	char file[2][COP_CTL_PATH_SIZE], other[COP_CTL_PATH_SIZE];
	struct stat st;

	for (int i = 0; i < 2; i++) {
		snprintf(file[i], sizeof(file[i]), "%.*s%s", (int)strlen(s->path) - 5, s->path,
			ending[i]);
		assert_int_equal(cop_write_file(file[i], "/m", 2, 0600), 0);
	}
	snprintf(other, sizeof(other), "%s/0123456789abcdef%s", s->dir, ending[0]);
	assert_int_equal(cop_write_file(other, "/m", 2, 0600), 0);
	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	for (int i = 0; i < 2; i++)
		assert_int_equal(lstat(file[i], &st), -1);
	/* This is another node's file. */
	assert_int_equal(lstat(other, &st), 0);
}

static void stop_leaves_files_that_are_not_its_own(void **state)
{
	struct server *s = *state;
	struct stat st;

	assert_int_equal(unlink(s->path), 0);
	leave_stale(s);
	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	assert_int_equal(lstat(s->path, &st), 0);
}

static void *start_one(void *arg)
{
	struct server *s = arg;
	struct cop_ctl *c = NULL;

	return cop_ctl_start(s->path, "/mnt", handle, s, &c, NULL) ? NULL : c;
}

static void exactly_one_of_many_servers_takes_over_a_dead_socket(void **state)
{
	struct server *s = *state;
	pthread_t t[8];

	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	leave_stale(s);
	for (int i = 0; i < 8; i++)
		assert_int_equal(cop_thread_start(&t[i], "start", start_one, s), 0);
	for (int i = 0; i < 8; i++) {
		void *c;

		pthread_join(t[i], &c);
		if (c)
			assert_null(s->ctl);
		if (c)
			s->ctl = c;
	}
	assert_non_null(s->ctl);
	expect_echo(s, "the one");
}

static void folders_that_others_can_open_are_refused(void **state)
{
	struct server *s = *state;
	struct cop_ctl *c = NULL;
	struct cop_err err = {0};
	char path[COP_CTL_PATH_SIZE];

	assert_int_equal(chmod(s->dir, 0755), 0);
	cop_ctl_path(s->dir, "other", path, sizeof(path));
	assert_int_equal(cop_ctl_start(path, "other", handle, s, &c, &err), -EACCES);
	assert_int_equal(cop_ctl_start("/tmp/x", "x", handle, s, &c, &err), -EINVAL);
	assert_int_equal(chmod(s->dir, 0700), 0);
	assert_null(c);
}

static void *read_late(void *arg)
{
	char *got = malloc(2 * COP_MIB);
	ssize_t n;

	usleep(100000);
	n = cop_read_full(*(int *)arg, got, 2 * COP_MIB);
	free(got);
	return (void *)n;
}

static void a_reply_given_before_stop_arrives_and_a_later_one_is_dropped(void **state)
{
	struct server *s = *state;
	struct cop_ctl_conn *second;
	char *text = big_text(COP_MIB), byte;
	pthread_t reader;
	void *n;
	int fd[2];

	for (int i = 0; i < 2; i++) {
		fd[i] = raw_client(s);
		assert_int_equal(write(fd[i], "keep\n", 5), 5);
		wait_asked(s, i + 1);
	}
	second = take_kept(s);
	assert_int_equal(cop_thread_start(&reader, "reader", read_late, &fd[0]), 0);
	cop_ctl_reply(take_kept(s), 0, text, COP_MIB);
	cop_ctl_stop(s->ctl);
	s->ctl = NULL;
	pthread_join(reader, &n);
	assert_int_equal((ssize_t)n, COP_MIB + strlen("status 0 1048576\n"));
	cop_ctl_reply(second, 0, "too late", 8);
	assert_int_equal(read(fd[1], &byte, 1), 0);
	close(fd[0]);
	close(fd[1]);
	free(text);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_socket_and_the_key_are_for_us_alone_and_go_at_stop),
		T(a_living_socket_is_not_taken_over),
		T(a_node_waits_for_one_that_is_just_ending),
		T(a_socket_that_was_left_over_is_named_and_replaced),
		T(a_stale_socket_is_removed_and_a_live_one_is_not),
		T(a_note_stays_as_long_as_what_its_process_left),
		T(what_was_killed_while_it_was_written_goes),
		T(stop_leaves_files_that_are_not_its_own),
		T(exactly_one_of_many_servers_takes_over_a_dead_socket),
		T(folders_that_others_can_open_are_refused),
		T(a_reply_given_before_stop_arrives_and_a_later_one_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
