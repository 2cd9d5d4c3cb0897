/* SPDX-License-Identifier: BSD-3-Clause */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "job/dir/dir.h"

#define PROCESSES 24
#define MADE_BYTES 80 /* 64 digits, and the line that says who made it */

static char folder[64], file[128], shared[128];
static struct cop_err err;
static struct cop_job_secret got;

static int setup(void **state)
{
	(void)state;
	unsetenv("COPPER_SECRET");
	unsetenv("SLURM_JOB_ID");
	unsetenv("PBS_JOBID");
	snprintf(folder, sizeof(folder), "/tmp/cop_secret_test.XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(file, sizeof(file), "%s/given", folder);
	snprintf(shared, sizeof(shared), "%s/secret", folder);
	err = (struct cop_err){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unsetenv("COPPER_SECRET");
	unsetenv("SLURM_JOB_ID");
	cop_job_secret_free(&got);
	unlink(file);
	unlink(shared);
	return rmdir(folder); /* fails if a temporary file was left */
}

static void write_file(const char *path, size_t bytes, unsigned mode)
{
	char *data = calloc(1, bytes + 1);

	assert_non_null(data);
	memset(data, 's', bytes);
	assert_int_equal(cop_write_file(path, data, bytes, mode), 0);
	free(data);
}

static int get_secret(const char *path, const char *job_dir, uint32_t rank, uint32_t timeout_ms)
{
	struct cop_job_secret_from from = {
		.file = path, .job_dir = job_dir, .rank = rank, .timeout_ms = timeout_ms};

	cop_job_secret_free(&got);
	return cop_job_secret(&from, &got, &err);
}

static void without_any_setting_there_is_no_secret_and_no_error(void **state)
{
	(void)state;
	assert_int_equal(get_secret(NULL, NULL, 0, 0), 0);
	assert_null(got.data);
	setenv("COPPER_SECRET", "", 1);
	assert_int_equal(get_secret(NULL, NULL, 3, 0), 0);
	assert_null(got.data);
}

static void a_missing_file_is_named(void **state)
{
	(void)state;
	assert_int_equal(get_secret(file, NULL, 0, 0), -ENOENT);
	assert_non_null(strstr(err.text, file));
	assert_null(got.data);
}

static void a_file_open_to_others_is_refused_with_the_way_out(void **state)
{
	(void)state;
	write_file(file, 32, 0640);
	assert_int_equal(get_secret(file, NULL, 0, 0), -EACCES);
	assert_non_null(strstr(err.text, "mode 0640"));
	assert_non_null(strstr(err.text, "chmod 600"));
	assert_int_equal(chmod(file, 0604), 0);
	assert_int_equal(get_secret(file, NULL, 0, 0), -EACCES);
	assert_int_equal(chmod(file, 0400), 0);
	assert_int_equal(get_secret(file, NULL, 0, 0), 0);
}

static void a_file_of_another_user_is_refused(void **state)
{
	(void)state;
	if (geteuid())
		skip();
	write_file(file, 32, 0600);
	assert_int_equal(chown(file, 65534, 65534), 0);
	assert_int_equal(get_secret(file, NULL, 0, 0), -EACCES);
	assert_non_null(strstr(err.text, "belongs to user 65534"));
}

static void a_symbolic_link_is_refused(void **state)
{
	(void)state;
	write_file(shared, 32, 0600);
	assert_int_equal(symlink(shared, file), 0);
	assert_int_equal(get_secret(file, NULL, 0, 0), -ELOOP);
	assert_non_null(strstr(err.text, "symbolic link"));
}

static void a_secret_must_be_a_regular_file(void **state)
{
	(void)state;
	assert_int_equal(get_secret(folder, NULL, 0, 0), -EACCES);
	assert_int_equal(mkfifo(file, 0600), 0);
	assert_int_equal(get_secret(file, NULL, 0, 0), -EACCES);
	assert_non_null(strstr(err.text, "not a regular file"));
}

static void sizes_from_1_byte_to_4_kib_are_accepted(void **state)
{
	(void)state;
	write_file(file, 0, 0600);
	assert_int_equal(get_secret(file, NULL, 0, 0), -EACCES);
	write_file(file, 4097, 0600);
	assert_int_equal(get_secret(file, NULL, 0, 0), -EACCES);
	assert_non_null(strstr(err.text, "4097 bytes"));
	write_file(file, 1, 0600);
	assert_int_equal(get_secret(file, NULL, 0, 0), 0);
	assert_int_equal(got.len, 1);
	write_file(file, 4096, 0600);
	assert_int_equal(get_secret(file, NULL, 0, 0), 0);
	assert_int_equal(got.len, 4096);
}

static void a_file_comes_before_the_environment_and_that_before_the_job(void **state)
{
	(void)state;
	write_file(file, 20, 0600);
	setenv("COPPER_SECRET", "from the environment", 1);
	assert_int_equal(get_secret(file, folder, 0, 0), 0);
	assert_string_equal(got.data, "ssssssssssssssssssss");
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_equal(got.data, "from the environment");
	assert_int_equal(access(shared, F_OK), -1);
	unsetenv("COPPER_SECRET");
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_int_equal(got.len, MADE_BYTES);
}

static void an_environment_of_over_4_kib_is_refused(void **state)
{
	char text[4200];

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	setenv("COPPER_SECRET", text, 1);
	assert_int_equal(get_secret(NULL, NULL, 0, 0), -EINVAL);
	assert_null(got.data);
}

static void rank_0_makes_a_private_random_secret(void **state)
{
	struct stat st;
	char *first;

	(void)state;
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_int_equal(stat(shared, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_nlink, 1);
	assert_int_equal(strspn(got.data, "0123456789abcdef"), 64);
	assert_string_equal(got.data + 64, "\nmade by copper\n");
	first = strdup(got.data);
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_equal(got.data, first);
	unlink(shared);
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_not_equal(got.data, first);
	free(first);
}

static void others_say_what_they_wait_for(void **state)
{
	uint64_t start = cop_now_ms();

	(void)state;
	assert_int_equal(get_secret(NULL, folder, 1, 150), -ETIMEDOUT);
	assert_true(cop_now_ms() - start >= 150);
	assert_non_null(strstr(err.text, "waited 150 ms for"));
	assert_non_null(strstr(err.text, shared));
	assert_non_null(strstr(err.text, "rank 0"));
}

static void a_secret_that_someone_planted_is_refused(void **state)
{
	(void)state;
	write_file(shared, 32, 0644);
	assert_int_equal(get_secret(NULL, folder, 0, 0), -EACCES);
	assert_int_equal(get_secret(NULL, folder, 1, 100), -EACCES);
	unlink(shared);
	assert_int_equal(symlink("/nowhere/at/all", shared), 0);
	assert_int_equal(get_secret(NULL, folder, 0, 0), -ELOOP);
}

static void a_job_directory_that_cannot_be_written_is_named(void **state)
{
	(void)state;
	assert_int_equal(get_secret(NULL, "/proc", 0, 0), -ENOENT);
	assert_non_null(strstr(err.text, "/proc/secret"));
}

/* One process of the race: writes the secret that it got to the pipe. */
static void contend(int start, int out, uint32_t rank)
{
	struct cop_job_secret_from from = {
		.file = NULL, .job_dir = folder, .rank = rank, .timeout_ms = 5000};
	struct cop_job_secret mine;
	char byte;

	(void)!read(start, &byte, 1);
	if (cop_job_secret(&from, &mine, NULL) || mine.len < MADE_BYTES)
		_exit(1);
	(void)!write(out, mine.data, 64);
	cop_job_secret_free(&mine);
	_exit(0);
}

/* Half of the processes believe that they are rank 0. */
static void race(void)
{
	char seen[PROCESSES * 64 + 1];
	int start[2], out[2], status;

	assert_int_equal(pipe(start), 0);
	assert_int_equal(pipe(out), 0);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (!pid) {
			close(start[1]);
			contend(start[0], out[1], i % 2);
		}
	}
	close(start[0]);
	close(start[1]);
	close(out[1]);
	assert_int_equal(cop_read_full(out[0], seen, sizeof(seen)), PROCESSES * 64);
	close(out[0]);
	for (int i = 0; i < PROCESSES; i++) {
		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
		assert_memory_equal(seen, seen + 64 * i, 64);
	}
}

static void processes_that_race_agree_on_one_content(void **state)
{
	(void)state;
	race();
}

/* ---- what an older job left */

/* A secret in the folder as that job makes it; the caller frees its text. */
static char *left_by(const char *job)
{
	char *text;

	unlink(shared);
	setenv("SLURM_JOB_ID", job, 1);
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_equal(got.note, "");
	text = strdup(got.data);
	assert_non_null(text);
	return text;
}

static void the_secret_of_another_job_is_replaced_and_that_is_said(void **state)
{
	char *old = left_by("4711");

	(void)state;
	assert_non_null(strstr(old, "\nmade by copper for job 4711\n"));
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_equal(got.data, old);
	setenv("SLURM_JOB_ID", "4712", 1);
	assert_true(cop_job_secret_to_come(folder));
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_not_equal(got.data, old);
	assert_non_null(strstr(got.note, "job 4711"));
	assert_non_null(strstr(got.note, "4712"));
	assert_false(cop_job_secret_to_come(folder));
	assert_int_equal(get_secret(NULL, folder, 3, 0), 0);
	assert_string_equal(got.note, "");
	free(old);
}

static void others_wait_until_it_is_replaced_and_say_whose_it_is(void **state)
{
	(void)state;
	free(left_by("4711"));
	setenv("SLURM_JOB_ID", "4712", 1);
	assert_int_equal(get_secret(NULL, folder, 1, 50), -ETIMEDOUT);
	assert_non_null(strstr(err.text, "which is of job 4711 while this is job 4712"));
	assert_null(got.data);
}

static void processes_that_replace_it_at_once_agree_on_one_content(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++) {
		free(left_by("4711"));
		setenv("SLURM_JOB_ID", "4712", 1);
		race();
	}
}

static void a_jobs_name_cannot_leave_the_folder(void **state)
{
	(void)state;
	free(left_by("4711"));
	setenv("SLURM_JOB_ID", "../../x\ny/z", 1);
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_non_null(strstr(got.data, "\nmade by copper for job .._.._x_y_z\n"));
}

static void a_file_of_the_users_own_is_taken_in_every_job(void **state)
{
	(void)state;
	write_file(shared, 32, 0600);
	setenv("SLURM_JOB_ID", "4712", 1);
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_int_equal(got.len, 32);
	assert_string_equal(got.note, "");
	cop_job_secret_retire(folder, &got);
	assert_int_equal(access(shared, F_OK), 0);
}

/* Without a scheduler, an old secret cannot be recognised, so it is removed with its tree; if one
 * is left over, a message names it. */
static void without_a_scheduler_the_secret_ends_with_the_tree(void **state)
{
	struct cop_job_secret first;

	(void)state;
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_string_equal(got.note, "");
	first = got;
	got = (struct cop_job_secret){0};
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	assert_non_null(strstr(got.note, "earlier start"));
	cop_job_secret_retire(folder, &first);
	assert_int_equal(access(shared, F_OK), -1);
	assert_int_equal(get_secret(NULL, folder, 0, 0), 0);
	cop_job_secret_retire(folder, &first);
	assert_int_equal(access(shared, F_OK), 0);
	cop_job_secret_free(&first);
}

static void a_job_directory_is_made_with_what_is_above_it(void **state)
{
	char dir[128], logs[140], above[100];
	struct stat st;

	(void)state;
	snprintf(above, sizeof(above), "%s/a", folder);
	snprintf(dir, sizeof(dir), "%s/b", above);
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	assert_int_equal(cop_job_dir_make(dir, &err), 0);
	assert_int_equal(stat(logs, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	assert_int_equal(cop_job_dir_make(dir, &err), 0);
	assert_int_equal(rmdir(logs), 0);
	write_file(logs, 1, 0600);
	assert_int_equal(cop_job_dir_make(dir, &err), -ENOTDIR);
	assert_non_null(strstr(err.text, logs));
	assert_int_equal(cop_job_dir_make("", &err), -EINVAL);
	assert_int_equal(cop_job_dir_make("/proc/nothing", &err), -ENOENT);
	unlink(logs);
	rmdir(dir);
	rmdir(above);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(without_any_setting_there_is_no_secret_and_no_error),
		TEST(a_missing_file_is_named),
		TEST(a_file_open_to_others_is_refused_with_the_way_out),
		TEST(a_file_of_another_user_is_refused),
		TEST(a_symbolic_link_is_refused),
		TEST(a_secret_must_be_a_regular_file),
		TEST(sizes_from_1_byte_to_4_kib_are_accepted),
		TEST(a_file_comes_before_the_environment_and_that_before_the_job),
		TEST(an_environment_of_over_4_kib_is_refused),
		TEST(rank_0_makes_a_private_random_secret),
		TEST(others_say_what_they_wait_for),
		TEST(a_secret_that_someone_planted_is_refused),
		TEST(a_job_directory_that_cannot_be_written_is_named),
		TEST(processes_that_race_agree_on_one_content),
		TEST(the_secret_of_another_job_is_replaced_and_that_is_said),
		TEST(others_wait_until_it_is_replaced_and_say_whose_it_is),
		TEST(processes_that_replace_it_at_once_agree_on_one_content),
		TEST(a_jobs_name_cannot_leave_the_folder),
		TEST(a_file_of_the_users_own_is_taken_in_every_job),
		TEST(without_a_scheduler_the_secret_ends_with_the_tree),
		TEST(a_job_directory_is_made_with_what_is_above_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
