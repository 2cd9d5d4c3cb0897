/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages from a node that cannot start, and which nodes read them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job/startnote/startnote.h"

static char job[64], logs[80], log_file[96], word_file[112];
static struct cop_startnote_watch w;
static struct cop_startnote_word word;
static char why[COP_STARTNOTE_WHY_SIZE];

static void write_log(void)
{
	FILE *f = fopen(log_file, "w");

	assert_non_null(f);
	fclose(f);
}

static int set_up(void **state)
{
	(void)state;
	strcpy(job, "/tmp/cop-outcome-test.XXXXXX");
	assert_non_null(mkdtemp(job));
	snprintf(logs, sizeof(logs), "%s/logs", job);
	snprintf(log_file, sizeof(log_file), "%s/n0.log", logs);
	snprintf(word_file, sizeof(word_file), "%s/not_started.txt", logs);
	assert_int_equal(mkdir(logs, 0700), 0);
	write_log();
	w = (struct cop_startnote_watch){0};
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unlink(word_file);
	unlink(log_file);
	rmdir(logs);
	rmdir(job);
	return 0;
}

static void leave_outcome(uint32_t rank, int code, const char *text)
{
	struct cop_err err = {0};
	char host[16];

	snprintf(host, sizeof(host), "n%u", rank);
	cop_err_set(&err, code, "%s", text);
	cop_startnote_leave(job, host, rank, &err);
}

/* Checks this much later than the last time. */
static bool look_after(uint64_t ms)
{
	memset(&word, 0, sizeof(word));
	return cop_startnote_look(&w, w.looked_ms + ms, &word);
}

static bool look_now(void)
{
	return look_after(1000);
}

static void a_node_that_failed_is_named_with_its_reason(void **state)
{
	(void)state;
	cop_startnote_begin(&w, job, 0, log_file);
	assert_false(look_now());
	leave_outcome(3, ENOENT, "--source /lus/x: No such file or directory");
	assert_true(look_now());
	assert_int_equal(word.rank, 3);
	assert_false(word.of_tree);
	cop_startnote_why(&word, "n3", why);
	assert_string_equal(
		why, "n3 (rank 3) did not start: --source /lus/x: No such file or directory");
}

/* The node itself did not fail, so no message says that it did not start. */
static void a_node_that_was_interrupted_speaks_of_the_tree(void **state)
{
	(void)state;
	cop_startnote_begin(&w, job, 0, log_file);
	leave_outcome(2, EINTR, "ended before the tree was ready, by a signal");
	assert_true(look_now());
	assert_int_equal(word.rank, 2);
	assert_true(word.of_tree);
	cop_startnote_why(&word, "n2", why);
	assert_string_equal(why, "n2 (rank 2) ended before the tree was ready, by a signal");
}

static void the_root_repeats_a_note_word_for_word(void **state)
{
	(void)state;
	cop_startnote_begin(&w, job, 1, log_file);
	leave_outcome(0, ETIMEDOUT, COP_STARTNOTE_NOT_READY "n3 (rank 3) did not start: no memory");
	assert_true(look_now());
	assert_true(word.of_tree);
	cop_startnote_why(&word, "n0", why);
	assert_string_equal(why, "n3 (rank 3) did not start: no memory");
}

static void it_looks_at_most_every_second(void **state)
{
	(void)state;
	cop_startnote_begin(&w, job, 0, log_file);
	leave_outcome(3, EIO, "why");
	assert_false(look_after(0));
	assert_false(look_after(999));
	assert_true(look_after(1000));
	assert_false(look_after(999));
	cop_startnote_pass(&w, w.looked_ms + 500);
	assert_false(look_after(999));
	assert_true(look_after(1000));
}

static void words_of_an_earlier_start_are_not_taken(void **state)
{
	struct timespec long_ago[2] = {{.tv_sec = time(NULL) - 5}, {.tv_sec = time(NULL) - 5}};

	(void)state;
	leave_outcome(3, EIO, "of before");
	assert_int_equal(utimensat(AT_FDCWD, word_file, long_ago, 0), 0);
	cop_startnote_begin(&w, job, 0, log_file);
	assert_false(look_now());
	leave_outcome(3, EIO, "of now");
	assert_true(look_now());
	assert_string_equal(word.text, "of now");
}

static void a_node_removes_its_own_note_only_and_all_are_gone_when_all_have_started(void **state)
{
	(void)state;
	leave_outcome(3, EIO, "why");
	cop_startnote_begin(&w, job, 2, log_file);
	assert_int_equal(access(word_file, F_OK), 0);
	cop_startnote_begin(&w, job, 3, log_file);
	assert_int_equal(access(word_file, F_OK), -1);
	leave_outcome(7, EIO, "why");
	cop_startnote_end(&w);
	assert_int_equal(access(word_file, F_OK), -1);
}

static void without_a_job_directory_there_are_no_notes(void **state)
{
	(void)state;
	leave_outcome(3, EIO, "why");
	assert_false(look_now());
	cop_startnote_end(&w);
	assert_int_equal(access(word_file, F_OK), 0);
}

static void a_log_that_is_not_there_gives_the_time_of_the_file_system(void **state)
{
	(void)state;
	cop_startnote_begin(&w, job, 0, "/no/such/log");
	assert_true(w.began_ns > 0);
	leave_outcome(3, EIO, "why");
	assert_true(look_now());
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

static void age(int seconds)
{
	struct timespec at[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = time(NULL) - seconds}};

	assert_int_equal(utimensat(AT_FDCWD, word_file, at, 0), 0);
}

static void a_directory_of_this_start_alone_needs_no_log(void **state)
{
	(void)state;
	leave_outcome(3, ENOENT, "no fuse here");
	age(30);
	cop_startnote_begin_in(&w, job);
	assert_false(look_after(0));
	assert_true(look_now());
	assert_int_equal(word.rank, 3);
	/* A restarted job keeps its number. */
	age(90);
	assert_false(look_now());
}

static void such_a_directory_goes_when_those_who_look_have_looked(void **state)
{
	uint64_t began = cop_now_ms();

	(void)state;
	unlink(log_file);
	leave_outcome(3, ENOENT, "no fuse here");
	cop_startnote_begin_in(&w, job);
	cop_startnote_remove(job, COP_STARTNOTE_STAY);
	assert_true(cop_now_ms() - began >= 2000);
	assert_int_not_equal(access(job, F_OK), 0);
	assert_false(look_now());
	cop_startnote_remove(job, COP_STARTNOTE_STAY);
}

static void *look_late(void *heard)
{
	poll(NULL, 0, 4000);
	cop_startnote_begin_in(&w, job);
	*(bool *)heard = look_now();
	return NULL;
}

static void it_stays_for_nodes_that_begin_late_if_only_rank_0_failed(void **state)
{
	uint64_t began = cop_now_ms();
	bool heard = false;
	pthread_t late;

	(void)state;
	unlink(log_file);
	leave_outcome(0, ENOENT, "no fuse here");
	assert_false(cop_startnote_is_left(job, 0));
	assert_int_equal(pthread_create(&late, NULL, look_late, &heard), 0);
	cop_startnote_remove(job, COP_STARTNOTE_STAY_LATE);
	assert_true(cop_now_ms() - began >= 6000);
	pthread_join(late, NULL);
	assert_true(heard);
	assert_int_equal(word.rank, 0);
	assert_int_not_equal(access(job, F_OK), 0);
}

static void it_does_not_if_others_fail_as_well(void **state)
{
	uint64_t began;

	(void)state;
	unlink(log_file);
	leave_outcome(3, ENOENT, "no fuse here");
	assert_true(cop_startnote_is_left(job, 0));
	assert_false(cop_startnote_is_left(job, 3));
	began = cop_now_ms();
	cop_startnote_remove(job, COP_STARTNOTE_STAY_LATE);
	assert_in_range(cop_now_ms() - began, 2000, 6000);
	assert_int_not_equal(access(job, F_OK), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_node_that_failed_is_named_with_its_reason),
		TEST(a_node_that_was_interrupted_speaks_of_the_tree),
		TEST(the_root_repeats_a_note_word_for_word),
		TEST(it_looks_at_most_every_second),
		TEST(words_of_an_earlier_start_are_not_taken),
		TEST(a_node_removes_its_own_note_only_and_all_are_gone_when_all_have_started),
		TEST(without_a_job_directory_there_are_no_notes),
		TEST(a_log_that_is_not_there_gives_the_time_of_the_file_system),
		TEST(a_directory_of_this_start_alone_needs_no_log),
		TEST(such_a_directory_goes_when_those_who_look_have_looked),
		TEST(it_stays_for_nodes_that_begin_late_if_only_rank_0_failed),
		TEST(it_does_not_if_others_fail_as_well),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
