/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "job/dir/dir_priv.h"

static char dir[] = "/tmp/copper-failure-test-XXXXXX", path[sizeof(dir) + 32],
	    logs[sizeof(dir) + 8];
static char text[200];
static uint32_t rank;

static int setup(void **state)
{
	struct cop_err err = {0};

	(void)state;
	strcpy(strrchr(dir, '-'), "-XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(cop_job_dir_make(dir, &err), 0);
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	snprintf(path, sizeof(path), "%s/not_started.txt", logs);
	rank = UINT32_MAX;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unlink(path);
	rmdir(logs);
	rmdir(dir);
	return 0;
}

static bool heard(int64_t began_ns)
{
	return cop_job_failure_read(dir, began_ns, &rank, text, sizeof(text));
}

static void holds(const char *content)
{
	assert_int_equal(cop_write_file(path, content, strlen(content), 0600), 0);
}

static void a_note_of_one_node_is_read_by_another(void **state)
{
	(void)state;
	assert_false(heard(0));
	cop_job_failure_write(dir, 7, "the source is missing");
	assert_true(heard(0));
	assert_int_equal(rank, 7);
	assert_string_equal(text, "the source is missing");
}

static void a_note_of_an_earlier_start_is_ignored(void **state)
{
	int64_t then;

	(void)state;
	cop_job_failure_write(dir, 7, "no");
	then = cop_job_file_time(path);
	assert_true(then > 0);
	assert_true(heard(then));
	assert_true(heard(then + 1000000000LL));
	assert_false(heard(then + 60000000000LL));
}

static void the_folders_own_time_is_that_of_what_is_written_there(void **state)
{
	int64_t before, after;

	(void)state;
	before = cop_job_dir_time(dir);
	assert_true(before > 0);
	cop_job_failure_write(dir, 7, "no");
	after = cop_job_dir_time(dir);
	assert_true(before <= cop_job_file_time(path) && cop_job_file_time(path) <= after);
	assert_true(heard(before));
	assert_int_equal(cop_job_dir_time("/nowhere/at/all"), 0);
}

static void a_node_removes_its_own_note_and_the_root_any(void **state)
{
	(void)state;
	cop_job_failure_write(dir, 7, "no");
	cop_job_failure_clear(dir, 6);
	assert_true(heard(0));
	cop_job_failure_clear(dir, 7);
	assert_false(heard(0));
	cop_job_failure_write(dir, 7, "no");
	cop_job_failure_clear(dir, -1);
	assert_false(heard(0));
}

static void *clear_6(void *arg)
{
	pthread_barrier_wait(arg);
	cop_job_failure_clear(dir, 6);
	return NULL;
}

static void a_note_that_comes_meanwhile_is_not_removed(void **state)
{
	pthread_barrier_t both;
	pthread_t thread;

	(void)state;
	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 1000; i++) {
		cop_job_failure_write(dir, 6, "no");
		assert_int_equal(pthread_create(&thread, NULL, clear_6, &both), 0);
		pthread_barrier_wait(&both);
		cop_job_failure_write(dir, 7, "nor I");
		pthread_join(thread, NULL);
		assert_true(heard(0));
		assert_int_equal(rank, 7);
	}
	pthread_barrier_destroy(&both);
}

static void a_malformed_note_is_ignored(void **state)
{
	static const char *const bad[] = {
		"", "\n", "7", "7\n", "x no\n", "-1 no\n", "99999999999 no\n", " 7 no\n"};

	(void)state;
	for (size_t i = 0; i < COP_ARRAY_SIZE(bad); i++) {
		holds(bad[i]);
		assert_false(heard(0));
	}
	holds("7 a\033[2Jb\nc");
	assert_true(heard(0));
	assert_string_equal(text, "a?[2Jb");
}

static void a_folder_or_a_pipe_is_not_read(void **state)
{
	(void)state;
	assert_int_equal(mkdir(path, 0700), 0);
	assert_false(heard(0));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(heard(0));
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_note_of_one_node_is_read_by_another),
		T(a_note_of_an_earlier_start_is_ignored),
		T(the_folders_own_time_is_that_of_what_is_written_there),
		T(a_node_removes_its_own_note_and_the_root_any),
		T(a_note_that_comes_meanwhile_is_not_removed),
		T(a_malformed_note_is_ignored),
		T(a_folder_or_a_pipe_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
