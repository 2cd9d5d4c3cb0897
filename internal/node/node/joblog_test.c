/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "joblog.h"
#include "base/log/log.h"

static char folder[64], dir[80];
static struct cop_conf conf;
static struct cop_joblog job;
static struct cop_err err;

static int setup(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/copper-joblog-test-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	snprintf(dir, sizeof(dir), "%s/job", folder);
	cop_conf_init(&conf, true);
	conf.log_level = COP_LOG_INFO;
	conf.log_type = COP_LOG_FILE;
	return 0;
}

static int teardown(void **state)
{
	char logs[96];

	(void)state;
	cop_log_close();
	if (job.path[0])
		unlink(job.path);
	snprintf(logs, sizeof(logs), "%s/logs", dir);
	rmdir(logs);
	rmdir(dir);
	return rmdir(folder);
}

static void the_file_is_named_after_the_host_of_the_list(void **state)
{
	char expected[160], text[2048] = "";
	FILE *f;

	(void)state;
	conf.job_dir = dir;
	assert_int_equal(cop_joblog_open(&conf, "n7", &job, &err), 0);
	assert_string_equal(job.job_dir, dir);
	snprintf(expected, sizeof(expected), "%s/logs/n7-%d-output.log", dir, (int)getpid());
	assert_string_equal(job.path, expected);
	cop_joblog_begin(&conf, 3, 4, "/src", "");
	cop_joblog_note(NULL);
	cop_joblog_note("");
	cop_joblog_note("less than asked for");
	f = fopen(job.path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	assert_non_null(strstr(text, "rank=3 nodes=4 source=/src mountpoint=none\n"));
	assert_non_null(strstr(text, "profile_metrics: disabled\n"));
	assert_non_null(strstr(text, "note: less than asked for\n"));
	assert_null(strstr(text, "note: \n"));
}

static void without_a_job_directory_there_is_no_file(void **state)
{
	(void)state;
	assert_int_equal(cop_joblog_open(&conf, NULL, &job, &err), 0);
	assert_string_equal(job.job_dir, "");
	assert_string_equal(job.path, "");
	assert_int_equal(access(dir, F_OK), -1);
}

static void a_job_directory_that_others_can_enter_is_refused(void **state)
{
	(void)state;
	conf.job_dir = dir;
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_true(cop_joblog_open(&conf, NULL, &job, &err) < 0);
	assert_non_null(strstr(err.text, dir));
	assert_string_equal(job.path, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_file_is_named_after_the_host_of_the_list, setup, teardown),
		cmocka_unit_test_setup_teardown(
			without_a_job_directory_there_is_no_file, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_job_directory_that_others_can_enter_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
